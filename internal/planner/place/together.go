package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// unitProviders bounds how many providers a unit is tried on.
const unitProviders = 32

// fillUnit places intents that belong together (placement.together) and all
// wait in this round as one: on the provider that fits all of them, the one
// with the best sum of scores first. It reports whether the job's turn is over.
//
// Where no provider fits all, an intent that names none of the others is
// placed by itself, as if they did not wait; one that does waits, because to
// be placed elsewhere would bind the others to a place where they do not fit.
func (r *Placer) fillUnit(j *draft.Job, q Request) bool {
	if q.provider != "" || j.Finding() {
		return false
	}
	names := r.Relations().Together[draft.KeyOfJob(j)]
	if len(names) == 0 {
		return false
	}
	unit := []*draft.Job{j}
	for _, name := range names {
		if len(r.providersOf(j.TenantName, name, false)) > 0 {
			return false // there is a provider to follow
		}
		if other := r.JobOf(j.TenantName, name); other != nil && len(other.Tasks) > 0 && !other.Finding() {
			unit = append(unit, other)
		}
	}
	if len(unit) == 1 || len(j.Live) > 0 {
		return false
	}
	slices.SortFunc(unit, func(a, b *draft.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Name, b.Name))
	})
	key := j.TenantName
	for _, m := range unit {
		key += "/" + m.Name
	}
	// A rehearsal must place nothing of the others.
	mayTry := q.WithUnit || r.JobOf(j.TenantName, j.Name) == j
	if at, tried := r.unitless[key]; mayTry && (!tried || at != r.Inventory.Touches()) {
		for _, provider := range r.commonProviders(unit) {
			if r.tryUnit(unit, q, provider) {
				return true
			}
		}
		if r.unitless == nil {
			r.unitless = map[string]int{}
		}
		r.unitless[key] = r.Inventory.Touches()
	}
	waits := r.namedAmong(j, unit)
	if waits == "" {
		return false
	}
	j.Open = []draft.Failure{r.unitFailure(j, unit)}
	return true
}

// namedAmong is an intent of a unit that a job names, itself or through
// others; "" when it names none.
func (r *Placer) namedAmong(j *draft.Job, unit []*draft.Job) string {
	seen := map[string]bool{j.Name: true}
	for queue := []*draft.Job{j}; len(queue) > 0; queue = queue[1:] {
		for _, name := range queue[0].In.Spec.Placement.Together {
			if seen[name] {
				continue
			}
			seen[name] = true
			if slices.ContainsFunc(unit, func(m *draft.Job) bool { return m.Name == name && !r.GivesUp(m) }) {
				return name
			}
			if next := r.JobOf(j.TenantName, name); next != nil && next.In != nil {
				queue = append(queue, next)
			}
		}
	}
	return ""
}

// commonProviders are the providers on which something fits for each of a
// unit's intents, by the sum of the best scores.
func (r *Placer) commonProviders(unit []*draft.Job) []string {
	sum, count := map[string]float64{}, map[string]int{}
	for _, m := range unit {
		for provider, score := range r.fittingProviders(m) {
			sum[provider] += score
			count[provider]++
		}
	}
	maps.DeleteFunc(sum, func(p string, _ float64) bool { return count[p] < len(unit) })
	list := draft.SortedNames(sum)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	return list[:min(len(list), unitProviders)]
}

// fittingProviders are the providers on which a job finds an offer now, each
// with its best score over the alternatives.
func (r *Placer) fittingProviders(j *draft.Job) map[string]float64 {
	out := map[string]float64{}
	r.Budget(j, len(j.Tasks))
	for alt := range j.Alternatives() {
		s := r.ShapeOf(j, alt)
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

// tryUnit places every intent of a unit on one provider, or nothing at all.
func (r *Placer) tryUnit(unit []*draft.Job, q Request, provider string) bool {
	return r.Try(func() bool {
		r.Wholly(unit...)
		q.provider = provider
		for _, m := range unit {
			r.Fill(m, q)
			if len(m.Tasks) > 0 {
				return false
			}
		}
		return true
	})
}

// unitFailure says why a job waits for the others of its unit.
func (r *Placer) unitFailure(j *draft.Job, unit []*draft.Job) draft.Failure {
	r.Budget(j, len(j.Tasks))
	s := r.ShapeOf(j, 0)
	f := draft.Failure{Task: j.Tasks[0], Shape: s, Code: lifecycle.CodeTogether, Rejected: maps.Clone(s.Rejected())}
	if s.Fitting > 0 {
		f.Rejected[match.ReqTogether] += s.Fitting
	}
	var names, where []string
	for _, m := range unit {
		names = append(names, m.Name)
		at := draft.SortedNames(r.fittingProviders(m))
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
