package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

func offerLine(provider, name, model string, capacity, free int64, hourly string, latency int64) planner.OfferLine {
	return planner.OfferLine{
		Flavor: &v1alpha1.Flavor{
			Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
			Spec: v1alpha1.FlavorSpec{
				Capacity: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(capacity)},
				GPU:      &v1alpha1.FlavorGPU{Model: model, ResourceName: "nvidia.com/gpu"},
			},
		},
		Free:   v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(free)},
		Hourly: money(hourly), Priced: true, LatencyMs: latency, LatencyKnown: true,
	}
}

func fitting(l planner.OfferLine, resources, cost, score float64, chosen bool) planner.OfferLine {
	l.Fits, l.Chosen, l.Score = true, chosen, score
	l.Scores = map[string]float64{"resources": resources, "cost": cost}
	return l
}

func failing(l planner.OfferLine, requirement, detail string) planner.OfferLine {
	l.Requirement, l.Detail = requirement, detail
	return l
}

// explanationExample is the explanation that the layout was agreed on.
func explanationExample() *planner.Explanation {
	e := &planner.Explanation{
		Intent: model.Intent{
			ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Name: "llm-finetune", Namespace: "vision"}},
			Path:           "intents/vision/llm-finetune.yaml", Commit: "4f1c2abd6c1f7f0f5d0c1f6b6e9b1a2c3d4e5f60", Author: "Ada L. <ada@example.org>",
		},
		Decision: planner.Decision{
			Tenant: "vision", Name: "llm-finetune", Path: "intents/vision/llm-finetune.yaml", Action: planner.Place, Considered: 37, Fitting: 12,
			Rejected:  map[string]int{"gpu.model": 21, "budget.maxHourly": 4},
			Contracts: []planner.ContractLine{{Name: "vision-llm-finetune-0-k3f9q2ab", Currency: "EUR"}},
		},
		Wants: "4x nvidia-h100 >= 80Gi, 16 cpu, 128Gi in rome; <= 40.00 EUR/h; balanced; priority 100",
		Offers: []planner.OfferLine{
			fitting(offerLine("paris", "h100-pool", "nvidia-h100", 16, 14, "12.0944", 12), 0.61, 0.26, 0.87, true),
			fitting(offerLine("lyon", "h100", "nvidia-h100", 8, 5, "13.39", 15), 0.60, 0.21, 0.81, false),
		},
	}
	for i := range 10 {
		e.Offers = append(e.Offers, fitting(offerLine("nice", fmt.Sprintf("h100-%d", i), "nvidia-h100", 8, 8, "15", 20), 0.5, 0.1, 0.6, false))
	}
	e.Offers = append(e.Offers,
		failing(offerLine("turin", "h100", "nvidia-h100", 8, 8, "41.20", 7), "budget.maxHourly", "41.20 > 40.00"),
		failing(offerLine("oslo", "l40s", "nvidia-l40s", 16, 9, "3.10", 31), "gpu.model", "nvidia-l40s"),
	)
	for i := range 20 {
		e.Offers = append(e.Offers, failing(offerLine("oslo", fmt.Sprintf("l4-%d", i), "nvidia-l4", 4, 4, "1", 31), "gpu.model", "nvidia-l4"))
	}
	for i := range 3 {
		e.Offers = append(e.Offers, failing(offerLine("turin", fmt.Sprintf("b200-%d", i), "nvidia-h100", 4, 4, "99", 31), "budget.maxHourly", "99.00 > 40.00"))
	}
	return e
}

// explanationNone is an intent that nothing fits, among offers without GPUs or
// prices.
func explanationNone() *planner.Explanation {
	cpu := planner.OfferLine{
		Flavor: &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "cpu", Namespace: "nice"}},
		Free:   resources("cpu", "12"), Requirement: "gpu", Detail: "has none",
	}
	return &planner.Explanation{
		Intent: model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{}, Path: "intents/bio/fold.yaml"},
		Decision: planner.Decision{
			Tenant: "bio", Name: "fold", Action: planner.Queued, Reason: "the only offer does not fit: it has no GPU", Considered: 1,
			Counted: draft.Span{To: len("the only offer does not fit: it has no GPU")}, Rejected: map[string]int{"gpu": 1},
			Near: []string{"nice/cpu has no GPUs"},
		},
		Offers: []planner.OfferLine{cpu},
	}
}

// What is to be known of a placement next to its score is in the plan and in
// the explanation, for people and for programs.
func TestPlacementsSayWhatElseIsToKnow(t *testing.T) {
	const also = "the provider's autoscaler has to add 4 GPUs"
	p, m := example()
	d := *p.Intents[slices.IndexFunc(p.Intents, func(d *planner.Decision) bool { return d.Action == planner.Place })]
	d.Also, d.Reason = also, "score 0.87; "+also
	p.Intents = []*planner.Decision{&d}
	e := explanationExample()
	e.Decision.Also = also
	for name, write := range map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return Text(w, p, m, Options{Width: -1}) },
		"markdown": func(w io.Writer) error { return Markdown(w, p, m, MarkdownOptions{}) },
		"json":     func(w io.Writer) error { return JSON(w, p, m) },
		"explain":  func(w io.Writer) error { return ExplainText(w, e, ExplainOptions{}) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil || strings.Count(b.String(), also) != 1 {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}
