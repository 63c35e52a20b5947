package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
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

// DomainsOf are those of the candidates that a class could ever use, in order.
func DomainsOf(s *match.Class, by, label string) []string {
	memo, key := memoOf(s), match.KindOf(by, label)
	if list, known := memo.spreads[key]; known {
		return list
	}
	seen := map[string]bool{}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if d := match.Domain(c.Offer, by, label); d != "" && c.FailsMoney == "" && (c.Size.Within(c.Offer.Capacity) || s.Request.Intent.Spec.Split != nil) {
			seen[d] = true
		}
	}
	list := draft.SortedNames(seen)
	if memo.spreads == nil {
		memo.spreads = map[string][]string{}
	}
	memo.spreads[key] = list
	return list
}
