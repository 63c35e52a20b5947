package bulk

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// providersTried bounds on how many providers jobs are tried that are placed together.
const providersTried = 32

// Classes gives the class of one of a job's alternatives.
type Classes func(j *draft.Job, alternative int) *match.Class

// Scores are the providers on which one of a job's alternatives finds an offer, each with its
// best score; full: also where too little of it is free.
func Scores(j *draft.Job, classOf Classes, full bool) map[string]float64 {
	out := map[string]float64{}
	for alt := range j.Alternatives() {
		candidates := classOf(j, alt).Candidates
		for i := range candidates {
			if c := &candidates[i]; fits(c, full) {
				better(out, c.Offer.Provider, c.Score)
			}
		}
	}
	return out
}

// fits reports whether a candidate fits; full: also where too little of it is free.
func fits(c *match.Candidate, full bool) bool {
	return c.Fails == "" || full && strings.HasPrefix(c.Fails, match.ReqCapacity)
}

// better keeps a provider's score where it is the best.
func better(scores map[string]float64, provider string, score float64) {
	if best, known := scores[provider]; !known || score > best {
		scores[provider] = score
	}
}

// Providers are those on which each of several jobs finds an offer, and that have enough for
// all, by the sum of the best scores, providersTried of them at the most; full is Scores'. The
// candidates of a class are looked at once, whatever number of jobs and providers there is.
func Providers(in *inventory.Inventory, jobs []*draft.Job, classOf Classes, full func(*draft.Job) bool) []string {
	all := looked{classOf: classOf, known: map[*match.Class]*seen{}}
	sum, count := map[string]float64{}, map[string]int{}
	for _, j := range jobs {
		for provider, score := range all.scores(j, full(j)) {
			sum[provider] += score
			count[provider]++
		}
	}
	maps.DeleteFunc(sum, func(p string, _ float64) bool { return count[p] < len(jobs) || !all.canHold(in.By(p), p, jobs) })
	list := draft.SortedNames(sum)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	return list[:min(len(list), providersTried)]
}

// looked is what was found out about classes.
type looked struct {
	classOf Classes
	known   map[*match.Class]*seen
}

// seen is what providers have for a class.
type seen struct {
	// free are the best scores of what fits, full those of what fits if more of it was free.
	free, full map[string]float64
	// least is, resource by resource, the least that is taken of one of a provider's offers.
	least map[string]quantity.Vector
}

// at is what is seen of a class.
func (l *looked) at(j *draft.Job, alternative int) *seen {
	class := l.classOf(j, alternative)
	if s := l.known[class]; s != nil {
		return s
	}
	s := &seen{map[string]float64{}, map[string]float64{}, map[string]quantity.Vector{}}
	l.known[class] = s
	for i := range class.Candidates {
		c := &class.Candidates[i]
		p := c.Offer.Provider
		if fits(c, true) {
			better(s.full, p, c.Score)
		}
		if fits(c, false) {
			better(s.free, p, c.Score)
		}
		if least, known := s.least[p]; known {
			lower(least, c.Size)
		} else {
			s.least[p] = c.Size.Clone()
		}
	}
	return s
}

// scores is Scores.
func (l *looked) scores(j *draft.Job, full bool) map[string]float64 {
	alternatives := len(j.Alternatives())
	if alternatives == 1 {
		return l.at(j, 0).scores(full)
	}
	out := map[string]float64{}
	for alt := range alternatives {
		for p, score := range l.at(j, alt).scores(full) {
			better(out, p, score)
		}
	}
	return out
}

func (s *seen) scores(full bool) map[string]float64 {
	if full {
		return s.full
	}
	return s.free
}

// canHold reports whether a provider's offers have as much of each resource as all tasks of
// jobs ask for at the least. Jobs that may be split count for nothing.
func (l *looked) canHold(offers []*inventory.Offer, provider string, jobs []*draft.Job) bool {
	var need, has quantity.Vector
	for _, o := range offers {
		for i, n := range o.Capacity {
			has = has.Set(i, min(has.At(i)+n, ledger.Unlimited.Int64()))
		}
	}
	for _, j := range jobs {
		if j.In.Spec.Split != nil {
			continue
		}
		for i, n := range l.leastOf(j, provider) {
			need = need.Set(i, need.At(i)+n*int64(len(j.Tasks)))
		}
	}
	return need.Within(has)
}

// leastOf is, resource by resource, the least that a replica of a job takes of one of a
// provider's offers.
func (l *looked) leastOf(j *draft.Job, provider string) (least quantity.Vector) {
	first := true
	for alt := range j.Alternatives() {
		of, known := l.at(j, alt).least[provider]
		switch {
		case !known:
		case first:
			least, first = of.Clone(), false
		default:
			lower(least, of)
		}
	}
	return least
}

// lower brings what there is more of than in a size down to that.
func lower(least, size quantity.Vector) {
	for k := range least {
		least[k] = min(least[k], size.At(k))
	}
}
