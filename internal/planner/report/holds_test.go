package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// An intent that holds less than minReplicas, raised since it was placed, is queued, and
// says what it holds meanwhile: in the round that sees the change, and in each after.
func TestQueuedIntentSaysWhatItHolds(t *testing.T) {
	b := New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("2")).
		Intent("vision/train", Wants(3, "H100"), Times(4), With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 2 }))
	b.Round()
	b.Tick(time.Minute).Deliver().Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.MinReplicas = 3 }))
	for _, round := range []string{"the first", "the next"} {
		p := planner.Decide(b.W)
		var text strings.Builder
		if err := report.Text(&text, p, report.Meta{Fleet: "acme"}, report.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"? queue    vision/train   holds 2 contracts, ", "has  paris/h100 -> rome    2 replicas, each 3x nvidia-h100", "Plan: 1 queue."} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s round: %q is not in\n%s", round, want, text.String())
			}
		}
		var page strings.Builder
		if err := report.Markdown(&page, p, report.Meta{Fleet: "acme"}, report.MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), "| paris/h100 -> rome |") || !strings.Contains(page.String(), "holds 2 contracts; ") {
			t.Errorf("%s round: the comment says\n%s", round, page.String())
		}
		e, err := planner.Explain(b.W, "vision", "train")
		if err != nil {
			t.Fatal(err)
		}
		var why strings.Builder
		if err := report.ExplainText(&why, e, report.ExplainOptions{}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(strings.Fields(why.String()), " "); !strings.Contains(said, "It holds contracts vision-train-0-") || !strings.Contains(said, "Queued") {
			t.Errorf("%s round: explain says\n%s", round, why.String())
		}
		b.Round()
		b.Tick(time.Minute).Deliver().Round()
	}
	// One that holds nothing says nothing of it.
	b = New().Consumer("rome").Provider("paris").Tenant("vision", "rome").
		Offer("paris/h100", Cards("nvidia-h100", 2, "80Gi"), Costs("2")).
		Intent("vision/train", Wants(3, "H100"), Times(4), With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 3 }))
	var text strings.Builder
	if err := report.Text(&text, planner.Decide(b.W), report.Meta{Fleet: "acme"}, report.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "holds") || strings.Contains(text.String(), "has  ") {
		t.Errorf("one without contracts says\n%s", text.String())
	}
}
