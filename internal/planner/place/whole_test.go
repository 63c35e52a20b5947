package place_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

// on is on which flavors an intent's charged contracts are.
func on(b *Builder, ref string) string {
	count := map[string]int{}
	for _, c := range b.Contracts(ref) {
		if c.Status.Phase.Charged() {
			count[c.Spec.Provider+"/"+c.Spec.Flavor]++
		}
	}
	var out []string
	for _, at := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s:%d", at, count[at]))
	}
	return strings.Join(out, " ")
}

func moveAfter(d time.Duration) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) { s.Update = &v1alpha1.Update{MoveAfter: v1alpha1.Duration{Duration: d}} })
}

// gangOf is a gang of four times 8 GPUs, at work in oslo, whose tenant may hold no more than
// the 32 that it has; paris costs more.
func gangOf(t *testing.T, changes ...func(*model.Intent)) *Builder {
	t.Helper()
	const nodes = "cpu=2000 memory=8Ti pods=2000"
	b := New().Consumer("rome").Provider("paris", "oslo").
		Tenant("vision", "rome", func(s *v1alpha1.TenantSpec) { s.Quota = &v1alpha1.TenantQuota{GPU: Ptr(int64(32))} }).
		Offer("paris/h100", Cards("nvidia-h100", 32, "80Gi"), Capacity(nodes), Costs("3")).
		Offer("oslo/h100", Cards("nvidia-h100", 32, "80Gi"), Capacity(nodes), Costs("1"))
	b.Intent("vision/train", append([]func(*model.Intent){Wants(8, "H100"), Times(4), With(func(s *v1alpha1.IntentSpec) {
		s.Gang, s.Objective = Ptr(true), v1alpha1.Cost
	})}, changes...)...).Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := on(b, "vision/train"); got != "oslo/h100:4" {
		t.Fatal(got)
	}
	return b
}

// TestMoveAfter_TheGangMovesWhole: a replica that finds no room in its gang's domain waits
// there for update.moveAfter, or the fleet's default; then all move, and never without.
func TestMoveAfter_TheGangMovesWhole(t *testing.T) {
	for name, c := range map[string]struct {
		intent, fleet time.Duration
		paris         int // cards
		soon, late    string
		says          string
	}{
		"never by default":      {0, 0, 32, "oslo/h100:4", "oslo/h100:4", "it is kept and waits"},
		"the intent's":          {time.Hour, 0, 32, "oslo/h100:4", "paris/h100:4", "all replicas move to another provider at "},
		"the fleet's":           {0, time.Hour, 32, "oslo/h100:4", "paris/h100:4", "(Fleet.defaults.moveAfter 1h"},
		"the intent goes first": {48 * time.Hour, time.Hour, 32, "oslo/h100:4", "oslo/h100:4", "(update.moveAfter 48h"},
		"no other has room":     {time.Hour, 0, 24, "oslo/h100:4", "oslo/h100:4", "all replicas move to another provider at "},
	} {
		t.Run(name, func(t *testing.T) {
			b := gangOf(t, func(in *model.Intent) {
				if c.intent > 0 {
					moveAfter(c.intent)(in)
				}
			}).Fleet(func(f *v1alpha1.FleetSpec) { f.Defaults.MoveAfter = v1alpha1.Duration{Duration: c.fleet} })
			b.Offer("oslo/h100", Capacity("gpu=24")).Offer("paris/h100", Capacity(fmt.Sprintf("gpu=%d", c.paris))).Round()
			p := b.Tick(10 * time.Minute).Round()
			if got := on(b, "vision/train"); got != c.soon || !strings.Contains(Of(p, "vision/train").Reason, c.says) {
				t.Fatalf("after 10m: %s, want %s; %s: %s", got, c.soon, Of(p, "vision/train").Code, Of(p, "vision/train").Reason)
			}
			if again := b.Plan(); again.Changes() {
				t.Fatal("planned again it changes something")
			}
			b.Tick(2 * time.Hour)
			p = b.Round()
			if got := on(b, "vision/train"); got != c.late {
				t.Fatalf("after 2h: %s, want %s; %s", got, c.late, Of(p, "vision/train").Reason)
			}
			if c.paris < 32 && !strings.Contains(Of(p, "vision/train").Reason, "no other provider has room for all 4 replicas (update.moveAfter 1h") {
				t.Error(Of(p, "vision/train").Reason)
			}
			b.Tick(time.Minute).Deliver().Round()
			if again := b.Tick(time.Minute).Round(); again.Changes() || on(b, "vision/train") != c.late {
				t.Errorf("it does not settle: %s", on(b, "vision/train"))
			}
		})
	}
}

