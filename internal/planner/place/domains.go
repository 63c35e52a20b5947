package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// wholeSearch looks for a domain for all of n replicas by one alternative.
type wholeSearch struct {
	*Placer
	job    *draft.Job
	how    Request
	within domain.Kind
	alt, n int
	// going are contracts that are given back meanwhile.
	going []*v1alpha1.Contract
	// rooms are the domains as they were counted, the best first.
	rooms []domain.Room
	// most is how many replicas could be placed in closest, of those that were tried.
	most    int
	closest string
	// thrifty: the cheapest domain first.
	thrifty bool
	// taken is the domain that was taken.
	taken string
}

// each calls f with the request for each domain that may hold all, the best first, until
// one does. By its price alone where money is what binds, after all by score.
func (x *wholeSearch) each(f func(Request) bool) bool {
	for _, x.thrifty = range [...]bool{false, true} {
		if x.thrifty && !x.spending(x.job, x.how).Money.Limited {
			continue
		}
		first, tried := x.first(), 0
		try := func(domain string) bool {
			tried++
			in := x.how.Keeping(domain)
			in.Unasked = true
			if f(in) {
				x.taken = domain
				return true
			}
			return false
		}
		if first != "" && try(first) {
			return true
		}
		for _, d := range x.count() {
			if d.Room < x.n || tried == domainsTried {
				break
			}
			if d.Domain != first && try(d.Domain) {
				return true
			}
		}
	}
	return false
}

// attempt tries to place tasks in one domain.
func (x *wholeSearch) attempt(in Request, tasks []draft.Task, old *v1alpha1.Contract) *draft.Failure {
	if f := tryAll(x.Placer, x.job, in, tasks, old, x.alt, x.thrifty); f != nil {
		if f.Done > x.most || x.closest == "" {
			x.most, x.closest = f.Done, in.in.domain
		}
		return f
	}
	if x.within.Required && len(tasks) > 1 {
		x.EditJob(x.job)
		x.job.Shared = x.text(in.in.domain)
	}
	return nil
}

// text is which domain was chosen, of how many.
func (x *wholeSearch) text(domain string) string {
	n := 1
	for _, d := range x.count() {
		if d.Domain != domain && d.Room >= x.n {
			n++
		}
	}
	of := ""
	if n > 1 {
		of = fmt.Sprintf(", chosen of %d with room for all", n)
	}
	return x.within.All(domain) + of
}

// first is the domain of the best offer, if that has room for all: none can be better.
// "" where that is not known.
func (x *wholeSearch) first() string {
	m := x.Mark()
	defer x.Rollback(m)
	x.giveBack()
	s := x.ClassFor(x.job, x.how, x.alt)
	l := x.limits(s)
	best, _ := l.Best(s, x.thrifty)
	if warm := (takeovers{x.Placer, x.job, x.how, s, l}); len(warm.all()) > 0 {
		return ""
	}
	if best == nil || match.ByNode(best.Offer, x.within.By, x.within.Label) || best.Offer.Growth != nil || best.Unasked || layout.RoomFor(x.Match, s.Request, best, x.n, nil) < x.n {
		return ""
	}
	return match.Domain(best.Offer, x.within.By, x.within.Label) // none where its nodes are in several
}

// giveBack takes what is given back off accounts.
func (x *wholeSearch) giveBack() {
	for _, c := range x.going {
		x.OffAccount(c)
	}
}

// limits are those of the first of the replicas, wherever it is.
func (x *wholeSearch) limits(s *match.Class) *Limits {
	l := x.LimitsFor(x.job, x.how, s, match.SpendLimits{}, int64(x.n-1))
	l.Rules = x.rulesFor(x.job, x.how.anywhere(), s, 0, nil)
	if l.Rules != nil {
		l.Rules.Spread = nil // one that is too full now may not be, later
	}
	return l
}

