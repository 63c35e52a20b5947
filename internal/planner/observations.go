package planner

import (
	"hash/maphash"
	"maps"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Observations are what clusters say of contracts, by name. A value never
// changes and may be shared; With makes the next one, at the cost of what is
// different. The zero value holds nothing.
type Observations struct{ book *observationBook }

// What is said is kept in a book of pages of a few lines each: a change copies
// the book's list of pages, one page, and a handful of what is said. What two
// books share is seen by its address.
type (
	observationBook [observationParts]*observationPage
	observationPage [observationParts]*observationLine
	// observationLine holds values that never change; nor does it.
	observationLine map[string]*v1alpha1.Observation
)

// observationParts is how many pages a book and how many lines a page has.
const observationParts = 128

var observationSeed = maphash.MakeSeed()

// placeOf is the page and the line of a contract.
func placeOf(contract string) (page, line uint64) {
	h := maphash.String(observationSeed, contract) % (observationParts * observationParts)
	return h / observationParts, h % observationParts
}

// at is a page's lines.
func (o Observations) at(page uint64) *observationPage {
	if o.book == nil || o.book[page] == nil {
		return &emptyPage
	}
	return o.book[page]
}

var emptyPage observationPage

func (l *observationLine) said() observationLine {
	if l == nil {
		return nil
	}
	return *l
}

// Of is what clusters say of a contract; of one that nobody says anything of,
// the zero value.
func (o Observations) Of(contract string) v1alpha1.Observation {
	page, line := placeOf(contract)
	if x := o.at(page)[line].said()[contract]; x != nil {
		return *x
	}
	return v1alpha1.Observation{}
}

// With is the observations with some said anew and some gone.
func (o Observations) With(news map[string]v1alpha1.Observation, gone ...string) Observations {
	if len(news)+len(gone) == 0 {
		return o
	}
	next := new(observationBook)
	if o.book != nil {
		*next = *o.book
	}
	var pages [observationParts]bool
	lines := map[*observationLine]bool{} // and these are own
	own := func(contract string) observationLine {
		page, line := placeOf(contract)
		if !pages[page] {
			copied := *o.at(page)
			pages[page], next[page] = true, &copied
		}
		at := &next[page][line]
		if !lines[*at] {
			copied := observationLine{}
			maps.Copy(copied, (*at).said())
			*at = &copied
			lines[*at] = true
		}
		return **at
	}
	for name, x := range news {
		own(name)[name] = &x
	}
	for _, name := range gone {
		delete(own(name), name)
	}
	return Observations{next}
}

// Differs are the contracts of which o does not say what before said, in no
// order. It costs what has changed.
func (o Observations) Differs(before Observations) []string {
	var out []string
	before.changed(o, func(contract string) { out = append(out, contract) })
	return out
}

// changed calls f with the contracts of which two say different things.
func (o Observations) changed(later Observations, f func(contract string)) {
	if o.book == later.book {
		return
	}
	for i := range uint64(observationParts) {
		was, now := o.at(i), later.at(i)
		if was == now {
			continue
		}
		for k := range was {
			if was[k] == now[k] {
				continue
			}
			x, y := was[k].said(), now[k].said()
			for name, said := range x {
				if says, both := y[name]; !both || said != says && !SameObservation(*said, *says) {
					f(name)
				}
			}
			for name := range y {
				if _, both := x[name]; !both {
					f(name)
				}
			}
		}
	}
}

// SameObservation reports whether two observations say the same. Nothing granted
// is not the same as nothing known of it.
func SameObservation(a, b v1alpha1.Observation) bool {
	return a.ProviderSeen == b.ProviderSeen && a.ProviderHolds.Same(b.ProviderHolds) && a.Consumer.Equal(&b.Consumer)
}
