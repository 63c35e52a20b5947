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
	started    time.Time
	at         time.Time
	warmup     time.Duration
	silence    time.Duration
	views      []*view // by provider
	heard      map[string]ProviderState
	demand     map[string]*v1alpha1.DemandSeen
	all        func() []*model.Offer
	tree       func() tree.Tree
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
	raw, err := s.txn.First(tableOffer, indexID, provider, name)
	must(err)
	o, _ := raw.(*model.Offer)
	return o
}

// find is a provider's view, nil when it has none.
func find(views []*view, provider string) *view {
	i, ok := slices.BinarySearchFunc(views, provider, func(v *view, name string) int {
		return strings.Compare(v.provider, name)
	})
	if !ok {
		return nil
	}
	return views[i]
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
	out := make([]string, len(s.views))
	for i, v := range s.views {
		out[i] = v.provider
	}
	return out
}

// Differs names the providers whose offers or freshness are not as they were in
// an older snapshot of the same market, in order. It costs a comparison of
// pointers a provider.
func (s *Snapshot) Differs(old *Snapshot) []string {
	var out []string
	for i, j := 0, 0; i < len(s.views) || j < len(old.views); {
		switch {
		case j == len(old.views) || i < len(s.views) && s.views[i].provider < old.views[j].provider:
			out = append(out, s.views[i].provider)
			i++
		case i == len(s.views) || old.views[j].provider < s.views[i].provider:
			out = append(out, old.views[j].provider)
			j++
		default:
			if s.views[i] != old.views[j] {
				out = append(out, s.views[i].provider)
			}
			i, j = i+1, j+1
		}
	}
	for name, state := range s.heard {
		if before, known := old.heard[name]; !known || state != before {
			out = append(out, name)
		}
	}
	for name := range old.heard {
		if _, known := s.heard[name]; !known {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Of are the offers of one provider, by name.
func (s *Snapshot) Of(provider string) []*model.Offer {
	if v := find(s.views, provider); v != nil {
		return v.offers
	}
	return nil
}

// Provider is what is known of a provider. One that was never heard, and of
// which no file tells, has been silent since the market began to listen.
func (s *Snapshot) Provider(name string) ProviderState {
	if p, ok := s.heard[name]; ok {
		return p
	}
	grace := max(graceOf(s.inputs, name), s.silence)
	p := ProviderState{State: model.Silent, Since: v1alpha1.TimeOf(s.started), GraceEnds: v1alpha1.TimeOf(s.started.Add(grace))}
	if !s.at.Before(s.started.Add(grace)) {
		p.State = model.Lost
	}
	return p
}

// Settled reports whether every provider has had the time to be heard since the
// market began to listen. It changes once, by time alone.
func (s *Snapshot) Settled() bool { return !s.at.Before(s.started.Add(s.silence)) }

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
		o.State, o.Since = model.Withdrawn, v1alpha1.TimeOf(s.started)
	}
	if c := s.inputs.Clusters[provider]; c != nil {
		o.Location = c.Spec.Location
		if o.Location != (v1alpha1.Location{}) {
			o.Sources.Location = v1alpha1.SourceStated
		}
	}
	return o
}

// Shadowed names the files' flavors that are not used because the provider's
// agent reports one of the same name, "<provider>/<name>", in order.
func (s *Snapshot) Shadowed() []string {
	var out []string
	for _, f := range s.inputs.Flavors {
		if o := s.Offer(f.Metadata.Namespace, f.Metadata.Name); o != nil && !o.Static {
			out = append(out, f.Ref())
		}
	}
	slices.Sort(out)
	return out
}

// publish makes the next snapshot from the one before. The views of some
// providers are made anew, because what is known of them may have changed, and
// those of dirty ones, because their freshness has; all else is carried over.
func (m *Market) publish(now time.Time, names []string, dirty map[string]bool, inputs bool) {
	old := m.current.Load()
	if len(names)+len(dirty) == 0 && !inputs {
		return
	}
	heard := maps.Clone(old.heard)
	touched := maps.Clone(dirty)
	for _, name := range names {
		touched[name] = true
	}
	m.states(heard, touched, inputs)
	views, differ := m.remake(old.views, heard, touched)
	if len(dirty) == 0 && !differ && !inputs && maps.Equal(heard, old.heard) {
		return
	}
	in := m.inputs
	next := &Snapshot{
		generation: old.generation, txn: m.db.Txn(false), inputs: &in, started: m.started, at: now, warmup: m.opts.Warmup, silence: m.opts.Silence,
		heard: heard, demand: old.demand, views: views, all: old.all, tree: old.tree,
	}
	if len(dirty) > 0 || differ {
		next.generation++
		next.all = sync.OnceValue(func() []*model.Offer {
			var out []*model.Offer
			for _, v := range views {
				out = append(out, v.offers...)
			}
			return out
		})
		next.tree = lazyTree(views)
	}
	m.current.Store(next)
	if next.generation != old.generation {
		m.signal()
	}
}

func (m *Market) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// remake makes the views of some providers anew, and their rows in one
// transaction, and says whether any differs.
func (m *Market) remake(old []*view, heard map[string]ProviderState, touched map[string]bool) (views []*view, differ bool) {
	views = make([]*view, 0, len(old)+len(touched))
	for _, v := range old {
		if !touched[v.provider] {
			views = append(views, v)
		}
	}
	txn := m.db.Txn(true)
	for name := range touched {
		before := find(old, name)
		v := m.makeView(name, heard[name], before)
		if v != before {
			write(txn, before, v)
			differ = true
		}
		if v != nil {
			views = append(views, v)
		}
	}
	txn.Commit()
	slices.SortFunc(views, func(a, b *view) int { return strings.Compare(a.provider, b.provider) })
	return views, differ
}

// states brings what is known of providers up to date.
func (m *Market) states(heard map[string]ProviderState, dirty map[string]bool, all bool) {
	for name, p := range m.providers {
		if !dirty[name] && !all {
			continue
		}
		s := ProviderState{State: p.freshness, Heard: p.agent, Static: !p.agent}
		if p.freshness != model.Fresh {
			s.Since = v1alpha1.TimeOf(p.heard)
			s.GraceEnds = v1alpha1.TimeOf(p.heard.Add(m.grace(name)))
		}
		heard[name] = s
	}
	if !all {
		return
	}
	for name := range heard {
		if m.providers[name] == nil {
			delete(heard, name)
		}
	}
	for _, f := range m.inputs.Flavors {
		if m.providers[f.Metadata.Namespace] == nil {
			heard[f.Metadata.Namespace] = ProviderState{State: model.Fresh, Static: true, Heard: true}
		}
	}
}
