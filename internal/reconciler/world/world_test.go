package world

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)

func contract(name, provider, flavor, consumer string) *v1alpha1.Contract {
	return &v1alpha1.Contract{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindContract},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: name, Path: "intents/vision/" + name + ".yaml"}, Consumer: consumer, Provider: provider, Flavor: flavor,
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)}, Price: v1alpha1.ContractPrice{Currency: "EUR", Class: v1alpha1.OnDemand},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive, Since: v1alpha1.TimeOf(noon)},
	}
}

func ledgerOf(contracts ...*v1alpha1.Contract) *ledger.Ledger {
	var ch ledger.Changes
	for _, c := range contracts {
		ch.Contracts = append(ch.Contracts, model.Change{After: c})
	}
	return ledger.Empty().With(ch)
}

func flavor(provider, name string, held map[string]v1alpha1.Resources) v1alpha1.Flavor {
	return v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
		Spec:     v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(64000), v1alpha1.Memory: v1alpha1.AmountOf(1 << 38)}, Held: held},
	}
}

// marketOf has an agent on paris that reports two flavors, and a file for milan.
func marketOf(t *testing.T, now *time.Time) *market.Market {
	t.Helper()
	m := market.New(market.Options{Now: func() time.Time { return *now }})
	milan := flavor("milan", "cpu", nil)
	m.SetInputs(market.Inputs{
		Fleet:    &v1alpha1.FleetSpec{Currency: "EUR"},
		Clusters: map[string]*v1alpha1.Cluster{"paris": {Metadata: v1alpha1.Metadata{Name: "paris"}}, "milan": {Metadata: v1alpha1.Metadata{Name: "milan"}}},
		Flavors:  []*v1alpha1.Flavor{&milan},
	})
	one := v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000)}
	report := []v1alpha1.Flavor{flavor("paris", "a", map[string]v1alpha1.Resources{"run": one}), flavor("paris", "b", map[string]v1alpha1.Resources{"run": one})}
	if err := m.Report("paris", wire.Generation{Epoch: 1, N: 1}, report, true); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestObserved(t *testing.T) {
	now := noon
	m := marketOf(t, &now)
	l := ledgerOf(contract("run", "paris", "a", "rome"), contract("idle", "paris", "a", "rome"), contract("file", "milan", "cpu", "rome"), contract("gone", "oslo", "x", "rome"))
	consumers := v1alpha1.ConsumerObservations{"rome": {"run": {Reachable: true, Slice: v1alpha1.Present}}}

	got := Observed(l, m.Snapshot(), consumers, nil)
	if len(got) != 4 {
		t.Fatalf("observations of %d contracts, want 4", len(got))
	}
	if o := got["run"]; !o.ProviderSeen || o.ProviderHolds[v1alpha1.CPU].Int64() != 2000 || o.Consumer.Slice != v1alpha1.Present {
		t.Errorf("what runs on two flavors is held on both: %+v", o)
	}
	if o := got["idle"]; !o.ProviderSeen || len(o.ProviderHolds) != 0 {
		t.Errorf("a heard provider that holds nothing holds nothing: %+v", o)
	}
	for _, name := range []string{"file", "gone"} {
		if got[name].ProviderSeen {
			t.Errorf("%s: nobody reports for its provider, yet it counts as seen", name)
		}
	}

	if o := Observed(l, m.Snapshot(), consumers, map[string]bool{"idle": true})["idle"]; o.ProviderSeen {
		t.Errorf("what was reported before the slice was gone proves nothing: %+v", o)
	}

	now = noon.Add(2 * time.Minute)
	if o := Observed(l, m.Snapshot(), consumers, nil)["run"]; o.ProviderSeen || o.ProviderHolds != nil {
		t.Errorf("from a silent provider nothing follows: %+v", o)
	}
}

