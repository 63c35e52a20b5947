package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// What an agent does not see is absent only if it goes by the newest manifests,
// and its word counts for as long as it speaks.
func TestAgentsWord(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	d := New(Options{Clock: clock})
	t.Cleanup(d.Close)
	c := held("vision-train-0-aaaa")
	want := onLedger(t, nil, c)
	want.Mode, want.Commit = Agent, tree.Hash{1}
	d.Deliver(map[string]Desired{"rome": want, "oslo": {Mode: None}})
	r := d.remotes["rome"]
	said := func() v1alpha1.ConsumerObservation { return r.observe()[c.Metadata.Name] }
	if o := said(); o.Reachable || o.Message != "" || !strings.Contains(d.Status()["rome"].Problem, "has not reported yet") {
		t.Errorf("just after the start: %+v", o)
	}
	clock.Step(agentPatience)
	if o := said(); o.Reachable || !strings.Contains(o.Message, "has not reported yet") {
		t.Errorf("before the agent speaks: %+v", o)
	}
	m, changed, err := d.Manifests("rome")
	if err != nil {
		t.Fatal(err)
	}
	if got := Unpacked(m); got.Tree.Root != want.Tree.Root || got.Commit != want.Commit || len(got.Contracts) != 1 || got.Mode != Direct {
		t.Errorf("the agent unpacks %+v", got)
	}
	if root, err := d.Root(t.Context(), "rome"); err != nil || root != m.Root {
		t.Errorf("the root is %s, %v; want %s", root, err, m.Root)
	}
	gone := map[string]v1alpha1.ConsumerObservation{c.Metadata.Name: {Reachable: true, Slice: v1alpha1.Absent, VirtualNode: v1alpha1.Absent, Node: v1alpha1.Absent}}
	for root, absent := range map[string]bool{m.Root: true, strings.Repeat("0", 40): false} {
		if err := d.Observed("rome", wire.Observed{Root: root, Applied: true, Contracts: gone}); err != nil {
			t.Fatal(err)
		}
		if o := said(); !o.Reachable || o.Gone() != absent {
			t.Errorf("an agent that goes by %s: %+v", root, o)
		}
		if s := d.Status()["rome"]; s.Mode != Agent || !s.Reachable || s.Commit.IsZero() == absent || (s.Pending == 0) != absent {
			t.Errorf("an agent that goes by %s: %+v", root, s)
		}
	}
	clock.Step(agentPatience)
	if o := said(); o.Reachable || !strings.Contains(d.Status()["rome"].Problem, "has reported nothing since 2026-11-20T12:00:30Z") {
		t.Errorf("an agent that fell silent: %+v", o)
	}

	want.Commit = tree.Hash{2}
	d.Deliver(map[string]Desired{"rome": want})
	<-changed
	if again, _, err := d.Manifests("rome"); err != nil || again.Version != m.Version {
		t.Errorf("a commit that does not concern the cluster made version %s of %s, %v", again.Version, m.Version, err)
	}
	d.Deliver(nil)
	if _, _, err := d.Manifests("rome"); !errors.Is(err, ErrNotDelivered) {
		t.Errorf("of a cluster that is no longer the agent's: %v", err)
	}
	if err := d.Observed("rome", wire.Observed{}); !errors.Is(err, ErrNotDelivered) {
		t.Errorf("of a cluster that is no longer the agent's: %v", err)
	}
}

// An agent looks at remote names itself before it applies: what the broker refuses,
// and what the contracts that it was given show to clash, the oldest keeping its own.
func TestAgentsLookAtRemoteNames(t *testing.T) {
	mapped := func(tenant string, age int, n v1alpha1.OffloadNamespace) *v1alpha1.Contract {
		c := held(tenant + "-train-0-aaaa")
		c.Metadata.Namespace = tenant
		c.Spec.Offload = &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{n}}
		c.Spec.Term.Start = v1alpha1.TimeOf(time.Date(2026, 1, 1, 0, 0, -age, 0, time.UTC))
		return c
	}
	victim := mapped("nlp", 10, v1alpha1.OffloadNamespace{Name: "nlp"})
	attack := mapped("vision", 1, v1alpha1.OffloadNamespace{Name: "vision", NamespaceMappingStrategy: "SelectedName", RemoteNamespaceName: "nlp-rome"})
	d := New(Options{Clock: clocktesting.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))})
	t.Cleanup(d.Close)
	want := onLedger(t, nil, attack, victim)
	want.Mode, want.Refused = Agent, map[string]string{"lab": "at oslo it would be theirs"}
	d.Deliver(map[string]Desired{"rome": want})
	m, _, err := d.Manifests("rome")
	if err != nil {
		t.Fatal(err)
	}
	got := Unpacked(m).Refused
	if len(got) != 2 || got["lab"] != want.Refused["lab"] || !strings.Contains(got["vision"], "it would be nlp-rome, which namespace nlp of tenant nlp in rome has") {
		t.Errorf("refused are %v", got)
	}
	m.Refused = nil // a broker that does not look
	if got := Unpacked(m).Refused; len(got) != 1 || got["vision"] == "" {
		t.Errorf("by itself it refuses %v", got)
	}
	d.Deliver(map[string]Desired{"rome": onLedger(t, nil, victim)})
}

// What is not delivered is of clusters that are delivered to: one that has left the fleet,
// or that another replica serves, is counted no more, and comes back with nothing.
func TestRefused_GoesWithItsCluster(t *testing.T) {
	d := New(Options{})
	t.Cleanup(d.Close)
	want := onLedger(t, nil, held("vision-train-0-aaaa"))
	want.Mode, want.Refused = Agent, map[string]string{"vision": "another has its remote name"}
	deliver := func(desired map[string]Desired) int {
		t.Helper()
		d.Deliver(desired)
		if _, _, err := d.Manifests("rome"); (err == nil) != (len(desired) > 0) {
			t.Fatal(err)
		}
		return d.Status()["rome"].Refused
	}
	if n := deliver(map[string]Desired{"rome": want}); n != 1 {
		t.Fatalf("%d things are not delivered, want 1", n)
	}
	if n := deliver(map[string]Desired{}); n != 0 {
		t.Errorf("the cluster is gone, and %d things are still not delivered to it", n)
	}
	want.Refused = nil
	if n := deliver(map[string]Desired{"rome": want}); n != 0 {
		t.Errorf("it came back well, and %d things are not delivered", n)
	}
}
