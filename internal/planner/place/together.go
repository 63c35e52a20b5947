package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/domain"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// unitProviders bounds how many providers a unit is tried on.
const unitProviders = 32

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
func (r *Placer) fillUnit(j *draft.Job, q Request) bool {
	u := r.unitOf(j, q)
	if u == nil {
		return false
	}
	key := u.key()
	// A dry run must place nothing of the others.
	mayTry := q.WithUnit || r.JobOf(j.TenantName, j.Name) == j
	if at, tried := r.infeasibleUnits[key]; mayTry && (!tried || at != r.Inventory.Touches()) {
		for _, provider := range u.providers() {
			if u.fillOn(provider, q) {
				return true
			}
		}
		if r.infeasibleUnits == nil {
			r.infeasibleUnits = map[string]int{}
		}
		r.infeasibleUnits[key] = r.Inventory.Touches()
	}
	if !u.isNamedBy(j) {
		return false
	}
	j.Open = []draft.Failure{u.noRoom(j)}
	return true
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
		if other := r.JobOf(j.TenantName, name); other != nil && len(other.Tasks) > 0 && !other.Finding() {
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

// isNamedBy reports whether a job names an intent of the unit that goes on waiting,
// itself or through others.
func (u *unit) isNamedBy(j *draft.Job) bool {
	seen := map[string]bool{j.Name: true}
	for queue := []*draft.Job{j}; len(queue) > 0; queue = queue[1:] {
		for _, name := range queue[0].In.Spec.Placement.Together {
			if seen[name] {
				continue
			}
			seen[name] = true
			if slices.ContainsFunc(u.jobs, func(m *draft.Job) bool { return m.Name == name && !u.GivesUp(m) }) {
				return true
			}
			if next := u.JobOf(j.TenantName, name); next != nil && next.In != nil {
				queue = append(queue, next)
			}
		}
	}
	return false
}

// providers are those on which something fits for each of the unit's intents, by
// the sum of the best scores.
func (u *unit) providers() []string {
	sum, count := map[string]float64{}, map[string]int{}
	for _, m := range u.jobs {
		for provider, score := range u.providersFor(m) {
			sum[provider] += score
			count[provider]++
		}
	}
	maps.DeleteFunc(sum, func(p string, _ float64) bool { return count[p] < len(u.jobs) })
	list := draft.SortedNames(sum)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	return list[:min(len(list), unitProviders)]
}

// providersFor are the providers on which one of its jobs finds an offer now, each
// with its best score over the alternatives.
func (u *unit) providersFor(j *draft.Job) map[string]float64 {
	out := map[string]float64{}
	for alt := range j.Alternatives() {
		s := u.ClassOf(j, alt)
		for i := range s.Candidates {
			c := &s.Candidates[i]
			if c.Fails != "" && (j.In.Spec.Split == nil || !strings.HasPrefix(c.Fails, match.ReqCapacity)) {
				continue
			}
			if best, known := out[c.Offer.Provider]; !known || c.Score > best {
				out[c.Offer.Provider] = c.Score
			}
		}
	}
	return out
}

// fillOn places every intent of the unit on one provider, or nothing at all. Where one
// of them shares a domain that may be less than a provider, all are placed in it.
func (u *unit) fillOn(provider string, q Request) bool {
	q.provider = provider
	for _, in := range u.domainsOn(provider, q) {
		placed := u.Try(func() bool {
			for _, m := range u.jobs {
				u.Fill(m, in)
				if len(m.Tasks) > 0 {
					return false
				}
			}
			return true
		})
		if placed {
			return true
		}
	}
	return false
}

// domainsOn are the requests for each domain of a provider that the unit may have to
// share, the request itself where that is no less than the provider.
func (u *unit) domainsOn(provider string, q Request) []Request {
	if q.in.how != keepsHome {
		return []Request{q}
	}
	for _, m := range u.jobs {
		w, ok := WithinOf(u.Placer, m.In)
		if !ok || !w.Required || w.By == "provider" {
			continue
		}
		seen := map[string]bool{}
		for _, o := range u.Inventory.By(provider) {
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
	for _, m := range u.jobs {
		names = append(names, m.Name)
		at := draft.SortedNames(u.providersFor(m))
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
