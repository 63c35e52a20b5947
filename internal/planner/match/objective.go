package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/tariff"
)

// Power of what is not a card, from the Cloud Carbon Footprint methodology
// (cloudcarbonfootprint.org/docs/methodology, appendix I): the
// most that a vCPU of AWS draws, and DRAM per GB. Both stand for all offers
// alike, so that only their size and place distinguish offers.
const (
	wattsPerCore = 3.5
	wattsPerGi   = 0.392
)

// scale is what the best or worst candidate of a class comes to: the other
// end of the terms that compare candidates with each other.
type scale struct {
	fastest     float64 // TFLOPS
	dirtiest    float64 // gCO2 an hour
	mostForWork float64 // price an hour and TFLOPS
	// of are the figures of the candidates, now is the one that is looked at.
	of  []figures
	now figures
}

// figures are what of a candidate is compared with others.
type figures struct {
	speed float64 // TFLOPS
	grams float64 // gCO2 an hour
	// emits: grams are known.
	emits bool
}

// look makes a candidate the one that is looked at.
func (x *scale) look(i int) {
	if x.of != nil {
		x.now = x.of[i]
	}
}

func scaleOf(s *Class) scale {
	var out scale
	if !s.Request.Weights.any(func(t *term) bool { return t.compares }) {
		return out
	}
	out.of = make([]figures, len(s.Candidates))
	for i := range s.Candidates {
		c, f := &s.Candidates[i], &out.of[i]
		f.speed = speedOf(c.Offer, c.Size)
		f.grams, f.emits = emission(c.Offer, c.Size)
		if c.FailsMoney != "" {
			continue
		}
		out.fastest = max(out.fastest, f.speed)
		if f.speed > 0 {
			out.mostForWork = max(out.mostForWork, float64(c.Quote.Current())/f.speed)
		}
		if f.emits {
			out.dirtiest = max(out.dirtiest, f.grams)
		}
	}
	return out
}

// performanceOf, energyOf and, with objective performance, workCost are
//
//	performance = speed ÷ that of the fastest candidate, speed = cards × dense
//	              FP16 TFLOPS of the model (gpunames.FiguresOf); unknown is 0
//	cost        = 1 − (price ÷ speed) ÷ that of the most expensive: what the same work
//	              costs, and not an hour; without cards the price alone
//	energy      = 1 − emission ÷ that of the dirtiest candidate, emission =
//	              properties.carbon (g/kWh) × kW drawn by cards (their TDP),
//	              cores and memory; unknown is 0
//
// Peak figures flatter new models: Gavel (OSDI 2020) measured 2 to 9 times the
// work on a V100 that a K80 does, where the data sheets state 30. They order
// models as measurements do, which is all that the terms need.
func performanceOf(_ *Matcher, _ *Request, _ *Candidate, x *scale) float64 {
	return ratio(x.now.speed, x.fastest)
}

func energyOf(_ *Matcher, _ *Request, _ *Candidate, x *scale) float64 {
	switch {
	case !x.now.emits:
		return 0
	case x.dirtiest > 0:
		return 1 - ratio(x.now.grams, x.dirtiest)
	}
	return 1
}

func workCost(c *Candidate, x *scale) float64 {
	switch {
	case x.now.speed <= 0 || c.Vague:
		return 0
	case x.mostForWork > 0:
		return 1 - ratio(float64(c.Quote.Current())/x.now.speed, x.mostForWork)
	}
	return 1
}

// ratio is a ÷ b cut to 0..1, 0 when b is nothing.
func ratio(a, b float64) float64 {
	if !(b > 0) || !(a > 0) {
		return 0
	}
	return min(a/b, 1)
}

// cardsOf is how many whole cards a size comes to.
func cardsOf(o *inventory.Offer, size quantity.Vector) float64 {
	return float64(size.At(quantity.GPU)) / float64(max(o.UnitsPerCard, 1))
}

// speedOf is the speed of a size's cards in TFLOPS, 0 when it has none or
// nobody knows the model.
func speedOf(o *inventory.Offer, size quantity.Vector) float64 {
	g := o.Flavor.Spec.GPU
	if g == nil {
		return 0
	}
	figures, _ := gpunames.FiguresOf(g.Model)
	return figures.TFLOPS * cardsOf(o, size)
}

// emission is what a size emits in grams of CO2 an hour.
func emission(o *inventory.Offer, size quantity.Vector) (grams float64, known bool) {
	carbon := o.Flavor.Spec.Properties.Carbon
	if carbon == nil {
		return 0, false
	}
	watts := wattsPerCore*float64(size.At(quantity.CPU))/tariff.Milli + wattsPerGi*float64(size.At(quantity.Memory))/tariff.Gibi
	if n := cardsOf(o, size); n > 0 {
		g := o.Flavor.Spec.GPU
		if g == nil {
			return 0, false
		}
		figures, known := gpunames.FiguresOf(g.Model)
		if !known {
			return 0, false
		}
		watts += n * figures.Watts
	}
	return float64(max(*carbon, 0)) * watts / 1000, true
}
