package reconciler

import (
	"context"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// agent is a provider that reports one flavor of CPU.
type agent struct {
	s    *story
	name string
	n    uint64
	spec v1alpha1.FlavorSpec
}

func (a *agent) report(change func(*v1alpha1.FlavorSpec)) {
	a.s.t.Helper()
	spec := a.spec
	if change != nil {
		change(&spec)
	}
	a.spec = spec
	a.n++
	err := a.s.r.opts.Market.Report(a.name, wire.Generation{Epoch: 1, N: a.n}, []v1alpha1.Flavor{{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "cpu", Namespace: a.name}, Spec: spec,
	}}, true)
	if err != nil {
		a.s.t.Fatal(err)
	}
}

func cores(n int64) v1alpha1.Resources {
	return v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(n * 1000), v1alpha1.Memory: v1alpha1.AmountOf(n << 30)}
}

// newMarket is a story at rest in which a contract of 4 cores is held at busy,
// none at idle, and both report.
func newMarket(t *testing.T) (s *story, busy, idle *agent) {
	t.Helper()
	s = newStory(t, "ledger")
	s.push(map[string]string{
		"clusters/busy.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: busy}\nspec: {roles: [provider]}\n",
		"clusters/idle.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: idle}\nspec: {roles: [provider]}\n",
		"clusters/rome.yaml":      "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], reservations: {tenant: vision, defaultDuration: 24h}}\n",
		"intents/vision/job.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: job, namespace: vision}\nspec:\n  stage: reserve\n  resources: {cpu: \"4\", memory: 4Gi}\n  placement: {providers: {allow: [busy, idle]}}\n",
	})
	busy = &agent{s: s, name: "busy", spec: v1alpha1.FlavorSpec{Capacity: cores(8), Used: cores(2)}}
	idle = &agent{s: s, name: "idle", spec: v1alpha1.FlavorSpec{Capacity: cores(0), Used: cores(0)}}
	for range 5 { // the market has settled, and nobody fell silent
		s.at = s.at.Add(30 * time.Second)
		busy.report(nil)
		idle.report(nil)
		s.rounds()
	}
	if n := len(s.r.standing.Load().ledger.HeldBy("busy")); n != 1 {
		t.Fatalf("busy holds %d contracts", n)
	}
	idle.report(func(f *v1alpha1.FlavorSpec) { f.Capacity, f.Used = cores(8), cores(2) })
	s.at = s.at.Add(gathering)
	s.rounds()
	return s, busy, idle
}

// rounds makes rounds until one has nothing to do, and time stands still.
func (s *story) rounds() {
	s.t.Helper()
	for range 20 {
		if out, err := s.r.Round(context.Background()); err != nil {
			s.t.Fatal(err)
		} else if !out.Again && out.Plan == nil {
			return
		}
	}
	s.t.Fatal("no rest in 20 rounds")
}

