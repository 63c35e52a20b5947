package planner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// running is a world in which vision/train runs on paris/h100 and lyon/h100 is
// a more expensive second choice.
func running(t *testing.T, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	b := paris().Provider("lyon").Offer("lyon/h100", Cards("nvidia-h100", 8, "80Gi"), Costs("9")).
		Intent("vision/train", append([]func(*model.Intent){Wants(4, "H100")}, changes...)...)
	b.Round()
	b.Tick(10 * time.Second).Deliver().Round()
	for _, c := range b.Contracts("vision/train") {
		if c.Status.Phase != v1alpha1.PhaseActive || c.Spec.Provider != "paris" {
			t.Fatalf("%+v", c)
		}
	}
	b.Tick(10 * time.Second)
	return b
}

// cheap makes an intent look at prices alone.
var cheap = With(func(s *v1alpha1.IntentSpec) { s.Objective = v1alpha1.Cost })

// want checks the next round's action and code on vision/train, commits it,
// and checks that nothing is left to do.
func want(t *testing.T, b *Builder, action planner.Action, code string) *planner.Plan {
	t.Helper()
	p := b.Round()
	if d := Of(p, "vision/train"); d.Action != action || d.Code != code {
		t.Fatalf("want %s %q:\n%s", action, code, describe(p))
	}
	wantOnlyKeeps(t, b)
	return p
}

func phases(b *Builder) (out []v1alpha1.Phase) {
	for _, c := range b.Contracts("vision/train") {
		out = append(out, c.Status.Phase)
	}
	return out
}

func TestResizeInPlace(t *testing.T) {
	b := running(t)
	old := b.Contracts("vision/train")[0]
	b.Intent("vision/train", Wants(6, "H100"))
	want(t, b, planner.Resize, lifecycle.CodeChanged)
	list := b.Contracts("vision/train")
	if len(list) != 1 || list[0].Metadata.Name != old.Metadata.Name || list[0].Spec.Resources["nvidia.com/gpu"].Int64() != 6 {
		t.Fatalf("%+v", list)
	}
	c := list[0]
	if c.Spec.Price.Hourly.String() != "17.452" || c.Status.Accrued == nil || c.Status.AccruedAt != b.W.Now || c.Status.Phase != v1alpha1.PhaseActive {
		t.Fatalf("price %v status %+v", c.Spec.Price, c.Status)
	}
	if c.Spec.Intent.Digest == old.Spec.Intent.Digest {
		t.Fatal("the digest is the old one")
	}
	// A provider that does not follow within the grace degrades it.
	b.Tick(6 * time.Minute)
	p := b.Round()
	if got := phases(b); got[0] != v1alpha1.PhaseDegraded || b.Contracts("vision/train")[0].Status.Reason != ledger.DegradedGrantedLess {
		t.Fatalf("%v\n%s", got, describe(p))
	}
	b.Deliver().Round()
	if got := phases(b); got[0] != v1alpha1.PhaseActive {
		t.Fatalf("%v", got)
	}
	// Down again: a key that is wanted no more stays with nothing.
	b.Tick(time.Minute).Intent("vision/train", Wants(0))
	want(t, b, planner.Resize, lifecycle.CodeChanged)
	if n, ok := b.Contracts("vision/train")[0].Spec.Resources["nvidia.com/gpu"]; !ok || !n.IsZero() {
		t.Fatalf("%v", b.Contracts("vision/train")[0].Spec.Resources.Canonical())
	}
}

