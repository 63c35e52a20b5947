package match

import (
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
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
	dearestWork float64 // price an hour and TFLOPS
}

func scaleOf(s *Class) scale {
	var out scale
	if w := &s.Request.Weights; w.Performance == 0 && w.Energy == 0 {
		return out
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.FailsMoney != "" {
			continue
		}
		speed := speedOf(c.Offer, c.Size)
		out.fastest = max(out.fastest, speed)
		if speed > 0 {
			out.dearestWork = max(out.dearestWork, float64(c.Quote.Current())/speed)
		}
		if grams, known := emission(c.Offer, c.Size); known {
			out.dirtiest = max(out.dirtiest, grams)
		}
	}
	return out
}

// goalTerms fills in the terms of performance and energy, and with objective
// performance that of cost:
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
func goalTerms(w *Request, c *Candidate, x *scale) {
	if w.Weights.Performance > 0 {
		speed := speedOf(c.Offer, c.Size)
		c.Terms.performance = ratio(speed, x.fastest)
		if w.Weights.Work && x.fastest > 0 {
			c.Terms.cost = 0
			if speed > 0 && !c.Vague {
				c.Terms.cost = 1
				if x.dearestWork > 0 {
					c.Terms.cost = 1 - ratio(float64(c.Quote.Current())/speed, x.dearestWork)
				}
			}
		}
	}
	if w.Weights.Energy > 0 {
		grams, known := emission(c.Offer, c.Size)
		switch {
		case !known:
			c.Terms.energy = 0
		case x.dirtiest > 0:
			c.Terms.energy = 1 - ratio(grams, x.dirtiest)
		default:
			c.Terms.energy = 1
		}
	}
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
	watts := wattsPerCore*float64(size.At(quantity.CPU))/milli + wattsPerGi*float64(size.At(quantity.Memory))/gibi
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
