package contend

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// FillWaiting gives every waiting job its turn until nothing changes, and
// returns those that still wait, in the order of their last turns. Every pass
// starts from the order of the batch: where tenants hold equal shares that
// decides, and the next round will start from it too.
func (r *Contest) FillWaiting(waiting []*draft.Job, q place.Request) []*draft.Job {
	const passes = 8 // each but the last changed something; more than three were never seen
	isServed := func(j *draft.Job) bool { return len(j.Tasks) == 0 && !j.Warm() }
	var served []*draft.Job
	for pass := 0; pass < passes && len(waiting) > 0; pass++ {
		before := r.Advances
		draft.Set(&r.Draft, &r.Turns, r.Turns+1)
		if len(r.infeasible) > 0 {
			draft.Set(&r.Draft, &r.infeasible, map[string]bool{})
		}
		r.DropReservations()
		served = append(served[:0], waiting...)
		r.serve(served, q)
		waiting = slices.DeleteFunc(waiting, isServed)
		if r.Advances == before {
			break
		}
	}
	return slices.DeleteFunc(served, isServed)
}

type rank struct {
	job          *draft.Job
	flexible     int
	gpu, cpu     int64
	at           int64
	fromPriority int32
	claims       int // 0: others give way to it already
	offered      int // 0: it holds what waits for review
}

// flexibility is in how many places a job could be served, summed over its
// alternatives. What is free of them does not count: the order would be another
// one as soon as the first is served, and the next round would give other
// reasons. Nor does, where parts of cards are sold, whether one is large enough:
// that would be the job's size again.
func (r *Contest) flexibility(j *draft.Job) int {
	n := 0
	for alt := range j.Alternatives() {
		s := place.KnownClass(&r.Placer, j, place.Request{}, alt)
		if s.Sketch(r.Match); s.Packs() {
			n += s.Affordable
		} else {
			n += s.Usable
		}
	}
	return n
}

// Order puts jobs in the order in which they are served: by all that each waits for, so
// that it is the same in each pass, though a turn asks for one replica after the other.
func (r *Contest) Order(jobs []*draft.Job) {
	if len(jobs) < 2 {
		return
	}
	ranks := make([]rank, len(jobs))
	for i, j := range jobs {
		if j.Known != nil && j.Asks() {
			ranks[i] = rank{job: j, at: j.FirstSeen.At.Unix(), fromPriority: j.Priority, claims: 1, offered: 1, gpu: j.Known.Size[0], cpu: j.Known.Size[1]}
			if len(r.Notices) > 0 && r.hasClaim(j) {
				ranks[i].claims = 0
			}
			continue
		}
		r.NoteAskedForAll(j)
		k := rank{job: j, flexible: r.flexibility(j), at: j.FirstSeen.At.Unix(), fromPriority: j.Priority, claims: 1, offered: 1}
		if j.Offered() {
			k.offered = 0
		}
		if r.hasClaim(j) {
			k.claims = 0
		}
		if !place.KnownClass(&r.Placer, j, place.Request{}, 0).Packs() { // flexibility sketched it
			size := r.SizeOf(j)
			k.gpu, k.cpu = size[0], size[1]
		}
		ranks[i] = k
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(
			cmp.Compare(a.offered, b.offered), cmp.Compare(b.fromPriority, a.fromPriority), cmp.Compare(a.claims, b.claims),
			cmp.Compare(a.at, b.at), cmp.Compare(a.flexible, b.flexible), cmp.Compare(b.gpu, a.gpu), cmp.Compare(b.cpu, a.cpu),
			strings.Compare(a.job.TenantName, b.job.TenantName), strings.Compare(a.job.Name, b.job.Name))
	})
	for i := range ranks {
		jobs[i] = ranks[i].job
	}
}
