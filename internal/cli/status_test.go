package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// `get clusters` shows the state that the dashboard and `top` show: a consumer that is not
// reached is not Ready.
func TestGetClusters_ShowsWhatTheDashboardShows(t *testing.T) {
	noon := v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "a", Namespace: "vision"}}
	c.Spec.Intent.Name, c.Spec.Consumer, c.Spec.Provider, c.Spec.Term = "llm", "rome", "paris", v1alpha1.Term{Start: noon}
	ledger.Begin(c, ledger.Reason{Code: ledger.DegradedConsumerUnreachable}, noon)
	cluster := func(name, role string) *v1alpha1.Cluster {
		out := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}}
		out.Spec.Roles = []string{role}
		return out
	}
	clusters := map[string]*v1alpha1.Cluster{"rome": cluster("rome", "consumer"), "oslo": cluster("oslo", "consumer"), "paris": cluster("paris", "provider")}
	clusters["oslo"].Spec.Cordon = true
	g := &gathered{
		src: &source{}, now: noon, fleet: &fleet.Fleet{Policy: &v1alpha1.FleetSpec{Currency: "EUR"}, Clusters: clusters},
		ledger: ledger.Empty().With(ledger.Changes{Contracts: []model.Change{{After: c}}}),
	}
	if err := g.value(); err != nil {
		t.Fatal(err)
	}
	table, _ := getClusters(g, getOptions{})
	var out strings.Builder
	if err := table.Print(&out); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]string{"rome": "Unreachable", "oslo": "Cordoned", "paris": "Unreported"} {
		if !regexp.MustCompile(`(?m)^` + name + `\s.*\s` + state + `\s`).MatchString(out.String()) {
			t.Errorf("%s is not %s:\n%s", name, state, out.String())
		}
	}
}

// The page says since when an intent is frozen, what it holds, and from when on
// what of that has no end counts as preemptible.
func TestStatus_SaysSinceWhenAnIntentIsFrozen(t *testing.T) {
	noon := v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	one := func(name string, end v1alpha1.Time) model.Change {
		c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: name, Namespace: "vision"}}
		c.Spec.Intent.Name, c.Spec.Term = "llm", v1alpha1.Term{Start: noon, End: end}
		ledger.Begin(c, ledger.Reason{}, noon)
		return model.Change{After: c}
	}
	s := &v1alpha1.IntentState{Metadata: v1alpha1.Metadata{Name: "llm", Namespace: "vision"}}
	s.Status.Frozen = &v1alpha1.Frozen{Since: noon, Told: noon, Reason: "line 9: unknown field"}
	g := &gathered{
		fleet:  &fleet.Fleet{Policy: &v1alpha1.FleetSpec{}},
		ledger: ledger.Empty().With(ledger.Changes{Contracts: []model.Change{one("a", v1alpha1.Time{}), one("b", v1alpha1.TimeOf(noon.Add(time.Hour)))}, States: []model.StateChange{{After: s}}}),
	}
	const want = "vision/llm since 2026-11-20T12:00:00Z, holds 2 contracts on their own terms; 1 without an end: preemptible at priority 0 from "
	for bound, from := range map[time.Duration]string{0: "2026-11-21T12:00:00Z", 6 * time.Hour: "2026-11-20T18:00:00Z"} {
		g.fleet.Policy.Safety.FrozenFor.Duration = bound
		list := g.frozen()
		if len(list) != 1 || list[0].String() != want+from+" on" || !strings.Contains(list[0].Reason, "unknown field") {
			t.Errorf("bound %s: %+v", bound, list)
		}
	}
}