// count counts the domains, those with room for all first, of them the best.
func (x *wholeSearch) count() []domain.Room {
	m := x.Mark()
	defer x.Rollback(m)
	x.giveBack()
	s := x.ClassFor(x.job, x.how, x.alt)
	l := x.limits(s)
	w := x.within
	w.Pooled = rules.Pooled(&x.Draft, s)
	split := x.job.In.Spec.Split != nil || x.how.part != nil
	var fit []*match.Candidate
	at := map[string]int{}
	x.rooms = nil
	of := func(d string) *domain.Room {
		i, known := at[d]
		if !known {
			i = len(x.rooms)
			at[d], x.rooms = i, append(x.rooms, domain.Room{Domain: d})
		}
		return &x.rooms[i]
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" || l.Rejects(c) != "" || x.how.asked && c.Unasked {
			continue
		}
		in := w.At(c.Offer)
		for _, d := range in {
			if room := of(d); c.Fails != "" && split {
				room.Room = x.n // whether parts fit is tried
			}
		}
		if c.Fails == "" && len(in) > 0 {
			fit = append(fit, c)
		}
	}
	warm := takeovers{x.Placer, x.job, x.how, s, l}
	for _, c := range warm.all() {
		at := rules.DomainOf(&x.Draft, c.old, x.within.By, x.within.Label)
		if at == "" {
			continue
		}
		if d := of(at); d.Room < x.n {
			d.Room, d.Warm = d.Room+1, d.Warm+1
		}
	}
	slices.SortFunc(fit, func(a, b *match.Candidate) int { return match.Compare(a, b, x.thrifty) })
	for _, c := range fit {
		for _, at := range w.At(c.Offer) {
			d := of(at)
			n := min(x.roomIn(s, c, at, x.n), x.n-d.Room)
			if split {
				d.Room, n = x.n, 1
			}
			if n > 0 {
				d.Add(c, n)
			}
		}
	}
	slices.SortFunc(x.rooms, func(a, b domain.Room) int { return domain.Compare(&a, &b, x.thrifty) })
	return x.rooms
}

// failure is why no domain holds all replicas: as it is in the one that comes closest
// where they would fit apart, else as it is anywhere.
func (x *wholeSearch) failure(tasks []draft.Task, old *v1alpha1.Contract) *draft.Failure {
	apart := x.how.anywhere()
	apart.Unasked = true
	m := x.Mark()
	f := attemptIn(x.Placer, x.job, apart, tasks, old, x.alt)
	x.Rollback(m)
	for i := range x.count() {
		if d := &x.rooms[i]; d.Room > x.most && (d.Room < x.n || x.closest == "") {
			x.most, x.closest = d.Room, d.Domain
		}
	}
	if f == nil && x.closest == "" { // no domain has room for one, though all would fit over several
		for i := range x.rooms {
			x.closest = cmp.Or(x.closest, x.rooms[i].Domain)
		}
		x.closest = cmp.Or(x.closest, "-")
	}
	if f != nil && (x.closest == "" || outOfMoney(f)) { // said as it is anywhere; near names the domain
		if len(x.rooms) > 0 {
			x.closest = cmp.Or(x.closest, x.rooms[0].Domain)
		}
		if x.closest != "" && x.most < x.n && x.n > 1 {
			f.Closest = x.missing()
		}
		return f
	}
	if f == nil {
		near := x.attempt(x.how.Keeping(x.closest), tasks, old)
		if near == nil { // not by what was counted
			return nil
		}
		f = near
		f.Code = lifecycle.CodeWithin
		if x.closest == "-" && x.By(draft.RulesPooledNowhere) { // no offer is in any
			return f
		}
		f.Text = f.FromCounts()
		x.most = max(x.most, f.Done)
	}
	if x.n > 1 {
		f.Closest, f.Fit = x.missing(), x.most
		f.Text = fmt.Sprintf("no %s has room for all %d replicas; %s; %s", x.within.String(), x.n, f.Closest, f.Text)
	}
	return f
}

// missing is for how many replicas the domain that comes closest has no room.
func (x *wholeSearch) missing() string {
	return fmt.Sprintf("%s %s has room for %d of %d replicas, %d missing", x.within.String(), x.closest, x.most, x.n, x.n-x.most)
}

// outOfMoney reports whether a limit of the tenant stood in the way.
func outOfMoney(f *draft.Failure) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(f.Rejected)), said.IsTenantLimit)
}

// domainsTried bounds how many domains with room by counts are tried in earnest for one
// alternative.
const domainsTried = 32
