package draft

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// journal is how a draft is taken back. Who tries something opens a mark first; each
// change after that is written down with what was there before. Marks nest, and none
// outlives its round. Rolling back costs as much as what changed since. While no mark
// is open nothing is written down.
//
// Entries are values in lists that are used again, one list for each kind of change,
// because most decisions are tried under a mark.
type journal struct {
	// kinds are those of the changes, the oldest first: the newest of a kind is the
	// last of its list.
	kinds    []kind
	jobs     []jobWas
	puts     []put
	plans    []planWas
	ordinals []ordinalWas
	loans    []loan
	charges  []account.Change
	others   []func()
	// marks are open, the newest last; made numbers them.
	marks []openMark
	made  int
	// touched counts the contracts that were put on offers, and those that were taken back:
	// it counts up whatever is rolled back.
	touched int
	// state numbers what was changed last; states counts the numbers that were given.
	state, states int
}

type kind uint8

const (
	kindJob kind = iota
	kindPut
	kindPlan
	kindOrdinal
	kindLoan
	kindCharge
	kindOther
)

// Mark is a place in the journal: the number of the mark.
type Mark int

type openMark struct {
	number Mark
	at     int // in kinds
	state  int // at the mark
}

// jobWas is a job before it changed. Its maps are written down apart, and its lists
// are replaced or written down apart.
type jobWas struct {
	job *Job
	was Job
}

// planWas is what a round notes of itself in passing.
type planWas struct {
	due                         v1alpha1.Time
	progress                    int
	reworded, solved, reordered bool
}

// ordinalWas is the next ordinal of a replica.
type ordinalWas struct {
	of    map[string]int32
	key   string
	was   int32
	known bool
}

// put is a version of a contract that took the place of another.
type put struct {
	name          string
	before, after *v1alpha1.Contract
	charged       account.Change
	offer         *inventory.Offer // nil for none
	taken         inventory.Delta
	// was is what the plan wrote of the contract; nothing where it was not known.
	known          bool
	first, current *v1alpha1.Contract
	wasStatusOnly  bool
}

// loan is capacity that seems free.
type loan struct {
	place inventory.Place
	of    inventory.Loan
}

// Mark opens a mark: Rollback or Keep closes it.
func (d *journal) Mark() Mark {
	d.made++
	d.marks = append(d.marks, openMark{Mark(d.made), len(d.kinds), d.state})
	return Mark(d.made)
}

// State is a number that is the same only as long as what is taken and lent of offers and
// charged to accounts, and the instant, are the same: each change gives another one, and
// rolling back to a mark brings back the number of then. What is noted of jobs does not count.
func (d *journal) State() int { return d.state }

// moved gives the state another number.
func (d *journal) moved() {
	d.states++
	d.state = d.states
}

// Trying reports whether a mark is open.
func (d *journal) Trying() bool { return len(d.marks) > 0 }

// find is the place of a mark among those that are open.
func (d *journal) find(m Mark) int {
	i := slices.IndexFunc(d.marks, func(o openMark) bool { return o.number == m })
	if i < 0 {
		panic("draft: the mark to go back to is not open")
	}
	return i
}

// Taken is capacity that is taken of a place; negative where it is given back or lent.
type Taken struct {
	inventory.Place
	Size quantity.Vector
	// On are the nodes of which it is, with how much of each: below nothing where it is
	// given back. What lies nobody knows where is not among it.
	On []nodes.Part
}

// Back is it as what seems free.
func (t *Taken) Back() inventory.Loan {
	return inventory.Loan{Size: t.Size, On: nodes.Holding{Parts: t.On}}
}

// Kept is it as what seems taken.
func (t *Taken) Kept() inventory.Loan {
	return inventory.Loan{Size: t.Size.Negative(), Off: nodes.Holding{Parts: t.On}}
}

