package consolidate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// A move for another makes room for an intent that finds no place: one contract that may be
// moved goes to another offer, and the intent takes what it leaves once that is seen gone.
// Whoever came first and could go anywhere may sit where alone the intent can.
//
// The contract that leaves is given a notice with the intent's name as it is released
// (ContractStatus.Displaced), by which package contend keeps the place for the intent.

const (
	// movesTried bounds the moves that are tried in earnest for one intent, the cheapest first.
	movesTried = 8
	// looksOfHolder is what it takes to see whether what a contract holds is enough,
	// looksOfMover to find out whether it may be moved, looksOfTry to try that for one replica.
	looksOfHolder, looksOfMover, looksOfTry = 2, 20, 800
)

// maker makes room for intents that find no place, in one pass.
type maker struct {
	*consolidation
	// nowhere are the searches that found nothing since something last moved.
	nowhere map[string]bool
	looks   *looks.Looks
	// movers are the contracts that were asked whether they may be moved, until something is
	// taken of where they would go: for whom makes no difference.
	movers map[*v1alpha1.Contract]mover
	// kept is what is free already of the places that those find for whom something moved, and
	// charged what they will cost of their tenants' quotas and budgets: it is not for the next,
	// until these have their turns.
	kept    []draft.Taken
	charged []account.Change
}

// makeRoom moves a contract for each job that waits and can be helped so, in their order. It
// reports whether it moved one.
func (r *consolidation) makeRoom(waiting []*draft.Job) (moved bool) {
	if r.W.Deaf || r.Fleet.Consolidation.Mode != "apply" || !r.By(draft.RulesRoomMade) {
		return false
	}
	x := maker{consolidation: r, nowhere: map[string]bool{}, movers: map[*v1alpha1.Contract]mover{}}
	for _, j := range x.inTurn(waiting) {
		if !x.asks(j) {
			continue
		}
		x.looks = &looks.Looks{Spent: r.Parts, Of: j.TenantName, Most: min(r.Limits.Work, r.Parts[j.TenantName]+r.Limits.Work-r.looked)}
		before := r.Parts[j.TenantName]
		key := x.keyOf(j)
		made := !x.nowhere[key] && x.makeFor(j)
		r.looked += r.Parts[j.TenantName] - before
		if made {
			moved = true
			clear(x.nowhere)
		} else if !x.looks.Ended() {
			x.nowhere[key] = true
		} else {
			x.looks.Again(&r.Draft)
		}
	}
	for _, k := range x.kept {
		x.Shift(k.Place, k.Back())
	}
	for _, ch := range x.charged {
		x.Booked(ch.Reverse())
	}
	return moved
}

// inTurn are those of some jobs for which room may be made, in their order. Where there is more
// to look at than a round has looks for, tenants and each one's jobs have their turns in an order
// that is another each minute, so that each has some.
func (x *maker) inTurn(waiting []*draft.Job) (list []*draft.Job) {
	kinds := map[string]bool{}
	for _, j := range waiting {
		if x.asks(j) {
			list = append(list, j)
			kinds[x.keyOf(j)] = true
		}
	}
	offers, held := int64(len(x.Inventory.Offers())), int64(0)
	for _, j := range x.Jobs {
		held += int64(len(j.Live))
	}
	if each := offers + held*looksOfHolder + movesTried*looksOfTry; int64(len(kinds))*each+held*(offers+looksOfMover) > x.Limits.Work {
		minute := x.Now.Truncate(settle.TurnsOf).Unix()
		slices.SortStableFunc(list, func(a, b *draft.Job) int {
			return cmp.Or(cmp.Compare(settle.Lot(minute, a.TenantName, ""), settle.Lot(minute, b.TenantName, "")), strings.Compare(a.TenantName, b.TenantName),
				cmp.Compare(settle.Lot(minute, a.TenantName, a.Name), settle.Lot(minute, b.TenantName, b.Name)))
		})
	}
	return list
}

