package reconciler

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/message"
)

func contract(tenant, intent, flavor string, phase v1alpha1.Phase, gpus int64) *v1alpha1.Contract {
	c := &v1alpha1.Contract{}
	c.Metadata = v1alpha1.Metadata{Name: tenant + "-" + intent, Namespace: tenant}
	c.Spec.Intent.Name, c.Spec.Provider, c.Spec.Flavor = intent, "paris", flavor
	c.Spec.Resources = v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(gpus)}
	c.Spec.GPUs = &v1alpha1.ContractGPU{Count: gpus, Model: "nvidia-h100"}
	c.Spec.Price.Hourly, c.Spec.Price.Currency = v1alpha1.DecimalFromInt(gpus), "EUR"
	c.Status.Phase = phase
	return c
}

func change(before, after *v1alpha1.Contract) model.Change {
	return model.Change{Before: before, After: after}
}

func TestLine(t *testing.T) {
	reserved := contract("vision", "train", "h100", v1alpha1.PhaseReserved, 4)
	releasing := contract("vision", "train", "a100", v1alpha1.PhaseReleasing, 4)
	releasing.Status.Reason, releasing.Status.Message = "ProviderLost", "paris is silent"
	was := contract("vision", "train", "a100", v1alpha1.PhaseActive, 4)
	forOther := contract("vision", "train", "a100", v1alpha1.PhaseReleasing, 4)
	forOther.Status.Displaced = &v1alpha1.Displacement{Cause: v1alpha1.Moved, By: "nlp/one"}
	active := contract("vision", "train", "h100", v1alpha1.PhaseActive, 4)
	larger := contract("vision", "train", "h100", v1alpha1.PhaseActive, 6)
	waiting := contract("vision", "train", "h100", v1alpha1.PhaseActive, 4)
	waiting.Status.Reason, waiting.Status.Message = "GrantedLess", "nothing is granted yet"
	drained := contract("vision", "train", "a100", v1alpha1.PhaseReleasing, 4)
	drained.Status.Drained = v1alpha1.TimeOf(time.Unix(1, 0))
	for want, changes := range map[string][]model.Change{
		"place vision/train on paris/h100 (4x nvidia-h100, 4.00 EUR/h)":                                         {change(nil, reserved)},
		"place vision/train on paris/h100 (4x nvidia-h100, 4.00 EUR/h) and 1 more":                              {change(nil, reserved), change(nil, reserved)},
		"move vision/train from paris/a100 to paris/h100 (4x nvidia-h100, 4.00 EUR/h)":                          {change(was, releasing), change(nil, reserved)},
		"move vision/train from paris/a100 to paris/h100 (4x nvidia-h100, 4.00 EUR/h) to make room for nlp/one": {change(was, forOther), change(nil, reserved)},
		"release vision/train from paris/a100 (paris is silent)":                                                {change(was, releasing)},
		"resize vision/train on paris/h100 (6x nvidia-h100, 6.00 EUR/h)":                                        {change(active, larger)},
		"active vision/train on paris/h100":                                                                     {change(reserved, active)},
		"active vision/train on paris/h100: nothing is granted yet":                                             {change(active, waiting)},
		"drained vision/train on paris/a100":                                                                    {change(releasing, drained)},
		"retire vision-train of vision/train":                                                                   {change(active, nil)},
		"update vision/train on paris/h100":                                                                     {change(active, active)},
		"queue vision/train: none of 3 offers fits: 3 have another GPU model":                                   nil,
	} {
		d := planner.Decision{Tenant: "vision", Name: "train", Action: planner.Queued, Reason: "none of 3 offers fits: 3 have another GPU model"}
		if got := message.Line(&d, changes); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A plan that only carries status waits until writeBack.statusInterval has gone
// by since the last such commit; anything else does not.
func TestStatusWaitsForItsInterval(t *testing.T) {
	last := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := &Reconciler{lastStatus: last}
	status := change(contract("vision", "train", "h100", v1alpha1.PhaseReserved, 4), contract("vision", "train", "h100", v1alpha1.PhasePeering, 4))
	status.StatusOnly = true
	placed := change(nil, contract("nlp", "new", "h100", v1alpha1.PhaseReserved, 4))
	for name, c := range map[string]struct {
		interval, after time.Duration
		changes         []model.Change
		waits           bool
	}{
		"within it":        {time.Minute, 59 * time.Second, []model.Change{status}, true},
		"after it":         {time.Minute, time.Minute, []model.Change{status}, false},
		"a shorter one":    {30 * time.Second, 59 * time.Second, []model.Change{status}, false},
		"with a placement": {time.Minute, 59 * time.Second, []model.Change{status, placed}, false},
		"nothing":          {time.Minute, 59 * time.Second, nil, false},
	} {
		policy := &v1alpha1.FleetSpec{WriteBack: v1alpha1.WriteBack{StatusInterval: v1alpha1.Duration{Duration: c.interval}}}
		due := r.holdStatus(&inputs{fleet: &fleet.Fleet{Policy: policy}}, &planner.Plan{Now: v1alpha1.TimeOf(last.Add(c.after)), Contracts: c.changes})
		if waits := due.Equal(last.Add(c.interval)); waits != c.waits {
			t.Errorf("%s: it may be written at %v, waits %v, want %v", name, due, waits, c.waits)
		}
	}
}

func state(tenant, intent string) *v1alpha1.IntentState {
	return &v1alpha1.IntentState{Metadata: v1alpha1.Metadata{Name: intent, Namespace: tenant}}
}

// What takes capacity lands together with what gives it up in the same plan;
// what only takes stands alone, so that one refusal does not hold up another.
func TestGroups(t *testing.T) {
	p := &planner.Plan{Contracts: []model.Change{
		change(contract("vision", "old", "h100", v1alpha1.PhaseReleasing, 4), contract("vision", "old", "h100", v1alpha1.PhaseReleased, 4)),
		change(nil, contract("nlp", "new", "h100", v1alpha1.PhaseReserved, 4)),
		change(nil, contract("cv", "a", "a100", v1alpha1.PhaseReserved, 1)),
		change(nil, contract("cv", "b", "a100", v1alpha1.PhaseReserved, 1)),
		change(contract("bio", "x", "l4", v1alpha1.PhaseActive, 1), contract("bio", "x", "l4", v1alpha1.PhaseReleasing, 1)),
		change(nil, contract("bio", "y", "l40s", v1alpha1.PhaseReserved, 1)),
	}, States: []model.StateChange{{Before: state("web", "chat")}, {After: state("web", "talk"), From: "chat"}, {After: state("web", "other")}}}
	keys, byKey := shares(p)
	got := groupsOf(keys, byKey)
	if got["vision/old"] == "" || got["vision/old"] != got["nlp/new"] {
		t.Errorf("what took the capacity that another gave up is not with it: %v", got)
	}
	if got["bio/x"] == "" || got["bio/x"] != got["bio/y"] {
		t.Errorf("what took the allowance that another gave up is not with it: %v", got)
	}
	if got["cv/a"] != "" || got["cv/b"] != "" {
		t.Errorf("takers that need nothing of each other are tied: %v", got)
	}
	if got["web/chat"] == "" || got["web/chat"] != got["web/talk"] || got["web/other"] != "" {
		t.Errorf("an intent's old and new name are not together, and alone: %v", got)
	}
	if got["vision/old"] == got["bio/x"] {
		t.Errorf("groups that share nothing are one: %v", got)
	}
}