// Changed is what was taken of places since a mark that is open, each once, in the order
// in which they were first changed. What is rolled back is not in it. A place that was
// changed back by another change is, with nothing: its version is another. Offers of one
// pool share what they have in common, and are not in it for what is taken of each other.
func (d *journal) Changed(since Mark) []Taken {
	kinds := d.kinds[d.marks[d.find(since)].at:]
	puts, loans := newest(d.puts, kinds, kindPut), newest(d.loans, kinds, kindLoan)
	var out []Taken
	at := map[inventory.Place]int{}
	add := func(p inventory.Place, size quantity.Vector, off, on nodes.Holding) {
		i, known := at[p]
		if !known {
			i = len(out)
			at[p], out = i, append(out, Taken{Place: p})
		}
		out[i].Size = out[i].Size.Add(size)
		out[i].On = nodes.Sum(nodes.Sum(out[i].On, on.Parts, 1), off.Parts, -1)
	}
	for _, k := range kinds {
		switch k {
		case kindPut:
			if e := &puts[0]; e.offer != nil {
				add(e.offer.Place(), e.taken.Size, e.taken.Off, e.taken.On)
			}
			puts = puts[1:]
		case kindLoan:
			add(loans[0].place, loans[0].of.Size.Negative(), loans[0].of.On, loans[0].of.Off)
			loans = loans[1:]
		}
	}
	return out
}

// ChargedSince is what was charged to accounts since a mark that is open, in any order.
// What is rolled back is not in it.
func (d *journal) ChargedSince(since Mark) []account.Change {
	kinds := d.kinds[d.marks[d.find(since)].at:]
	out := slices.Clone(newest(d.charges, kinds, kindCharge))
	for _, e := range newest(d.puts, kinds, kindPut) {
		out = append(out, e.charged)
	}
	return out
}

// newest are the last of a list of changes, those of a kind among kinds.
func newest[T any](list []T, kinds []kind, of kind) []T {
	n := len(list)
	for _, k := range kinds {
		if k == of {
			n--
		}
	}
	return list[n:]
}

// Keep closes the newest mark and leaves what changed since to the mark around it.
func (d *journal) Keep(m Mark) {
	last := len(d.marks) - 1
	if last < 0 || d.marks[last].number != m {
		panic("draft: the mark to keep is not the newest that is open")
	}
	if d.marks = d.marks[:last]; last > 0 {
		return
	}
	forget(&d.jobs)
	forget(&d.puts)
	forget(&d.plans)
	forget(&d.ordinals)
	forget(&d.loans)
	forget(&d.charges)
	forget(&d.others)
	d.kinds = d.kinds[:0]
}

// forget empties a list, so that nothing of it is held.
func forget[T any](list *[]T) {
	clear(*list)
	*list = (*list)[:0]
}

// Did writes down how to take back what was just changed.
func (d *journal) Did(undo func()) {
	if len(d.marks) > 0 {
		d.kinds, d.others = append(d.kinds, kindOther), append(d.others, undo)
	}
}

// EditJob writes a job down before it changes. Whoever sets a field of a job that
// others know calls it first, and puts other lists in the place of the job's where it
// does not only append to them (Own). Under one mark once is enough.
func (d *journal) EditJob(j *Job) {
	n := len(d.marks)
	if n == 0 || j.written >= d.marks[n-1].number {
		return
	}
	d.kinds, d.jobs = append(d.kinds, kindJob), append(d.jobs, jobWas{j, *j})
	j.written = d.marks[n-1].number
}

// notePlan writes down what the round notes of itself, before that changes.
func (r *Draft) notePlan() {
	if d := &r.journal; len(d.marks) > 0 {
		d.kinds = append(d.kinds, kindPlan)
		d.plans = append(d.plans, planWas{r.Plan.Due, r.Advances, r.Plan.reworded, r.Plan.solved, r.Plan.reordered})
	}
}

// Set gives a value, and writes down what was there.
func Set[T any](r *Draft, at *T, to T) {
	if r.Trying() {
		was := *at
		r.Did(func() { *at = was })
	}
	*at = to
}

// Own is a list that may be written into: one of its own while a mark is open, because
// what is written down has the list as it is.
func Own[T any](r *Draft, list []T) []T {
	if r.Trying() {
		return slices.Clone(list)
	}
	return list
}

// SetKey gives a key of a map a value, and writes down what was there.
func SetKey[K comparable, V any](r *Draft, m map[K]V, k K, to V) {
	noteKey(r, m, k)
	m[k] = to
}

// Delete takes a key out of a map, and writes down what was there.
func Delete[K comparable, V any](r *Draft, m map[K]V, k K) {
	noteKey(r, m, k)
	delete(m, k)
}

func noteKey[K comparable, V any](r *Draft, m map[K]V, k K) {
	if !r.Trying() {
		return
	}
	was, known := m[k]
	r.Did(func() {
		if m[k] = was; !known {
			delete(m, k)
		}
	})
}
