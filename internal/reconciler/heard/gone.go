package heard

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Gone remembers since when contracts are seen gone on their consumers. A
// provider's word that it holds nothing counts only when the provider cannot give
// anything any more: the report of a grant may have been lost, and an older report
// would then prove that the provider let go of what it had not yet given
// (invariant 11). It counts by its cause alone, when the agent that gave it had carried out
// instructions that the contract ends; an agent that does not say what it carried out, or of
// a contract of which it is not known with which number it began to end, has to report
// twice after the contract was seen gone. The zero value has seen nothing gone.
type Gone struct {
	observed v1alpha1.ConsumerObservations
	since    map[string]map[string]time.Time // by cluster and contract
}

// Follow takes over what consumers say now.
func (g *Gone) Follow(observed v1alpha1.ConsumerObservations, now time.Time) {
	if g.since == nil {
		g.since = map[string]map[string]time.Time{}
	}
	for _, cluster := range observed.Differs(g.observed) {
		next := map[string]time.Time{}
		for name, o := range observed[cluster] {
			if !o.Gone() {
				continue
			}
			next[name] = now
			if before, ok := g.since[cluster][name]; ok {
				next[name] = before
			}
		}
		if g.since[cluster] = next; len(next) == 0 {
			delete(g.since, cluster)
		}
	}
	g.observed = observed
}

// enforced is the class of slices that agents answer; others are Liqo's, who goes by no
// instructions.
const enforced = "fleetbroker"

// Unheard are the Releasing contracts that are gone and of whose provider, by its
// agent, no word counts yet. numbers gives the number on the ledger with which a contract
// began to end, 0 where it is not known, and that of the ledger itself: what an agent
// says above it means nothing.
func (g *Gone) Unheard(l *ledger.Ledger, m *market.Market, numbers func(c *v1alpha1.Contract) (began, newest uint64, err error)) (map[string]bool, error) {
	out := map[string]bool{}
	for _, contracts := range g.since {
		for name, since := range contracts {
			c := l.Contract(name)
			if c == nil || c.Status.Phase != v1alpha1.PhaseReleasing {
				continue
			}
			twice := m.HeardTwice(c.Spec.Provider).After(since)
			if honoured := m.Honoured(c.Spec.Provider); c.Spec.Class == enforced && honoured > 0 {
				began, newest, err := numbers(c)
				if err != nil {
					return nil, fmt.Errorf("look when contract %s began to end: %w", name, err)
				}
				if began > 0 && honoured <= newest {
					twice = began <= honoured // by its cause alone
				}
			}
			if !twice {
				out[name] = true
			}
		}
	}
	return out, nil
}

// StillHeld tells the market what contracts had that are held and smaller now, or have less
// of a node. The newest report of a provider may be older than the contract itself, and the
// ledger alone would then say that what was taken off is free, though the
// provider has not let go of it (invariant 11).
func StillHeld(m *market.Market, changes []model.Change) {
	had := map[string]*v1alpha1.Contract{}
	for _, change := range changes {
		if c := change.Before; c != nil && c.Status.Phase.Held() {
			had[c.Metadata.Name] = c
		}
	}
	for _, change := range changes {
		c := change.After
		if c == nil || !c.Status.Phase.Held() {
			continue
		}
		before := had[c.Metadata.Name]
		if before == nil || !ledger.Smaller(before, c) {
			continue
		}
		if o := m.Snapshot().Offer(c.Spec.Provider, c.Spec.Flavor); o != nil {
			m.StillHeld(c.Spec.Provider, c.Spec.Flavor, c.Spec.Slice, ledger.HadBy(before, o.Flavor))
		}
	}
}
