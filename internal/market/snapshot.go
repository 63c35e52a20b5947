package market

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Snapshot is the market at one moment. It never changes.
type Snapshot struct {
	generation uint64
	txn        *memdb.Txn
	inputs     *Inputs
	listens    time.Time
	cut        bool
	at         time.Time
	warmup     time.Duration
	silence    time.Duration
	demand     map[string]*v1alpha1.DemandSeen
	all        func() []*model.Offer
	tree       func() tree.Tree
	// listings are all rows, by provider.
	listings func() []*listing
	// halves is what half has found of the last list; shared by the snapshot's later ages.
	halves *atomic.Pointer[halfOf]
}

// view is one provider's offers; shared by all snapshots between two changes
// of it.
type view struct {
	provider string
	offers   []*model.Offer // by name
	blob     func() *written
	// newest is the newest blob that was made of the provider, here or before.
	newest atomic.Pointer[written]
}

// asOf is the snapshot as of a later moment: nothing in it differs but its age.
func (s *Snapshot) asOf(now time.Time) *Snapshot {
	if s.at.Equal(now) {
		return s
	}
	later := *s
	later.at = now
	return &later
}

// Generation tells snapshots apart: it grows with every change of an offer or
// of a provider's freshness.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Offers are all offers, in order of provider and name.
func (s *Snapshot) Offers() []*model.Offer {
	if s.all == nil {
		return nil
	}
	return s.all()
}

// Offer is one offer, nil when the market does not know it.
func (s *Snapshot) Offer(provider, name string) *model.Offer {
	if l := row(s.txn, provider); l != nil {
		return l.view.offer(name)
	}
	return nil
}

// offer is one of a view's, nil when there is none.
func (v *view) offer(name string) *model.Offer {
	if v == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(v.offers, name, func(o *model.Offer, name string) int {
		return strings.Compare(o.Flavor.Metadata.Name, name)
	})
	if !ok {
		return nil
	}
	return v.offers[i]
}

// Providers names those that offer something, in order.
func (s *Snapshot) Providers() []string {
	out := []string{}
	for _, l := range s.listings() {
		if l.view != nil {
			out = append(out, l.provider)
		}
	}
	return out
}

// Differs names the providers whose offers or freshness are not as they were in
// an older snapshot of the same market, in order. It costs a comparison of
// pointers a provider.
func (s *Snapshot) Differs(old *Snapshot) []string {
	var out []string
	if s.txn == old.txn {
		return nil
	}
	now, was := s.listings(), old.listings()
	for len(now) > 0 || len(was) > 0 {
		switch {
		case len(was) == 0 || len(now) > 0 && now[0].provider < was[0].provider:
			out = append(out, now[0].provider)
			now = now[1:]
		case len(now) == 0 || was[0].provider < now[0].provider:
			out = append(out, was[0].provider)
			was = was[1:]
		default:
			if now[0] != was[0] {
				out = append(out, now[0].provider)
			}
			now, was = now[1:], was[1:]
		}
	}
	return out
}

// Of are the offers of one provider, by name.
func (s *Snapshot) Of(provider string) []*model.Offer { return row(s.txn, provider).offers() }

// Provider is what is known of a provider. One that was never heard, and of
// which no file tells, has been silent since the market began to listen.
func (s *Snapshot) Provider(name string) ProviderState {
	if l := row(s.txn, name); l != nil {
		return l.state
	}
	grace := max(graceOf(s.inputs, name), s.silence)
	p := ProviderState{State: model.Silent, Since: v1alpha1.TimeOf(s.listens), GraceEnds: v1alpha1.TimeOf(s.listens.Add(grace))}
	if !s.at.Before(s.listens.Add(grace)) {
		p.State = model.Lost
	}
	return p
}

// Settled reports whether every provider has had the time to be heard since the
// market began to listen. It changes once, by time alone.
func (s *Snapshot) Settled() bool { return !s.at.Before(s.listens.Add(s.silence)) }

