package store

// Doubts are how many objects are to be looked at.
func (s *Shared) Doubts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.doubts)
}
