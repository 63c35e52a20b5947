package market

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Interval is how often agents report when nothing changes.
const Interval = 30 * time.Second

// DefaultGrace is how long a provider may be silent before it counts as lost
// when neither its cluster nor the fleet says (FORMATS: gracePeriod 5m).
const DefaultGrace = 5 * time.Minute

// forget is how long a withdrawn flavor is remembered. Contracts on it are kept
// after that too (Snapshot.Missing); only its description goes.
const forget = 24 * time.Hour

// Options configure a Market.
type Options struct {
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Silence is how long a provider may go unheard and still sell, where the fleet's safety.silence says nothing; default three intervals.
	Silence time.Duration
	// Warmup is how long after the start a market that has heard few providers is deaf; default an interval and a few seconds.
	Warmup time.Duration
}

// Inputs are what the fleet repo says that the market needs.
type Inputs struct {
	// Key names the inputs: the same key means the same inputs, and setting them again costs nothing. "" never matches.
	Key string
	// Fleet is the policy: currency, rates, grace, silence.
	Fleet *v1alpha1.FleetSpec
	// Clusters by name.
	Clusters map[string]*v1alpha1.Cluster
	// Flavors of files under flavors/.
	Flavors []*v1alpha1.Flavor
	// Prices of files under prices/.
	Prices []*v1alpha1.PriceTable
	// Reported names those of Flavors ("<provider>/<name>") that are no files of the repo but what agents once reported, in a market that is read again: price and place of them are an agent's word.
	Reported map[string]bool
}

// Market takes reports and inputs and publishes snapshots.
type Market struct {
	opts    Options
	db      *memdb.MemDB
	changed chan struct{}

	current atomic.Pointer[Snapshot]

	mu        sync.Mutex
	listens   time.Time // since when anybody could be heard
	cut       bool      // nobody can be heard
	providers map[string]*provider
	given     Inputs                        // as they were set
	inputs    Inputs                        // with normalised flavors
	files     map[string][]*v1alpha1.Flavor // of inputs, by provider
	facts     map[string]*v1alpha1.Flavor   // files that add to what agents report, by reference
	prices    map[string]*v1alpha1.Price    // by their text, to be shared
	due       time.Time                     // when a provider's freshness changes next by time alone, or earlier; zero: never
	early     bool                          // due may be earlier: who it spoke of may have been heard since
	latest    time.Time                     // the latest that was noted
}

// provider is what the writer knows of one.
type provider struct {
	// agent is true once a report has come, or was found in a store.
	agent      bool
	generation wire.Generation
	// heard is when the agent was last heard; with unheard, since when it might have been.
	heard time.Time
	// given is when its newest word was given at the earliest, of those that were heard.
	given time.Time
	// word and before are when the newest two words were that are apart.
	word, before time.Time
	// honoured is what its newest list says of the instructions that were carried out.
	honoured uint64
	// unheard: the list was known before the market listened, and the agent was not heard since.
	unheard   bool
	freshness model.Freshness
	reported  map[string]*v1alpha1.Flavor
	demand    *v1alpha1.DemandSeen
	withdrawn map[string]withdrawal
	// lingering counts until the provider gives its word again, after lingers.
	lingering lingering
	lingers   time.Time
	// removed is since when it is not in the fleet; zero: it is.
	removed time.Time
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

type withdrawal struct {
	flavor *v1alpha1.Flavor
	at     v1alpha1.Time
}

// New makes an empty market.
func New(opts Options) *Market {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Silence <= 0 {
		opts.Silence = 3 * Interval
	}
	if opts.Warmup <= 0 {
		opts.Warmup = Interval + 5*time.Second
	}
	db, err := memdb.NewMemDB(schema())
	must(err)
	m := &Market{
		opts: opts, listens: opts.Now(), db: db, changed: make(chan struct{}, 1),
		providers: map[string]*provider{}, prices: map[string]*v1alpha1.Price{}, inputs: Inputs{Fleet: &v1alpha1.FleetSpec{}},
	}
	in := m.inputs
	m.current.Store(m.snapshot(&in, m.listens))
	return m
}

// Changed receives after there is something new. One receive may stand for
// many changes.
func (m *Market) Changed() <-chan struct{} { return m.changed }

// SetInputs takes what the fleet repo says now: its static flavors, prices,
// places and graces, at once.
func (m *Market) SetInputs(in Inputs) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if in.Key != "" && in.Key == m.inputs.Key {
		return
	}
	if in.Fleet == nil {
		in.Fleet = &v1alpha1.FleetSpec{}
	}
	if in.same(m.given) {
		m.inputs.Key, m.given = in.Key, in
		return
	}
	m.given = in
	names := map[string]bool{}
	for name := range m.providers {
		names[name] = true
	}
	for _, f := range m.inputs.Flavors {
		names[f.Metadata.Namespace] = true
	}
	for _, f := range in.Flavors {
		names[f.Metadata.Namespace] = true
	}
	for name := range in.Clusters {
		names[name] = true
	}
	in.Flavors = normalised(in.Flavors)
	m.inputs = in
	m.files, m.facts = map[string][]*v1alpha1.Flavor{}, map[string]*v1alpha1.Flavor{}
	for _, f := range in.Flavors {
		if isFacts(f) {
			m.facts[f.Ref()] = f
			continue
		}
		m.files[f.Metadata.Namespace] = append(m.files[f.Metadata.Namespace], f)
	}
	now, dirty := m.opts.Now(), map[string]bool{}
	m.refresh(now, dirty)
	for name, p := range m.providers {
		if p.freshness != model.Fresh {
			dirty[name] = true // a grace may have changed, and with it when it is lost
		}
	}
	m.publish(now, sortedKeys(names), dirty, true)
}

