package heard

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Gone remembers since when contracts are seen gone on their consumers. A
// provider's word that it holds nothing counts only when it was given after
// that: the report of a grant may have been lost, and an older report would
// then prove that the provider let go of what it had not yet given
// (invariant 11). The zero value has seen nothing gone.
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

// Unheard are the Releasing contracts that are gone and whose provider, by its
// agent, has not reported since.
func (g *Gone) Unheard(l *ledger.Ledger, m *market.Market) map[string]bool {
	out := map[string]bool{}
	for _, contracts := range g.since {
		for name, since := range contracts {
			c := l.Contract(name)
			if c == nil || c.Status.Phase != v1alpha1.PhaseReleasing {
				continue
			}
			if heard := m.Heard(c.Spec.Provider); !heard.After(since) {
				out[name] = true
			}
		}
	}
	return out
}

// StillHeld tells the market what contracts had that are held and smaller now. The
// newest report of a provider may be older than the contract itself, and the
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
		if before == nil || before.Spec.Resources.Max(c.Spec.Resources).Equal(c.Spec.Resources) {
			continue
		}
		if o := m.Snapshot().Offer(c.Spec.Provider, c.Spec.Flavor); o != nil {
			m.StillHeld(c.Spec.Provider, c.Spec.Flavor, c.Spec.Slice, ledger.AsOffered(before, o.Flavor))
		}
	}
}
