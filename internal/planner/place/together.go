package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/bulk"
	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// namedOfUnit is of how many of a unit's intents it is told where they would fit.
const namedOfUnit = 8

// unit are intents that belong together (placement.together) and all wait in this
// round: they are placed as one, on one provider.
type unit struct {
	*Placer
	jobs []*draft.Job
}

// fillUnit places the unit of a job: on the provider that fits all of it, the one
// with the best sum of scores first. It reports whether the job's turn is over.
//
// Where no provider fits all, an intent that names none of the others is
// placed by itself, as if they did not wait; one that does waits, because to
// be placed elsewhere would bind the others to a place where they do not fit.
// Where the work of the round ended the search, all of them wait: nobody knows yet.
func (r *Placer) fillUnit(j *draft.Job, q Request) bool {
	u := r.unitOf(j, q)
	if u == nil {
		return false
	}
	key := u.key()
	// A dry run must place nothing of the others.
	mayTry := q.WithUnit || r.JobOf(j.TenantName, j.Name) == j
	if at, tried := r.infeasibleUnits[key]; mayTry && (!tried || !at.still(r.found(q), q.WithUnit)) {
		l := u.looks(key, q)
		if u.search(q, l) {
			return true
		}
		if l.Ended() {
			j.Open = []draft.Failure{u.unlooked(j, l)}
			return true
		}
		r.infeasibleUnits[key] = r.found(q)
	}
	if !NamesOther(r, j, u.jobs) {
		return false
	}
	j.Open = []draft.Failure{u.noRoom(j)}
	return true
}

// search places the unit on one provider, and reports whether it could.
func (u *unit) search(q Request, l *looks.Looks) bool {
	if !l.Take(looks.Listing(u.jobs, len(u.Inventory.Offers()))) {
		return false
	}
	providers := bulk.Providers(u.Inventory, u.jobs, u.ClassOf, maySplit)
	for _, provider := range l.InTurn(u.jobs, providers, u.Now.Time) {
		if u.fillOn(provider, q, l) {
			return true
		}
		if l.Ended() {
			break
		}
	}
	return false
}

// unitOf is the unit that a job is of, nil when it is placed by itself: no
// other that it belongs to waits, or there is a provider to follow.
func (r *Placer) unitOf(j *draft.Job, q Request) *unit {
	if q.provider != "" || j.Finding() {
		return nil
	}
	names := r.Relations().Together[draft.KeyOfJob(j)]
	if len(names) == 0 {
		return nil
	}
	u := &unit{r, []*draft.Job{j}}
	for _, name := range names {
		if len(rules.ProvidersOf(&r.Draft, j.TenantName, name, false)) > 0 {
			return nil
		}
		if other := r.JobOf(j.TenantName, name); other != nil && draft.WaitsNow(&r.Draft, other) {
			u.jobs = append(u.jobs, other)
		}
	}
	if len(u.jobs) == 1 || len(j.Live) > 0 {
		return nil
	}
	slices.SortFunc(u.jobs, func(a, b *draft.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Name, b.Name))
	})
	return u
}

// key is the same for units of the same intents.
func (u *unit) key() string {
	key := u.jobs[0].TenantName
	for _, m := range u.jobs {
		key += "/" + m.Name
	}
	return key
}

// NamesOther reports whether a job names one of several that goes on waiting, itself or
// through others.
func NamesOther(r *Placer, j *draft.Job, jobs []*draft.Job) bool {
	seen := map[string]bool{j.Name: true}
	for queue := []*draft.Job{j}; len(queue) > 0; queue = queue[1:] {
		for _, name := range queue[0].In.Spec.Placement.Together {
			if seen[name] {
				continue
			}
			seen[name] = true
			if slices.ContainsFunc(jobs, func(m *draft.Job) bool { return m.Name == name && !r.GivesUp(m) }) {
				return true
			}
			if next := r.JobOf(j.TenantName, name); next != nil && next.In != nil {
				queue = append(queue, next)
			}
		}
	}
	return false
}

// maySplit reports whether a job may be put together from parts: then less than its size helps.
func maySplit(j *draft.Job) bool { return j.In.Spec.Split != nil }

// fillOn places every intent of the unit on one provider, or nothing at all. Where one
// of them shares a domain that may be less than a provider, all are placed in it.
func (u *unit) fillOn(provider string, q Request, l *looks.Looks) bool {
	for _, in := range OnEach(u.Placer, u.jobs, provider, q) {
		placed := u.Try(func() bool {
			for _, m := range u.jobs {
				if !l.Take(looks.OfMember) {
					return false
				}
				made := u.Made
				u.Fill(m, in)
				l.Spend(looks.OfMade * (u.Made - made))
				if len(m.Tasks) > 0 {
					return false
				}
			}
			return true
		})
		if placed {
			return true
		}
		if l.Ended() {
			break
		}
	}
	return false
}

// OnEach are the requests for each domain of a provider that jobs of a unit may have to
// share, that for the provider where it is no less.
func OnEach(r *Placer, jobs []*draft.Job, provider string, q Request) []Request {
	if q = q.On(provider); q.in.how != keepsHome {
		return []Request{q}
	}
	for _, m := range jobs {
		w, ok := WithinOf(r, m.In)
		if !ok || !w.Required || w.By == "provider" {
			continue
		}
		seen := map[string]bool{}
		for _, o := range r.Inventory.By(provider) {
			for _, d := range match.Domains(o, w.By, w.Label) {
				seen[d] = true
			}
		}
		var out []Request
		for _, d := range draft.SortedNames(seen) {
			one := q
			one.shared = &domain.Rule{Kind: w, Domain: d}
			out = append(out, one)
		}
		return out[:min(len(out), domainsTried)]
	}
	return []Request{q}
}

// noRoom is the failure of a job that waits for the others of its unit.
func (u *unit) noRoom(j *draft.Job) draft.Failure {
	s := u.ClassOf(j, 0)
	f := draft.Failure{Task: j.Tasks[0], Class: s, Code: lifecycle.CodeTogether, Rejected: maps.Clone(s.Rejected())}
	if s.Fitting > 0 {
		f.Rejected[match.ReqTogether] += s.Fitting
	}
	var names, where []string
	for i, m := range u.jobs {
		if more := len(u.jobs) - i; i == namedOfUnit && more > 1 && u.By(draft.RulesTogetherMoves) {
			names = append(names, fmt.Sprintf("%d others", more))
			break
		}
		names = append(names, m.Name)
		at := draft.SortedNames(bulk.Scores(m, u.ClassOf, maySplit(m)))
		if len(at) > 3 {
			at = append(at[:3:3], "others")
		}
		if len(at) == 0 {
			at = []string{"no provider"}
		}
		where = append(where, m.Name+" fits on "+strings.Join(at, ", "))
	}
	f.Text = fmt.Sprintf("no provider has room for %s together: %s", strings.Join(names, " and "), strings.Join(where, "; "))
	return f
}
