package planner_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// TestWaitingSaysWhy: a contract that is not Active yet shows what is in
// its way, shows nothing twice, and nothing any more once it is Active.
func TestWaitingSaysWhy(t *testing.T) {
	type obs = v1alpha1.ConsumerObservation
	const reserved, peering = v1alpha1.PhaseReserved, v1alpha1.PhasePeering
	for name, c := range map[string]struct {
		says  obs
		phase v1alpha1.Phase
		want  string
	}{
		"its consumer cannot be reached": {obs{Message: "find the kubeconfig of cluster rome: none"}, reserved, "ConsumerUnreachable: find the kubeconfig of cluster rome: none"},
		"its consumer is being reached":  {obs{}, reserved, ""},
		"nothing is there yet":           {obs{Reachable: true, Slice: v1alpha1.Absent}, reserved, ""},
		"it cannot be applied":           {obs{Reachable: true, Slice: v1alpha1.Absent, Message: "apply ResourceSlice: forbidden"}, reserved, "DeliveryFailed: apply ResourceSlice: forbidden"},
		"Flux does not apply it":         {obs{Reachable: true, Slice: v1alpha1.Unknown, Message: "Kustomization flux-system/fleet-vision is suspended"}, reserved, "DeliveryFailed: Kustomization flux-system/fleet-vision is suspended"},
		"there is no peering": {obs{Reachable: true, Slice: v1alpha1.Present, PeeringMessage: "find the kubeconfig of cluster paris: none"},
			peering, "PeeringFailed: find the kubeconfig of cluster paris: none"},
		"nobody answers the slice": {obs{Reachable: true, Slice: v1alpha1.Present}, peering, "GrantedLess: nothing is granted yet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := inPhase(t, reserved)
			contract := b.Contracts("vision/train")[0].Metadata.Name
			b.Tick(time.Second).Observe(contract, v1alpha1.Observation{Consumer: c.says}).Round()
			got := b.Contracts("vision/train")[0].Status
			if got.Phase != c.phase || got.Why() != c.want {
				t.Fatalf("%s %q, want %s %q", got.Phase, got.Why(), c.phase, c.want)
			}
			wantOnlyKeeps(t, b)
			b.Tick(time.Minute).Deliver().Round()
			if got := b.Contracts("vision/train")[0].Status; got.Phase != v1alpha1.PhaseActive || got.Reason != "" {
				t.Fatalf("%s %q once all is there", got.Phase, got.Reason)
			}
		})
	}
}

// TestBystandersKeepReasons: who does not deliver sees what is there, and knows nothing
// of what is in the way: what was written of that stays.
func TestBystandersKeepReasons(t *testing.T) {
	b := inPhase(t, v1alpha1.PhaseReserved)
	name := b.Contracts("vision/train")[0].Metadata.Name
	sees := func(what v1alpha1.ConsumerObservation) v1alpha1.ContractStatus {
		t.Helper()
		what.Reachable = true
		b.Tick(time.Minute).Observe(name, v1alpha1.Observation{Consumer: what}).Round()
		wantOnlyKeeps(t, b)
		return b.Contracts("vision/train")[0].Status
	}
	is := func(got v1alpha1.ContractStatus, phase v1alpha1.Phase, reason string) {
		t.Helper()
		if got.Phase != phase || got.Why() != reason {
			t.Fatalf("%s %q, want %s %q", got.Phase, got.Why(), phase, reason)
		}
	}
	is(sees(v1alpha1.ConsumerObservation{Slice: v1alpha1.Absent, Message: "forbidden"}), v1alpha1.PhaseReserved, "DeliveryFailed: forbidden")
	is(sees(v1alpha1.ConsumerObservation{Bystander: true}), v1alpha1.PhaseReserved, "DeliveryFailed: forbidden")
	is(sees(v1alpha1.ConsumerObservation{Slice: v1alpha1.Present, Bystander: true}), v1alpha1.PhasePeering, "GrantedLess: nothing is granted yet")
	is(sees(v1alpha1.ConsumerObservation{Slice: v1alpha1.Present, PeeringMessage: "refused"}), v1alpha1.PhasePeering, "PeeringFailed: refused")
	is(sees(v1alpha1.ConsumerObservation{Slice: v1alpha1.Present, Bystander: true}), v1alpha1.PhasePeering, "PeeringFailed: refused")
	is(sees(v1alpha1.ConsumerObservation{Slice: v1alpha1.Present}), v1alpha1.PhasePeering, "GrantedLess: nothing is granted yet")
}

// TestReachedByTheDeliverer: who does not deliver and alone does not reach a consumer
// left the reason to who does, as records of the past have it.
func TestReachedByTheDeliverer(t *testing.T) {
	b := inPhase(t, v1alpha1.PhasePeering)
	name := b.Contracts("vision/train")[0].Metadata.Name
	before := b.Contracts("vision/train")[0].Status
	away := v1alpha1.Observation{Consumer: v1alpha1.ConsumerObservation{Message: "no route"}}
	reached := away
	reached.Consumer.Bystander = true
	b.Tick(time.Minute).Observe(name, reached).Round()
	if got := b.Contracts("vision/train")[0].Status; got.Reason != before.Reason || got.Phase != before.Phase {
		t.Fatalf("%s %q", got.Phase, got.Reason)
	}
	b.Tick(time.Minute).Observe(name, away).Round()
	if got := b.Contracts("vision/train")[0].Status; got.Why() != "ConsumerUnreachable: no route" || got.Phase != before.Phase {
		t.Fatalf("%s %q", got.Phase, got.Reason)
	}
}