// same reports whether two inputs are made of the same documents. Most commits
// change intents and nothing that the market reads.
func (in Inputs) same(o Inputs) bool {
	return o.Fleet != nil && slices.Equal(in.Flavors, o.Flavors) && slices.Equal(in.Prices, o.Prices) && maps.Equal(in.Clusters, o.Clusters) && maps.Equal(in.Reported, o.Reported) &&
		in.Fleet.Currency == o.Fleet.Currency && in.Fleet.Safety.Silence == o.Fleet.Safety.Silence && in.Fleet.Defaults.GracePeriod == o.Fleet.Defaults.GracePeriod && reflect.DeepEqual(in.Fleet.Rates, o.Fleet.Rates)
}

// Snapshot is the market now. It is cheap while nothing has changed.
func (m *Market) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(m.opts.Now())
	return m.current.Load().asOf(m.opts.Now())
}

// Next is when a provider's freshness changes if nothing is heard; zero when
// time changes nothing.
func (m *Market) Next() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.early {
		m.due, m.early = m.next(), false
	}
	return m.due
}

// Heard is when a provider's agent last reported, changed or not, at the earliest;
// zero when it has not since the market listens.
func (m *Market) Heard(provider string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.providers[provider]; p != nil && p.agent && !p.unheard {
		return p.given
	}
	return time.Time{}
}

// How far two words are from each other that are two reports: an agent sends one at a
// time, but perhaps to several addresses of one daemon; and that another replica took
// one is told twice, within a beat.
const apart, apartThere = 5 * time.Second, 20 * time.Second

// HeardTwice is when the earlier one of a provider's newest two reports was given, at
// the earliest: the later one was collected after it had come through. Zero when there
// are not two since the market listens. Reports that come in quick succession are one.
func (m *Market) HeardTwice(provider string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.providers[provider]; p != nil && p.agent && !p.unheard {
		return p.before
	}
	return time.Time{}
}

// SetHonoured takes what a provider's newest list says of the instructions that were
// carried out when it was collected (wire.FlavorReport.Honoured).
func (m *Market) SetHonoured(provider string, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.providers[provider]; p != nil {
		p.honoured = seq
	}
}

// Honoured is the number on the ledger of the instructions that a provider's agent had
// carried out when it collected its newest list, by its own word; 0: it does not say.
func (m *Market) Honoured(provider string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.providers[provider]; p != nil && p.agent {
		return p.honoured
	}
	return 0
}

