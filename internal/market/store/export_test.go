package store

// Taken is how much the store has, packed, with parts that are to be deleted.
func (s *Shared) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken()
}

// Doubts are how many objects are to be looked at.
func (s *Shared) Doubts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.doubts)
}
