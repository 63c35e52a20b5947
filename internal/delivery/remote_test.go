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
	c := &v1alpha1.Contract{Metadata: v1alpha1.Metadata{Name: "vision-train-0-aaaa", Namespace: "vision"}}
	want := Desired{
		Cluster: &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}}, Mode: Agent, Commit: tree.Hash{1}, Contracts: []*v1alpha1.Contract{c},
		Tree: tree.NewMemory().Build(map[string][]byte{"vision/kustomization.yaml": []byte("resources: []\n"), "kustomization.yaml": []byte("resources: [vision]\n")}),
	}
	d.Deliver(map[string]Desired{"rome": want, "oslo": {Mode: None}})
	r := d.remotes["rome"]
	said := func() v1alpha1.ConsumerObservation { return r.observe()[c.Metadata.Name] }
	if o := said(); o.Reachable || o.Message != "" || !strings.Contains(d.Status()["rome"].Problem, "has not told yet") {
		t.Errorf("just after the start: %+v", o)
	}
	clock.Step(agentPatience)
	if o := said(); o.Reachable || !strings.Contains(o.Message, "has not told yet") {
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
	if o := said(); o.Reachable || !strings.Contains(d.Status()["rome"].Problem, "has told nothing since 2026-11-20T12:00:30Z") {
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