// TestReasonsMove: another code for the same phase is written, with the phase's
// begin and history as they were; another message of the same code is not, unless
// somebody is to fix what it names: that waits for a status interval, as status only.
func TestReasonsMove(t *testing.T) {
	b := inPhase(t, v1alpha1.PhaseReserved)
	name := b.Contracts("vision/train")[0].Metadata.Name
	round := func(message, peering string) (*planner.Plan, v1alpha1.ContractStatus) {
		b.Tick(time.Minute).Observe(name, v1alpha1.Observation{Consumer: v1alpha1.ConsumerObservation{
			Reachable: true, Slice: v1alpha1.Present, Message: message, PeeringMessage: peering,
		}})
		p := b.Round()
		return p, b.Contracts("vision/train")[0].Status
	}
	_, first := round("", "connection refused")
	const away, later = "dial tcp 10.0.0.1:6443: i/o timeout after 30.001s", "dial tcp 10.0.0.1:6443: i/o timeout after 29.9s"
	for _, step := range []struct {
		name, message, peering string
		why                    string
		writes, reworded       bool
	}{
		{"another message of the peering", "", "connection reset", first.Why(), false, false},
		{"another code", "forbidden", "connection reset", "DeliveryFailed: forbidden", true, false},
		{"a newer trouble of the delivery", away, "", "DeliveryFailed: " + away, true, true},
		{"other numbers in it", later, "", "DeliveryFailed: " + later, true, true},
		{"the same again", later, "", "DeliveryFailed: " + later, false, false},
	} {
		p, got := round(step.message, step.peering)
		if got.Why() != step.why || got.Since != first.Since || len(got.History) != len(first.History) {
			t.Errorf("%s: got %+v, want %q in the phase of %+v", step.name, got, step.why, first)
		}
		if p.Reworded() != step.reworded || step.writes != (len(p.Contracts) == 1 && p.Contracts[0].StatusOnly) {
			t.Errorf("%s: got changes %+v (reworded: %t), want one of status only: %t (%t)", step.name, p.Contracts, p.Reworded(), step.writes, step.reworded)
		}
	}
	e, err := planner.Explain(b.W, "vision", "train")
	if err != nil || len(e.Troubled) != 1 || e.Troubled[0].Metadata.Name != name {
		t.Fatalf("explain: %v, %v", e, err)
	}
}

// says fails if the reason for what becomes of vision/train reads otherwise.
func says(t *testing.T, p *planner.Plan, text string) {
	t.Helper()
	if got := Of(p, "vision/train").Reason; got != text {
		t.Fatalf("it says %q, want %q", got, text)
	}
}

// A refusal names the file, the field and what to do.
func TestRefusalsNameTheRemedy(t *testing.T) {
	consumer := func(name string) *Builder {
		return paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Consumers = []string{name} })
	}
	quota := func(q v1alpha1.TenantQuota) *Builder {
		return paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &q })
	}
	for name, c := range map[string]struct {
		b    *Builder
		code string
		want string
	}{
		"an unknown consumer": {consumer("milan"), lifecycle.CodeConsumer,
			"cluster milan is unknown: add clusters/milan.yaml with the role consumer"},
		"another role": {consumer("paris"), lifecycle.CodeConsumer,
			"cluster paris is no consumer: add consumer to spec.roles in clusters/paris.yaml"},
		"more GPUs than the quota": {quota(v1alpha1.TenantQuota{GPU: Ptr(int64(3))}), lifecycle.CodeQuota,
			"it asks for 4 GPUs, and tenant vision may hold 3: ask for less, or raise quota.gpu in tenants/vision.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, want(t, c.b.Intent("vision/train", Wants(4, "H100")), planner.Refuse, c.code), c.want)
		})
	}
}

// Where a reason counts the offers by what they fail it notes where, whatever is said
// before and after: who shows the counts himself leaves that out.
func TestReason_NotesWhereItCounts(t *testing.T) {
	far := func(in *model.Intent) { in.Spec.Resources.GPU.Models = []string{"B200"} }
	fails := With(func(s *v1alpha1.IntentSpec) { s.Queue.Policy = "fail" })
	for name, c := range map[string]struct {
		world *Builder
		want  string // the rest of the reason
	}{
		"nothing else":     {paris().Intent("vision/train", Wants(1, "H100"), far), ""},
		"a gang in part":   {paris().Intent("vision/train", Wants(5, "H100"), Times(2)), "1 of 2 replicas fit"},
		"and what to do":   {paris().Intent("vision/train", Wants(1, "H100"), far, fails), "with queue.policy: fail it does not wait: change its specification to try again"},
		"a policy's words": {paris().Intent("vision/train", Wants(1, "H100")), "eu-only: ask the platform team"},
		"no offers":        {New().Consumer("rome").Tenant("vision", "rome").Intent("vision/train", Wants(1)), ""},
	} {
		if name == "a policy's words" {
			c.world.W.Policies = []model.Policy{{
				Policy:    v1alpha1.Policy{Name: "eu-only", Message: "ask the platform team"},
				Predicate: predicate(func(*v1alpha1.ResourceIntent, *v1alpha1.Flavor, *v1alpha1.Cluster) (bool, error) { return false, nil }),
			}}
		}
		d := Of(planner.Decide(c.world.W), "vision/train")
		counts := planner.NothingFits(d.Considered, d.Rejected)
		if !d.Counts() || d.Reason[d.Counted.From:d.Counted.To] != counts || d.Uncounted() != c.want {
			t.Errorf("%s: %q counts at %v and leaves %q, want %q, %q", name, d.Reason, d.Counted, d.Uncounted(), counts, c.want)
		}
	}
	if d := Of(planner.Decide(paris().Intent("vision/train", Wants(1, "H100")).W), "vision/train"); d.Counts() || d.Uncounted() != d.Reason {
		t.Errorf("placed: %q counts at %v", d.Reason, d.Counted)
	}
}
