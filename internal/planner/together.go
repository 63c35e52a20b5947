package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
func (r *round) fillUnit(j *job, q request) bool {
	if q.provider != "" || j.finding() {
		return false
	}
	names := r.relations().together[keyOfJob(j)]
	if len(names) == 0 {
		return false
	}
	unit := []*job{j}
	for _, name := range names {
		if len(r.providersOf(j.tenantName, name, false)) > 0 {
			return false // there is a provider to follow
		}
		if other := r.jobOf(j.tenantName, name); other != nil && len(other.tasks) > 0 && !other.finding() {
			unit = append(unit, other)
		}
	}
	if len(unit) == 1 || len(j.live) > 0 {
		return false
	}
	slices.SortFunc(unit, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), strings.Compare(a.name, b.name))
	})
	key := j.tenantName
	for _, m := range unit {
		key += "/" + m.name
	}
	// A rehearsal must place nothing of the others.
	mayTry := q.withUnit || r.jobOf(j.tenantName, j.name) == j
	if at, tried := r.unitless[key]; mayTry && (!tried || at != r.inventory.Touches()) {
		for _, provider := range r.commonProviders(unit) {
			if r.tryUnit(unit, q, provider) {
				return true
			}
		}
		if r.unitless == nil {
			r.unitless = map[string]int{}
		}
		r.unitless[key] = r.inventory.Touches()
	}
	waits := r.namedAmong(j, unit)
	if waits == "" {
		return false
	}
	j.open = []failure{r.unitFailure(j, unit)}
	return true
}

// namedAmong is an intent of a unit that a job names, itself or through
// others; "" when it names none.
func (r *round) namedAmong(j *job, unit []*job) string {
	seen := map[string]bool{j.name: true}
	for queue := []*job{j}; len(queue) > 0; queue = queue[1:] {
		for _, name := range queue[0].in.Spec.Placement.Together {
			if seen[name] {
				continue
			}
			seen[name] = true
			if slices.ContainsFunc(unit, func(m *job) bool { return m.name == name && !r.givesUp(m) }) {
				return name
			}
			if next := r.jobOf(j.tenantName, name); next != nil && next.in != nil {
				queue = append(queue, next)
			}
		}
	}
	return ""
}

// commonProviders are the providers on which something fits for each of a
// unit's intents, by the sum of the best scores.
func (r *round) commonProviders(unit []*job) []string {
	sum, count := map[string]float64{}, map[string]int{}
	for _, m := range unit {
		for provider, score := range r.fittingProviders(m) {
			sum[provider] += score
			count[provider]++
		}
	}
	maps.DeleteFunc(sum, func(p string, _ float64) bool { return count[p] < len(unit) })
	list := sortedNames(sum)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	return list[:min(len(list), unitProviders)]
}

// fittingProviders are the providers on which a job finds an offer now, each
// with its best score over the alternatives.
func (r *round) fittingProviders(j *job) map[string]float64 {
	out := map[string]float64{}
	j.budget(r, len(j.tasks))
	for alt := range j.alternatives() {
		s := r.shapeOf(j, alt)
		for i := range s.Candidates {
			c := &s.Candidates[i]
			if c.Fails != "" && (j.in.Spec.Split == nil || !strings.HasPrefix(c.Fails, match.ReqCapacity)) {
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
func (r *round) tryUnit(unit []*job, q request, provider string) bool {
	return r.try(func() bool {
		r.wholly(unit...)
		q.provider = provider
		for _, m := range unit {
			r.fill(m, q)
			if len(m.tasks) > 0 {
				return false
			}
		}
		return true
	})
}

// unitFailure says why a job waits for the others of its unit.
func (r *round) unitFailure(j *job, unit []*job) failure {
	j.budget(r, len(j.tasks))
	s := r.shapeOf(j, 0)
	f := failure{task: j.tasks[0], shape: s, code: CodeTogether, rejected: maps.Clone(s.Rejected())}
	if s.Fitting > 0 {
		f.rejected[match.ReqTogether] += s.Fitting
	}
	var names, where []string
	for _, m := range unit {
		names = append(names, m.name)
		at := sortedNames(r.fittingProviders(m))
		if len(at) > 3 {
			at = append(at[:3:3], "others")
		}
		if len(at) == 0 {
			at = []string{"no provider"}
		}
		where = append(where, m.name+" fits on "+strings.Join(at, ", "))
	}
	f.text = fmt.Sprintf("no provider has room for %s together: %s", strings.Join(names, " and "), strings.Join(where, "; "))
	return f
}
