package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// quota bounds a tenant's cards, and what of them it may borrow.
func quota(gpu int64, borrow string) func(*v1alpha1.TenantSpec) {
	return func(s *v1alpha1.TenantSpec) {
		s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(gpu)}
		if borrow != "" {
			s.Quota.MaxBorrow = Amounts(borrow)
		}
	}
}

func lenders() *Builder {
	return paris().Tenant("ada", "rome", quota(4, "gpu=3")).Tenant("zoe", "rome", quota(4, ""))
}

func TestBorrow(t *testing.T) {
	b := lenders().Intent("ada/a", Wants(4))
	step(t, b, "its own", map[string]string{"ada/a": "place"})
	if c := b.Contracts("ada/a")[0]; c.Spec.Borrowed != nil {
		t.Fatalf("%+v", c.Spec.Borrowed)
	}
	b.Tick(time.Minute).Intent("ada/b", Wants(2)).Intent("ada/c", Wants(2))
	p := step(t, b, "two more of three", map[string]string{"ada/b": "place", "ada/c": "queue QuotaExceeded"})
	if c := b.Contracts("ada/b")[0]; c.Spec.Borrowed[v1alpha1.GPU].Int64() != 2 {
		t.Fatalf("%+v", c.Spec.Borrowed)
	}
	if d := Of(p, "ada/b"); !strings.HasSuffix(d.Reason, "borrows 2 GPUs of quota that others leave unused, until they ask for it") {
		t.Fatal(d.Reason)
	}
	if d := Of(p, "ada/c"); !strings.HasPrefix(d.Reason, "tenant ada holds 6 of 4 GPUs and may borrow 3, of which others leave 2; the only offer does not fit") {
		t.Fatal(d.Reason)
	}
	if p := lenders().Intent("ada/big", Wants(8)).Round(); Of(p, "ada/big").Reason != "it asks for 8 GPUs, and tenant ada may hold 7 with what it may borrow: ask for less, or raise quota.gpu in tenants/ada.yaml" {
		t.Fatal(describe(p))
	}
}

// What was held of the tenant's own quota is not borrowed because its intent
// changes while others of the tenant borrow: nobody asks it back.
func TestAChangeBorrowsOnlyWhatItAdds(t *testing.T) {
	b := lenders().Intent("ada/a", Wants(4))
	b.Round()
	b.Tick(time.Minute).Deliver().Intent("ada/b", Wants(2)).Round()
	b.Tick(time.Minute).Deliver().Intent("ada/a", Wants(4), With(func(s *v1alpha1.IntentSpec) { s.Resources.Named[v1alpha1.CPU] = v1alpha1.AmountOf(9000) }))
	step(t, b, "more cores", map[string]string{"ada/a": "resize IntentChanged"})
	if c := b.Contracts("ada/a")[0]; c.Spec.Borrowed != nil {
		t.Fatalf("%+v", c.Spec.Borrowed)
	}
	b.Tick(time.Minute).Deliver().Intent("ada/b", Wants(1))
	step(t, b, "gives one back", map[string]string{"ada/b": "resize IntentChanged"})
	b.Tick(time.Minute).Deliver().Intent("ada/a", Wants(5))
	step(t, b, "one more", map[string]string{"ada/a": "resize IntentChanged"})
	if c := b.Contracts("ada/a")[0]; c.Spec.Borrowed[v1alpha1.GPU].Int64() != 1 {
		t.Fatalf("%+v", c.Spec.Borrowed)
	}
}

// What others hold of their quota cannot be borrowed; from who has none nothing is borrowed.
func TestBorrowOnlyWhatIsUnused(t *testing.T) {
	b := lenders().Tenant("bob", "rome").Offer("paris/h100", Capacity("gpu=20")).
		Intent("zoe/z", Wants(3)).Intent("ada/a", Wants(4)).Intent("ada/b", Wants(1)).Intent("ada/c", Wants(1)).Intent("bob/free", Wants(9))
	p := step(t, b, "one is left", map[string]string{"ada/a": "place", "zoe/z": "place", "bob/free": "place"})
	if s := p.Summary(); s[planner.Place] != 4 || s[planner.Queued] != 1 {
		t.Fatal(describe(p))
	}
	// Its owner takes what is left of its quota all the same: there is room.
	b.Tick(time.Minute).Intent("zoe/y", Wants(1))
	step(t, b, "there is room", map[string]string{"zoe/y": "place"})
	for c := range b.W.Ledger.Contracts() {
		if c.Status.Displaced != nil {
			t.Fatalf("%s gives way for nothing", c.Metadata.Name)
		}
	}
}

