package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// classMemo is what was found out of a request class.
type classMemo struct {
	// failed remembers why nothing fitted.
	failed failedClass
	// spreads are the domains of the candidates, by key of placement.spread.
	spreads map[string][]string
}

func memoOf(s *match.Class) *classMemo {
	m, known := s.Memo.(*classMemo)
	if !known {
		m = &classMemo{}
		s.Memo = m
	}
	return m
}
