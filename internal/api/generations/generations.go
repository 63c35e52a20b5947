package generations

// Cache keeps values by key in two generations.
type Cache[K comparable, V any] struct {
	// Most is the weight of one generation.
	Most int
	// Weigh is the weight of a value; nil weighs each as 1. It is always the same
	// for a value, and one heavier than Most is a generation alone.
	Weigh func(V) int

	young, old map[K]V
	weight     int // of young
}

// Get is the value of a key, which stays for it.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	if v, ok := c.young[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	if ok {
		c.Put(k, v)
	}
	return v, ok
}

// Put keeps a value. One that is young under its key already stays.
func (c *Cache[K, V]) Put(k K, v V) {
	if _, ok := c.young[k]; ok {
		return
	}
	weight := 1
	if c.Weigh != nil {
		weight = c.Weigh(v)
	}
	if c.young == nil || c.weight+weight > c.Most {
		c.young, c.old, c.weight = map[K]V{}, c.young, 0
	}
	c.young[k] = v
	c.weight += weight
}

// Len is how many values are kept, counting those twice that are in both
// generations.
func (c *Cache[K, V]) Len() int { return len(c.young) + len(c.old) }
