package market_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

func TestDemandIsFollowedByOurClock(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	m := market.New(market.Options{Now: func() time.Time { return now }})
	report := func(n uint64, d *v1alpha1.Demand) {
		t.Helper()
		if err := m.Report("rome", gen(1, n), nil, true); err != nil {
			t.Fatal(err)
		}
		if err := m.SetDemand("rome", d); err != nil {
			t.Fatal(err)
		}
	}
	nodes := func(n int64) *v1alpha1.Demand { return &v1alpha1.Demand{Nodes: map[string]int64{"a": n}} }
	if err := m.SetDemand("rome", nodes(0)); err != nil || len(m.Snapshot().Demand()) != 0 {
		t.Fatalf("a cluster that never reported has demand: %v %v", m.Snapshot().Demand(), err)
	}
	report(1, nodes(0))
	first := v1alpha1.TimeOf(now)
	old := m.Snapshot()
	now = now.Add(time.Minute)
	report(2, nodes(0))
	if s := m.Snapshot(); s.Demand()["rome"].Nodes["a"].IdleSince != first || s.Generation() != old.Generation() {
		t.Fatalf("idle since %v; the same again is no news", s.Demand()["rome"].Nodes["a"])
	}
	report(3, nodes(2))
	if s := m.Snapshot(); s.Demand()["rome"].Nodes["a"] != (v1alpha1.NodeUse{Pods: 2}) || s.Generation() == old.Generation() {
		t.Fatalf("%v", s.Demand()["rome"])
	}
	if old.Demand()["rome"].Nodes["a"].Pods != 0 {
		t.Fatal("a snapshot has changed")
	}
	report(4, nodes(0))
	if got := m.Snapshot().Demand()["rome"].Nodes["a"].IdleSince; got != v1alpha1.TimeOf(now) {
		t.Fatalf("idle since %v", got)
	}
	// Whom nobody hears says nothing of pods.
	now = now.Add(3 * market.Interval)
	if got := m.Snapshot().Demand(); len(got) != 0 {
		t.Fatalf("a silent cluster says %v", got)
	}
	report(5, nodes(0))
	if len(m.Snapshot().Demand()) != 1 {
		t.Fatal("heard again, it says nothing")
	}
	report(6, nil)
	if len(m.Snapshot().Demand()) != 0 {
		t.Fatal("what is no longer said is still known")
	}
}

func TestBadDemandIsRefused(t *testing.T) {
	good := v1alpha1.PendingPods{Namespace: "vision", Intents: []string{"vision.train"}, Requests: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1)}, Pods: 1}
	if err := market.CheckDemand(&v1alpha1.Demand{Pending: []v1alpha1.PendingPods{good}, Nodes: map[string]int64{"a": 3}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.PendingPods, *v1alpha1.Demand)
		says   string
	}{
		"no pods":       {func(p *v1alpha1.PendingPods, _ *v1alpha1.Demand) { p.Pods = 0 }, "demand.pending[0]"},
		"a namespace":   {func(p *v1alpha1.PendingPods, _ *v1alpha1.Demand) { p.Namespace = "../x" }, "demand.pending[0]"},
		"for nobody":    {func(p *v1alpha1.PendingPods, _ *v1alpha1.Demand) { p.Intents = nil }, "demand.pending[0].intents"},
		"not printable": {func(p *v1alpha1.PendingPods, _ *v1alpha1.Demand) { p.Intents = []string{"a\nb"} }, "demand.pending[0].intents"},
		"negative request": {func(p *v1alpha1.PendingPods, _ *v1alpha1.Demand) {
			p.Requests = v1alpha1.Resources{"cpu": v1alpha1.AmountOf(-1)}
		}, "demand.requests.cpu"},
		"negative pods": {func(_ *v1alpha1.PendingPods, d *v1alpha1.Demand) { d.Nodes = map[string]int64{"a": -1} }, "demand.nodes"},
		"too many": {func(p *v1alpha1.PendingPods, d *v1alpha1.Demand) {
			d.Pending = make([]v1alpha1.PendingPods, 2001)
			*p = good
		}, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.Demand{Pending: []v1alpha1.PendingPods{good}}
			c.change(&d.Pending[0], d)
			if err := market.CheckDemand(d); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
}
