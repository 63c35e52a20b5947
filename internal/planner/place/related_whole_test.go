package place_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

const bigNodes = "cpu=2000 memory=8Ti pods=2000"

// h100s is an offer of so many cards at a price.
func h100s(b *Builder, ref string, cards int, price string, changes ...func(*model.Offer)) *Builder {
	return b.Offer(ref, append([]func(*model.Offer){Cards("nvidia-h100", cards, "80Gi"), Capacity(bigNodes), Costs(price)}, changes...)...)
}

// lost and drained are what befalls offers; a drained one must be empty a day later.
func lost(refs ...string) func(*Builder) {
	return func(b *Builder) {
		for _, ref := range refs {
			b.Offer(ref, Heard(model.Lost))
		}
	}
}

func drained(refs ...string) func(*Builder) {
	return func(b *Builder) {
		for _, ref := range refs {
			b.Offer(ref, Spec(func(f *v1alpha1.FlavorSpec) { f.Drain = v1alpha1.TimeOf(Start.Add(24 * time.Hour)) }))
		}
	}
}

// shrunk has an offer fall to so many GPUs.
func shrunk(ref, gpus string) func(*Builder) {
	return func(b *Builder) { b.Offer(ref, Capacity("gpu="+gpus)) }
}

// as is a gang by cost, changed.
func as(change func(*v1alpha1.IntentSpec)) func(*model.Intent) {
	return With(func(s *v1alpha1.IntentSpec) {
		s.Gang, s.Objective = Ptr(true), v1alpha1.Cost
		change(s)
	})
}

func nothingElse(*v1alpha1.IntentSpec) {}

// moves is what becomes of intents: where they are ten minutes after something happened, and
// two hours after that.
type moves struct {
	happens    func(*Builder)
	moveAfter  bool // the first of them moves whole after an hour
	rules      int  // 0: the newest
	soon, late string
}

// check makes it happen to intents that are at work where they should be.
func (c *moves) check(t *testing.T, b *Builder, at string, refs ...string) {
	t.Helper()
	where := func() string {
		var out []string
		for _, ref := range refs {
			out = append(out, on(b, ref))
		}
		return strings.Join(out, ", ")
	}
	if c.moveAfter {
		b.Intent(refs[0], moveAfter(time.Hour))
	}
	b.Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := where(); got != at {
		t.Fatalf("at first: %s, want %s", got, at)
	}
	b.W.Rules = c.rules
	c.happens(b)
	b.Round()
	p := b.Tick(10 * time.Minute).Round()
	if got := where(); got != c.soon {
		t.Fatalf("after 10m: %s, want %s; %s", got, c.soon, Of(p, refs[0]).Reason)
	}
	if b.Plan().Changes() {
		t.Error("planned again it changes something")
	}
	p = b.Tick(2 * time.Hour).Round()
	if got := where(); got != c.late {
		t.Fatalf("after 2h: %s, want %s; %s", got, c.late, Of(p, refs[0]).Reason)
	}
	b.Tick(time.Minute).Deliver().Round()
	if again := b.Tick(time.Minute).Round(); again.Changes() || where() != c.late {
		t.Errorf("it does not settle: %s", where())
	}
}

// TestTogether_MovesWhole: intents that belong together leave what is lost or drained for one
// provider with room for all, and follow a gang that moves because a replica was lost.
func TestTogether_MovesWhole(t *testing.T) {
	const here, there = "oslo/h100:2, oslo/h100:1", "lyon/h100:2, lyon/h100:1"
	for name, c := range map[string]moves{
		"lost":    {happens: lost("oslo/h100"), soon: there, late: there},
		"drained": {happens: drained("oslo/h100"), soon: there, late: there},
		"lost, no other has room for all": { // train names nobody and goes by itself
			happens: func(b *Builder) { lost("oslo/h100")(b); shrunk("lyon/h100", "16")(b) },
			soon:    "paris/h100:2, oslo/h100:1", late: "paris/h100:2, oslo/h100:1",
		},
		"a replica is lost, with moveAfter":    {happens: shrunk("oslo/h100", "16"), moveAfter: true, soon: here, late: there},
		"a replica is lost, without moveAfter": {happens: shrunk("oslo/h100", "16"), soon: here, late: here},
		"drained, by older rules":              {happens: drained("oslo/h100"), rules: draft.RulesTogetherMoves - 1, soon: here, late: here},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "oslo", "lyon").Tenant("vision", "rome")
			h100s(h100s(h100s(b, "oslo/h100", 24, "1"), "paris/h100", 16, "2"), "lyon/h100", 24, "3")
			b.Intent("vision/data", Wants(8, "H100"), as(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"train"} }))
			b.Intent("vision/train", Wants(8, "H100"), Times(2), as(nothingElse))
			c.check(t, b, here, "vision/train", "vision/data")
		})
	}
}

