package match

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/alike"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// answers are what a condition answered for an intent, by the values of the facts that it
// looks at: it is asked once for all offers that have these in common.
type answers struct {
	set  *alike.Set
	said []answer
}

type answer uint8

const (
	yes answer = iota + 1
	no
)

// meets reports whether an offer meets a condition; one that has no answer for it is not
// met. by are the condition's answers for the intent.
func meets(m *Matcher, w *Request, p model.Predicate, by *answers, o *inventory.Offer) bool {
	prog, compiled := p.(*celenv.Program)
	if !compiled {
		return asked(w, p, o)
	}
	if by.set == nil || !by.set.In(m.numbers) {
		facts, known := prog.Facts()
		if !known {
			return asked(w, p, o)
		}
		*by = answers{set: m.numbers.Of(facts)}
	}
	n := by.set.Number(o)
	for int(n) >= len(by.said) {
		by.said = append(by.said, make([]answer, max(int(n)+1-len(by.said), len(by.said), 16))...)
	}
	if by.said[n] == 0 {
		by.said[n] = no
		if asked(w, p, o) {
			by.said[n] = yes
		}
	}
	return by.said[n] == yes
}

func asked(w *Request, p model.Predicate, o *inventory.Offer) bool {
	ok, err := p.Eval(w.Intent, o.Resolved(), o.Cluster)
	return err == nil && ok
}

// answersOf are the answers of one of an intent's policies, those of all intents where it
// looks at none; beyond them those of its own condition.
func answersOf(m *Matcher, w *Request, policy int) *answers {
	if policy < len(w.Policies) {
		prog, compiled := w.Policies[policy].Predicate.(*celenv.Program)
		if compiled && !readsIntent(prog) && !prices(prog) {
			if m.policies[prog] == nil {
				m.policies[prog] = &answers{}
			}
			return m.policies[prog]
		}
	}
	if w.answers == nil {
		w.answers = make([]answers, len(w.Policies)+1)
	}
	return &w.answers[policy]
}

// prices reports whether a condition looks at prices, which depend on what is asked for.
func prices(p *celenv.Program) bool {
	facts, known := p.Facts()
	for _, f := range facts {
		known = known && !strings.HasPrefix(f, "flavor.price")
	}
	return !known
}

// readsIntent reports whether a condition may look at the intent itself. A
// condition that shows its source and does not mention the intent does not.
func readsIntent(p model.Predicate) bool {
	s, shows := p.(interface{ Source() string })
	return !shows || strings.Contains(s.Source(), "intent")
}
