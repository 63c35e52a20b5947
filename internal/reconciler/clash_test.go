package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/grouping"
)

// A plan that maps a namespace to what another's is called at the provider is not
// written, whoever would apply it; what it decides besides is.
func TestAClashOfRemoteNamesIsNotWritten(t *testing.T) {
	s := newStory(t, "ledger")
	offload := func(name, more string) string {
		return strings.Replace(intentOf(name, "4"), "spec:\n", "spec:\n  offload: {namespaces: [{name: vision, create: true"+more+"}]}\n", 1)
	}
	s.push(map[string]string{"intents/vision/train.yaml": offload("train", "")})
	s.expect(s.rest(), placed, peering)
	in, err := s.r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stands *v1alpha1.Contract
	for c := range in.ledger.Contracts() {
		stands = c
	}
	made := func(tenant, name string, ns v1alpha1.OffloadNamespace) model.Change {
		c := *stands
		c.Metadata.Name, c.Metadata.Namespace = tenant+"-"+name+"-0-aaaa", tenant
		c.Spec.Intent.Name, c.Spec.Slice = name, c.Metadata.Name
		c.Spec.Term.Start = v1alpha1.TimeOf(stands.Spec.Term.Start.Add(1e9))
		c.Spec.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{ns}}
		return model.Change{After: &c}
	}
	plan := &planner.Plan{Now: stands.Spec.Term.Start, Contracts: []model.Change{
		made("nlp", "attack", v1alpha1.OffloadNamespace{Name: "nlp", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "vision-rome"}),
		made("nlp", "honest", v1alpha1.OffloadNamespace{Name: "nlp-two"}),
	}}
	keys, byKey := shares(plan)
	why := s.r.clashing(in, keys, byKey)
	if len(why) != 1 || !strings.Contains(why["nlp/attack"], "at paris it would be vision-rome, which namespace vision of tenant vision in rome has") {
		t.Errorf("why is %v", why)
	}
	if left := grouping.Without(keys, groupsOf(keys, byKey), why); len(left) != 1 || left[0] != "nlp/honest" {
		t.Errorf("written are %v", left)
	}
}

// What could not be read again is not written: one contract of a negative length would stop
// every round of everybody. The others are.
func TestWhatCouldNotBeReadAgainIsNotWritten(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.expect(s.rest(), placed, peering)
	in, err := s.r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan := &planner.Plan{}
	for c := range in.ledger.Contracts() {
		for name, grace := range map[string]time.Duration{"bad": -time.Hour, "good": time.Hour} {
			next := *c
			next.Metadata.Name, next.Spec.Intent.Name, next.Spec.Grace.Duration = "vision-"+name+"-0-aaaa", name, grace
			plan.Now, plan.Contracts = c.Spec.Term.Start, append(plan.Contracts, model.Change{After: &next})
		}
	}
	keys, byKey := shares(plan)
	refused := map[string]string{}
	if err := s.r.makeFiles(keys, byKey, refused); err != nil || len(refused) != 1 || !strings.Contains(refused["vision/bad"], "-1h") || len(byKey["vision/good"].puts) != 1 {
		t.Errorf("refused are %v, %v", refused, err)
	}
}
