package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func splits(maxParts, minGPU int32) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Split = &v1alpha1.Split{MaxParts: maxParts, MinGPU: minGPU} })
}

// pieces is what an intent's charged contracts hold, as "0.0 a 8/16".
func pieces(b *Builder, ref string) string {
	var out []string
	for _, c := range b.Contracts(ref) {
		if i := c.Spec.Intent; c.Status.Phase.Charged() {
			out = append(out, fmt.Sprintf("%d.%d %s %d/%d", i.Replica, i.Part, c.Spec.Provider, i.Units, i.Of))
		}
	}
	return strings.Join(out, ", ")
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name  string
		gpus  int32
		split func(*model.Intent)
		more  func(*Builder)
		want  string
	}{
		{"whole where it fits", 8, splits(4, 1), nil, "0.0 a 0/0"},
		{"two of eight", 16, splits(4, 1), nil, "0.0 a 8/16, 0.1 b 8/16"},
		{"the cheapest gives most", 12, splits(4, 1), nil, "0.0 a 8/12, 0.1 b 4/12"},
		{"no part below the least", 9, splits(4, 3), nil, "0.0 a 6/9, 0.1 b 3/9"},
		{"no more parts than allowed", 20, splits(2, 1), nil, ""},
		{"three", 20, splits(3, 1), nil, "0.0 a 8/20, 0.1 b 8/20, 0.2 c 4/20"},
		{"fewest parts before the cheapest", 10, splits(4, 1), func(b *Builder) {
			b.Offer("a/h100", Spec(func(s *v1alpha1.FlavorSpec) { s.Used = Amounts("gpu=7") }))
		}, "0.0 b 8/10, 0.1 c 2/10"},
		{"never unless asked for", 16, With(func(*v1alpha1.IntentSpec) {}), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := cities("a", "b", "c").Intent("vision/train", Wants(c.gpus, "H100"), cheap, c.split)
			if c.more != nil {
				c.more(b)
			}
			p := b.Round()
			if got := pieces(b, "vision/train"); got != c.want {
				t.Fatalf("got %q\n%s", got, describe(p))
			}
			wantOnlyKeeps(t, b)
			if c.want == "" {
				return
			}
			names := map[string]bool{}
			sum := map[string]int64{}
			for _, k := range b.Contracts("vision/train") {
				names[k.Spec.Slice] = true
				for name, n := range k.Spec.Resources {
					sum[name] += n.Int64()
				}
			}
			// Together they are at least what was asked for, and have a slice each.
			asked := Amounts("cpu=8 memory=64Gi pods=20 ephemeral-storage=50Gi")
			for _, name := range asked.Names() {
				if sum[name] < asked[name].Int64() {
					t.Errorf("%d of %s, want %d", sum[name], name, asked[name].Int64())
				}
			}
			if sum["nvidia.com/gpu"] != int64(c.gpus) || len(names) != len(b.Contracts("vision/train")) {
				t.Errorf("%d GPUs, slices %v", sum["nvidia.com/gpu"], names)
			}
		})
	}
}

// Cores are divided where there are no cards, and gangs stay whole.
func TestSplitOfCoresAndGangs(t *testing.T) {
	b := cities("a", "b").Offer("a/h100", Capacity("cpu=10")).Offer("b/h100", Capacity("cpu=10")).
		Intent("vision/train", cheap, splits(2, 1), func(in *model.Intent) {
			in.Spec.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=16 memory=32Gi")}
			in.Spec.Placement.AllowAccelerators = true
		})
	b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 10/16, 0.1 b 6/16" {
		t.Fatal(got)
	}
	b = cities("a", "b", "c").Intent("vision/train", Wants(12, "H100"), Times(2), splits(3, 1), cheap)
	b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12, 0.1 b 4/12, 1.0 b 4/12, 1.1 c 8/12" {
		t.Fatal(got)
	}
	b = cities("a", "b").Intent("vision/train", Wants(12, "H100"), Times(2), splits(3, 1), cheap)
	d := Of(b.Round(), "vision/train")
	if got := pieces(b, "vision/train"); got != "" || d.Code != lifecycle.CodeGang {
		t.Fatalf("%s %+v", got, d)
	}
	b.Intent("vision/train", loose)
	b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12, 0.1 b 4/12" {
		t.Fatal(got)
	}
	wantOnlyKeeps(t, b)
}

