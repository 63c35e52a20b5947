package reconciler

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/forms"
)

// An intent for a consumer that can admit no pods is refused by its reason, and gets no
// contract; once the consumer serves the policy it is placed, without a commit of anybody.
func TestRound_RefusesAConsumerWithoutAdmission(t *testing.T) {
	s := newStory(t, "ledger")
	s.clusters.admission = map[string]string{"rome": wire.AdmissionNone}
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	if got := s.rest(); slices.Contains(got, placed) {
		t.Fatalf("a contract was made: %q", got)
	}
	plan := s.r.View().Plan
	at := slices.IndexFunc(plan.Intents, func(d *planner.Decision) bool { return d.Name == "train" })
	if at < 0 || plan.Intents[at].Code != forms.Code || plan.Intents[at].Action != planner.Refuse || !strings.Contains(plan.Intents[at].Reason, "admission: webhook") {
		t.Fatalf("decided: %+v", plan.Intents)
	}
	s.clusters.admission, s.clusters.changed = map[string]string{"rome": "v1"}, 1
	if got := s.rest(); !slices.Contains(got, placed) {
		t.Errorf("the consumer serves the policy, and nothing was placed: %q", got)
	}
}
