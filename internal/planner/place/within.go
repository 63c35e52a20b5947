package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// The replicas of an intent share a domain (placement.within): a provider, a zone, a
// region, a network or a value of a label.
//
//   - Where nothing of it stays anywhere, the domain is chosen by all replicas that are
//     placed at once: domains with room for all by the sum of their scores, then of
//     their prices, counted offer by offer; then in earnest, until one holds all.
//   - Where something stays, its domain is the one: a replica that is lost is replaced
//     there or waits. What stays in several domains, because it was placed under other
//     rules, counts as where most of it is.
//   - All move together when nothing stays where it is, or the intent changed so that
//     its domain no longer holds all. Then one domain takes all, or none moves.
//
// Preferred is the same as long as a domain has room, and none is kept to otherwise.
// Intents that are together count as one. package batch keeps what it moves in one
// domain too (planner/problem.go).

// domainsTried bounds how many domains with room by counts are tried in earnest for one
// alternative.
const domainsTried = 32

// WithinOf is the kind of domain that an intent's replicas share; false where they may be
// anywhere.
func WithinOf(r *Placer, in *model.Intent) (w domain.Kind, ok bool) {
	if !r.By(draft.RulesWithin) {
		return w, false
	}
	return domain.Of(r.Fleet, in)
}

// Shares is WithinOf for a job of which several replicas, parts or intents share a domain.
func Shares(r *Placer, j *draft.Job) (w domain.Kind, ok bool) {
	if w, ok = WithinOf(r, j.In); !ok {
		return w, false
	}
	return w, j.Replicas() > 1 || len(j.Live) > 1 || j.In.Spec.Split != nil || len(r.Relations().Together[draft.KeyOfJob(j)]) > 0
}

// domainChoice is which domain a request keeps to.
type domainChoice struct {
	how    keeping
	domain string
	said   string // why there is none
}

// keeping is how a request keeps to a domain.
type keeping uint8

const (
	keepsHome keeping = iota // to that of what stays, and else to one for all
	keepsOne                 // to the one that is named
	keepsNone                // to none
	isNowhere                // nothing is placed: there is none for all
)

// withinRules are the rules on the domain of one more replica of a job.
func withinRules(r *Placer, j *draft.Job, q Request, placed, except []*v1alpha1.Contract) (out []domain.Rule) {
	own, ok := WithinOf(r, j.In)
	switch {
	case !ok:
	case q.in.how == isNowhere:
		out = append(out, domain.Rule{Kind: own, Nowhere: true, Said: q.in.said})
	case q.in.how == keepsOne:
		out = append(out, domain.Rule{Kind: own, Domain: q.in.domain})
	case q.in.how == keepsHome && own.Required:
		rule := domain.Rule{Kind: own}
		if _, shares := Shares(r, j); shares {
			rule.Domain = home(r, j, own, placed, except)
		}
		if rule.Domain != "" || own.By != "provider" {
			out = append(out, rule)
		}
	}
	if q.shared != nil {
		out = append(out, *q.shared)
	}
	for _, name := range r.Relations().Together[draft.KeyOfJob(j)] {
		w, is := WithinOf(r, r.Find(j.TenantName, name))
		if !is || !w.Required || ok && own.Required && w.By == own.By && w.Label == own.Label {
			continue
		}
		if at := home(r, j, w, placed, except); at != "" {
			out = append(out, domain.Rule{Kind: w, Domain: at})
		}
	}
	return out
}

// home is the domain in which most of what stays of a job and of those that it is
// together with is, the first by name of several; "" for none.
func home(r *Placer, j *draft.Job, w domain.Kind, placed, except []*v1alpha1.Contract) string {
	count := map[string]int{}
	add := func(c *v1alpha1.Contract) {
		count[r.DomainOf(c, w.By, w.Label)]++
	}
	stays := func(k *draft.Job, list []*v1alpha1.Contract) {
		leaves := leaving(r, k)
		for _, c := range list {
			if !leaves[c] && !slices.Contains(except, c) {
				add(c)
			}
		}
	}
	stays(j, j.Live)
	for _, c := range placed {
		add(c)
	}
	for _, name := range r.Relations().Together[draft.KeyOfJob(j)] {
		var list []*v1alpha1.Contract
		k := r.JobOf(j.TenantName, name)
		if k != nil {
			list = k.Live
		} else {
			list = r.W.Ledger.ByIntent(j.TenantName, name)
		}
		list = slices.DeleteFunc(slices.Clone(list), func(c *v1alpha1.Contract) bool {
			o := r.OfferOf(c)
			return !c.Status.Phase.Charged() || o != nil && o.State == model.Lost
		})
		stays(k, list)
	}
	return domain.Home(count)
}

// leaving are the contracts of a job that go elsewhere if they can; nil has none.
func leaving(r *Placer, j *draft.Job) map[*v1alpha1.Contract]bool {
	if j == nil || r.IsNothing(j.Tasks) {
		return nil
	}
	var out map[*v1alpha1.Contract]bool
	for i := range j.Tasks {
		t := &j.Tasks[i]
		switch t.Kind {
		case draft.TaskFailover, draft.TaskMove:
		case draft.TaskLeave:
			if t.Old.Status.Displaced == nil || r.Void(t.Old) {
				continue
			}
		default:
			continue
		}
		if out == nil {
			out = map[*v1alpha1.Contract]bool{}
		}
		out[t.Old] = true
	}
	return out
}