func TestReplaceWhereItDoesNotFit(t *testing.T) {
	b := running(t)
	b.Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("gpu=3") }))
	b.Intent("vision/train", Wants(6, "H100"))
	p := want(t, b, planner.Move, lifecycle.CodeChanged)
	list := b.Contracts("vision/train")
	if len(list) != 2 || list[0].Status.Phase != v1alpha1.PhaseReleasing || list[1].Spec.Provider != "lyon" || list[1].Spec.Intent.Ordinal != 1 {
		t.Fatal(describe(p))
	}
	// With nowhere to go it keeps what it has and waits.
	b.Intent("vision/train", Wants(20, "H100"))
	want(t, b, planner.Queued, lifecycle.CodeNothingFits)
	if got := phases(b); len(got) != 2 || got[1] != v1alpha1.PhaseReserved {
		t.Fatal(got)
	}
	// Taking the change back is a keep.
	b.Intent("vision/train", Wants(6, "H100"))
	want(t, b, planner.Keep, "")
}

func TestChangesWithoutCapacity(t *testing.T) {
	b := running(t, For(time.Hour))
	before := b.Contracts("vision/train")[0]
	b.Intent("vision/train", For(3*time.Hour), Priority(7), With(func(s *v1alpha1.IntentSpec) {
		s.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision"}}}
	}))
	// A price that has risen meanwhile does not matter.
	b.Offer("paris/h100", Costs("7"))
	p := want(t, b, planner.Keep, "")
	c := b.Contracts("vision/train")[0]
	if c.Metadata.Name != before.Metadata.Name || c.Spec.Price.Hourly.Cmp(before.Spec.Price.Hourly) != 0 || c.Spec.Priority != 7 || c.Spec.Offload == nil {
		t.Fatal(describe(p))
	}
	if want := before.Spec.Term.Start.Add(3 * time.Hour); !c.Spec.Term.End.Equal(want) {
		t.Fatalf("ends %v, want %v", c.Spec.Term.End, want)
	}
	// Moving its file within the tenant changes no capacity either.
	b.Intent("vision/train", func(in *model.Intent) { in.Path = "intents/vision/new/train.yaml" })
	want(t, b, planner.Keep, "")
	if c := b.Contracts("vision/train")[0]; c.Spec.Intent.Path != "intents/vision/new/train.yaml" {
		t.Fatal(c.Spec.Intent.Path)
	}
}

func TestTerm(t *testing.T) {
	b := running(t, For(time.Hour))
	p := b.Plan()
	if end := b.Contracts("vision/train")[0].Spec.Term.End; !p.Due.Equal(end.Time) {
		t.Fatalf("due %v, ends %v", p.Due, end)
	}
	b.W.Now = p.Due
	want(t, b, planner.Done, lifecycle.CodeTermEnded)
	c := b.Contracts("vision/train")[0]
	if c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Target != v1alpha1.PhaseExpired {
		t.Fatalf("%+v", c.Status)
	}
	b.Tick(time.Minute).Deliver()
	want(t, b, planner.Done, lifecycle.CodeTermEnded)
	b.Deliver().Tick(time.Hour)
	want(t, b, planner.Done, lifecycle.CodeTermEnded)
	// Changing the file places it again, for a new term.
	b.Intent("vision/train", For(2*time.Hour))
	want(t, b, planner.Place, "")
	if c := b.Contracts("vision/train")[0]; !c.Spec.Term.End.Equal(b.W.Now.Add(2 * time.Hour)) {
		t.Fatalf("%+v", c.Spec.Term)
	}
}

func TestDeadline(t *testing.T) {
	deadline := func(d time.Duration) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Schedule.Deadline = v1alpha1.TimeOf(Start.Add(d)) })
	}
	b := paris().Intent("vision/train", Wants(1), For(2*time.Hour), deadline(time.Hour))
	want(t, b, planner.Refuse, lifecycle.CodeDeadline)
	b.Intent("vision/train", For(0))
	want(t, b, planner.Place, "")
	if c := b.Contracts("vision/train")[0]; !c.Spec.Term.End.Equal(Start.Add(time.Hour)) {
		t.Fatalf("%+v", c.Spec.Term)
	}
	b = paris().Intent("vision/train", Wants(1), deadline(-time.Hour))
	want(t, b, planner.Refuse, lifecycle.CodeDeadline)
}

