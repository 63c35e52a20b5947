package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/parts"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// A replica that no flavor can hold whole may be put together from several
// (spec.split). It is divided by units: its GPUs, or its cores where it has
// none. Each part takes its share of everything else, rounded up, and then to
// the flavor's next legal size; each has a contract and a slice of its own, and
// all parts are placed or none. Once placed, a part is looked after like a
// replica of its own, which asks for that share: it is kept, resized, moved and
// fails over by itself. Only when the number of units changes, or the parts are
// no longer as the intent allows, is the replica remade as a whole.

// SplitUnits is by how many units a request is divided, 0 when it is not: a
// share of one card has no parts.
func (r *Placer) SplitUnits(q *v1alpha1.ResourceRequest) int64 {
	if q.GPU != nil {
		if q.GPU.Share != nil {
			return 0
		}
		return max(int64(q.GPU.Count), 1)
	}
	cpu := r.Defaults.At(quantity.CPU)
	if n, named := q.Named[v1alpha1.CPU]; named {
		cpu = n.Int64()
	}
	return (cpu + 999) / 1000
}

// splits reports whether a task's replica may be put together from parts: one
// whose slice is shared by several virtual nodes is of one piece.
func splits(j *draft.Job, q Request, t draft.Task) bool {
	s := j.In.Spec.Split
	return s != nil && !j.In.Spec.VirtualNode.IsShared() && s.MaxParts > 1 && t.Of == 0 && q.part == nil
}

// portion is one part of a replica: units of the of that the whole has.
type portion struct {
	number    int32
	units, of int64
}

// forPart is the request for one part of a job's replica: by the shares of those
// alternatives that have as many units; there may be none.
func (r *Placer) forPart(j *draft.Job, q Request, p portion) Request {
	c := &choice{}
	whole := q.alternatives(j)
	for i := range whole {
		if r.SplitUnits(&whole[i]) == p.of {
			c.alternatives = append(c.alternatives, parts.Share(r.Names, r.Defaults, &whole[i], p.units, p.of))
		}
	}
	q.part, q.choice = &p, c
	return q
}

// partition is how one replica is put together from parts, by one of its intent's
// alternatives. What it places counts for the parts that follow.
type partition struct {
	*Placer
	job  *draft.Job
	how  Request
	task draft.Task
	// ask is the alternative that is divided; alt is its number among those of as many
	// units.
	ask *v1alpha1.ResourceRequest
	alt int
	// of is how many units the replica has, least how many a part has at the least.
	of, least int64
	thrifty   bool
	// placed are the contracts of the attempt so far, this replica's parts among
	// them; spent is what all of those cost, and others is how many replicas follow.
	placed []*v1alpha1.Contract
	spent  match.SpendLimits
	others int64
	// used are the offers that have a part already.
	used map[*inventory.Offer]bool
	// first are the rooms of the first part, the same in each attempt.
	first *parts.Rooms
	sizes *parts.Sizes
}

// partitionOf is that of a task's replica by the alt-th alternative, before
// anything is placed.
func (r *Placer) partitionOf(j *draft.Job, q Request, alt int, t draft.Task) *partition {
	alternatives := q.alternatives(j)
	ask := alternatives[alt]
	x := &partition{Placer: r, job: j, how: q, task: t, ask: &ask, of: r.SplitUnits(&ask), least: parts.LeastUnits(j.In.Spec.Split, &ask)}
	for i := range alt {
		if r.SplitUnits(&alternatives[i]) == x.of {
			x.alt++
		}
	}
	x.sizes = parts.NewSizes(x.least, x.of, x.fits())
	return x
}

// placedPart is a part that was placed.
type placedPart struct {
	contract *v1alpha1.Contract
	line     draft.ContractLine
	at       *match.Candidate
}

// place puts the replica together from the fewest parts that hold it, or does
// nothing and returns nil. Of so many parts the best offer that leaves the rest
// within reach of the others takes as much as it can, then the next.
func (x *partition) place() []placedPart {
	most := min(int64(x.job.In.Spec.Split.MaxParts), x.of/x.least)
	for n := int64(2); n <= most; n++ {
		if parts := x.placeIn(n); parts != nil || x.how.looks.Ended() {
			return parts
		}
	}
	return nil
}

