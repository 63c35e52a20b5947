package heard

import (
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Ears remember which clusters another daemon hears or reaches and this one does
// not: it would else write that they are silent, be contradicted, write it again,
// and in the end move away what a provider serves well. The zero value has heard
// nothing.
type Ears struct {
	ledger *ledger.Ledger
	// heard are providers, reached consumers.
	heard, reached rumour
}

// rumour is what the ledger tells of clusters that are not heard here: a contract
// that stood there with a reason that blames its cluster's silence, and does not
// any more, was put so by somebody who hears the cluster. That holds until the
// cluster is heard here, or until the ledger blames it again, which then is the
// other one's word.
type rumour struct {
	// told are the contracts whose reason blames their cluster.
	told map[string]bool
	// elsewhere are the clusters that are only heard elsewhere; the map is
	// replaced and never changed.
	elsewhere map[string]bool
}

// Read takes over a ledger: each one that was read or written. The cost is what
// has changed in it.
func (e *Ears) Read(l *ledger.Ledger) {
	was := e.ledger
	if was == nil {
		was = ledger.Empty()
	}
	for tenant, intent := range l.Differs(was) {
		for _, c := range was.ByIntent(tenant, intent) {
			if l.Contract(c.Metadata.Name) == nil {
				delete(e.heard.told, c.Metadata.Name)
				delete(e.reached.told, c.Metadata.Name)
			}
		}
		for _, c := range l.ByIntent(tenant, intent) {
			code := c.Status.Reason
			e.heard.note(c, c.Spec.Provider, code == ledger.DegradedProviderSilent || code == ledger.DegradedProviderLost)
			e.reached.note(c, c.Spec.Consumer, code == ledger.DegradedConsumerUnreachable)
		}
	}
	e.ledger = l
}

// Hear takes over what is heard here.
func (e *Ears) Hear(s *market.Snapshot, observed v1alpha1.ConsumerObservations) {
	e.heard.drop(func(provider string) bool { return s.Provider(provider).State == model.Fresh })
	e.reached.drop(func(consumer string) bool {
		for _, o := range observed[consumer] {
			return o.Reachable // of all or none
		}
		return false
	})
}

// Elsewhere are the providers that only others hear and the consumers that only
// others reach: the planner's World.Heard and World.Reached. Both are never changed
// afterwards.
func (e *Ears) Elsewhere() (providers, consumers map[string]bool) {
	return e.heard.elsewhere, e.reached.elsewhere
}

// note looks at a contract that has changed.
func (r *rumour) note(c *v1alpha1.Contract, cluster string, blamed bool) {
	switch name := c.Metadata.Name; {
	case blamed && c.Status.Phase.Charged():
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[name] = true
		r.drop(func(other string) bool { return other == cluster })
	case r.told[name]:
		delete(r.told, name)
		if c.Status.Phase.Charged() && c.Status.Phase != v1alpha1.PhaseDegraded && !r.elsewhere[cluster] {
			next := map[string]bool{cluster: true}
			maps.Copy(next, r.elsewhere)
			r.elsewhere = next
		}
	}
}

// drop forgets clusters.
func (r *rumour) drop(which func(cluster string) bool) {
	for cluster := range r.elsewhere {
		if which(cluster) {
			r.elsewhere = maps.Clone(r.elsewhere)
			delete(r.elsewhere, cluster)
		}
	}
}