func TestOffersStandForEveryContract(t *testing.T) {
	now := noon
	m := marketOf(t, &now)
	l := ledgerOf(contract("known", "paris", "a", "rome"), contract("old-1", "paris", "old", "rome"), contract("old-2", "paris", "old", "rome"), contract("gone", "oslo", "x", "rome"))
	states := map[string]model.Freshness{}
	for _, o := range Offers(m.Snapshot(), l) {
		if _, twice := states[o.Flavor.Ref()]; twice {
			t.Errorf("%s is offered twice", o.Flavor.Ref())
		}
		states[o.Flavor.Ref()] = o.State
	}
	if len(states) != 5 {
		t.Errorf("got %v, want the market's three and two that it does not know", states)
	}
	if states["paris/a"] != model.Fresh || states["milan/cpu"] != model.Fresh {
		t.Errorf("what is heard is fresh: %v", states)
	}
	if states["paris/old"] == model.Fresh || states["oslo/x"] == model.Fresh {
		t.Errorf("what is unknown is not: %v", states)
	}
}

func TestFrozenClusterFreezesItsIntents(t *testing.T) {
	l := ledgerOf(contract("gets", "milan", "cpu", "rome"), contract("gives", "rome", "cpu", "paris"), contract("other", "milan", "cpu", "paris"))
	f := &fleet.Fleet{Frozen: []model.Freeze{
		{Path: "intents/vision/x.yaml", Why: "x"},
		{Tenant: "bio", Why: "t"},
		{Cluster: "rome", Why: "clusters/rome.yaml:1:1: no"},
	}}
	got := map[model.Freeze]bool{}
	for _, z := range Frozen(f, l) {
		got[z] = true
	}
	want := []model.Freeze{
		{Path: "intents/vision/x.yaml", Why: "x"},
		{Tenant: "bio", Why: "t"},
		{Cluster: "rome", Why: "clusters/rome.yaml:1:1: no"},
		{Tenant: "vision", Intent: "gets", Why: "clusters/rome.yaml:1:1: no"},
		{Tenant: "vision", Intent: "gives", Why: "clusters/rome.yaml:1:1: no"},
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, w := range want {
		if !got[w] {
			t.Errorf("%+v is missing", w)
		}
	}
}

// What the parts say arrives, and Build touches none of them.
func TestBuild(t *testing.T) {
	now := noon
	files := map[string][]byte{
		"fleet.yaml":          []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  policies: [{name: eu, require: 'flavor.location.country == \"FR\"'}]\n"),
		"clusters/rome.yaml":  []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer]}\n"),
		"tenants/vision.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n"),
		"intents/vision/a.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: a, namespace: vision}\n" +
			"spec: {resources: {cpu: 1}, placement: {where: 'flavor.price.hourly < 3.0'}}\n"),
		"intents/vision/b.yaml": []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: b, namespace: vision}\nspec: {consumer: roma, resources: {cpu: 1}}\n"),
	}
	f, err := fleet.NewReader().Read(t.Context(), tree.NewMemory().Build(files), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := Build(Input{
		Now: v1alpha1.TimeOf(noon), Fleet: f, Inputs: "4f1c2ab", Ledger: ledger.Empty(), Market: marketOf(t, &now).Snapshot(),
		Author:       func(it *model.Intent) (string, string) { return "c-" + it.Metadata.Name, "Ada" },
		ForceRelease: map[string]bool{"x": true}, Deaf: true, AllowEnds: true,
	})
	if w.FleetName != "acme" || w.Inputs != "4f1c2ab" || !w.Deaf || !w.AllowEnds || !w.ForceRelease["x"] || len(w.Market) != 40 || len(w.Offers) != 3 {
		t.Errorf("%+v", w)
	}
	if len(w.Policies) != 1 || w.Policies[0].Predicate == nil {
		t.Errorf("policies %+v", w.Policies)
	}
	if len(w.Intents) != 2 {
		t.Fatalf("%d intents, want 2", len(w.Intents))
	}
	a, b := w.Intents[0], w.Intents[1]
	if a.Where == nil || a.Commit != "c-a" || a.Author != "Ada" || a.Problem != "" || a.Digest == "" {
		t.Errorf("a: %+v", a)
	}
	// A missing condition must be nil, not an interface around nil.
	if b.Where != nil || b.Problem == "" {
		t.Errorf("b: %+v", b)
	}
}