// TestTogether_WhoNamesAnotherWaits: an intent that names another stays where it is, although
// a provider has room for it alone.
func TestTogether_WhoNamesAnotherWaits(t *testing.T) {
	b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome")
	h100s(h100s(b, "oslo/h100", 24, "1"), "paris/h100", 8, "2")
	b.Intent("vision/data", Wants(8, "H100"), as(func(s *v1alpha1.IntentSpec) { s.Placement.Together = []string{"train"} }))
	b.Intent("vision/train", Wants(16, "H100"), as(nothingElse)).Round()
	b.Tick(time.Minute).Deliver().Round()
	drained("oslo/h100")(b)
	p := b.Tick(time.Minute).Round()
	if got := on(b, "vision/data"); got != "oslo/h100:1" || !strings.Contains(Of(p, "vision/data").Reason, "no other provider has room for data and train together") {
		t.Errorf("%s: %s", got, Of(p, "vision/data").Reason)
	}
}

// TestSplit_MovesWhole: of a gang of replicas in parts that share a domain a lost part is
// replaced there or waits; all of it moves as other gangs do, and may be divided otherwise
// where it comes to.
func TestSplit_MovesWhole(t *testing.T) {
	const here, there = "oslo/a:2 oslo/b:1", "paris/a:2 paris/b:1"
	for name, c := range map[string]moves{
		"lost":           {happens: lost("oslo/a", "oslo/b"), soon: there, late: there},
		"drained":        {happens: drained("oslo/a", "oslo/b"), soon: there, late: there},
		"a part is lost": {happens: lost("oslo/b"), soon: here, late: here},
		"a part is lost, with room in its domain": {happens: func(b *Builder) { lost("oslo/b")(b); h100s(b, "oslo/c", 8, "9") }, moveAfter: true,
			soon: "oslo/a:2 oslo/c:1", late: "oslo/a:2 oslo/c:1"},
		"a part is lost, with moveAfter": {happens: lost("oslo/b"), moveAfter: true, soon: here, late: there},
		"lost, by older rules":           {happens: lost("oslo/a", "oslo/b"), rules: draft.RulesTogetherMoves - 1, soon: here, late: here},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome")
			h100s(h100s(h100s(h100s(b, "oslo/a", 24, "1"), "oslo/b", 8, "1"), "paris/a", 28, "3"), "paris/b", 4, "3")
			b.Intent("vision/train", Wants(16, "H100"), Times(2), as(func(s *v1alpha1.IntentSpec) {
				s.Split, s.Placement.Within = &v1alpha1.Split{MaxParts: 3, MinGPU: 1}, &v1alpha1.Within{By: "provider"}
			}))
			c.check(t, b, here, "vision/train")
		})
	}
}