func TestReclaim(t *testing.T) {
	b := settled(lenders().Offer("paris/h100", Capacity("gpu=7")).Intent("ada/a", Wants(4), Priority(5)))
	b.Intent("ada/old", Wants(1), Priority(900), grace(10*time.Minute))
	settled(b)
	b.Intent("ada/young", Wants(2), Priority(900), grace(10*time.Minute))
	settled(b)
	b.Intent("zoe/z", Wants(2))
	p := step(t, b, "asks", map[string]string{"zoe/z": "queue Reclaiming", "ada/young": "preempt Reclaimed", "ada/old": "keep", "ada/a": "keep"})
	if d := Of(p, "ada/young"); !strings.HasPrefix(d.Reason, "it was borrowed from quota that zoe/z now asks for; it leaves 2026-11-20T12:16:00Z") {
		t.Fatal(d.Reason)
	}
	if d := Of(p, "zoe/z"); !strings.HasPrefix(d.Reason, "takes back what is borrowed by ada/young, by 2026-11-20T12:16:00Z") {
		t.Fatal(d.Reason)
	}
	b.Tick(10 * time.Minute)
	step(t, b, "leaves", map[string]string{"zoe/z": "queue Reclaiming", "ada/young": "preempt NothingFits"})
	b.Tick(time.Minute).Deliver()
	step(t, b, "has it", map[string]string{"zoe/z": "place", "ada/young": "queue NothingFits"})
	for range 20 {
		b.Tick(time.Hour).Deliver()
		if p := b.Round(); placesAnything(p) {
			t.Fatalf("it goes back and forth:\n%s", describe(p))
		}
	}
	// One more than zoe's quota: what ada borrowed is not hers to take.
	b.Intent("zoe/y", Wants(3))
	step(t, b, "beyond her quota", map[string]string{"zoe/y": "queue NothingFits", "ada/old": "keep"})
}

// Nobody preempts in order to borrow.
func TestNoBorrowingByForce(t *testing.T) {
	b := settled(lenders().Intent("ada/a", Wants(4)).Intent("zoe/z", Wants(4)))
	b.Tenant("zoe", "rome", quota(8, "")).Intent("ada/b", Wants(1), preempts(900))
	step(t, b, "stays", map[string]string{"zoe/z": "keep", "ada/b": "queue NothingFits"})
}

// What is kept warm cannot be borrowed while somebody waits within his own quota who
// would ask it back at once.
func TestWarmIsNotLentToBeAskedBack(t *testing.T) {
	pool := []v1alpha1.WarmPool{{Name: "warm", Consumer: "rome", Count: 1, Resources: v1alpha1.ResourceRequest{
		GPU: &v1alpha1.GPURequest{Count: 2}, Named: Amounts("memory=64Gi cpu=8 ephemeral-storage=50Gi"),
	}}}
	fleet := func() *Builder {
		return settled(paris().Offer("paris/h100", Cards("nvidia-h100", 2, "80Gi")).Tenant("ada", "rome", quota(1, "gpu=3")).Tenant("zoe", "rome", quota(4, "")).
			Fleet(func(f *v1alpha1.FleetSpec) { f.WarmPools = pool }))
	}
	b := fleet().Intent("ada/a", Wants(2))
	step(t, b, "nobody else waits", map[string]string{"ada/a": "place"})
	if c := b.Contracts("ada/a")[0]; c.Spec.Borrowed[v1alpha1.GPU].Int64() != 1 || c.Decision.Claimed != "warm" {
		t.Fatalf("%+v, claimed %q", c.Spec.Borrowed, c.Decision.Claimed)
	}
	b = fleet().Intent("zoe/z", Wants(1)).Intent("ada/a", Wants(2))
	p := b.Round()
	if s := p.Summary(); s[planner.Queued] != 2 {
		t.Fatal(describe(p))
	}
	wantOnlyKeeps(t, b)
	b = fleet().Intent("zoe/z", Wants(1, "A100")).Intent("ada/a", Wants(2))
	step(t, b, "he wants another model", map[string]string{"zoe/z": "queue NothingFits", "ada/a": "place"})
	wantOnlyKeeps(t, b)
}
