package storetest

// count notes what a write adds to the store, packed. mu is held.
func (o *Objects) count(of string, report []byte) {
	if o.bytes == nil {
		o.bytes = map[string]int64{}
	}
	o.bytes[of] += int64(len(report))
}

// Bytes is what all writes of a cluster's lists, of their parts and of what is seen there
// added to the store, packed: also what was replaced or deleted since.
func (o *Objects) Bytes(cluster string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes[cluster]
}

// Made is how many parts were created.
func (o *Objects) Made() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made
}
