package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

var tiny = With(func(s *v1alpha1.IntentSpec) {
	s.Resources = v1alpha1.ResourceRequest{Named: Amounts("cpu=1m memory=1Mi pods=1 ephemeral-storage=1Mi")}
	s.Placement.AllowAccelerators = true
})

// processor is the seconds of processor time that this process has had.
func processor(t *testing.T) float64 {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// What an intent asks for beyond its limits costs nothing, with a gang or not,
// whatever quota its tenant has.
func TestReplicasBeyondLimits(t *testing.T) {
	for _, n := range []int32{10_001, 1_000_000, 2_000_000_000} {
		for _, how := range []func(*model.Intent){func(*model.Intent) {}, loose, Follows(1, n)} {
			b := paris().Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(4))} })
			b.Intent("vision/train", tiny, Times(n), how)
			before := processor(t)
			d := Of(b.Round(), "vision/train")
			if d.Code != lifecycle.CodeLimit || !strings.Contains(d.Reason, "spec.limits.replicas in fleet.yaml") {
				t.Errorf("%d: %s %s", n, d.Code, d.Reason)
			}
			if took := processor(t) - before; took > 5 {
				t.Errorf("%d replicas took %.1f s", n, took)
			}
		}
	}
}

// The most that may be asked for is placed, or found not to fit, within bounds.
func TestMostReplicas(t *testing.T) {
	for name, how := range map[string]func(*model.Intent){"gang": func(*model.Intent) {}, "loose": loose} {
		for _, fits := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", fits), func(t *testing.T) {
				b := paris().Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Contracts = 10_000 })
				room := "cpu=64 memory=512Gi pods=100000 ephemeral-storage=10Ti"
				if !fits {
					room = "cpu=9 memory=512Gi pods=9999 ephemeral-storage=10Ti"
				}
				b.Offer("paris/h100", Capacity(room)).Intent("vision/train", tiny, Times(10_000), how)
				before := processor(t)
				p := b.Plan()
				if took := processor(t) - before; took > 5 {
					t.Errorf("took %.1f s", took)
				}
				want := 10_000
				if !fits {
					want = 9_000
					if name == "gang" {
						want = 0
					}
				}
				if len(p.Contracts) != want {
					t.Errorf("%d contracts, want %d: %+v", len(p.Contracts), want, Of(p, "vision/train").Reason)
				}
			})
		}
	}
}

// A tenant's contracts are bounded without any quota, and by its quota.
func TestContractsOfATenant(t *testing.T) {
	for name, change := range map[string]func(b *Builder){
		"spec.limits.contracts": func(b *Builder) { b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Contracts = 5 }) },
		"quota.contracts": func(b *Builder) {
			b.Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{Contracts: Ptr(int64(5))} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := paris().Offer("paris/h100", Capacity("cpu=64 memory=512Gi pods=100 ephemeral-storage=1Ti"))
			change(b)
			b.Intent("vision/a", tiny, Times(4)).Intent("vision/b", tiny, Times(4), loose)
			b.Round()
			if charged(b, "vision/a") != 4 || charged(b, "vision/b") != 1 {
				t.Fatalf("%d and %d", charged(b, "vision/a"), charged(b, "vision/b"))
			}
			if d := Of(b.Plan(), "vision/b"); !strings.Contains(d.Reason, "5 of 5 contracts ("+name) {
				t.Fatal(d.Code, d.Reason)
			}
			b.Intent("vision/c", tiny, Times(6))
			if d := Of(b.Round(), "vision/c"); d.Code != lifecycle.CodeQuota || !strings.Contains(d.Reason, name) {
				t.Fatal(d.Code, d.Reason)
			}
			// What exists under a limit that came later is kept.
			b.Fleet(func(f *v1alpha1.FleetSpec) { f.Limits.Contracts, f.Limits.Replicas = 2, 2 })
			b.Round()
			if d := Of(b.Plan(), "vision/a"); charged(b, "vision/a") != 4 {
				t.Fatal(d.Code, d.Reason)
			}
			if got := strings.Join(append(planner.BeyondLimits(&b.W), b.Plan().Notes...), "; "); strings.Count(got, "tenant vision holds 5 contracts, and may hold 2 (spec.limits.contracts in fleet.yaml)") != 2 ||
				!strings.Contains(got, "vision/a holds 4 replicas, and an intent may have 2 (spec.limits.replicas in fleet.yaml): what stands is kept to its end") {
				t.Fatal(got)
			}
			wantOnlyKeeps(t, b)
		})
	}
}
