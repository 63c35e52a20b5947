package ui_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// A consumer that cannot be reached is not Ready, and comes before those that are.
func TestClusters_AConsumerThatIsNotReached(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	state := func() (first string, of map[string]string) {
		of = map[string]string{}
		l := read[view.List[view.ProviderRow]](t, d, "/api/ui/providers")
		for i := range l.Items {
			of[l.Items[i].Name] = l.Items[i].State
		}
		return l.Items[0].Name, of
	}
	if _, of := state(); of["rome"] != "Ready" || of["paris"] != "Ready" {
		t.Fatalf("all is well: %v", of)
	}
	d.mu.Lock()
	next := *d.snap
	next.States, next.Version = slices.Clone(next.States), "away"
	next.States[0].Reason, next.States[0].Message = ledger.DegradedConsumerUnreachable, "no kubeconfig of cluster rome"
	d.snap = &next
	d.mu.Unlock()
	d.ui.Changed()
	if first, of := state(); first != "rome" || of["rome"] != "Unreachable" || of["paris"] != "Ready" {
		t.Errorf("rome is not reached: %s is first of %v", first, of)
	}
	if page := d.get(t, "/ui/").Body.String(); !strings.Contains(page, "Unreachable") {
		t.Error("the fleet's page does not say so")
	}
}

// What `status` lists under "Needs a look" the fleet's page lists too: a contract that is
// Active and out of reach, and one that is being released.
func TestFleet_LooksAtWhatStatusLooksAt(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	d.mu.Lock()
	next := *d.snap
	next.States, next.Version = slices.Clone(next.States), "away"
	d.snap = &next
	d.mu.Unlock()
	name := next.States[0].Name
	look := func(p v1alpha1.Phase, reason string) []string {
		next.States[0].Phase, next.States[0].Reason = p, reason
		next.Version += "+"
		d.ui.Changed()
		d.mu.Lock()
		again := next
		d.snap = &again
		d.mu.Unlock()
		var names []string
		for _, c := range read[ui.FleetAnswer](t, d, "/api/ui/fleet").Look {
			names = append(names, c.Name)
		}
		return names
	}
	if got := look(v1alpha1.PhaseActive, ""); slices.Contains(got, name) {
		t.Errorf("an Active contract without a reason needs no look: got %v", got)
	}
	for _, c := range []struct {
		phase  v1alpha1.Phase
		reason string
	}{{v1alpha1.PhaseActive, ledger.DegradedConsumerUnreachable}, {v1alpha1.PhasePeering, ledger.WaitsForPeering}, {v1alpha1.PhaseReleasing, ""}} {
		if got := look(c.phase, c.reason); !slices.Contains(got, name) {
			t.Errorf("%s %s: got %v, want %s among them", c.phase, c.reason, got, name)
		}
		if page := d.get(t, "/ui/").Body.String(); strings.Contains(page, "No contract") {
			t.Errorf("%s %s: the page states that nothing needs a look", c.phase, c.reason)
		}
	}
}

// What a cordoned cluster offers by files is not sold either, and says so.
func TestFlavors_OfFilesAreCordonedWithTheirCluster(t *testing.T) {
	b := plantest.New().Provider("paris", "oslo")
	b.Offer("paris/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Static)
	b.Offer("oslo/h100", plantest.Cards("nvidia-h100", 8, "80Gi"), plantest.Static)
	b.W.Clusters["paris"].Spec.Cordon = true
	d := newDaemon(t)
	d.show(b)
	states := map[string]string{}
	for _, f := range read[view.List[view.FlavorRow]](t, d, "/api/ui/flavors").Items {
		states[f.Provider] = f.State
	}
	if states["paris"] != "Cordoned" || states["oslo"] != "Static" {
		t.Errorf("%v", states)
	}
}
