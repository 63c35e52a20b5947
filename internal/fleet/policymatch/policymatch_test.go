package policymatch

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func TestCondition(t *testing.T) {
	dec := func(s string) *v1alpha1.Decimal { d := v1alpha1.MustDecimal(s); return &d }
	gpus := func(model, price string) *v1alpha1.Flavor {
		f := &v1alpha1.Flavor{Spec: v1alpha1.FlavorSpec{
			Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(8)}, GPU: &v1alpha1.FlavorGPU{Model: model},
		}}
		if price != "" {
			f.Spec.Price = &v1alpha1.Price{Currency: "EUR", PerHour: v1alpha1.UnitPrices{"gpu": *dec(price)}}
		}
		return f
	}
	cores := &v1alpha1.Flavor{Spec: v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(96000)}}}
	two := &v1alpha1.ResourceIntent{Spec: v1alpha1.IntentSpec{Resources: v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{Count: 2}}}}
	never := "1 > 2 // nowhere"
	for name, c := range map[string]struct {
		policy v1alpha1.Policy
		flavor *v1alpha1.Flavor
		want   bool
	}{
		"no match":                        {v1alpha1.Policy{Require: never}, cores, false},
		"another model":                   {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"H100"}}}, gpus("nvidia-l4", "1"), true},
		"the model, by a short name":      {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"A100", "H100"}}}, gpus("nvidia-h100", "1"), false},
		"a model of an offer without one": {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"H100"}}}, cores, true},
		"any GPU":                         {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"any"}}}, gpus("amd-mi300x", "1"), false},
		"any GPU, of none":                {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"any"}}}, cores, true},
		"at the price":                    {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{AboveHourly: dec("6")}}, gpus("nvidia-h100", "3"), true},
		"above the price":                 {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{AboveHourly: dec("5.99")}}, gpus("nvidia-h100", "3"), false},
		"without a price":                 {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{AboveHourly: dec("100")}}, gpus("nvidia-h100", ""), false},
		"the model below the price":       {v1alpha1.Policy{Require: never, Match: v1alpha1.PolicyMatch{Models: []string{"H100"}, AboveHourly: dec("100")}}, gpus("nvidia-h100", "3"), true},
		"what is required holds":          {v1alpha1.Policy{Require: "flavor.gpu.count >= 8", Match: v1alpha1.PolicyMatch{Models: []string{"H100"}}}, gpus("nvidia-h100", "1"), true},
	} {
		prog, err := celenv.CompilePolicy(Condition(&c.policy))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := prog.Eval(two, c.flavor, nil); err != nil || got != c.want {
			t.Errorf("%s: got %v %v, want %v", name, got, err, c.want)
		}
	}
}
