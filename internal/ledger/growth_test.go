package ledger_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

func TestSellableIsWhatStandsAndWhatCould(t *testing.T) {
	amounts := func(gpu, cpu int64) v1alpha1.Resources {
		return v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(gpu), v1alpha1.CPU: v1alpha1.AmountOf(cpu)}
	}
	for name, c := range map[string]struct {
		figures   v1alpha1.OfferFigures
		gpu, more int64
	}{
		"nothing is said":          {v1alpha1.OfferFigures{Capacity: amounts(8, 1), Held: amounts(2, 0)}, 6, 0},
		"it could be more":         {v1alpha1.OfferFigures{Capacity: amounts(8, 1), Held: amounts(2, 0), ScalableTo: amounts(32, 1)}, 30, 24},
		"it is more already":       {v1alpha1.OfferFigures{Capacity: amounts(8, 1), ScalableTo: amounts(4, 1)}, 8, 0},
		"more than stands is sold": {v1alpha1.OfferFigures{Capacity: amounts(8, 1), Held: amounts(20, 0), ScalableTo: amounts(32, 1)}, 12, 24},
		"none stands":              {v1alpha1.OfferFigures{Capacity: v1alpha1.Resources{v1alpha1.CPU: {}}, Held: amounts(3, 0), ScalableTo: amounts(16, 1)}, 13, 16},
		"overcommit does it":       {v1alpha1.OfferFigures{Capacity: amounts(8, 1), Overcommit: v1alpha1.Overcommit{v1alpha1.GPU: v1alpha1.MustDecimal("2")}, ScalableTo: amounts(12, 1)}, 16, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ledger.Sellable(c.figures)[v1alpha1.GPU].Int64(); got != c.gpu {
				t.Errorf("%d may be sold, want %d", got, c.gpu)
			}
			if got := ledger.Growth(c.figures)[v1alpha1.GPU].Int64(); got != c.more {
				t.Errorf("it could grow by %d, want %d", got, c.more)
			}
		})
	}
}

// TestAPoolGrowsByTheLeastOfItsFlavors: so that none is oversold by another's
// growth.
func TestAPoolGrowsByTheLeastOfItsFlavors(t *testing.T) {
	flavor := func(name string, cpu, could int64) *v1alpha1.Flavor {
		f := &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: name, Namespace: "paris"}}
		f.Spec.Pool, f.Spec.Capacity = "nodes", v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(cpu)}
		if could > 0 {
			f.Spec.ScalableTo = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(could)}
		}
		return f
	}
	for _, c := range []struct{ ownCPU, own, mateCPU, mate, want int64 }{
		{16, 64, 16, 64, 48}, {16, 64, 16, 32, 16}, {16, 64, 16, 0, 0}, {64, 80, 16, 80, 64}, {16, 64, 64, 40, 24},
	} {
		a, b := flavor("a", c.ownCPU, c.own), flavor("b", c.mateCPU, c.mate)
		got := ledger.Growth(ledger.Figures(ledger.Member{Flavor: a}, []ledger.Member{{Flavor: a}, {Flavor: b}}, ""))
		if got[v1alpha1.CPU].Int64() != c.want {
			t.Errorf("%+v: it grows by %d", c, got[v1alpha1.CPU].Int64())
		}
	}
}
