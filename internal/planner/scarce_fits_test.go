package planner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// What places are worth to others keeps nobody out: who fits by price alone is placed, by the
// same alternative, and a second plan changes nothing.
func TestScarcity_KeepsNobodyOut(t *testing.T) {
	some := func(least int32) func(*v1alpha1.IntentSpec) {
		return func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), least }
	}
	alone := func(s *v1alpha1.IntentSpec) {
		s.Gang, s.Placement.Within = Ptr(true), &v1alpha1.Within{By: "provider", Policy: v1alpha1.WithinNone}
	}
	fewer := func(s *v1alpha1.IntentSpec) {
		s.Alternatives = []v1alpha1.ResourceRequest{{GPU: &v1alpha1.GPURequest{Count: 1}}}
	}
	ofH100 := func(b *Builder) {
		b.Tenant("other", "rome", func(s *v1alpha1.TenantSpec) {
			s.Quota = &v1alpha1.TenantQuota{ByModel: map[string]int64{"nvidia-a100": 4}}
		})
	}
	for name, c := range map[string]struct {
		left     int
		tenant   func(b *Builder)
		replicas int32
		specs    []func(*v1alpha1.IntentSpec)
		own      string
	}{
		"minReplicas within a tenant's budget":            {2, hourly("17"), 2, specs(some(2)), ""},
		"replicas one by one within a tenant's budget":    {2, hourly("17"), 2, specs(some(0)), ""},
		"alternatives one by one":                         {2, hourly("17"), 2, specs(some(0), fewer), ""},
		"a gang within a tenant's budget":                 {3, hourly("25"), 3, specs(alone), ""},
		"a gang in one provider within a tenant's budget": {3, hourly("25"), 3, nil, ""},
		"a gang within its own budget":                    {2, nil, 2, nil, "17"},
		"a gang with an alternative":                      {2, nil, 2, specs(fewer), "17"},
		"a gang within a quota of a model":                {2, ofH100, 3, specs(alone), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := choosy(8, c.left, "2.5", 0).Tenant("other", "rome")
			if c.tenant != nil {
				c.tenant(b)
			}
			b.Intent("other/one", Wants(4), cheapest, Times(c.replicas), With(func(s *v1alpha1.IntentSpec) {
				for _, change := range c.specs {
					change(s)
				}
			}))
			if c.own != "" {
				b.Intent("other/one", AtMost(c.own))
			}
			p := b.Round()
			d := Of(p, "other/one")
			if got := len(b.Contracts("other/one")); d.Action != planner.Place || got != int(c.replicas) || d.Alternative != 0 {
				t.Errorf("%d of %d replicas are placed, by alternative %d:\n%s", got, c.replicas, d.Alternative, describe(p))
			}
			wantOnlyKeeps(t, b)
		})
	}
}

// One replica that may be divided leaves the last place too where it fits whole; several go by
// price, because what their search may cost is counted for one.
func TestScarcity_OfWhatMayBeDivided(t *testing.T) {
	for n, want := range map[int32]string{1: "paris/a100", 2: "paris/h100-08"} {
		b := choosy(8, 2, "3", 0).Offer("paris/a100", Cards("nvidia-a100", 36, "80Gi"), Costs("2.5")).Intent("vision/any", Wants(4), cheapest, Times(n), splits(2, 0))
		p := b.Round()
		if got := Of(p, "vision/any").Contracts[0]; got.Provider+"/"+got.Flavor != want {
			t.Errorf("the first of %d is on %s/%s, want %s:\n%s", n, got.Provider, got.Flavor, want, describe(p))
		}
		wantOnlyKeeps(t, b)
	}
}

func specs(list ...func(*v1alpha1.IntentSpec)) []func(*v1alpha1.IntentSpec) { return list }

// A gang that can only pay for one place that others need leaves the others alone, where its
// own budget binds.
func TestScarcity_OfTwoScarceModels(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "lyon", "nice").Tenant("vision", "rome").Tenant("other", "rome").
		Offer("nice/l40s", Cards("nvidia-l40s", 80, "48Gi"), Costs("2.5")).
		Offer("lyon/a100", Cards("nvidia-a100", 40, "80Gi"), Costs("2.375"))
	for i := range 9 {
		b.Offer(fmt.Sprintf("paris/h100-%02d", i), Cards("nvidia-h100", 4, "80Gi"), Costs("2"))
	}
	for i := range 8 {
		b.Intent(fmt.Sprintf("vision/h-%d", i), Wants(4, "H100"), cheapest).Intent(fmt.Sprintf("vision/a-%d", i), Wants(4, "A100"), cheapest)
	}
	b.Round()
	b.Tick(time.Minute).Intent("other/gang", Wants(4), Times(3), cheapest, AtMost("27.3"))
	p := b.Round()
	if got := len(b.Contracts("other/gang")); got != 3 {
		t.Errorf("%d of 3 replicas are placed:\n%s", got, describe(p))
	}
	wantOnlyKeeps(t, b)
}

// What others take in the same round, which makes a place worth less to those who usually
// come, does not make a second plan place who had no place in the first.
func TestScarcity_AgainWithoutWhatOthersTook(t *testing.T) {
	for _, n := range []int32{5, 20, 40} {
		b := choosy(8, 2, "2.9", 0).Tenant("other", "rome").Tenant("many", "rome").
			Offer("lyon/a100", Cards("nvidia-a100", 4000, "80Gi"), Capacity("cpu=100000 memory=1000Ti"))
		hourly("17")(b)
		b.Intent("other/one", Wants(4), cheapest, Times(2), With(func(s *v1alpha1.IntentSpec) { s.Gang, s.MinReplicas = Ptr(false), 2 }))
		b.Round()
		b.Tick(time.Minute).Intent("many/y", Wants(64, "H100", "A100"), Times(n), cheapest, With(func(s *v1alpha1.IntentSpec) { s.Gang = Ptr(false) }))
		b.Round()
		if p := b.Plan(); p.Changes() {
			t.Errorf("next to %d others a second plan changes:\n%s", n, describe(p))
		}
		if got := len(b.Contracts("other/one")); got != 2 {
			t.Errorf("next to %d others %d of 2 replicas are placed", n, got)
		}
	}
}