// asks reports whether room is to be made for a job: all that it waits for are replicas that
// have nothing, and nothing has moved for it for as long as an offer must be better.
func (x *maker) asks(j *draft.Job) bool {
	if j.In == nil || j.Warm() || j.Finding() || j.Silent || j.Dec.Action != "" || j.Known != nil || len(j.Tasks) == 0 || len(j.Open) == 0 ||
		x.TimedOut(j) || len(x.Relations().Together[draft.KeyOfJob(j)]) > 0 {
		return false
	}
	if slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind != draft.TaskFresh || t.Of > 0 }) {
		return false
	}
	return !slices.ContainsFunc(x.Notices[draft.KeyOf(j.TenantName, j.Name)], func(c *v1alpha1.Contract) bool {
		d := x.Latest(c).Status.Displaced
		if d == nil || d.Cause != v1alpha1.Moved {
			return d != nil && x.Latest(c).Status.Phase.Held() // others give way to it
		}
		until := v1alpha1.TimeOf(d.Noticed.Add(x.hold))
		x.Due(until)
		return x.Latest(c).Status.Phase.Held() || until.After(x.Now.Time)
	})
}

// keyOf is the same for jobs whose searches end alike; a job with rules of its own has one of
// its own.
func (x *maker) keyOf(j *draft.Job) string {
	key := fmt.Sprint(j.TenantName, " ", j.Priority, " ", len(j.Tasks), " ", j.Gang())
	if _, shares := place.Shares(&x.Placer, j); shares || x.Ruled(j) || j.Avoid != nil {
		return key + " " + j.Name
	}
	for alt := range j.Alternatives() {
		x.Match.Trim()
		key += " " + x.ClassOf(j, alt).Key()
	}
	return key
}

// move is one that may make room.
type move struct {
	job      *draft.Job
	contract *v1alpha1.Contract
	to       elsewhere
	// costs is what it and the place that it makes cost an hour.
	costs quantity.Micro
}

// makeFor makes the cheapest move by which a job finds places for all that it waits for, by
// the first alternative for which there is one.
func (x *maker) makeFor(j *draft.Job) bool {
	for alt := range j.Alternatives() {
		list := x.movesFor(j, alt)
		for i := range list[:min(len(list), movesTried)] {
			if n := looksOfTry * int64(len(j.Tasks)); i == 0 {
				x.looks.Spend(n) // the first is tried for which the looks for it were there
			} else if !x.looks.Take(n) {
				break
			}
			if x.Try(func() bool { return x.make(j, &list[i]) }) {
				return true
			}
		}
	}
	return false
}

// full is an offer that has everything but room for a replica.
type full struct {
	offer *inventory.Offer
	lacks quantity.Vector
	costs quantity.Micro // an hour of the place
}

// fullFor are the offers that lack nothing but room for a replica of a job, by an alternative.
func (x *maker) fullFor(j *draft.Job, alt int) (out []full) {
	x.Match.Trim()
	q := x.For(j, place.Rehearsal, len(j.Tasks))
	s := x.ClassFor(j, q, alt)
	if !x.looks.Take(int64(len(s.Candidates))) {
		return nil
	}
	l := x.LimitsFor(j, q, s, match.SpendLimits{}, int64(len(j.Tasks)-1))
	l.Rules = place.SharedRules(&x.Placer, j, q, s)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" || c.Unasked || c.Scales || !strings.HasPrefix(c.Fails, match.ReqCapacity) || l.Rejects(c) != "" {
			continue
		}
		var lacks quantity.Vector
		for k := range max(len(c.Size), len(c.Offer.Free())) {
			if n := c.Size.At(k) - c.Offer.Free().At(k); n > 0 && (c.Size.At(k) > 0 || c.Offer.Free().At(k) < 0) {
				lacks = lacks.Set(k, n)
			}
		}
		out = append(out, full{c.Offer, lacks, x.hourlyOf(c)})
	}
	return out
}

