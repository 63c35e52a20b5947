package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Terms of a score as they are recorded in contracts.
const (
	termResources   = "resources"
	termCost        = "cost"
	termLatency     = "latency"
	termReliability = "reliability"
	termPerformance = "performance"
	termEnergy      = "energy"
)

// latencyHalf is the latency in milliseconds at which the latency term is one
// half: about a round trip within a continent.
const latencyHalf = 50

// WeightsOf are an intent's weights: its own, else its objective's, else the
// fleet's, else 70 to 30.
func (m *Matcher) WeightsOf(s *v1alpha1.IntentSpec) Weights {
	switch {
	case s.Weights != nil:
		if w, ok := normalised(s.Weights); ok {
			return w
		}
	case s.Objective == v1alpha1.Cost:
		return Weights{Cost: 1}
	case s.Objective == v1alpha1.Performance:
		return Weights{Performance: 0.7, Cost: 0.3, Work: true}
	case s.Objective == v1alpha1.Latency:
		return Weights{Latency: 0.7, Cost: 0.3}
	case s.Objective == v1alpha1.Energy:
		return Weights{Energy: 0.7, Cost: 0.3}
	}
	if m.facts.Fleet.Weights != nil {
		if w, ok := normalised(m.facts.Fleet.Weights); ok {
			return w
		}
	}
	return Weights{Resources: 0.7, Cost: 0.3}
}

func normalised(w *v1alpha1.Weights) (Weights, bool) {
	out := Weights{
		Resources: max(w.Resources, 0), Cost: max(w.Cost, 0), Latency: max(w.Latency, 0), Reliability: max(w.Reliability, 0),
		Performance: max(w.Performance, 0), Energy: max(w.Energy, 0),
	}
	sum := out.Resources + out.Cost + out.Latency + out.Reliability + out.Performance + out.Energy
	if !(sum > 0) || sum > 1e9 {
		return Weights{}, false
	}
	for _, f := range [...]*float64{&out.Resources, &out.Cost, &out.Latency, &out.Reliability, &out.Performance, &out.Energy} {
		*f /= sum
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
		return a * (1 - max(0, gpu-min(cpu, memory)))
	}
	return (0.5*cpu + 0.5*memory) * (1 - 0.5*gpu)
}

// left is the fraction of a resource that stays free, from 0 to 1; of nothing
// nothing is left.
func left(free, capacity, size quantity.Vector, i int) float64 {
	c := capacity.At(i)
	if c <= 0 {
		return 0
	}
	return min(max(float64(free.At(i)-size.At(i))/float64(c), 0), 1)
}

// costTerm is 1 for a price of nothing and 0 for the most expensive candidate. An
// unpriced offer counts as the most expensive.
func costTerm(price, dearest quantity.Micro, unpriced bool) float64 {
	switch {
	case unpriced:
		return 0
	case dearest <= 0:
		return 1
	}
	return min(max(1-float64(price)/float64(dearest), 0), 1)
}

// latencyTerm falls from 1 at no latency to one half at latencyHalf; unknown
// is 0.
func latencyTerm(ms int64, known bool) float64 {
	if !known {
		return 0
	}
	return latencyHalf / (latencyHalf + float64(max(ms, 0)))
}

// reliabilityTerm is the flavor's own ratio; unknown is 0.
func reliabilityTerm(p v1alpha1.FlavorProperties) float64 {
	if p.Reliability == nil {
		return 0
	}
	return min(max(p.Reliability.Float(), 0), 1)
}

// Terms are a candidate's terms but for that of resources, each from 0 to 1.
type Terms struct{ cost, latency, reliability, performance, energy float64 }

// Score is the weighted sum of a candidate's terms.
func (w *Weights) Score(c *Candidate) float64 {
	t := &c.Terms
	return w.Resources*c.Resources + w.Cost*t.cost + w.Latency*t.latency + w.Reliability*t.reliability +
		w.Performance*t.performance + w.Energy*t.energy
}

// beyondPrice reports whether a term counts that is neither resources nor
// decided by the price alone.
func (w *Weights) beyondPrice() bool {
	return w.Latency > 0 || w.Reliability > 0 || w.Performance > 0 || w.Energy > 0
}

// Record is the weighted terms for the contract, those without weight left
// out.
func (w *Weights) Record(c *Candidate) map[string]float64 {
	t := &c.Terms
	out := map[string]float64{}
	for _, x := range [...]struct {
		name        string
		weight, val float64
	}{
		{termResources, w.Resources, c.Resources}, {termCost, w.Cost, t.cost}, {termLatency, w.Latency, t.latency},
		{termReliability, w.Reliability, t.reliability}, {termPerformance, w.Performance, t.performance}, {termEnergy, w.Energy, t.energy},
	} {
		if x.weight > 0 {
			out[x.name] = Round4(x.weight * x.val)
		}
	}
	return out
}

// Round4 cuts a score to four digits, as files and people see it.
func Round4(f float64) float64 { return float64(int64(f*10000+0.5)) / 10000 }
