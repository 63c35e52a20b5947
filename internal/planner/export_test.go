package planner

import (
	"runtime"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"golang.org/x/sys/unix"
)

// Pace is how fast a round went, in processor time of its thread.
type Pace struct {
	// Round is what it took to read the world, Settle to settle what needs no
	// offer, Conclude to make and check the plan of what was decided.
	Round, Settle, Conclude time.Duration
	// Cold is what making all classes took, Shapes how many there are.
	Cold   time.Duration
	Shapes int
	// Scan is what looking at every flavor for one intent takes, without any class.
	Scan time.Duration
	// Turns are the decisions, each from the task to the booked contract, in order of time.
	Turns []time.Duration
	// Made and Kept are the bytes that all turns took, and those of them that the plan keeps.
	Made, Kept uint64
	Plan       *draft.Plan
}

// Percentile of the turns.
func (p *Pace) Percentile(of float64) time.Duration {
	return p.Turns[min(int(float64(len(p.Turns))*of), len(p.Turns)-1)]
}

// MeasurePace decides a world of intents that have nothing yet, one turn after
// the other, and returns how long everything took. The caller has locked its
// goroutine to a thread.
func MeasurePace(w draft.World) *Pace {
	p := &Pace{}
	last := threadTime()
	lap := func() time.Duration {
		now := threadTime()
		took := now - last
		last = now
		return took
	}
	r := newRound(&w)
	p.Round = lap()
	r.prepareAll()
	p.Settle = lap()
	waiting := append([]*draft.Job(nil), r.Jobs...)
	classes := map[*match.Class]bool{}
	for _, j := range waiting {
		for alt := range j.Alternatives() {
			s := r.ClassOf(j, alt)
			classes[s] = true
			s.Best(func(*match.Candidate) bool { return true }, false)
		}
	}
	p.Cold, p.Shapes = lap(), len(classes)
	sample := waiting[:min(len(waiting), 50)]
	for _, j := range sample {
		r.scan(j)
	}
	p.Scan = lap() / time.Duration(max(len(sample), 1))
	r.Order(waiting)
	runtime.GC()
	before := memory()
	lap()
	seen := map[*match.Class]bool{}
	for _, j := range waiting {
		s := r.ClassOf(j, 0)
		lap()
		r.Fill(j, place.Request{})
		if took := lap(); seen[s] {
			p.Turns = append(p.Turns, took)
		} else {
			seen[s] = true
			p.Cold += took // the first of a class completes it
		}
	}
	made := memory()
	runtime.GC()
	kept := memory()
	p.Made, p.Kept = made.TotalAlloc-before.TotalAlloc, max(kept.HeapAlloc, before.HeapAlloc)-before.HeapAlloc
	lap()
	r.Waiting = slices.DeleteFunc(waiting, func(j *draft.Job) bool { return len(j.Tasks) == 0 })
	r.conclude()
	r.check()
	p.Conclude = lap()
	p.Plan = r.Plan
	slices.Sort(p.Turns)
	return p
}

// scan finds the best offer for a job as one would who remembers nothing: by the
// same rules, every offer in turn.
func (r *round) scan(j *draft.Job) *match.Candidate {
	back := r.Match.Imagine() // nothing is known of any class, and of this one afterwards
	r.Match.ForgetAll()
	s := r.Match.Class(r.AskOf(j, place.Request{}, 0))
	r.Match.Refresh(s)
	cands := s.Candidates
	back()
	var best *match.Candidate
	for i := range cands {
		if c := &cands[i]; c.Fails == "" && (best == nil || c.Score > best.Score) {
			best = c
		}
	}
	return best
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// threadTime is the processor's time that this thread has had: the machine may
// be busy with other things.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Effort is what a round did, counted where it was done.
type Effort struct {
	// Looked at offers for a kind of request, Made contracts, on trial too, and
	// Tasks that were not shared.
	Looked, Made int64
	Tasks        int
	// Parts are the looks for parts of replicas.
	Parts int64
}

// CountWork decides a world from nothing and counts what that took.
func CountWork(w draft.World) (*draft.Plan, Effort) {
	r := newRound(&w)
	d := Effort{}
	r.step = func(s Step) {
		if s != StepServe || d.Tasks > 0 {
			return
		}
		d.Tasks = len(r.Nothing)
		for _, j := range r.Jobs {
			if !r.IsNothing(j.Tasks) {
				d.Tasks += len(j.Tasks)
			}
		}
	}
	r.decide()
	d.Looked, d.Made = r.Match.Evaluated(), r.Made
	for _, n := range r.Parts {
		d.Parts += n
	}
	return r.Plan, d
}

// DecideWithin decides a world while what is known of each offer may take so many bytes.
func DecideWithin(w draft.World, budget int64) *draft.Plan {
	r := newRound(&w)
	r.Match.Budget = budget
	r.decide()
	return agree(r, func(r *round, marks map[string]draft.RefusalMark) *round {
		next := fromNothing(r, marks)
		next.Match.Budget = budget
		return next
	}).Plan
}

// BookWithin decides the bookings of a world while what is known of each offer may take so
// many bytes, and returns how many wait, and for how many of those that is still in memory.
func BookWithin(w draft.World, budget int64) (waiting, known int) {
	r := newRound(&w)
	r.Match.Budget = budget
	r.prepareAll()
	bookAhead(r)
	for _, j := range r.Bookers {
		if len(j.Open[0].Class.Candidates) > 0 {
			known++
		}
	}
	return len(r.Bookers), known
}

// prepareAll is a round's way to its first turn.
func (r *round) prepareAll() {
	r.observeAll()
	r.guard()
	r.settle()
}

// Break makes the session trip over the next change of an offer.
func (s *Session) Break() { s.base.draft.Inventory = &inventory.Inventory{} }