// attemptBy tries one alternative, in one domain where the job's replicas share one.
func attemptBy(r *Placer, j *draft.Job, q Request, tasks []draft.Task, old *v1alpha1.Contract, alt int) *draft.Failure {
	w, ok := Shares(r, j)
	if !ok || q.in.how != keepsHome {
		return attemptIn(r, j, q, tasks, old, alt)
	}
	if at := home(r, j, w, nil, []*v1alpha1.Contract{old}); at != "" {
		f := attemptIn(r, j, q.Keeping(at), tasks, old, alt)
		if f == nil {
			return nil
		}
		if w.Required {
			f.Closest = fmt.Sprintf("%s %s, which its replicas share, has no room for %s more", w.String(), at, more(len(tasks)))
			return f
		}
		return attemptIn(r, j, q.anywhere(), tasks, old, alt)
	}
	x := wholeSearch{Placer: r, job: j, how: q, within: w, alt: alt, n: len(tasks)}
	if !q.Unasked {
		s := r.ClassFor(j, q, alt)
		l := r.LimitsFor(j, q, s, match.SpendLimits{}, int64(len(tasks)-1))
		l.Rules = r.rulesFor(j, q.anywhere(), s, tasks[0].Replica, nil, old)
		r.Looked(j, s, l)
	}
	if x.each(func(in Request) bool { return x.attempt(in, tasks, old) == nil }) {
		return nil
	}
	if !w.Required {
		return attemptIn(r, j, q.anywhere(), tasks, old, alt)
	}
	return x.failure(tasks, old)
}

// more is so many replicas in words, before "more".
func more(n int) string {
	if n == 1 {
		return "one"
	}
	return fmt.Sprint(n)
}

// Keeping is a request that keeps to a domain, anywhere one that keeps to none.
func (q Request) Keeping(domain string) Request {
	q.in = domainChoice{how: keepsOne, domain: domain}
	return q
}

func (q Request) anywhere() Request {
	q.in = domainChoice{how: keepsNone}
	return q
}

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
	try := attempt{Placer: x.Placer, job: x.job, how: in, alt: x.alt, tasks: tasks, old: old, thrifty: x.thrifty}
	f := try.run()
	if f != nil && old == nil {
		f = x.seatAll(x.job, in, x.alt, tasks, x.thrifty, f)
	}
	if f != nil {
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
	return fmt.Sprintf("all in %s %s%s", x.within.String(), domain, of)
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
	if best == nil || best.Offer.Growth != nil || best.Unasked || domain.RoomFor(best, x.n) < x.n {
		return ""
	}
	return match.Domain(best.Offer, x.within.By, x.within.Label)
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
	split := x.job.In.Spec.Split != nil || x.how.part != nil
	var fit []*match.Candidate
	at := map[string]int{}
	x.rooms = nil
	of := func(o *inventory.Offer) *domain.Room {
		d := match.Domain(o, x.within.By, x.within.Label)
		if d == "" {
			return nil
		}
		i, known := at[d]
		if !known {
			i = len(x.rooms)
			at[d], x.rooms = i, append(x.rooms, domain.Room{Domain: d})
		}
		return &x.rooms[i]
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" || l.Rejects(c) != "" {
			continue
		}
		d := of(c.Offer)
		switch {
		case d == nil:
		case c.Fails == "":
			fit = append(fit, c)
		case split:
			d.Room = x.n // whether parts fit is tried
		}
	}
	warm := takeovers{x.Placer, x.job, x.how, s, l}
	for _, c := range warm.all() {
		if d := of(c.cand.Offer); d != nil && d.Room < x.n {
			d.Room, d.Warm = d.Room+1, d.Warm+1
		}
	}
	slices.SortFunc(fit, func(a, b *match.Candidate) int {
		if match.Before(a, b, x.thrifty) {
			return -1
		}
		return 1
	})
	for _, c := range fit {
		d := of(c.Offer)
		n := min(domain.RoomFor(c, x.n), x.n-d.Room)
		if split {
			d.Room, n = x.n, 1
		}
		if n > 0 {
			d.Add(c, n)
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
	if x.closest == "" || f != nil && outOfMoney(f) {
		return f
	}
	if f == nil {
		near := x.attempt(x.how.Keeping(x.closest), tasks, old)
		if near == nil { // not by what was counted
			return nil
		}
		f = near
		f.Code, f.Text = lifecycle.CodeWithin, f.Text[f.CountedIn(0).From:]
		x.most = max(x.most, f.Done)
	}
	if x.n > 1 {
		f.Closest = fmt.Sprintf("%s %s has room for %d of %d replicas, %d missing", x.within.String(), x.closest, x.most, x.n, x.n-x.most)
		f.Fit = x.most
		f.Text = fmt.Sprintf("no %s has room for all %d replicas; %s; %s", x.within.String(), x.n, f.Closest, f.Text)
	}
	return f
}

// outOfMoney reports whether a limit of the tenant stood in the way.
func outOfMoney(f *draft.Failure) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(f.Rejected)), said.IsTenantLimit)
}