func TestNotBeforeAndWindows(t *testing.T) {
	b := paris().Intent("vision/train", Wants(1), With(func(s *v1alpha1.IntentSpec) {
		s.Schedule.NotBefore = v1alpha1.TimeOf(Start.Add(time.Hour))
		s.Schedule.Windows = []v1alpha1.Window{{Days: []string{"Fri"}, From: "20:00", To: "06:00", Timezone: "Europe/Rome"}}
	}))
	p := want(t, b, planner.Queued, lifecycle.CodeNotBefore)
	b.W.Now = p.Due
	p = want(t, b, planner.Queued, lifecycle.CodeWindow)
	if !p.Due.Equal(Time("2026-11-20T19:00:00Z").Time) {
		t.Fatalf("due %v", p.Due)
	}
	b.W.Now = p.Due
	p = want(t, b, planner.Place, "")
	c := b.Contracts("vision/train")[0]
	if !c.Spec.Term.End.Equal(Time("2026-11-21T05:00:00Z").Time) || !p.Due.Equal(c.Spec.Term.End.Time) {
		t.Fatalf("%+v due %v", c.Spec.Term, p.Due)
	}
	b.W.Now = p.Due
	p = want(t, b, planner.Queued, lifecycle.CodeWindow)
	if !b.Plan().Due.Equal(Time("2026-11-27T19:00:00Z").Time) {
		t.Fatalf("due %v\n%s", b.Plan().Due, describe(p))
	}
	b.Tick(time.Minute).Deliver().Round()
	b.W.Now = Time("2026-11-27T19:00:00Z")
	want(t, b, planner.Place, "")
	if c := b.Contracts("vision/train")[0]; c.Spec.Intent.Ordinal != 1 {
		t.Fatalf("%+v", c.Spec.Intent)
	}
}

func TestFailover(t *testing.T) {
	b := running(t, Times(2), Wants(3, "H100"), cheap)
	b.Offer("paris/h100", Heard(model.Silent))
	p := want(t, b, planner.Keep, "")
	if got := phases(b); got[0] != v1alpha1.PhaseDegraded || len(p.Contracts) != 2 || !p.Contracts[0].StatusOnly || p.Due != b.W.Offers[0].GraceEnds {
		t.Fatal(describe(p))
	}
	b.Tick(5*time.Minute).Offer("paris/h100", Heard(model.Lost))
	want(t, b, planner.Move, lifecycle.CodeProviderLost)
	for _, c := range b.Contracts("vision/train") {
		old := c.Spec.Provider == "paris"
		if old != (c.Status.Phase == v1alpha1.PhaseReleasing) || (old && c.Status.Target != v1alpha1.PhaseFailed) {
			t.Fatalf("%s %+v", c.Spec.Provider, c.Status)
		}
	}
	// Lost for good: an operator ends them, and not one second earlier.
	b.Tick(time.Minute).W.ForceRelease = map[string]bool{}
	for _, c := range b.Contracts("vision/train") {
		if c.Spec.Provider == "paris" {
			b.W.ForceRelease[c.Metadata.Name] = true
		}
	}
	b.Round()
	if got := b.Contracts("vision/train"); len(got) != 2 {
		t.Fatal(phases(b))
	}
}

func TestSilenceEnds(t *testing.T) {
	b := running(t)
	b.Offer("paris/h100", Heard(model.Silent))
	b.Round()
	b.Tick(time.Minute).Offer("paris/h100", Heard(model.Fresh))
	want(t, b, planner.Keep, "")
	if got := phases(b); got[0] != v1alpha1.PhaseActive {
		t.Fatal(got)
	}
}

func TestDeaf(t *testing.T) {
	b := running(t)
	b.Offer("paris/h100", Heard(model.Lost)).Intent("vision/new", Wants(1)).W.Deaf = true
	p := b.Round()
	if Of(p, "vision/train").Action != planner.Keep || Of(p, "vision/new").Code != lifecycle.CodeDeaf || len(p.States) != 0 {
		t.Fatal(describe(p))
	}
	// Whoever asks for an end still gets it.
	b.Remove("vision/train")
	want(t, b, planner.Release, lifecycle.CodeRemoved)
}

