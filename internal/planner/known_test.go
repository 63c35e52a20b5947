package planner_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// waiters is a fleet in which most wait for cards that no flavor has, of some tenants.
func waiters() *Builder {
	b := New().Consumer("rome").Provider("paris", "oslo")
	for i := range 4 {
		b.Tenant(fmt.Sprintf("t%d", i), "rome")
		for k := range 3 {
			b.Intent(fmt.Sprintf("t%d/lacks%d", i, k), Wants(int32(1+k), "amd-mi300x"))
		}
	}
	return b.Offer("paris/a", Cards("nvidia-h100", 8, "80Gi"), Costs("1"), In("west", "w1")).
		Offer("paris/b", Cards("nvidia-a100", 8, "80Gi"), Costs("2"), In("west", "w2")).
		Offer("oslo/c", Cards("nvidia-l4", 8, "24Gi"), Costs("1"), In("north", "n1"))
}

// changes are what may happen to a fleet in which others wait for facts.
func changes(t *rapid.T, b *Builder, n int) string {
	tenant := fmt.Sprintf("t%d", rapid.IntRange(0, 3).Draw(t, "tenant"))
	waiter := fmt.Sprintf("%s/lacks%d", tenant, rapid.IntRange(0, 2).Draw(t, "waiter"))
	said := rapid.SampledFrom([]string{
		"place", "place", "place", "another card", "back", "cordon", "used", "price", "tenant", "gone", "changed", "apart", "senior", "preempts", "silent", "quota", "pool", "namespace", "borrows", "removed", "steps",
	}).Draw(t, "event")
	switch said {
	case "place":
		b.Intent(fmt.Sprintf("%s/new%d", tenant, n), Wants(1, rapid.SampledFrom([]string{"H100", "A100", "L4"}).Draw(t, "card")))
	case "another card":
		b.Offer("paris/b", Cards(rapid.SampledFrom([]string{"amd-mi300x", "amd-mi250", "nvidia-t4"}).Draw(t, "card"), 2, "80Gi"), Costs("2"), In("west", "w2"))
	case "back":
		b.Offer("paris/b", Cards("nvidia-a100", 8, "80Gi"), Costs("2"), In("west", "w2"))
	case "cordon":
		b.Cluster("oslo", func(c *v1alpha1.Cluster) { c.Spec.Cordon = !c.Spec.Cordon })
	case "used":
		b.Offer("paris/a", Spec(func(f *v1alpha1.FlavorSpec) { f.Used = Amounts("gpu=3") }))
	case "price":
		b.Offer("oslo/c", Costs("3"))
	case "silent":
		b.Offer("oslo/c", Heard(rapid.SampledFrom([]model.Freshness{model.Silent, model.Fresh, model.Lost}).Draw(t, "heard")))
	case "tenant":
		b.Tenant(tenant, "rome", func(s *v1alpha1.TenantSpec) { s.Providers.Deny = []string{"oslo"} })
	case "quota":
		b.Tenant(tenant, "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(2))} })
	case "gone":
		b.Remove(waiter)
	case "changed":
		b.Intent(waiter, Wants(2, "amd-mi300x", "L4"))
	case "apart":
		b.Intent(fmt.Sprintf("%s/new%d", tenant, n), Wants(1, "L4"), With(func(s *v1alpha1.IntentSpec) { s.Placement.Apart = []string{"lacks0"} }))
	case "namespace":
		b.Intent(waiter, Wants(1, "amd-mi300x"), With(func(s *v1alpha1.IntentSpec) {
			s.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: tenant + "-n"}}}
		}))
	case "senior":
		b.Tick(5 * time.Hour)
	case "preempts":
		b.Intent(waiter, Wants(4, "amd-mi300x"), preempts(50))
	case "borrows": // t0 lends what it does not use
		b.Tenant("t0", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(8))} })
		b.Tenant("t1", "rome", func(s *v1alpha1.TenantSpec) {
			s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(0)), MaxBorrow: Amounts("gpu=8")}
		})
	case "removed": // what it holds is being released
		for in := range slices.Values(b.W.Intents) {
			if len(b.Contracts(in.Metadata.Namespace+"/"+in.Metadata.Name)) > 0 {
				b.Remove(in.Metadata.Namespace + "/" + in.Metadata.Name)
				break
			}
		}
	case "steps":
		b.Offer("oslo/c", Spec(func(f *v1alpha1.FlavorSpec) { f.Partition = &v1alpha1.Partition{Step: Amounts("cpu=16")} }))
	case "pool":
		b.Fleet(func(f *v1alpha1.FleetSpec) {
			f.WarmPools = []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{GPU: &v1alpha1.GPURequest{Count: 1}}}}
		})
	}
	return said
}

// What an offer with a partition fails depends on each one's size: lists that were shared
// before it had one hold for nobody.
func TestPartitionThatComesLaterIsEachOnesOwn(t *testing.T) {
	cpu := func(cores string) func(*model.Intent) {
		return With(func(s *v1alpha1.IntentSpec) { s.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=" + cores)} })
	}
	b, m := New().Consumer("rome").Provider("paris").Tenant("t", "rome"), &planner.Session{}
	b.Offer("paris/a", Capacity("cpu=60 memory=256Gi pods=1000 ephemeral-storage=1Ti"), Costs("1"), Spec(func(f *v1alpha1.FlavorSpec) { f.Cordon = true }))
	b.Intent("t/a-large", cpu("50")).Intent("t/b-small", cpu("10"))
	b.Apply(m.Decide(b.W))
	b.Tick(time.Minute).Apply(m.Decide(b.W))
	b.Offer("paris/a", Spec(func(f *v1alpha1.FlavorSpec) {
		f.Cordon, f.Partition = false, &v1alpha1.Partition{Step: Amounts("cpu=16")}
	}))
	want, got := b.Plan(), m.Decide(b.W)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from memory:\n%s\nfrom nothing:\n%s", describe(got), describe(want))
	}
	if d := Of(got, "t/b-small"); d.Action != planner.Place {
		t.Errorf("the small one is %s: %s", d.Action, d.Reason)
	}
}

// What is known of those that wait for a fact is what a plan from nothing finds, whatever
// happens meanwhile; and most rounds go by it.
func TestKnownWaitsAsFromNothing(t *testing.T) {
	rounds, known := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b, m := waiters(), &planner.Session{Fault: func(why string) { t.Fatalf("a fault: %s", why) }}
		ask := func(said string) *planner.Plan {
			t.Helper()
			b.W.Intents = slices.SortedFunc(slices.Values(b.W.Intents), func(x, y *model.Intent) int {
				return cmp.Or(cmp.Compare(x.Metadata.Namespace, y.Metadata.Namespace), cmp.Compare(x.Metadata.Name, y.Metadata.Name))
			})
			want, got := b.Plan(), m.Decide(b.W)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %q, from memory:\n%s\nfrom nothing:\n%s", said, describe(got), describe(want))
			}
			rounds++
			if m.Known() > 0 {
				known++
			}
			return got
		}
		b.Apply(ask("at first"))
		b.Apply(ask("applied"))
		for n := range rapid.IntRange(1, 10).Draw(t, "length") {
			said := changes(t, b, n)
			b.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600}).Draw(t, "seconds")) * time.Second)
			b.Apply(ask(said))
			b.Apply(ask(said + ", applied"))
		}
	})
	if 2*known < rounds {
		t.Errorf("of %d rounds %d knew of any intent how it waits", rounds, known)
	}
	t.Logf("of %d rounds %d knew of an intent how it waits", rounds, known)
}