// TestMoveAfter_RoomInTheDomainGoesFirst: with room where its gang is, a lost replica alone is
// replaced, however long it has waited.
func TestMoveAfter_RoomInTheDomainGoesFirst(t *testing.T) {
	b := gangOf(t, moveAfter(time.Hour))
	b.Offer("oslo/h100", Capacity("gpu=24")).Round()
	b.Tick(10 * time.Minute).Round()
	b.Offer("oslo/more", Cards("nvidia-h100", 8, "80Gi"), Capacity("cpu=2000 memory=8Ti"), Costs("9")).Tick(2 * time.Hour).Round()
	if got := on(b, "vision/train"); got != "oslo/h100:3 oslo/more:1" {
		t.Fatal(got)
	}
}

// TestMoveAfter_ChangesAllAtOnce: next to moveAfter alone, a change of the intent goes as
// without update.
func TestMoveAfter_ChangesAllAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		update *v1alpha1.Update
		most   int32
		steps  bool
	}{
		"absent":    {nil, 0, false},
		"empty":     {&v1alpha1.Update{}, 0, true},
		"moveAfter": {&v1alpha1.Update{MoveAfter: v1alpha1.Duration{Duration: time.Hour}}, 0, false},
		"both":      {&v1alpha1.Update{MoveAfter: v1alpha1.Duration{Duration: time.Hour}, MaxUnavailable: Ptr(int32(2))}, 2, true},
	} {
		if most, steps := c.update.Steps(); most != c.most || steps != c.steps {
			t.Errorf("%s: got %d %t, want %d %t", name, most, steps, c.most, c.steps)
		}
	}
}

// spot gives an offer a spot price, "" for none.
func spot(gpu string) func(*model.Offer) {
	return func(o *model.Offer) {
		p := *o.Price
		if p.Spot = nil; gpu != "" {
			p.Spot = v1alpha1.UnitPrices{"gpu": v1alpha1.MustDecimal(gpu)}
		}
		o.Price = &p
	}
}

// TestSpotGangs_LeaveWhole: a provider that takes back spot capacity of one replica takes the
// gang: it moves whole to where all fit, else it ends with the notice, whole, and waits.
func TestSpotGangs_LeaveWhole(t *testing.T) {
	for name, c := range map[string]struct {
		rules       int32
		paris       int
		first, then string
	}{
		"another domain has room": {0, 32, "paris/h100:4", "paris/h100:4"},
		"none has":                {0, 24, "oslo/h100:3 oslo/spot:1", ""},
		"by older rules":          {draft.RulesGangsLeaveWhole - 1, 32, "oslo/h100:3 oslo/spot:1", "oslo/h100:3"},
	} {
		t.Run(name, func(t *testing.T) {
			const nodes = "cpu=2000 memory=8Ti pods=2000"
			b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome").
				Offer("paris/h100", Cards("nvidia-h100", c.paris, "80Gi"), Capacity(nodes), Costs("3")).
				Offer("oslo/h100", Cards("nvidia-h100", 24, "80Gi"), Capacity(nodes), Costs("2")).
				Offer("oslo/spot", Cards("nvidia-h100", 8, "80Gi"), Capacity(nodes), Costs("2"), spot("1"))
			b.W.Rules = int(c.rules)
			b.Intent("vision/train", Wants(8, "H100"), Times(4), With(func(s *v1alpha1.IntentSpec) {
				s.Gang, s.Objective, s.Purchase = Ptr(true), v1alpha1.Cost, []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}
				s.Preemption = &v1alpha1.Preemption{Grace: v1alpha1.Duration{Duration: 5 * time.Minute}}
			})).Round()
			b.Tick(time.Minute).Deliver().Round()
			if got := on(b, "vision/train"); got != "oslo/h100:3 oslo/spot:1" {
				t.Fatal(got)
			}
			b.Offer("oslo/spot", Heard(model.Withdrawn)).Tick(time.Minute).Round()
			if got := on(b, "vision/train"); got != c.first {
				t.Fatalf("with the notice: %s, want %s", got, c.first)
			}
			b.Tick(6 * time.Minute)
			p := b.Round()
			if got := on(b, "vision/train"); got != c.then {
				t.Fatalf("after the notice: %s, want %s; %s", got, c.then, Of(p, "vision/train").Reason)
			}
			if again := b.Plan(); again.Changes() {
				t.Error("planned again it changes something")
			}
			// With room again, all of it is placed.
			b.Tick(time.Minute).Deliver().Round()
			b.Offer("oslo/h100", Capacity("gpu=32")).Tick(time.Minute).Round()
			if c.rules == 0 && c.paris == 24 && on(b, "vision/train") != "oslo/h100:4" {
				t.Errorf("with room: %s", on(b, "vision/train"))
			}
		})
	}
}
