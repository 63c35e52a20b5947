package planner

// Known is of how many intents it is known how they wait, for the next round.
func (s *Session) Known() (n int) {
	if s.base == nil {
		return 0
	}
	for i := range s.base.own.cached {
		if more := s.base.own.cached[i].more; more != nil && more.known != nil {
			n++
		}
	}
	return n
}