// placeIn is place with just so many parts.
func (x *partition) placeIn(n int64) []placedPart {
	var out []placedPart
	m, before, spent, rest := x.Mark(), x.placed, x.spent, x.of
	x.used = map[*inventory.Offer]bool{}
	for number := range int32(n) {
		p, units := x.placePart(parts.Part{Number: number, Rest: rest, After: n - int64(number) - 1})
		if p == nil {
			x.Rollback(m)
			x.placed, x.spent = before, spent
			for o := range x.used {
				x.sizes.Changed(o)
			}
			return nil
		}
		rest -= units
		out, x.placed = append(out, *p), append(slices.Clip(x.placed), p.contract)
		peak := x.Peak(p.contract) + x.transferOf(p.contract)
		x.spent.Hourly += peak
		x.spent.Total += peak.ForSeconds(x.job.Seconds)
	}
	x.Keep(m)
	return out
}

// placePart places one part on the best offer that leaves the rest within reach
// of the others, and returns how many units it took.
func (x *partition) placePart(p parts.Part) (*placedPart, int64) {
	rooms := x.rooms(p)
	if rooms == nil {
		return nil, 0
	}
	reach, enough := rooms.Reach(p)
	for i := 0; enough && i < len(rooms.List); i++ {
		at := &rooms.List[i]
		units := rooms.Takes(at, p, x.least, reach)
		if units == 0 {
			continue
		}
		if placed := x.put(p, at.Offer, units); placed != nil {
			x.used[at.Offer] = true
			return placed, units
		}
		if x.how.looks.Ended() {
			break
		}
	}
	return nil, 0
}

// portion is how one part of so many units is to be served.
func (x *partition) portion(p parts.Part, units int64) Request {
	return x.forPart(x.job, x.how, portion{p.Number, units, x.of})
}

// limits are those of one part.
func (x *partition) limits(s *match.Class) *Limits {
	l := x.LimitsFor(x.job, x.how, s, x.spent, x.others)
	l.Rules = x.rulesFor(x.job, x.how, s, x.task.Replica, x.placed)
	return l
}

// rooms are the offers that can take a part now, the best first, as seen by the
// smallest part.
func (x *partition) rooms(p parts.Part) *parts.Rooms {
	if p.Number == 0 && x.first != nil {
		return x.first
	}
	s := x.ClassFor(x.job, x.portion(p, x.least), x.alt)
	if !x.how.looks.Take(int64(len(s.Candidates))) {
		return nil
	}
	l := x.limits(s)
	var cands []*match.Candidate
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Fails == "" && !x.used[c.Offer] && !(x.how.asked && c.Unasked) && l.Rejects(c) == "" {
			cands = append(cands, c)
		}
	}
	if !x.how.looks.Take(int64(looksOfOrder * len(cands))) {
		return nil
	}
	slices.SortFunc(cands, func(a, b *match.Candidate) int { return match.Compare(a, b, x.thrifty) })
	list := make([]parts.Room, len(cands))
	for i, c := range cands {
		list[i] = parts.Room{Offer: c.Offer, Units: max(x.least, min(x.sizes.For(c.Offer), p.Rest))}
	}
	out := parts.Of(list)
	if p.Number == 0 {
		x.first = out
	}
	return out
}

// fits reports whether an offer has room for so many units: sizes grow with them.
func (x *partition) fits() func(*inventory.Offer, int64) bool {
	known := map[int64]*match.Request{}
	return func(o *inventory.Offer, units int64) bool {
		w := known[units]
		if w == nil {
			w = &match.Request{Need: x.Defaults.Clone()}
			q := parts.Share(x.Names, x.Defaults, x.ask, units, x.of)
			for _, name := range q.Named.Names() {
				w.Need = w.Need.Set(x.Names.Of(name), q.Named[name].Int64())
			}
			if x.Match.AskPods(w, q.PerPod); q.GPU != nil {
				w.GPU = &match.CardRequest{Count: units}
			}
			known[units] = w
		}
		return x.Match.FailsCapacity(w, o, w.Size(o)) == ""
	}
}

// put places one part of so many units on an offer, nil when money or a rule
// forbids it.
func (x *partition) put(p parts.Part, o *inventory.Offer, units int64) *placedPart {
	q := x.portion(p, units)
	s := x.ClassFor(x.job, q, x.alt)
	if !x.how.looks.Take(int64(len(s.Candidates))) {
		return nil
	}
	c := s.Of(o)
	l := x.limits(s)
	if c == nil || c.Fails != "" || l.Rejects(c) != "" {
		return nil
	}
	made := x.NewContract(x.job, q, s, c, nil, x.task.Replica)
	x.Put(nil, made)
	x.sizes.Changed(o)
	return &placedPart{made, x.PlacedLine(made, s, c), c.Fixed()}
}

// unitsText is a number of a replica's units in words.
func unitsText(j *draft.Job, n int64) string {
	what := "core"
	if j.In.Spec.Resources.GPU != nil {
		what = "GPU"
	}
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
