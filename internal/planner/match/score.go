package match

import (
	"math"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// The terms of a score, by their place in the table, in the order of the formula.
const (
	termResources = iota
	termCost
	termLatency
	termReliability
	termPerformance
	termEnergy
	numTerms
)

// term is all that is to be known of a part of a score.
type term struct {
	// name of it in contracts and explanations.
	name string
	// stated is its weight as an intent or a fleet states it.
	stated func(w *v1alpha1.Weights) float64
	// value is what a candidate comes to, from 0 to 1 and never not a number. It is nil
	// for resources, which change with each placement (Matcher.Resources), and for cost,
	// which the price alone decides; all others need more of the offer.
	value func(m *Matcher, w *Request, c *Candidate, x *scale) float64
	// compares: value compares candidates with each other, by their scale.
	compares bool
}

var terms = [numTerms]term{
	termResources:   {name: "resources", stated: func(w *v1alpha1.Weights) float64 { return w.Resources }},
	termCost:        {name: "cost", stated: func(w *v1alpha1.Weights) float64 { return w.Cost }},
	termLatency:     {name: "latency", stated: func(w *v1alpha1.Weights) float64 { return w.Latency }, value: latencyOf},
	termReliability: {name: "reliability", stated: func(w *v1alpha1.Weights) float64 { return w.Reliability }, value: reliabilityOf},
	termPerformance: {name: "performance", stated: func(w *v1alpha1.Weights) float64 { return w.Performance }, value: performanceOf, compares: true},
	termEnergy:      {name: "energy", stated: func(w *v1alpha1.Weights) float64 { return w.Energy }, value: energyOf, compares: true},
}

// ScoreTerms are the names of all terms, in the order of the formula.
func ScoreTerms() []string {
	names := make([]string, numTerms)
	for t := range terms {
		names[t] = terms[t].name
	}
	return names
}

// Weights of a score's terms, normalised to a sum of 1.
type Weights struct {
	of [numTerms]float64
	// work: the cost term compares what the same work costs (objective
	// performance), not an hour.
	work bool
}

// ByCostAlone reports whether nothing but a low price counts.
func (w *Weights) ByCostAlone() bool { return *w == costAlone }

// costAlone are the weights of objective cost.
var costAlone = Weights{of: [numTerms]float64{termCost: 1}}

// objectives are the weights of those that have some of their own.
var objectives = map[v1alpha1.Objective]Weights{
	v1alpha1.Cost:        costAlone,
	v1alpha1.Performance: {of: [numTerms]float64{termPerformance: 0.7, termCost: 0.3}, work: true},
	v1alpha1.Latency:     {of: [numTerms]float64{termLatency: 0.7, termCost: 0.3}},
	v1alpha1.Energy:      {of: [numTerms]float64{termEnergy: 0.7, termCost: 0.3}},
}

// latencyHalf is the latency in milliseconds at which the latency term is one
// half: about a round trip within a continent.
const latencyHalf = 50

// WeightsOf are an intent's weights: its own, else its objective's, else the
// fleet's, else 70 to 30.
func (m *Matcher) WeightsOf(s *v1alpha1.IntentSpec) Weights {
	if s.Weights != nil {
		if w, ok := normalised(s.Weights); ok {
			return w
		}
	} else if w, ok := objectives[s.Objective]; ok {
		return w
	}
	if m.facts.Fleet.Weights != nil {
		if w, ok := normalised(m.facts.Fleet.Weights); ok {
			return w
		}
	}
	return Weights{of: [numTerms]float64{termResources: 0.7, termCost: 0.3}}
}

func normalised(w *v1alpha1.Weights) (Weights, bool) {
	var out Weights
	sum := 0.0
	for t := range terms {
		out.of[t] = max(terms[t].stated(w), 0)
		sum += out.of[t]
	}
	if !(sum > 0) || sum > 1e9 {
		return Weights{}, false
	}
	for t := range out.of {
		out.of[t] /= sum
	}
	return out, true
}

// resourceTerm is the resources term: how much of the offer is left after the
// placement, less what of its cards nobody could use then.
//
//	with cards asked for      A = 0.5·gpu + 0.25·cpu + 0.25·memory,  stranded = max(0, gpu − min(cpu, memory))
//	without                   A = 0.5·cpu + 0.5·memory,              stranded = 0.5·gpu
//	R = A · (1 − stranded)
//
// where gpu, cpu and memory are the fractions of capacity that stay free. Cards
// whose cores or memory are gone are stranded; cores taken from next to idle
// cards strand them in part. (The seed weighed CPU and memory alone, 35 to 35
// next to 30 for cost, and so sold the hosts of idle cards first.)
func resourceTerm(free, capacity, size quantity.Vector, cards bool) float64 {
	cpu, memory := left(free, capacity, size, quantity.CPU), left(free, capacity, size, quantity.Memory)
	gpu := left(free, capacity, size, quantity.GPU)
	if capacity.At(quantity.GPU) <= 0 {
		gpu = 0
	}
	if cards {
		a := 0.5*gpu + 0.25*cpu + 0.25*memory
		usable := cpu
		if memory < cpu {
			usable = memory
		}
		if gpu <= usable {
			return a
		}
		return a * (1 - (gpu - usable))
	}
	return (0.5*cpu + 0.5*memory) * (1 - 0.5*gpu)
}

// left is the fraction of a resource that stays free, from 0 to 1; of nothing
// nothing is left.
func left(free, capacity, size quantity.Vector, i int) float64 {
	switch c, n := capacity.At(i), free.At(i)-size.At(i); {
	case c <= 0 || n <= 0:
		return 0
	case n >= c:
		return 1
	default:
		return float64(n) / float64(c)
	}
}

// costTerm is 1 for a price of nothing and 0 for the most expensive candidate. An
// unpriced offer counts as the most expensive.
func costTerm(price, most quantity.Micro, unpriced bool) float64 {
	switch {
	case unpriced:
		return 0
	case most <= 0:
		return 1
	}
	return min(max(1-float64(price)/float64(most), 0), 1)
}

func latencyOf(m *Matcher, w *Request, c *Candidate, _ *scale) float64 {
	return latencyTerm(m.Latency(w.Consumer, c.Offer))
}

// latencyTerm falls from 1 at no latency to one half at latencyHalf; unknown
// is 0.
func latencyTerm(ms int64, known bool) float64 {
	if !known {
		return 0
	}
	return latencyHalf / (latencyHalf + float64(max(ms, 0)))
}

// reliabilityOf is the flavor's own ratio; unknown is 0.
func reliabilityOf(_ *Matcher, _ *Request, c *Candidate, _ *scale) float64 {
	p := &c.Offer.Flavor.Spec.Properties
	if p.Reliability == nil {
		return 0
	}
	return min(max(p.Reliability.Float(), 0), 1)
}

// Terms are a candidate's terms, each from 0 to 1; that of resources is not here but in
// the candidate, because it changes with each placement.
type Terms [numTerms]float64

// Score is the weighted sum of a candidate's terms.
func (w *Weights) Score(c *Candidate) float64 {
	sum := float64(w.of[termResources] * c.Resources)
	for t := termResources + 1; t < numTerms; t++ {
		sum += float64(w.of[t] * c.Terms[t])
	}
	return sum
}

// beyondPrice reports whether a term counts that is neither resources nor
// decided by the price alone.
func (w *Weights) beyondPrice() bool {
	return w.any(func(t *term) bool { return t.value != nil })
}

// any reports whether a term of a kind has weight.
func (w *Weights) any(is func(*term) bool) bool {
	for t := range terms {
		if w.of[t] > 0 && is(&terms[t]) {
			return true
		}
	}
	return false
}

// Record is the weighted terms for the contract, those without weight left
// out.
func (w *Weights) Record(c *Candidate) map[string]float64 {
	out := map[string]float64{}
	for t, weight := range w.of {
		if weight > 0 {
			val := c.Terms[t]
			if t == termResources {
				val = c.Resources
			}
			out[terms[t].name] = Round4(weight * val)
		}
	}
	return out
}

// Round4 cuts a score to four digits, as files and people see it.
func Round4(f float64) float64 { return math.Floor(float64(f*10000)+0.5) / 10000 }
