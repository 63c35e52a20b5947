package replay_test

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

// Records of daemons that knew different things are read still: from a silence that was
// of one daemon alone nothing follows, and what another one reached keeps its reason.
func TestRecordsOfDaemonsThatKnewDifferentThings(t *testing.T) {
	now := v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	contract := func(name, consumer string) model.Change {
		return model.Change{After: &v1alpha1.Contract{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindContract},
			Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"},
			Spec: v1alpha1.ContractSpec{
				Intent: v1alpha1.ContractIntent{Name: name, Path: "intents/vision/" + name + ".yaml"}, Consumer: consumer, Provider: "paris", Flavor: "h100", Slice: name,
				Resources: v1alpha1.Resources{"cpu": v1alpha1.AmountOf(1000)}, Term: v1alpha1.Term{Start: now},
			},
			Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhasePeering, Since: now, History: []v1alpha1.PhaseChange{{Phase: v1alpha1.PhasePeering, At: now}}},
		}}
	}
	changes := ledger.Changes{Contracts: []model.Change{contract("a", "rome"), contract("b", "oslo")}}
	files, _, err := changes.Files()
	if err != nil {
		t.Fatal(err)
	}
	memory := tree.NewMemory()
	led, _, err := ledger.Read(t.Context(), memory.Build(files), nil)
	if err != nil || led.Contract("a") == nil || led.Contract("b") == nil {
		t.Fatalf("the ledger has %v and %v, %v", led.Contract("a"), led.Contract("b"), err)
	}
	offer := func(provider string, state model.Freshness) replay.Offer {
		return replay.Offer{Missing: true, State: state, Flavor: &v1alpha1.Flavor{Metadata: v1alpha1.Metadata{Name: "h100", Namespace: provider}}}
	}
	text := `{"version":1,"heard":["paris","bonn"],"reached":["rome"],"said":[{"what":{"Message":"no route"},"of":["a","b"]}]}`
	rec, err := replay.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rec.Offers = []replay.Offer{offer("paris", model.Lost), offer("bonn", model.Fresh), offer("lyon", model.Lost)}
	k := replay.Known{Now: now, Fleet: &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}}, Ledger: led, Market: memory.Build(nil), Record: rec}
	w, err := k.World()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]model.Freshness{"paris": model.Elsewhere, "bonn": model.Fresh, "lyon": model.Lost}
	for _, o := range w.Offers {
		if provider := o.Flavor.Metadata.Namespace; o.State != want[provider] {
			t.Errorf("%s is %s, want %s", provider, o.State, want[provider])
		}
	}
	if a, b := w.Observed.Of("a").Consumer, w.Observed.Of("b").Consumer; !a.Bystander || b.Bystander || a.Message != "no route" || b.Message != "no route" || len(w.Offers) != 3 {
		t.Errorf("of rome %+v, of oslo %+v, %d offers", a, b, len(w.Offers))
	}
}
