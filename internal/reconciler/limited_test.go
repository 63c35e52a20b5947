package reconciler

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// A request that takes its tenant past limits.intents is refused with what to do, and
// nothing of the tenant is frozen for it; of several that come at once those that fit are
// granted. Nothing is committed for what is refused.
func TestReserve_BeyondTheTenantsLimitOfIntents(t *testing.T) {
	s := newDesk(t)
	s.push(map[string]string{
		"fleet.yaml":               "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  limits: {intents: 3}\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n",
		"intents/vision/mine.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: mine, namespace: vision}\nspec:\n  consumer: rome\n  resources: {cpu: 1, memory: 1Gi, gpu: 1}\n",
	})
	s.rest()
	var answers []<-chan told
	for i := range 4 {
		answers = append(answers, s.ask(context.Background(), "rome", fmt.Sprint("at once ", i), wants("1", "1Gi", "1")))
	}
	granted := 0
	for _, a := range answers {
		if o := s.decide(a); o.err == nil {
			granted++
		} else if r := o.refusal(t); r.Status != http.StatusServiceUnavailable && r.Body.Reason != "QuotaExceeded" {
			t.Errorf("answered %+v", r)
		}
	}
	if granted < 1 || granted > 2 {
		t.Errorf("%d of 4 requests are granted, where there is room for 2", granted)
	}
	for i := granted; i < 2; i++ {
		if o := s.reserve("rome", fmt.Sprint("alone ", i), wants("1", "1Gi", "1")); o.err != nil {
			t.Errorf("the last that fits is answered %v", o.err)
		}
	}
	s.rest()
	head := s.remote.Head("ledger")
	for i := range 3 {
		r := s.reserve("rome", fmt.Sprint("beyond ", i), wants("1", "1Gi", "1")).refusal(t)
		if r.Status != http.StatusConflict || !strings.Contains(r.Body.Error, "limits.intents") || !strings.Contains(r.Body.Error, "have the limit raised") {
			t.Errorf("beyond the limit is answered %+v", r)
		}
		s.rest()
	}
	if got := s.remote.Head("ledger"); got != head {
		t.Errorf("a refused request was followed by commits: %s, want %s", got, head)
	}
	if frozen := s.r.View().Fleet.Frozen; len(frozen) > 0 {
		t.Errorf("frozen: %v", frozen)
	}
	if o := s.reserve("rome", "at once 0", wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "1", Memory: "1Gi", GPU: "1"}}); o.err != nil {
		t.Errorf("a retry of what is granted is answered %v", o.err)
	}
}
