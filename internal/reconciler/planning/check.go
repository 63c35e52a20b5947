package planning

import (
	"reflect"
	"runtime/metrics"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Result is what came of a check.
type Result string

// The results.
const (
	// Equal: the plan from nothing is the same.
	Equal Result = "equal"
	// Different: it is another one, which was taken.
	Different Result = "different"
	// OverBudget: it would have needed more memory than it may, and was not made.
	OverBudget Result = "over_budget"
	// Disputed: a plan would be decided otherwise by what it leaves in the ledger of
	// providers that deny, however often it was made again; the last was acted on.
	Disputed Result = "disputed"
	// Unsealed: the plan changed its world in place. Only tests look for that.
	Unsealed Result = "unsealed"
)

// Check is what came of the check of one plan.
type Check struct {
	Result Result
	// Bytes that it allocated; 0 when it was not made.
	Bytes uint64
	// Why is where it found a difference, for a log.
	Why string
}

// check makes a plan from nothing as well, if its number says so, and returns the
// one to act on. They differ if something was changed in place that a World's rule
// says never changes, or if an update of the session has a mistake.
func (p *Planner) check(w planner.World, made *planner.Plan) *planner.Plan {
	if p.opts.Every == 0 || p.number%p.opts.Every != 0 {
		return made
	}
	size := sizeOf(w)
	if p.opts.Budget > 0 && p.needed.by(size) > p.opts.Budget {
		p.opts.Observer.Checked(Check{Result: OverBudget})
		return made
	}
	before := read(allocated)
	plan := planner.Decide(w)
	p.needed = needed{bytes: read(allocated) - before, size: size}
	if reflect.DeepEqual(made, plan) {
		p.opts.Observer.Checked(Check{Result: Equal, Bytes: p.needed.bytes})
		return made
	}
	p.session.Forget()
	why := difference(made, plan)
	p.opts.Observer.Checked(Check{Different, p.needed.bytes, why})
	p.complain("planner session decided differently from a plan made from nothing, which is acted on; please report this", "difference", why, "plan", p.number)
	return plan
}

// needed is what the newest check allocated, and the size of its world.
type needed struct{ bytes, size uint64 }

// by is how many bytes a check of a world of a size is expected to take at most.
func (n needed) by(size uint64) uint64 {
	if n.size == 0 {
		return read(held)
	}
	return uint64(float64(n.bytes) * max(1, float64(size)/float64(n.size)))
}

// sizeOf counts what a plan from nothing reads.
func sizeOf(w planner.World) uint64 {
	n := len(w.Intents) + len(w.Offers) + 1
	if w.Ledger != nil {
		n += w.Ledger.Held()
	}
	return uint64(n) //nolint:gosec // counts are not negative
}

// Names of the runtime's own figures: what was allocated since the start, and
// what the heap holds.
const (
	allocated = "/gc/heap/allocs:bytes"
	held      = "/memory/classes/heap/objects:bytes"
)

func read(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