// Missing stands for a flavor that the market does not know but contracts are
// on: one that was withdrawn long ago, or whose provider has not been heard
// since the start. It offers nothing. A provider that has not had the time to
// be heard is not blamed for silence: what it holds is kept as it is.
func (s *Snapshot) Missing(provider, name string) *model.Offer {
	p := s.Provider(provider)
	o := &model.Offer{
		Flavor: &v1alpha1.Flavor{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
			Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
			Spec:     v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{}},
		},
		State: p.State, Since: p.Since, GraceEnds: p.GraceEnds, Static: p.Static,
	}
	if p.State == model.Fresh || !p.Heard && !s.Settled() {
		o.State, o.Since = model.Withdrawn, v1alpha1.TimeOf(s.listens)
	}
	if c := s.inputs.Clusters[provider]; c != nil {
		o.Location = c.Spec.Location
		if o.Location != (v1alpha1.Location{}) {
			o.Sources.Location = v1alpha1.SourceStated
		}
	}
	return o
}

// Shadowed names the files' flavors of which nothing new is sold because the provider's
// agent reports one of the same name, "<provider>/<name>", in order.
func (s *Snapshot) Shadowed() []string {
	var out []string
	for _, f := range s.inputs.Flavors {
		if o := s.Offer(f.Metadata.Namespace, f.Metadata.Name); o != nil && !o.Static && !isFacts(f) {
			out = append(out, f.Ref())
		}
	}
	slices.Sort(out)
	return out
}

// publish makes the next snapshot from the one before. The rows of some
// providers are made anew, because what is known of them may have changed, and
// those of dirty ones, because their freshness has; all else is carried over.
func (m *Market) publish(now time.Time, names []string, dirty map[string]bool, inputs bool) {
	old := m.current.Load()
	if len(names)+len(dirty) == 0 && !inputs {
		return
	}
	touched := maps.Clone(dirty)
	for _, name := range names {
		touched[name] = true
	}
	changed, differ := m.remake(touched)
	if len(dirty) == 0 && !changed && !inputs {
		return
	}
	in := m.inputs
	next := m.snapshot(&in, now)
	next.generation, next.demand = old.generation, old.demand
	if len(dirty) > 0 || differ {
		next.generation++
	} else {
		next.all, next.tree = old.all, old.tree
	}
	m.current.Store(next)
	if next.generation != old.generation {
		m.signal()
	}
}

// snapshot is the market as its table is.
func (m *Market) snapshot(in *Inputs, now time.Time) *Snapshot {
	txn := m.db.Txn(false)
	listings := sync.OnceValue(func() []*listing {
		list, _ := rows(txn, indexID)
		return list
	})
	return &Snapshot{
		txn: txn, listings: listings, halves: &atomic.Pointer[halfOf]{}, inputs: in, listens: m.listens, cut: m.cut, at: now, warmup: m.opts.Warmup, silence: m.silence(),
		all: sync.OnceValue(func() []*model.Offer {
			var out []*model.Offer
			for _, l := range listings() {
				out = append(out, l.offers()...)
			}
			return out
		}),
		tree: sync.OnceValue(func() tree.Tree { return treeOf(listings()) }),
	}
}

func (m *Market) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// remake makes the rows of some providers anew, in one transaction, and says
// whether any has changed, and whether what any offers differs.
func (m *Market) remake(touched map[string]bool) (changed, differ bool) {
	txn := m.db.Txn(true)
	for name := range touched {
		before, offered := row(txn, name), (*view)(nil)
		if before != nil {
			offered = before.view
		}
		state, known := m.state(name)
		next := &listing{name, state, m.makeView(name, state, offered)}
		differ = differ || next.view != offered
		switch {
		case !known && next.view == nil:
			if before != nil {
				must(txn.Delete(tableProvider, before))
				changed = true
			}
		case before == nil || *before != *next:
			must(txn.Insert(tableProvider, next))
			changed = true
		}
	}
	txn.Commit()
	return changed, differ
}

// state is what is known of a provider, if anything is.
func (m *Market) state(name string) (s ProviderState, known bool) {
	p := m.providers[name]
	if p == nil {
		return ProviderState{State: model.Fresh, Static: true, Heard: true}, len(m.files[name]) > 0
	}
	s = ProviderState{State: p.freshness, Heard: p.agent && !p.unheard, Static: !p.agent}
	if p.freshness != model.Fresh {
		s.Since = v1alpha1.TimeOf(p.heard)
		s.GraceEnds = v1alpha1.TimeOf(p.heard.Add(m.grace(name)))
	}
	return s, true
}