func TestFreeze(t *testing.T) {
	for name, f := range map[string]model.Freeze{
		"its file":      {Path: "intents/vision/train.yaml"},
		"its directory": {Path: "intents/vision/"},
		"itself":        {Tenant: "vision", Intent: "train"},
		"its tenant":    {Tenant: "vision"},
		"everything":    {Path: "/"},
	} {
		t.Run(name, func(t *testing.T) {
			b := running(t)
			f.Why = "line 3: unknown field"
			b.Remove("vision/train").W.Frozen = []model.Freeze{f}
			b.Offer("paris/h100", Heard(model.Fresh))
			p := b.Round()
			if len(p.Contracts) > 0 || Of(p, "vision/train").Action != planner.Frozen || Of(p, "vision/train").Reason != f.Why {
				t.Fatal(describe(p))
			}
			if f := b.W.Ledger.State("vision", "train").Status.Frozen; f == nil || f.Since != b.W.Now || f.Told != b.W.Now {
				t.Fatalf("the ledger remembers %+v", f)
			}
			wantOnlyKeeps(t, b)
			b.W.Frozen = nil
			want(t, b, planner.Release, lifecycle.CodeRemoved)
		})
	}
}

func TestMaxEnds(t *testing.T) {
	b := running(t, Wants(1, "H100"), Times(6), cheap)
	b.Remove("vision/train")
	p := b.Plan()
	if p.Changes() || p.HeldBackEnds != 6 || p.HeldBack == "" || Of(p, "vision/train").Code != lifecycle.CodeHeldBack {
		t.Fatal(describe(p))
	}
	b.W.AllowEnds = true
	want(t, b, planner.Release, lifecycle.CodeRemoved)
	b = running(t, Wants(1, "H100"), Times(6), cheap)
	b.Offer("paris/h100", Heard(model.Lost)).Fleet(func(f *v1alpha1.FleetSpec) { f.Safety.MaxEnds = Ptr(int32(6)) })
	want(t, b, planner.Move, lifecycle.CodeProviderLost)
}

func TestRename(t *testing.T) {
	b := running(t)
	old := b.Contracts("vision/train")[0]
	b.Remove("vision/train").Intent("vision/finetune", Wants(4, "H100"), func(in *model.Intent) {
		in.Metadata.Annotations = map[string]string{v1alpha1.AnnotationRenamedFrom: "train"}
	})
	p := b.Round()
	wantOnlyKeeps(t, b)
	list := b.Contracts("vision/finetune")
	if len(list) != 1 || list[0].Metadata.Name != old.Metadata.Name || list[0].Status.Phase != v1alpha1.PhaseActive || b.W.Ledger.State("vision", "train") != nil {
		t.Fatal(describe(p))
	}
	if first := b.W.Ledger.State("vision", "finetune").Status.FirstSeen; first.Commit != "inputs-1" {
		t.Fatalf("%+v", first)
	}
}

func TestFewerReplicas(t *testing.T) {
	b := running(t, Wants(1, "H100"), Times(3), cheap)
	b.Intent("vision/train", Times(1))
	want(t, b, planner.Release, lifecycle.CodeFewer)
	for _, c := range b.Contracts("vision/train") {
		if (c.Spec.Intent.Replica == 0) != c.Status.Phase.Charged() {
			t.Fatalf("replica %d is %s", c.Spec.Intent.Replica, c.Status.Phase)
		}
	}
}

func TestSuspend(t *testing.T) {
	b := running(t)
	b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Suspend = true }))
	says(t, want(t, b, planner.Suspend, lifecycle.CodeSuspended), "spec.suspend is true: it gets no capacity until that is removed")
	b.Tick(time.Minute).Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Suspend = false }))
	want(t, b, planner.Place, "")
	b.Tick(time.Minute).Fleet(func(f *v1alpha1.FleetSpec) { f.Suspend = true }).Remove("vision/train")
	want(t, b, planner.Suspend, lifecycle.CodeSuspended)
}

