package ordered

import "slices"

// full is how many entries or children a node holds; one with fewer than few is
// joined with its neighbour when it loses one.
const (
	full = 64
	few  = full / 4
)

// node is a leaf with entries, or an inner node with children.
type node[V any] struct {
	owner   *owner
	entries []entry[V]
	kids    []kid[V]
}

// kid is a child and a key that goes after none of its own and after all of its
// left neighbour's.
type kid[V any] struct {
	from string
	node *node[V]
}

// depth is 0 for a leaf.
func (n *node[V]) depth() int {
	d := 0
	for ; n.kids != nil; n = n.kids[0].node {
		d++
	}
	return d
}

func (n *node[V]) first() string {
	if n.kids != nil {
		return n.kids[0].from
	}
	return n.entries[0].key
}

// at is where a key is, or would be, among a leaf's entries.
func (n *node[V]) at(key string) (i int, there bool) {
	lo, hi := 0, len(n.entries)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.entries[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(n.entries) && n.entries[lo].key == key
}

// under is the child that a key belongs to.
func (n *node[V]) under(key string) int {
	lo, hi := 1, len(n.kids)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.kids[mid].from <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (n *node[V]) get(key string) (value V, there bool) {
	if n == nil {
		return value, false
	}
	for n.kids != nil {
		n = n.kids[n.under(key)].node
	}
	if i, there := n.at(key); there {
		return n.entries[i].value, true
	}
	return value, false
}

// from yields the entries from a key on, false when it was told to stop.
func (n *node[V]) from(key string, yield func(string, V) bool) bool {
	switch {
	case n == nil:
		return true
	case n.kids == nil:
		i, _ := n.at(key)
		for _, e := range n.entries[i:] {
			if !yield(e.key, e.value) {
				return false
			}
		}
		return true
	}
	i := n.under(key)
	if !n.kids[i].node.from(key, yield) {
		return false
	}
	for _, k := range n.kids[i+1:] {
		if !k.node.from("", yield) {
			return false
		}
	}
	return true
}

// own is the node itself where the Edit has made it, else a copy that it makes.
func (n *node[V]) own(by *owner) *node[V] {
	if n.owner == by {
		return n
	}
	c := &node[V]{owner: by}
	if n.kids != nil {
		c.kids = append(make([]kid[V], 0, roomFor(len(n.kids))), n.kids...)
	} else {
		c.entries = append(make([]entry[V], 0, roomFor(len(n.entries))), n.entries...)
	}
	return c
}

// roomFor leaves little room: most nodes are copied for one entry.
func roomFor(n int) int { return min(n+4, full) }

// insert puts one in its place in a list of a node, which grows to full at most.
func insert[E any](list []E, i int, e E) []E {
	if n := len(list); n == cap(list) {
		list = append(make([]E, 0, min(n+n/2+4, full)), list...)
	}
	return slices.Insert(list, i, e)
}

// set is the node with an entry, and a right neighbour of it where it became too
// full. last: nothing in the tree goes after it.
func (n *node[V]) set(by *owner, e entry[V], last bool) (left, right *node[V], added bool) {
	if n.kids == nil {
		i, there := n.at(e.key)
		left = n.own(by)
		if there {
			left.entries[i] = e
			return left, nil, false
		}
		if len(left.entries) == full {
			right = left.split(last && i == full)
			if i > len(left.entries) || len(right.entries) == 0 {
				right.entries = insert(right.entries, i-len(left.entries), e)
				return left, right, true
			}
		}
		left.entries = insert(left.entries, i, e)
		return left, right, true
	}
	i := n.under(e.key)
	down, beside, added := n.kids[i].node.set(by, e, last && i == len(n.kids)-1)
	left = n.own(by)
	left.kids[i].node = down
	if e.key < left.kids[i].from {
		left.kids[i].from = e.key
	}
	if beside == nil {
		return left, nil, added
	}
	k := kid[V]{beside.first(), beside}
	if len(left.kids) == full {
		right = left.split(last && i == full-1)
		if i+1 > len(left.kids) || len(right.kids) == 0 {
			right.kids = insert(right.kids, i+1-len(left.kids), k)
			return left, right, added
		}
	}
	left.kids = insert(left.kids, i+1, k)
	return left, right, added
}

// split moves the right half of an own node to a new one; nothing of it where
// keys come in order, so that nodes end up full.
func (n *node[V]) split(inOrder bool) *node[V] {
	at := full / 2
	if inOrder {
		at = full
	}
	right := &node[V]{owner: n.owner}
	if n.kids != nil {
		right.kids = append(make([]kid[V], 0, roomFor(full-at)), n.kids[at:]...)
		n.kids = append(make([]kid[V], 0, roomFor(at)), n.kids[:at]...)
	} else {
		right.entries = append(make([]entry[V], 0, roomFor(full-at)), n.entries[at:]...)
		n.entries = append(make([]entry[V], 0, roomFor(at)), n.entries[:at]...)
	}
	return right
}

// remove is the node without a key that is in it.
func (n *node[V]) remove(by *owner, key string) *node[V] {
	n = n.own(by)
	if n.kids == nil {
		i, _ := n.at(key)
		n.entries = slices.Delete(n.entries, i, i+1)
		return n
	}
	i := n.under(key)
	down := n.kids[i].node.remove(by, key)
	n.kids[i].node = down
	switch size := down.size(); {
	case size == 0:
		n.kids = slices.Delete(n.kids, i, i+1)
	case size < few && len(n.kids) > 1:
		n.join(by, max(i-1, 0))
	}
	return n
}

func (n *node[V]) size() int { return len(n.entries) + len(n.kids) }

// join makes one child of two neighbours where they find room in one, else
// shares what they have between them.
func (n *node[V]) join(by *owner, i int) {
	a, b := n.kids[i].node.own(by), n.kids[i+1].node
	var right *node[V]
	if a.kids != nil {
		all := concat(a.kids, b.kids)
		a.kids = all
		if len(all) > full {
			half := len(all) / 2
			a.kids, right = concat(all[:half], nil), &node[V]{owner: by, kids: concat(all[half:], nil)}
		}
	} else {
		all := concat(a.entries, b.entries)
		a.entries = all
		if len(all) > full {
			half := len(all) / 2
			a.entries, right = concat(all[:half], nil), &node[V]{owner: by, entries: concat(all[half:], nil)}
		}
	}
	n.kids[i].node = a
	if right == nil {
		n.kids = slices.Delete(n.kids, i+1, i+2)
		return
	}
	n.kids[i+1] = kid[V]{right.first(), right}
}

// concat is a new list, with room for no more than is in it.
func concat[E any](a, b []E) []E { return append(append(make([]E, 0, len(a)+len(b)), a...), b...) }
