package match

import (
	"cmp"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/stranded"
)

// What is scarce of cards that are sold in parts is room for what is asked for,
// and the resources term of such an offer counts how little of it a placement
// strands: F is what of an offer's idle cards the next requests of the usual mix
// would leave (package stranded), the mix being World.Workload, else the intents
// there are. The term rises with how much F falls, and a little with how full
// the offer is, which decides between many that are alike:
//
//	R = 1 ÷ (1 + e^(−4·(F before − F after − 0.15·(½·cpu + ½·gpu left))))
//
// cpu and gpu being parts of those of the largest such offer.
//
// By the rules before draft.RulesStranded F was that of Weng et al. ("Beware of
// Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
// Descent", USENIX ATC 2023), with a fill of 0.05 in place of 0.15: what one request
// drawn from the workload could not use,
//
//	F = Σ p(m) · (all idle cards, where m fits not; else the idle parts of cards
//	    that have less than m's share)
//
// The published descent cuts its scores to whole numbers and draws among equals; the
// simulation compares both (TestFragmentation of internal/simulate).
const (
	packingSlope = 4
	packingFill  = 0.15
	fragmentFill = 0.05
	// maxKinds bounds the kinds of request that are compared: the most frequent.
	maxKinds = 128
)

// Typical is a kind of request and how often it is asked for.
type Typical struct {
	// Request of one replica.
	Request v1alpha1.ResourceRequest
	// Weight is its part of all requests, in any unit.
	Weight float64
}

// workload is the kinds of request that ask for cards.
type workload struct {
	kinds []requestKind
	// ahead is Facts.LooksAhead.
	ahead bool
	// suits is which kinds a kind of card suits, by number of the card's; mixes are what
	// is asked for of it.
	suits map[int][]bool
	mixes map[cardKey]*stranded.Mix
	// most cores and cards that an offer has which sells parts of cards.
	cpu, cards float64
	// after is room for the cards of one offer.
	after []int64
	// now are the fragments of offers as they are, by index.
	now []counted
}

// counted is what fragments counted of an offer's cards, valid while nothing else is
// free of them.
type counted struct {
	cards     *inventory.CardMap
	changes   uint64
	fragments float64
}

// cardKey is a kind of card by its number, and how many units it has.
type cardKey struct {
	kind int
	per  int64
}

type requestKind struct {
	cpu  int64
	gpu  *CardRequest
	freq float64
}

// workload is made on first use.
func (m *Matcher) workload() *workload {
	if m.load != nil && m.load.ahead == m.facts.LooksAhead {
		return m.load
	}
	w := &workload{ahead: m.facts.LooksAhead, suits: map[int][]bool{}, mixes: map[cardKey]*stranded.Mix{}, now: make([]counted, len(m.inventory.Offers()))}
	m.load = w
	at := map[string]int{}
	var all float64
	add := func(q *v1alpha1.ResourceRequest, weight float64) {
		if q.GPU == nil || !(weight > 0) {
			return
		}
		cpu := m.facts.Defaults.At(quantity.CPU)
		if n, named := q.Named[v1alpha1.CPU]; named {
			cpu = n.Int64()
		}
		var b keys.Buffer
		b.Int(cpu)
		keyRequest(&b, &v1alpha1.ResourceRequest{GPU: q.GPU})
		i, known := at[string(b)]
		if !known {
			i = len(w.kinds)
			at[string(b)] = i
			w.kinds = append(w.kinds, requestKind{cpu: cpu, gpu: CardRequestOf(q.GPU)})
		}
		w.kinds[i].freq += weight
		all += weight
	}
	for i := range m.facts.Workload {
		add(&m.facts.Workload[i].Request, m.facts.Workload[i].Weight)
	}
	if len(m.facts.Workload) == 0 {
		for _, in := range m.facts.Intents() {
			add(&in.Spec.Resources, float64(max(in.Spec.Replicas.Min, 1)))
		}
	}
	slices.SortStableFunc(w.kinds, func(a, b requestKind) int { return cmp.Compare(b.freq, a.freq) })
	w.kinds = w.kinds[:min(len(w.kinds), maxKinds)]
	for i := range w.kinds {
		w.kinds[i].freq /= all
	}
	for _, o := range m.inventory.Offers() {
		if o.Cards() != nil {
			w.cpu = max(w.cpu, float64(o.Capacity.At(quantity.CPU)))
			w.cards = max(w.cards, float64(len(o.Cards().Free())))
		}
	}
	return w
}

// ForgetWorkload notes that other requests may be typical now.
func (m *Matcher) ForgetWorkload() { m.load = nil }

// DropStaleScores drops all classes where they were scored by a workload that is another
// now. Only parts of cards are scored by it.
func (m *Matcher) DropStaleScores() {
	if m.inventory.SellsPartsOfCards() && m.load == nil {
		clear(m.classes)
	}
}

// suited is which kinds an offer's cards suit.
func (w *workload) suited(o *inventory.Offer) []bool {
	list, known := w.suits[o.CardKind]
	if !known {
		list = make([]bool, len(w.kinds))
		for i := range w.kinds {
			list[i] = w.kinds[i].gpu.fact(o) == ""
		}
		w.suits[o.CardKind] = list
	}
	return list
}