// What came through the API is suspended by being given back, and shows so.
func TestGivenBack(t *testing.T) {
	b := running(t)
	b.Intent("vision/train", func(in *model.Intent) {
		in.Metadata.Annotations = map[string]string{v1alpha1.AnnotationRequestedBy: "rome"}
	}, With(func(s *v1alpha1.IntentSpec) { s.Suspend = true }))
	says(t, want(t, b, planner.Suspend, lifecycle.CodeSuspended), "given back by cluster rome")
	if c := b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Why() != "Suspended: given back by cluster rome" {
		t.Fatalf("%s: %s", c.Status.Phase, c.Status.Reason)
	}
}

func TestDrain(t *testing.T) {
	b := running(t)
	until := v1alpha1.TimeOf(b.W.Now.Add(time.Hour))
	drain := Spec(func(s *v1alpha1.FlavorSpec) { s.Drain = until })
	b.Offer("paris/h100", drain).Offer("lyon/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = true }))
	want(t, b, planner.Queued, lifecycle.CodeDrain)
	if got := phases(b); len(got) != 1 || got[0] != v1alpha1.PhaseActive {
		t.Fatal(got)
	}
	b.Offer("lyon/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Cordon = false }))
	want(t, b, planner.Move, lifecycle.CodeDrain)

	b = running(t)
	b.Offer("paris/h100", drain).Drop("lyon/h100").W.Now = until
	want(t, b, planner.Queued, lifecycle.CodeNothingFits)
	if c := b.Contracts("vision/train")[0]; c.Status.Phase != v1alpha1.PhaseReleasing || c.Status.Target != v1alpha1.PhaseFailed {
		t.Fatalf("%+v", c.Status)
	}
}

func TestExcess(t *testing.T) {
	b := paris().Intent("vision/low", Wants(4, "H100")).Intent("vision/train", Wants(4, "H100"), Priority(5))
	b.Round()
	b.Tick(time.Second).Deliver().Round()
	b.Tick(time.Second).Offer("paris/h100", Capacity("gpu=6"))
	p := b.Round()
	low := b.Contracts("vision/low")[0]
	if low.Status.Phase != v1alpha1.PhaseDegraded || low.Status.Reason != ledger.DegradedShrunk || len(p.Contracts) != 1 || !p.Contracts[0].StatusOnly {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
	if d := Of(b.Intent("vision/more", Wants(0)).Plan(), "vision/more"); d.Rejected["capacity.gpu"] != 1 {
		t.Fatalf("a shrunken flavor sells: %+v", d)
	}
	b.Remove("vision/more").Tick(time.Second).Offer("paris/h100", Capacity("gpu=8")).Round()
	if low = b.Contracts("vision/low")[0]; low.Status.Phase != v1alpha1.PhaseActive {
		t.Fatalf("%+v", low.Status)
	}
}

func TestStages(t *testing.T) {
	b := paris().Intent("vision/train", Wants(4, "H100"), With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageFind }))
	p := want(t, b, planner.Find, lifecycle.CodeStageFind)
	if d := Of(p, "vision/train"); p.Changes() || len(d.Contracts) != 1 || d.Contracts[0].Provider != "paris" {
		t.Fatal(describe(p))
	}
	b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Stage = v1alpha1.StageReserve }))
	want(t, b, planner.Place, "")
	b.Tick(time.Second).Remove("vision/train")
	want(t, b, planner.Release, lifecycle.CodeRemoved)
	p = b.Tick(time.Second).Round() // nothing was applied, so there is nothing to wait for
	if len(b.Contracts("vision/train")) != 0 {
		t.Fatal(describe(p))
	}
}

