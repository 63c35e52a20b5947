package planning

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func dec(s string) *v1alpha1.Decimal { d := v1alpha1.MustDecimal(s); return &d }

const node1, node2 = "n0000000000001", "n0000000000002"

func cards(n int64) v1alpha1.Resources {
	return v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(4_000 * n), v1alpha1.GPU: v1alpha1.AmountOf(n)}
}

// offered is a flavor of which each part is set.
func offered() v1alpha1.Flavor {
	return v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: "h100", Namespace: "paris"},
		Spec: v1alpha1.FlavorSpec{
			Architecture: "amd64", Capacity: cards(20), Used: v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(2)},
			Held:   map[string]v1alpha1.Resources{"c1": {v1alpha1.GPU: v1alpha1.AmountOf(4)}},
			HeldOn: map[string]map[string]v1alpha1.Resources{"c1": {node1: {v1alpha1.GPU: v1alpha1.AmountOf(4)}}},
			Nodes: &v1alpha1.FlavorNodes{Groups: []v1alpha1.NodeGroup{
				{Shape: cards(8), Free: cards(6), Labels: map[string]string{"rack": "a"}, Nodes: []string{node1}},
				{Shape: cards(8), Nodes: []string{node2}},
			}},
			Refused: map[string]string{"c9": "full"},
			Usage:   map[string]v1alpha1.Resources{"c1": {v1alpha1.GPU: v1alpha1.AmountOf(1)}},
			GPU:     &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", UnitsPerGPU: 1, ResourceName: "nvidia.com/gpu"},
			Price:   &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": *dec("2")}}, Labels: map[string]string{"tier": "gold"},
			Location: v1alpha1.Location{Region: "eu-west-3"}, Pool: "a", Class: "fleetbroker", NodeSelector: map[string]string{"x": "y"}, Endpoint: "https://paris.example.org",
		},
	}
}

// Before capacity is taken, another plan is made where the provider has less than the plan
// goes by, or is not what it was; not where it has more, or where only what nothing is
// decided by has changed.
func TestOutdated(t *testing.T) {
	now := plantest.Start
	for name, c := range map[string]struct {
		change func(s *v1alpha1.FlavorSpec)
		want   bool
	}{
		"nothing":       {func(*v1alpha1.FlavorSpec) {}, false},
		"less capacity": {func(s *v1alpha1.FlavorSpec) { s.Capacity = cards(18) }, true},
		"more capacity": {func(s *v1alpha1.FlavorSpec) { s.Capacity = cards(24) }, false},
		"more is used":  {func(s *v1alpha1.FlavorSpec) { s.Used = cards(3) }, true},
		"less is used":  {func(s *v1alpha1.FlavorSpec) { s.Used = nil }, false},
		"more is held":  {func(s *v1alpha1.FlavorSpec) { s.Held["c2"] = cards(1) }, true},
		"less is held":  {func(s *v1alpha1.FlavorSpec) { s.Held, s.HeldOn = nil, nil }, false},
		"held on another node": {func(s *v1alpha1.FlavorSpec) {
			s.HeldOn["c1"][node2] = s.HeldOn["c1"][node1]
			delete(s.HeldOn["c1"], node1)
		}, true},
		"cordoned":                    {func(s *v1alpha1.FlavorSpec) { s.Cordon = true }, true},
		"less is free on a node":      {func(s *v1alpha1.FlavorSpec) { s.Nodes.Groups[1].Free = cards(7) }, true},
		"more is free on a node":      {func(s *v1alpha1.FlavorSpec) { s.Nodes.Groups[0].Free = nil }, false},
		"a node is gone":              {func(s *v1alpha1.FlavorSpec) { s.Nodes.Groups = s.Nodes.Groups[:1] }, true},
		"a node is smaller":           {func(s *v1alpha1.FlavorSpec) { s.Nodes.Groups[1].Shape = cards(4) }, true},
		"a node has another label":    {func(s *v1alpha1.FlavorSpec) { s.Nodes.Groups[0].Labels["rack"] = "b" }, true},
		"its nodes are not told":      {func(s *v1alpha1.FlavorSpec) { s.Nodes = nil }, true},
		"a contract is refused":       {func(s *v1alpha1.FlavorSpec) { s.Refused["c1"] = "its own pods came first" }, true},
		"a contract is honoured":      {func(s *v1alpha1.FlavorSpec) { s.Refused = nil }, false},
		"the price":                   {func(s *v1alpha1.FlavorSpec) { s.Price.PerHour["gpu"] = *dec("3") }, true},
		"a label":                     {func(s *v1alpha1.FlavorSpec) { s.Labels["tier"] = "silver" }, true},
		"the cards":                   {func(s *v1alpha1.FlavorSpec) { s.GPU.Model = "nvidia-a100" }, true},
		"the place":                   {func(s *v1alpha1.FlavorSpec) { s.Location.Region = "us-east-1" }, true},
		"the pool":                    {func(s *v1alpha1.FlavorSpec) { s.Pool = "b" }, true},
		"the class":                   {func(s *v1alpha1.FlavorSpec) { s.Class = "default" }, true},
		"the nodes that are selected": {func(s *v1alpha1.FlavorSpec) { s.NodeSelector["x"] = "z" }, true},
		"it is drained":               {func(s *v1alpha1.FlavorSpec) { s.Drain = now }, true},
		"what contracts really use":   {func(s *v1alpha1.FlavorSpec) { s.Usage["c1"] = cards(4) }, false},
		"the address":                 {func(s *v1alpha1.FlavorSpec) { s.Endpoint = "https://b.example.org" }, false},
	} {
		m := market.New(market.Options{Now: func() time.Time { return now.Time }})
		m.SetInputs(market.Inputs{Key: "1", Fleet: &v1alpha1.FleetSpec{}, Clusters: map[string]*v1alpha1.Cluster{
			"paris": {Metadata: v1alpha1.Metadata{Name: "paris"}, Spec: v1alpha1.ClusterSpec{Roles: []string{"provider"}}},
		}})
		n := uint64(0)
		report := func(change func(*v1alpha1.FlavorSpec)) {
			n++
			f := offered()
			change(&f.Spec)
			if err := m.Report("paris", wire.Generation{Epoch: 1, N: n}, []v1alpha1.Flavor{f}, true); err != nil {
				t.Fatal(err)
			}
		}
		report(func(*v1alpha1.FlavorSpec) {})
		was := m.Snapshot()
		newest := func(_ context.Context, providers []string) error {
			report(c.change)
			return nil
		}
		contract := &v1alpha1.Contract{Spec: v1alpha1.ContractSpec{Provider: "paris", Resources: cards(1)}, Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved}}
		plan := &planner.Plan{Contracts: []model.Change{{After: contract}}}
		if got, err := Outdated(t.Context(), newest, plan, was, m.Snapshot); err != nil || got != c.want {
			t.Errorf("%s: outdated is %t, %v; want %t", name, got, err, c.want)
		}
		contract.Spec.Provider = "oslo"
		if got, err := Outdated(t.Context(), newest, plan, was, m.Snapshot); err != nil || got {
			t.Errorf("%s of a provider of which nothing is taken: outdated is %t, %v", name, got, err)
		}
		if _, err := Outdated(t.Context(), func(context.Context, []string) error { return errors.New("out of reach") }, plan, was, m.Snapshot); err == nil {
			t.Errorf("%s: what providers offer now is not known, and capacity is taken", name)
		}
	}
}
