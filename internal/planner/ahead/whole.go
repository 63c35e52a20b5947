package ahead

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// Replicas that share a domain are booked in the one that is the best for all of them during
// all of the term, as they would be placed now (package place): domains are counted offer by
// offer, and those with room for all are tried in earnest, the best first.

// domainsTried bounds how many domains with room by counts are tried.
const domainsTried = 32

// by is all by one alternative: in the best domain with room for all where they share one,
// else wherever each is best, and else, of several, all on one provider.
func (x *search) by(alt int, replicas []int32) *draft.Failure {
	if w, ok := place.Shares(x.Placer, x.job); ok && w.Required && place.OnNodes(x.Placer, w) {
		return &draft.Failure{Code: lifecycle.CodeNotBookable, Text: "bookings know " + w.String() + " of flavors, and here single nodes bear it; leave placement.within out, or write another kind of domain"}
	}
	if w, shared := x.sharedBy(replicas); shared {
		closest, booked := x.inOne(alt, replicas, w)
		if booked {
			return nil
		}
		if w.Required {
			return x.notInOne(alt, replicas, w, closest)
		}
	}
	f := x.try(alt, replicas, x.how)
	if f == nil || len(replicas) < 2 {
		return f
	}
	var narrower []place.Request
	for _, provider := range x.providers(alt) {
		narrower = append(narrower, x.how.On(provider))
	}
	for _, d := range x.domains(alt) {
		narrower = append(narrower, x.how.Keeping(d))
	}
	for _, how := range narrower {
		if x.looks.Ended() {
			break
		}
		if x.try(alt, replicas, how) == nil {
			return nil
		}
	}
	return f
}

// domains are those that all of the job's replicas must share, other than providers, of an
// alternative's candidates, in their order.
func (x *search) domains(alt int) []string {
	w, ok := place.Shares(x.Placer, x.job)
	if !ok || !w.Required {
		return nil
	}
	var out []string
	s := x.ClassFor(x.job, x.how, alt)
	for i := range s.Candidates {
		if d := match.Domain(s.Candidates[i].Offer, w.By, w.Label); d != "" && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// providers are those of an alternative's candidates, in order.
func (x *search) providers(alt int) []string {
	var out []string
	s := x.ClassFor(x.job, x.how, alt)
	for i := range s.Candidates {
		out = append(out, s.Candidates[i].Offer.Provider)
	}
	return slices.Compact(out) // they are ordered by provider
}

// sharedBy is the kind of domain in which replicas that are booked together are to be, and
// false where they may be anywhere, or where some are booked that say where.
func (x *search) sharedBy(replicas []int32) (w domain.Kind, ok bool) {
	if len(replicas) < 2 || len(x.beside) > 0 || !x.By(draft.RulesBookedWhole) {
		return w, false
	}
	w, ok = place.Shares(x.Placer, x.job)
	return w, ok && !place.OnNodes(x.Placer, w)
}

// inOne books replicas in the best domain with room for all of them, and reports whether it
// did. closest is the one with the most room, its name "" where none has any.
func (x *search) inOne(alt int, replicas []int32, w domain.Kind) (closest domain.Room, booked bool) {
	rooms := x.rooms(alt, len(replicas), w)
	of := ""
	if n := roomy(rooms, len(replicas)); n > 1 {
		of = fmt.Sprintf(", chosen of %d with room for all", n)
	}
	for i := range rooms {
		if rooms[i].Room < len(replicas) || i == domainsTried || x.looks.Ended() {
			break
		}
		if x.try(alt, replicas, x.how.Keeping(rooms[i].Domain)) == nil {
			if w.Required {
				x.EditJob(x.job)
				x.job.Shared = w.All(rooms[i].Domain) + of
			}
			return rooms[i], true
		}
	}
	if len(rooms) > 0 {
		closest = rooms[0]
	}
	return closest, false
}

// wholly books replicas that may be booked one by one in one domain, where they share one and
// it has room for all of them, and reports whether it did.
func (x *search) wholly(replicas []int32) bool {
	w, shared := x.sharedBy(replicas)
	if !shared {
		return false
	}
	for alt := range x.job.Alternatives() {
		if _, booked := x.inOne(alt, replicas, w); booked {
			x.EditJob(x.job)
			x.job.Dec.Alternative = alt
			return true
		}
	}
	return false
}

// roomy is how many domains have room for n replicas.
func roomy(rooms []domain.Room, n int) (count int) {
	for i := range rooms {
		if rooms[i].Room >= n {
			count++
		}
	}
	return count
}

// rooms are the domains of an alternative's candidates by their room during the term, those
// with room for n replicas first, of them the best.
func (x *search) rooms(alt, n int, w domain.Kind) []domain.Room {
	s := x.ClassFor(x.job, x.how, alt)
	if !x.looks.Take(x.looksAt(s)) {
		return nil
	}
	l := place.LimitsAhead(x.Placer, x.job, x.how, s, x.spentOn(nil), int64(n-1), 0, nil, x.views.limits(x.job.Tenant, x.from, x.to))
	var fits []*match.Candidate
	for i := range s.Candidates {
		if c := x.look(s, l, &s.Candidates[i]); c.Fails == "" {
			fits = append(fits, &c.Candidate)
		}
	}
	slices.SortFunc(fits, func(a, b *match.Candidate) int { return match.Compare(a, b, x.cheap) })
	var out []domain.Room
	for _, c := range fits {
		d := match.Domain(c.Offer, w.By, w.Label)
		if d == "" {
			continue
		}
		at := slices.IndexFunc(out, func(r domain.Room) bool { return r.Domain == d })
		if at < 0 {
			at, out = len(out), append(out, domain.Room{Domain: d})
		}
		if more := min(x.times(s, c, n), n-out[at].Room); more > 0 {
			out[at].Add(c, more)
		}
	}
	slices.SortFunc(out, func(a, b domain.Room) int { return domain.Compare(&a, &b, x.cheap) })
	return out
}

// times is for how many replicas an offer has room during the term, n at most.
func (x *search) times(s *match.Class, c *match.Candidate, n int) int {
	least, _ := x.views.of(c.Offer).Least(x.from, x.to, c.Size)
	n = least.Times(c.Size, n)
	if ask, ok := x.pods(s, c.Offer, c.Size); ok && n > 0 {
		return x.views.nodes(c.Offer, x.from, x.to).Times(c.Size, ask, n)
	}
	return n
}

// notInOne is why no domain that replicas must share has room for all of them.
func (x *search) notInOne(alt int, replicas []int32, w domain.Kind, closest domain.Room) *draft.Failure {
	how := x.how
	if closest.Domain != "" {
		how = how.Keeping(closest.Domain)
	}
	f := x.try(alt, replicas, how)
	if f == nil {
		return nil // not by what was counted
	}
	if fit := max(closest.Room, f.Done); closest.Domain != "" && fit < len(replicas) && f.Code != lifecycle.CodeWork {
		near := fmt.Sprintf("%s %s has room for %d of %d replicas, %d missing", w.String(), closest.Domain, fit, len(replicas), len(replicas)-fit)
		f.Text = fmt.Sprintf("no %s has room for all %d replicas during the term; %s; %s", w.String(), len(replicas), near, f.FromCounts())
		x.hints.add(near)
	}
	return f
}