// How virtual nodes are made cannot change while they run: another contract
// takes the replica over, and the old one goes. Their sizes change in place.
func TestVirtualNodesMadeAnotherWay(t *testing.T) {
	b := running(t)
	shares := func(list ...string) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) {
			s.VirtualNode = &v1alpha1.VirtualNodeSpec{}
			for _, share := range list {
				s.VirtualNode.Shares = append(s.VirtualNode.Shares, Amounts(share))
			}
		}
	}
	old := b.Contracts("vision/train")[0].Metadata.Name
	b.Intent("vision/train", Wants(4, "H100"), With(shares("cpu=1", "cpu=2")))
	p := b.Round()
	fresh := live(b, "vision/train")
	if len(fresh) != 1 || fresh[0].Metadata.Name == old {
		t.Fatalf("it still has %s: %s", old, describe(p))
	}
	b.Tick(10 * time.Second).Deliver().Round()
	b.Tick(10*time.Second).Intent("vision/train", Wants(4, "H100"), With(shares("cpu=2", "cpu=1")))
	p = b.Round()
	now := live(b, "vision/train")
	if len(now) != 1 || now[0].Metadata.Name != fresh[0].Metadata.Name || now[0].Spec.VirtualNode.Shares[0]["cpu"] != Amounts("cpu=2")["cpu"] {
		t.Fatalf("not in place: %s", describe(p))
	}
}

// What a fleet, a tenant or a flavor asks for in vain is shown.
func TestNotes(t *testing.T) {
	b := paris().
		Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Weight, s.Approvers = 2, []string{"ada@example.org"} }).
		Offer("paris/h100", Spec(func(s *v1alpha1.FlavorSpec) {
			s.Overcommit = v1alpha1.Overcommit{"maxRisk": v1alpha1.MustDecimal("0.1")}
		}))
	want := []string{
		"tenant vision: spec.approvers and spec.signers are not asked for while spec.verification.mode of fleet.yaml is not signed",
	}
	if got := b.Plan().Notes; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
}

func TestProblem(t *testing.T) {
	b := running(t)
	b.Intent("vision/train", func(in *model.Intent) { in.Problem = "consumer milan is unknown" })
	want(t, b, planner.Refuse, lifecycle.CodeInvalid)
	if phases(b)[0] != v1alpha1.PhaseActive {
		t.Fatal(phases(b))
	}
}

// Held means held: what has not been seen gone is not sold again.
func TestReleasingKeepsCapacity(t *testing.T) {
	b := running(t, Wants(8, "H100"))
	b.Drop("lyon/h100").Remove("vision/train").Intent("vision/next", Wants(8, "H100"))
	p := b.Round()
	if d := Of(p, "vision/next"); d.Rejected["capacity.gpu"] != 1 {
		t.Fatal(describe(p))
	}
	name := b.Contracts("vision/train")[0].Metadata.Name
	gone := Gone()
	gone.ProviderHolds = Amounts("gpu=8")
	for _, seen := range []struct {
		what string
		v1alpha1.Observation
	}{{what: "nobody has looked"}, {"its provider holds it", gone}, {"its provider is silent", v1alpha1.Observation{Consumer: gone.Consumer}}} {
		b.Tick(time.Minute).Observe(name, seen.Observation)
		if Of(b.Round(), "vision/next").Action != planner.Queued {
			t.Fatalf("sold again though %s", seen.what)
		}
	}
	b.Tick(time.Minute).Observe(name, Gone())
	if p := b.Round(); Of(p, "vision/next").Action != planner.Place {
		t.Fatal(describe(p))
	}
}

// A provider without an agent has nothing that could be seen gone.
func TestStaticProvider(t *testing.T) {
	b := running(t)
	b.Offer("paris/h100", Static).Remove("vision/train").Round()
	name := b.Contracts("vision/train")[0].Metadata.Name
	gone := Gone()
	gone.ProviderSeen = false
	b.Tick(time.Minute).Observe(name, gone).Round()
	if len(b.Contracts("vision/train")) != 0 {
		t.Fatal(phases(b))
	}
}