// plans reports whether a round plans, and when the next is due.
func (s *story) plans() (bool, time.Time) {
	s.t.Helper()
	out, err := s.r.Round(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Plan != nil, out.Due
}

// What is new of the market waits for five seconds, unless something depends on
// it.
func TestNewsOfTheMarketIsGathered(t *testing.T) {
	used := func(n int64) func(*v1alpha1.FlavorSpec) {
		return func(f *v1alpha1.FlavorSpec) { f.Used = cores(n) }
	}
	cases := map[string]struct {
		waits      bool // an intent waits for capacity
		busy, idle func(*v1alpha1.FlavorSpec)
		now        bool
	}{
		"own pods, where nothing is held":              {idle: used(5)},
		"capacity gone, where nothing is held":         {idle: func(f *v1alpha1.FlavorSpec) { f.Capacity = cores(1) }},
		"own pods take what is not sold":               {busy: used(4)},
		"own pods take what is sold":                   {busy: used(5), now: true},
		"less capacity, and still enough":              {busy: func(f *v1alpha1.FlavorSpec) { f.Capacity = cores(7) }, now: true},
		"the grant of a contract":                      {busy: func(f *v1alpha1.FlavorSpec) { f.Held = map[string]v1alpha1.Resources{"x": cores(1)} }, now: true},
		"no more is sold where a contract is":          {busy: func(f *v1alpha1.FlavorSpec) { f.Cordon = true }, now: true},
		"own pods take more, while somebody waits":     {waits: true, idle: used(5)},
		"own pods give back, while somebody waits":     {waits: true, idle: used(1), now: true},
		"capacity grows, while somebody waits":         {waits: true, idle: func(f *v1alpha1.FlavorSpec) { f.Capacity = cores(9) }, now: true},
		"own pods give back where all is served alike": {idle: used(1)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, busy, idle := newMarket(t)
			if c.waits {
				s.push(map[string]string{"intents/vision/more.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: more, namespace: vision}\nspec: {resources: {cpu: \"200\", memory: 4Gi}}\n"})
				s.r.Reread()
				s.rounds()
			}
			start := s.at
			s.at = s.at.Add(time.Second)
			if c.busy != nil {
				busy.report(c.busy)
			}
			if c.idle != nil {
				idle.report(c.idle)
			}
			planned, due := s.plans()
			if planned != c.now {
				t.Fatalf("planned at once: %t, want %t", planned, c.now)
			}
			if c.now {
				return
			}
			if due.IsZero() || due.After(start.Add(gathering)) {
				t.Errorf("due at %v, want %v at the latest", due, start.Add(gathering))
			}
			s.at = start.Add(gathering)
			if planned, _ = s.plans(); !planned {
				t.Error("never planned with")
			}
		})
	}
}

// A flavor that vanishes, a provider that is not heard, and requests are never
// put off; and a plan made for another reason takes gathered news along.
func TestNewsThatCannotWait(t *testing.T) {
	t.Run("a flavor vanishes", func(t *testing.T) {
		s, busy, _ := newMarket(t)
		busy.n++
		if err := s.r.opts.Market.Report("busy", wire.Generation{Epoch: 1, N: busy.n}, nil, true); err != nil {
			t.Fatal(err)
		}
		if planned, _ := s.plans(); !planned {
			t.Error("put off")
		}
	})
	t.Run("a holder falls silent", func(t *testing.T) {
		s, _, idle := newMarket(t)
		_, due := s.plans()
		for due.Before(s.at.Add(2 * time.Minute)) {
			s.at = due
			idle.report(nil)
			planned, next := s.plans()
			if planned {
				silent := s.r.View().Plan.Silent
				if len(silent) != 1 || silent[0].Name != "busy" {
					t.Errorf("planned at %v, and silent is %+v", s.at, silent)
				}
				return
			}
			due = next
		}
		t.Error("nobody noticed")
	})
	t.Run("a request", func(t *testing.T) {
		s, _, idle := newMarket(t)
		s.at = s.at.Add(time.Second)
		idle.report(func(f *v1alpha1.FlavorSpec) { f.Used = cores(0) })
		if planned, _ := s.plans(); planned {
			t.Fatal("planned without need")
		}
		// Only idle, as it reported last, has room for it.
		waits := s.ask(context.Background(), "rome", "k1", wire.ReservationRequest{Spec: &v1alpha1.IntentSpec{
			Stage:     v1alpha1.StageReserve,
			Resources: v1alpha1.ResourceRequest{Named: cores(8)}, Placement: v1alpha1.Placement{Providers: v1alpha1.ClusterLists{Deny: []string{"paris"}}},
		}})
		if planned, _ := s.plans(); !planned {
			t.Fatal("put off")
		}
		if o := <-waits; o.err != nil || o.reservation.TargetClusterID != "idle" {
			t.Errorf("answered %+v, %v", o.reservation, o.err)
		}
	})
}