// Budgets are for all parts together, and the limit of what a part may cost is
// not more than that of the whole.
func TestSplitAndBudget(t *testing.T) {
	b := cities("a", "b").Intent("vision/train", Wants(16, "H100"), splits(2, 1), AtMost("23"))
	if d := Of(b.Round(), "vision/train"); d.Action != planner.Queued || pieces(b, "vision/train") != "" {
		t.Fatalf("%+v", d)
	}
	b.Intent("vision/train", AtMost("24"))
	b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 8/16, 0.1 b 8/16" {
		t.Fatal(got)
	}
	b = cities("a", "b").Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(16))} }).
		Intent("vision/other", Wants(1, "H100")).Intent("vision/train", Wants(15, "H100"), splits(2, 1), cheap)
	b.Round()
	if got := pieces(b, "vision/train"); got == "" {
		t.Fatal("fifteen beside one of sixteen fit")
	}
}

// One part is lost, moves, or is drained by itself.
func TestSplitPartsLiveAlone(t *testing.T) {
	b := cities("a", "b", "c").Intent("vision/train", Wants(12, "H100"), splits(3, 1), cheap)
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12, 0.1 b 4/12" {
		t.Fatal(got)
	}
	b.Tick(10*time.Minute).Offer("b/h100", Heard(model.Lost))
	p := b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12, 0.1 c 4/12" {
		t.Fatalf("%s\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
	// An operator gives one up for good: what is missing is placed again.
	b = cities("a", "b", "c").Intent("vision/train", Wants(12, "H100"), splits(3, 1), cheap)
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	b.W.ForceRelease = map[string]bool{second(b): true}
	b.Tick(time.Minute).Round()
	b.W.ForceRelease = nil
	if got := pieces(b, "vision/train"); !strings.HasPrefix(got, "0.0 a 8/12, 0.1 ") || !strings.HasSuffix(got, " 4/12") {
		t.Fatal(got)
	}
	// Where nothing else fits, the other part stays and the missing one is waited for.
	b.Offer("b/h100", Heard(model.Withdrawn)).Offer("c/h100", Heard(model.Withdrawn))
	b.W.ForceRelease = map[string]bool{second(b): true}
	d := Of(b.Tick(time.Minute).Round(), "vision/train")
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12" || d.Action != planner.Queued || !strings.Contains(d.Reason, "part 1 of replica 0 (4 GPUs) is missing") {
		t.Fatalf("%s %+v", got, d)
	}
	wantOnlyKeeps(t, b)
}

// Changes: of the number of units the replica is remade, of all else its parts
// are resized in place; without the intent everything goes.
func TestSplitChanges(t *testing.T) {
	start := func() *Builder {
		b := cities("a", "b", "c").Intent("vision/train", Wants(12, "H100"), splits(3, 1), cheap)
		b.Round()
		return b.Tick(time.Minute).Deliver()
	}
	b := start()
	b.Round()
	b.Intent("vision/train", func(in *model.Intent) { in.Spec.Resources.Named = Amounts("cpu=24 memory=64Gi") })
	p := b.Round()
	d := Of(p, "vision/train")
	list := b.Contracts("vision/train")
	if d.Action != planner.Resize || len(list) != 2 || list[0].Spec.Resources["cpu"].Int64() != 16000 || list[1].Spec.Resources["cpu"].Int64() != 8000 {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
	b = start()
	b.Round()
	b.Intent("vision/train", Wants(4, "H100"))
	p = b.Round()
	if got := pieces(b, "vision/train"); got != "0.0 b 0/0" && got != "0.0 c 0/0" {
		t.Fatalf("%s\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
	// Nothing holds it whole: it keeps its parts and shows why it waits.
	b = start()
	b.Round()
	b.Intent("vision/train", With(func(s *v1alpha1.IntentSpec) { s.Split = nil }))
	d = Of(b.Round(), "vision/train")
	if got := pieces(b, "vision/train"); got != "0.0 a 8/12, 0.1 b 4/12" || d.Action != planner.Queued {
		t.Fatalf("%s %+v", got, d)
	}
	wantOnlyKeeps(t, b)
	b.Remove("vision/train").Round()
	if got := pieces(b, "vision/train"); got != "" {
		t.Fatal(got)
	}
	// A label changes nothing of it.
	b = start()
	b.Round()
	names := func() (out []string) {
		for _, c := range b.Contracts("vision/train") {
			out = append(out, c.Metadata.Name)
		}
		return out
	}
	before := names()
	b.Intent("vision/train", Priority(5)).Round()
	if !slices.Equal(names(), before) || b.Contracts("vision/train")[1].Spec.Priority != 5 {
		t.Fatal(names())
	}
}

// second is the name of the second part that is charged.
func second(b *Builder) string {
	for _, c := range b.Contracts("vision/train") {
		if c.Status.Phase.Charged() && c.Spec.Intent.Part == 1 {
			return c.Metadata.Name
		}
	}
	panic("no second part")
}