// TestSplit_LeavesWhole: spot capacity that is taken back from one part takes the whole gang.
func TestSplit_LeavesWhole(t *testing.T) {
	for name, c := range map[string]struct{ paris, then string }{
		"another domain has room": {"40", "paris/a:2"},
		"none has":                {"24", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome")
			h100s(h100s(h100s(b, "oslo/a", 24, "2"), "oslo/spot", 8, "2", spot("1")), "paris/a", 24, "9")
			b.Intent("vision/train", Wants(16, "H100"), Times(2), as(func(s *v1alpha1.IntentSpec) {
				s.Purchase, s.Split = []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}, &v1alpha1.Split{MaxParts: 2, MinGPU: 1}
				s.Placement.Within = &v1alpha1.Within{By: "provider"}
				s.Preemption = &v1alpha1.Preemption{Grace: v1alpha1.Duration{Duration: 5 * time.Minute}}
			})).Round()
			b.Tick(time.Minute).Deliver().Round()
			if got := on(b, "vision/train"); got != "oslo/a:2 oslo/spot:1" {
				t.Fatal(got)
			}
			shrunk("paris/a", c.paris)(b)
			b.Offer("oslo/spot", Heard(model.Withdrawn)).Tick(time.Minute).Round()
			p := b.Tick(6 * time.Minute).Round()
			if got := on(b, "vision/train"); got != c.then {
				t.Fatalf("%s, want %s; %s", got, c.then, Of(p, "vision/train").Reason)
			}
			if b.Plan().Changes() {
				t.Error("planned again it changes something")
			}
			b.Tick(time.Minute).Deliver().Round()
			h100s(b, "oslo/c", 8, "9").Tick(time.Minute).Round()
			if got := on(b, "vision/train"); c.then == "" && got != "oslo/a:2 oslo/c:1" {
				t.Errorf("with room: %s", got)
			}
		})
	}
}

// TestSpread_MovesWhole: a gang that is spread over zones of one region moves to another with
// as many zones, and not to one zone with room for all.
func TestSpread_MovesWhole(t *testing.T) {
	const here, there = "n1/h100:2 n2/h100:2", "s1/h100:2 s2/h100:2"
	for name, c := range map[string]moves{
		"lost":                              {happens: lost("n1/h100", "n2/h100"), soon: there, late: there},
		"drained":                           {happens: drained("n1/h100", "n2/h100"), soon: there, late: there},
		"one zone is lost":                  {happens: lost("n1/h100"), soon: here, late: here},
		"a replica is lost":                 {happens: shrunk("n1/h100", "8"), soon: here, late: here},
		"a replica is lost, with moveAfter": {happens: shrunk("n1/h100", "8"), moveAfter: true, soon: here, late: there},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("n1", "n2", "s1", "s2", "w1").Tenant("vision", "rome")
			h100s(h100s(b, "n1/h100", 16, "1", In("north", "1")), "n2/h100", 16, "1", In("north", "2"))
			h100s(h100s(b, "s1/h100", 16, "3", In("south", "1")), "s2/h100", 16, "3", In("south", "2"))
			h100s(b, "w1/h100", 32, "2", In("west", "1"))
			b.Intent("vision/train", Wants(8, "H100"), Times(4), as(func(s *v1alpha1.IntentSpec) {
				s.Placement.Within = &v1alpha1.Within{By: "region"}
				s.Placement.Spread = []v1alpha1.Spread{{By: "zone", MaxSkew: 2, MinDomains: 2}}
			}))
			c.check(t, b, here, "vision/train")
		})
	}
}

// TestGangsInParts_GiveWayWhole: who preempts takes all parts of all replicas.
func TestGangsInParts_GiveWayWhole(t *testing.T) {
	b := New().Consumer("rome").Provider("oslo").Tenant("vision", "rome").Tenant("speech", "rome")
	h100s(h100s(b, "oslo/a", 24, "1"), "oslo/b", 8, "1")
	b.Intent("vision/train", Wants(16, "H100"), Times(2), as(func(s *v1alpha1.IntentSpec) { s.Split = &v1alpha1.Split{MaxParts: 2, MinGPU: 1} })).Round()
	b.Tick(time.Minute).Deliver().Round()
	b.Intent("speech/urgent", Wants(8, "H100"), With(func(s *v1alpha1.IntentSpec) {
		s.Priority, s.Preemption = 1000, &v1alpha1.Preemption{Preempts: "lower"}
	}))
	b.Tick(time.Minute).Round()
	b.Tick(time.Hour).Deliver().Round()
	b.Tick(time.Minute).Deliver().Round()
	if got := on(b, "vision/train") + ", " + on(b, "speech/urgent"); !strings.HasPrefix(got, ", oslo/") {
		t.Error(got)
	}
}

