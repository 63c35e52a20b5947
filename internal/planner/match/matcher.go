package match

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/alike"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Facts are what a round knows in addition to its offers and who asks for them.
type Facts struct {
	// Names number the resources, as the inventory's do. Defaults are what a replica
	// takes that leaves cores, memory, pods or storage open.
	Names    *quantity.Names
	Defaults quantity.Vector
	// Fleet has the weights, latencies and prices of transfer that hold for all.
	Fleet *v1alpha1.FleetSpec
	Books ledger.Books
	Now   v1alpha1.Time
	// Asked and GrowthApart: what came with draft.RulesAsked, and with
	// draft.RulesGrowthApart, holds.
	Asked, GrowthApart bool
	// PricesCounted: what came with draft.RulesPricesCounted.
	PricesCounted bool
	// ProfilesAlike: a MIG profile is one however it is written (draft.RulesProfilesAlike).
	ProfilesAlike bool
	// LooksAhead: cards sold in parts are scored by what several requests would leave
	// (draft.RulesStranded).
	LooksAhead bool

	Clusters map[string]*v1alpha1.Cluster
	Policies []model.Policy
	// Workload is what is typically asked for; where it is empty, Intents are.
	Workload []Typical
	Intents  func() []*model.Intent
}

// Matcher compares what is asked for with what an inventory offers, and remembers
// what it found from round to round.
type Matcher struct {
	facts     Facts
	inventory *inventory.Inventory
	latencies map[pair]int64
	traits    *offerClasses
	// lots are those of offers without regard to regions, and by them.
	lots    [2]*alike.Lots
	pricer  pricer
	tariffs map[*v1alpha1.Price]*Tariff
	classes map[string]*Class
	lists
	// numbers are those of offers by the facts that conditions look at, policies the
	// answers of those that look at no intent.
	numbers  *alike.Numbers
	policies map[*celenv.Program]*answers
	// accelerators remembers which resources are; unsold are those that offers have and
	// name no price for, by the offer's index.
	accelerators map[string]bool
	unsold       map[int32][]string
	key          keys.Buffer
	// load is workload, nil until asked.
	load *workload
	// Round numbers the rounds: what was not asked for the longest is forgotten first.
	Round uint64
	// evaluated counts the offers that this one has looked at to make classes.
	evaluated int64
}

// New compares with an inventory from nothing.
func New(facts Facts, in *inventory.Inventory) *Matcher {
	m := &Matcher{
		facts: facts, inventory: in, traits: &offerClasses{number: map[trait]int32{}, of: make([]int32, len(in.Offers())), tariffs: make([]*Tariff, len(in.Offers()))},
		lots:         [2]*alike.Lots{alike.NewLots(len(in.Offers()), false), alike.NewLots(len(in.Offers()), true)},
		accelerators: map[string]bool{}, unsold: map[int32][]string{},
		latencies: map[pair]int64{}, tariffs: map[*v1alpha1.Price]*Tariff{}, classes: map[string]*Class{},
		lists:   lists{Budget: DefaultBudget, of: map[*Class]*buffers{}},
		numbers: alike.New(len(in.Offers())), policies: map[*celenv.Program]*answers{},
	}
	for _, l := range facts.Fleet.Latency {
		m.latencies[pairOf(l.From, l.To)] = l.Ms
	}
	for _, o := range in.Offers() {
		m.Describe(o)
	}
	return m
}

// Begin begins the next round of the same inventory.
func (m *Matcher) Begin(facts Facts) {
	m.facts, m.evaluated = facts, 0
	if m.numbers.Crowded() {
		m.numbers = alike.New(len(m.inventory.Offers()))
		clear(m.policies)
	}
}

// Evaluated is how many offers this round has looked at to make classes.
func (m *Matcher) Evaluated() int64 { return m.evaluated }

// Describe takes note of an offer that was described otherwise.
func (m *Matcher) Describe(o *inventory.Offer) {
	has := m.hasAccelerators(o)
	m.numbers.Forget(o)
	for _, l := range m.lots {
		l.Describe(o)
	}
	m.traits.set(o, has, m.facts.GrowthApart)
	delete(m.unsold, int32(o.Index)) //nolint:gosec // their number
	if has && m.facts.Asked {
		if names := accelerators.Unsold(o.Flavor.Spec.Capacity, o.Price, m.isAccelerator); len(names) > 0 {
			m.unsold[int32(o.Index)] = names //nolint:gosec // their number
		}
	}
}

// NotForSale are the offers with accelerators that none of their prices names, by index,
// with what they are.
func (m *Matcher) NotForSale() map[int32][]string { return m.unsold }

// Forget drops the classes of some requests.
func (m *Matcher) Forget(which func(*Request) bool) {
	maps.DeleteFunc(m.classes, func(_ string, s *Class) bool { return which(s.Request) })
}

// ForgetAll drops all classes.
func (m *Matcher) ForgetAll() { clear(m.classes) }

// Imagine lets time pass (SetNow); back makes it what it was, and forgets the classes
// that were made since.
func (m *Matcher) Imagine() (back func()) {
	now, classes := m.facts.Now, maps.Clone(m.classes)
	return func() { m.facts.Now, m.classes = now, classes }
}

// SetNow sets the time at which prices hold.
func (m *Matcher) SetNow(now v1alpha1.Time) { m.facts.Now = now }

// Keep keeps classes for the next round: of those that were not asked for the longest
// only as many as have that many candidates together. What was touched is kept to so
// many (inventory.ShortenTouched).
func (m *Matcher) Keep(candidates, touched int) {
	m.shorten(candidates)
	if forgotten, shortened := m.inventory.ShortenTouched(touched); shortened {
		maps.DeleteFunc(m.classes, func(_ string, s *Class) bool { return s.seen < forgotten && (!s.listed || len(s.Candidates) > 0) })
		for _, s := range m.classes {
			s.seen = 0 // they look at these again, which changes nothing
		}
	}
	if m.inventory.Alterations() > len(m.inventory.Offers()) {
		maps.DeleteFunc(m.classes, func(_ string, s *Class) bool { return !m.catchUp(s) })
		for _, s := range m.classes {
			s.altered = 0
		}
		m.tables.Rewind(m.inventory)
		m.inventory.ForgetAltered()
	}
	m.keepListed(m.classes)
}

// shorten drops those that were not asked for the longest, when there are too many
// candidates.
func (m *Matcher) shorten(candidates int) {
	sum := 0
	for _, s := range m.classes {
		sum += s.weight()
	}
	if sum <= candidates {
		return
	}
	candidates -= candidates / 8 // not again in the next round
	keys := slices.Collect(maps.Keys(m.classes))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.classes[a].used, m.classes[b].used), cmp.Compare(a, b))
	})
	for _, key := range keys {
		if sum <= candidates {
			return
		}
		sum -= m.classes[key].weight()
		delete(m.classes, key)
	}
}

// weight is what a class costs to keep, in candidates.
func (s *Class) weight() int {
	if s.listed {
		return len(s.Candidates) + s.table.Share()/32
	}
	return len(s.Candidates)
}