// Offers are the flavors that a query chooses of those offered now, in order of
// provider and name, as they stand in the market's tree, with all of that tree.
// The channel is closed once they may be others.
func (m *Market) Offers(q Query) (market tree.Tree, flavors []v1alpha1.Flavor, changed <-chan struct{}) {
	s := m.Snapshot()
	offers, changed := s.Select(q)
	for _, o := range offers {
		if o.State != model.Withdrawn {
			flavors = append(flavors, annotated(o))
		}
	}
	return s.Tree(), flavors, changed
}

// update publishes what is known of some providers now.
func (m *Market) update(names []string) {
	now, dirty := m.opts.Now(), map[string]bool{}
	m.look(names, now, dirty)
	m.publish(now, names, dirty, false)
}

// settle lets time pass: providers that have become silent or lost since, and
// withdrawn flavors that are to be forgotten.
func (m *Market) settle(now time.Time) {
	if now.Before(m.latest) {
		m.wentBack(now)
	}
	m.latest = now
	if m.cut || m.due.IsZero() || now.Before(m.due) {
		return
	}
	var forgotten []string
	for name, p := range m.providers {
		for flavor, w := range p.withdrawn {
			if !now.Before(w.at.Add(forget)) {
				delete(p.withdrawn, flavor)
				forgotten = append(forgotten, name)
			}
		}
	}
	if len(forgotten) > 0 {
		slices.Sort(forgotten)
		m.update(slices.Compact(forgotten))
		return
	}
	dirty := map[string]bool{}
	m.refresh(now, dirty)
	m.publish(now, nil, dirty, false)
}

// wentBack puts what was noted while the clock was ahead at the time that it is:
// who reported then would count as heard until that time comes. Each is as long
// ago as it was when the time was last noted.
func (m *Market) wentBack(now time.Time) {
	back := m.latest.Sub(now)
	for _, p := range m.providers {
		for _, at := range []*time.Time{&p.heard, &p.given, &p.word, &p.before, &p.lingers} {
			if at.After(now) {
				*at = at.Add(-back)
			}
		}
		for flavor, w := range p.withdrawn {
			if w.at.After(now) {
				w.at = v1alpha1.TimeOf(w.at.Add(-back))
				p.withdrawn[flavor] = w
			}
		}
	}
	m.due, m.early = m.next(), false
}

// refresh notes whose freshness has changed. While nobody can be heard none
// changes.
func (m *Market) refresh(now time.Time, dirty map[string]bool) {
	if m.cut {
		m.due, m.early = time.Time{}, false
		return
	}
	for name, p := range m.providers {
		if f := m.freshness(name, p, now); f != p.freshness {
			p.freshness = f
			dirty[name] = true
		}
	}
	m.due, m.early = m.next(), false
}

// look is refresh when only these providers were heard or changed: before due
// nobody else's freshness has, so that nobody else is looked at. Thousands of
// providers are heard every interval.
func (m *Market) look(names []string, now time.Time, dirty map[string]bool) {
	if m.cut || !m.due.IsZero() && !now.Before(m.due) {
		m.refresh(now, dirty)
		return
	}
	for _, name := range names {
		p := m.providers[name]
		if p == nil {
			continue // it has files alone
		}
		if f := m.freshness(name, p, now); f != p.freshness {
			p.freshness, dirty[name] = f, true
		}
		m.due = earlier(m.due, m.dueOf(name, p))
	}
	m.early = true
}

// aged publishes a provider's freshness after it was heard and offers what it did.
func (m *Market) aged(name string, now time.Time) {
	dirty := map[string]bool{}
	m.look([]string{name}, now, dirty)
	m.publish(now, nil, dirty, false)
}

// next is when time alone changes anything of any provider: never while nobody can be
// heard.
func (m *Market) next() (next time.Time) {
	if m.cut {
		return next
	}
	for name, p := range m.providers {
		next = earlier(next, m.dueOf(name, p))
	}
	return next
}

// dueOf is when time alone changes what is known of a provider; zero: never.
func (m *Market) dueOf(name string, p *provider) (due time.Time) {
	switch p.freshness {
	case model.Fresh, model.Elsewhere:
		if p.agent {
			due = p.heard.Add(m.silence())
		}
	case model.Silent:
		due = p.heard.Add(m.grace(name))
	}
	for _, w := range p.withdrawn {
		due = earlier(due, w.at.Add(forget))
	}
	return due
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