// movesFor are the moves that may make room for a replica of a job, the cheapest first.
func (x *maker) movesFor(j *draft.Job, alt int) (out []move) {
	for _, at := range x.fullFor(j, alt) {
		list := at.offer.Contracts
		for _, m := range at.offer.PoolPeers {
			list = slices.Concat(list, m.Contracts)
		}
		for _, c := range list {
			if !x.looks.Take(looksOfHolder) {
				break
			}
			c = x.Latest(c)
			m := x.JobOf(c.Metadata.Namespace, c.Spec.Intent.Name)
			if m == nil || m == j || m.Priority > j.Priority || !slices.Contains(m.Live, c) || !at.lacks.Within(x.Relief(at.offer, c)) || m.TenantName != j.TenantName && !x.rested(c) {
				continue
			}
			if to, found := x.asked(m, c); found && x.justified(j, c, to, at.costs) {
				out = append(out, move{m, c, to, at.costs + to.more})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b move) int {
		return cmp.Or(cmp.Compare(a.costs, b.costs), cmp.Compare(disruptionOf(a.contract), disruptionOf(b.contract)), strings.Compare(a.contract.Metadata.Name, b.contract.Metadata.Name))
	})
	return out
}

// make makes a move, and reports whether the job then fits: what it leaves counts as free for
// that alone.
func (x *maker) make(j *draft.Job, o *move) bool {
	by := draft.KeyOf(j.TenantName, j.Name)
	t := draft.Task{Kind: draft.TaskMove, Replica: o.contract.Spec.Intent.Replica, Old: o.contract}
	text := "makes room for " + by + ", which finds no place, and " + x.costText(o.to.more)
	if f := x.Exchange(o.job, place.Request{Only: o.to.offer}, t, o.to.alt, o.to.alt+1, lifecycle.CodeConsolidated, text); f != nil {
		return false
	}
	released := x.Latest(o.contract)
	next := *released
	next.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Moved, By: by, Noticed: x.Now, Leaves: x.Now}
	x.Change(released, &next)
	places, charged := x.placesWithout(j, &next)
	if len(places) == 0 {
		return false
	}
	x.kept = append(x.kept, draft.KeepFree(&x.Draft, places)...)
	x.askAgain(o.to.offer, places)
	for _, ch := range charged {
		ch = ch.Keep()
		x.Booked(ch)
		x.charged = append(x.charged, ch)
	}
	draft.SetKey(&x.Draft, x.Notices, by, append(slices.Clip(x.Notices[by]), x.W.Ledger.Contract(o.contract.Metadata.Name)))
	return true
}

// askAgain forgets the movers that would go to an offer or places of which something was taken.
func (x *maker) askAgain(offer *inventory.Offer, places []draft.Taken) {
	taken := map[*inventory.Offer]bool{}
	take := func(o *inventory.Offer) {
		taken[o] = true
		for _, m := range o.PoolPeers {
			taken[m] = true
		}
	}
	take(offer)
	for _, p := range places {
		take(p.Offer)
	}
	maps.DeleteFunc(x.movers, func(_ *v1alpha1.Contract, m mover) bool { return m.found && taken[m.to.offer] })
}

// placesWithout is where a job would find all that it waits for without a contract, and what
// its tenant's account would be charged for that; nothing where it would not.
func (x *maker) placesWithout(j *draft.Job, c *v1alpha1.Contract) (places []draft.Taken, charged []account.Change) {
	m := x.Mark()
	defer x.Rollback(m)
	x.Lend(c)
	tried := x.Mark()
	k := j.Copy(slices.Clone(j.Tasks))
	if x.Fill(k, place.Rehearsal); len(k.Tasks) == 0 {
		return x.Changed(tried), x.ChargedSince(tried)
	}
	return nil, nil
}

// costText is what a move costs in addition, for people.
func (x *maker) costText(more quantity.Micro) string {
	switch {
	case more > 0:
		return "costs " + more.Text() + " " + x.Books.Currency + "/h more"
	case more < 0:
		return "saves " + (-more).Text() + " " + x.Books.Currency + "/h"
	}
	return "costs the same"
}