// mix is what is asked for of an offer's cards.
func (w *workload) mix(o *inventory.Offer) *stranded.Mix {
	key := cardKey{o.CardKind, o.Cards().PerCard()}
	if w.mixes[key] == nil {
		var kinds []stranded.Kind
		for i, suits := range w.suited(o) {
			if k := &w.kinds[i]; suits {
				units := k.gpu.Units(key.per)
				whole := max(units/key.per, 1)
				kinds = append(kinds, stranded.Kind{Cores: k.cpu / whole, Units: min(units, key.per), Often: k.freq})
			}
		}
		w.mixes[key] = stranded.New(key.per, kinds)
	}
	return w.mixes[key]
}

// fragments is F of an offer by the rules before draft.RulesStranded, as if it had so many
// milli-cores and these units of its cards free, in cards.
func (w *workload) fragments(o *inventory.Offer, cpu int64, free []int64) float64 {
	per := o.Cards().PerCard()
	var idle, empty, most int64
	for _, n := range free {
		n = max(n, 0)
		idle += n
		if n >= per {
			empty++
		}
		most = max(most, n)
	}
	if idle == 0 {
		return 0
	}
	suits, sum := w.suited(o), 0.0
	for i := range w.kinds {
		k := &w.kinds[i]
		units := k.gpu.Units(per)
		whole, need := units/per, units%per
		if whole > 0 {
			need = per
		}
		if !suits[i] || k.cpu > cpu || need > most || empty < whole {
			sum += k.freq * float64(idle)
			continue
		}
		var scraps int64
		for _, n := range free {
			if n < need {
				scraps += max(n, 0)
			}
		}
		sum += k.freq * float64(scraps)
	}
	return sum / float64(per)
}

// stranded is F of an offer as if it had so many milli-cores and these units of its cards
// free, in cards.
func (w *workload) stranded(o *inventory.Offer, cpu int64, free []int64) float64 {
	if w.ahead {
		return w.mix(o).Of(cpu, free)
	}
	return w.fragments(o, cpu, free)
}

// strandedNow is F of an offer as it is, while so many milli-cores are free.
func (w *workload) strandedNow(o *inventory.Offer, cpu int64) float64 {
	d, was := o.Cards(), &w.now[o.Index]
	if was.cards != d || was.changes != d.Changes() {
		*was = counted{d, d.Changes(), w.stranded(o, cpu, d.Free())}
	}
	return was.fragments
}

// packing is the resources term of a size on an offer with cards of which parts are
// sold, and on which card a part of one then lies: -1 where that is no matter.
func (m *Matcher) packing(o *inventory.Offer, free, size quantity.Vector) (term float64, card int) {
	w, d := m.workload(), o.Cards()
	before := w.strandedNow(o, free.At(quantity.CPU))
	cpu := free.At(quantity.CPU) - size.At(quantity.CPU)
	w.after = append(w.after[:0], d.Free()...)
	after := w.after
	lose := func(on ...v1alpha1.CardUnits) float64 {
		copy(after, d.Free())
		for _, u := range on {
			if i := d.At(u); i >= 0 {
				after[i] -= u.Units
			}
		}
		return w.stranded(o, cpu, after)
	}
	units := size.At(quantity.GPU)
	left, card := math.Inf(1), -1
	if units == 0 || units >= d.PerCard() {
		left = lose(d.Choose(units, -1)...)
	} else {
		for i, free := range d.Free() {
			if free < units || slices.Contains(d.Free()[:i], free) {
				continue // a card like an earlier one does the same
			}
			if f := lose(d.Units(i, units)); f < left {
				left, card = f, i
			}
		}
	}
	fill := 0.0
	if w.cpu > 0 {
		fill += 0.5 * float64(max(cpu, 0)) / w.cpu
	}
	if w.cards > 0 {
		fill += 0.5 * float64(max(free.At(quantity.GPU)-units, 0)) / float64(d.PerCard()) / w.cards
	}
	if math.IsInf(left, 1) {
		left = before // loose units that no card has together
	}
	weight := packingFill
	if !w.ahead {
		weight = fragmentFill
	}
	return 1 / (1 + math.Exp(-packingSlope*(before-left-float64(weight*fill)))), card
}

// Resources is the resources term of a size on an offer, as if freed of it, and
// units of its cards, were free as well.
func (m *Matcher) Resources(w *Request, o *inventory.Offer, size, freed quantity.Vector, cards []v1alpha1.CardUnits) (term float64) {
	free := o.Free()
	if len(freed) > 0 {
		free = free.Clone().Add(freed)
	}
	if o.Cards() == nil {
		return resourceTerm(free, o.Capacity, size, w.GPU != nil)
	}
	if len(cards) == 0 {
		term, _ = m.packing(o, free, size)
		return term
	}
	o.Cards().Without(cards, func() { term, _ = m.packing(o, free, size) })
	return term
}