// TestSpotTogether_LeaveAsOne: spot capacity that is taken back from an intent takes those with
// it that it is together with: all move at once to where all fit, else those that name it end
// with its notice, too, and wait to be where it is. Where it finds another place next to them,
// or keeps a part of what it has, they stay.
func TestSpotTogether_LeaveAsOne(t *testing.T) {
	const nodes = "cpu=2000 memory=8Ti pods=2000"
	for name, c := range map[string]struct {
		rules, paris, spare int // cards of paris, of oslo at the full price
		times               int32
		named               bool // by train too, and not by store alone
		first, then, late   string
	}{
		"another provider has room": {paris: 16, spare: 8, times: 1, first: "paris/h100:1 | paris/h100:1", then: "paris/h100:1 | paris/h100:1", late: "paris/h100:1 | paris/h100:1"},
		"none has":                  {paris: 8, spare: 8, times: 1, named: true, first: "oslo/spot:1 | oslo/h100:1", then: " | ", late: "oslo/h100:1 | oslo/h100:1"},
		"one has for it alone":      {paris: 8, spare: 8, times: 1, first: "oslo/spot:1 | oslo/h100:1", then: "paris/h100:1 | ", late: "paris/h100:1 | "},
		"there is room next to it":  {paris: 16, spare: 16, times: 1, first: "oslo/h100:1 | oslo/h100:1", then: "oslo/h100:1 | oslo/h100:1", late: "oslo/h100:1 | oslo/h100:1"},
		"some of it stays":          {paris: 8, spare: 16, times: 2, first: "oslo/h100:1 oslo/spot:1 | oslo/h100:1", then: "oslo/h100:1 | oslo/h100:1", late: "oslo/h100:2 | oslo/h100:1"},
		"by older rules":            {rules: draft.RulesTogetherLeaves - 1, paris: 16, spare: 8, times: 1, first: "oslo/spot:1 | oslo/h100:1", then: " | oslo/h100:1", late: "oslo/h100:1 | oslo/h100:1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Consumer("rome").Provider("paris", "oslo").Tenant("vision", "rome").
				Offer("oslo/h100", Cards("nvidia-h100", c.spare, "80Gi"), Capacity(nodes), Costs("2")).
				Offer("oslo/spot", Cards("nvidia-h100", 8, "80Gi"), Capacity(nodes), Costs("2"), spot("1")).
				Offer("paris/h100", Cards("nvidia-h100", c.paris, "80Gi"), Capacity(nodes), Costs("3"))
			b.W.Rules = c.rules
			b.Intent("vision/train", Wants(8, "H100"), Times(c.times), With(func(s *v1alpha1.IntentSpec) {
				s.Gang, s.MinReplicas = Ptr(c.times == 1), 0
				if !*s.Gang {
					s.MinReplicas = 1
				}
				s.Objective, s.Purchase = v1alpha1.Cost, []v1alpha1.PriceClass{v1alpha1.Spot, v1alpha1.OnDemand}
				s.Preemption = &v1alpha1.Preemption{Grace: v1alpha1.Duration{Duration: 5 * time.Minute}}
				if c.named {
					s.Placement.Together = []string{"store"}
				}
			})).Round()
			b.Intent("vision/store", Wants(8, "H100"), With(func(s *v1alpha1.IntentSpec) {
				s.Objective, s.Placement.Together = v1alpha1.Cost, []string{"train"}
			})).Round()
			b.Tick(time.Minute).Deliver().Round()
			where := func() string { return on(b, "vision/train") + " | " + on(b, "vision/store") }
			round := func(when, want string) {
				t.Helper()
				p := b.Round()
				if got := where(); got != want {
					t.Fatalf("%s: %q, want %q; train: %s; store: %s", when, got, want, Of(p, "vision/train").Reason, Of(p, "vision/store").Reason)
				}
				if again := b.Plan(); again.Changes() {
					t.Errorf("%s: planned again it changes something", when)
				}
			}
			b.Offer("oslo/spot", Heard(model.Withdrawn)).Tick(time.Minute)
			round("with the notice", c.first)
			b.Tick(6 * time.Minute)
			round("after the notice", c.then)
			if c.then == " | " {
				for _, one := range b.Contracts("vision/store") {
					if why := one.Status.Why(); one.Status.Target != v1alpha1.PhaseReleased || why != "NotTogether: it gives way with train, which it belongs together with, and of which oslo takes back the spot capacity of spot" {
						t.Errorf("%s: %s", one.Status.Target, why)
					}
				}
			}
			b.Tick(time.Minute).Deliver()
			b.Offer("oslo/h100", Capacity("gpu=24")).Round()
			round("with room", c.late)
		})
	}
}
