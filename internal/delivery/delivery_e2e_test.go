//go:build e2e

package delivery

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// TestDelivery tells one story on real API servers: each part goes on where
// the one before ended, as a daemon would.
func TestDelivery(t *testing.T) {
	clusters := envtest.Clusters(t, env.ClusterOptions{Name: "rome", ControllerManager: true}, env.ClusterOptions{Name: "oslo"})
	rome, oslo := clusters[0], clusters[1]
	for _, c := range clusters {
		if err := env.InstallLiqoCRDs(t.Context(), c.Config); err != nil {
			t.Fatal(err)
		}
	}
	access := testAccess{"rome": rome, "oslo": oslo}
	t.Run("apply", func(t *testing.T) { testApply(t, access) })
	t.Run("unchanged costs no call", func(t *testing.T) { testUnchanged(t, access) })
	t.Run("drift", func(t *testing.T) { testDrift(t, access) })
	t.Run("a lagging daemon corrects nothing", func(t *testing.T) { testLagging(t, access) })
	t.Run("observe", func(t *testing.T) { testObserve(t, access) })
	t.Run("release", func(t *testing.T) { testRelease(t, access) })
	t.Run("vanished without release", func(t *testing.T) { testVanished(t, access) })
	t.Run("two daemons", func(t *testing.T) { testTwoDaemons(t, access) })
	t.Run("a hanging cluster delays nobody", func(t *testing.T) { testHanging(t, access) })
	t.Run("answers that stall", func(t *testing.T) { testStalls(t, access) })
}

func testApply(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train"))
	r.deliver(want)
	r.settled(t, want)

	slice, node := rome.get(sliceKey("train")), rome.get(nodeKey("train"))
	if slice == nil || node == nil {
		t.Fatal("slice or virtual node is missing")
	}
	for _, k := range []key{
		{Kind: kindNamespace, Name: "vision"},
		{kindOffloading, "vision", "offloading"},
		{kindQuota, "vision", "fleetbroker"},
		{Kind: kindValidating, Name: "fleetbroker-virtualnode-guard"},
		{Kind: kindMutating, Name: "fleetbroker-intent-tolerations"},
	} {
		if rome.get(k) == nil {
			t.Errorf("%s is missing", k)
		}
	}
	if got := slice.GetManagedFields()[0].Manager; got != v1alpha1.FieldManager {
		t.Errorf("field manager of the slice: got %s", got)
	}
	writes := r.takeWrites()
	at := func(part string) int {
		return slices.IndexFunc(writes, func(w string) bool { return strings.Contains(w, part) })
	}
	if at("virtualnodes/") > at("resourceslices/") || at("virtualnode-guard") > at("virtualnodes/") {
		t.Errorf("order: want policies, virtual node, slice; got %q", writes)
	}
}

// A second Deliver and a daemon that starts anew find everything as wanted.
func testUnchanged(t *testing.T, access testAccess) {
	want := desired(t, "rome", contract("rome", "train"))
	r := newRig(t, access, nil)
	r.deliver(want)
	r.settled(t, want)
	again := want
	again.Commit = tree.Hash{1}
	r.deliver(again)
	r.settled(t, again)
	if writes := r.takeWrites(); len(writes) > 0 {
		t.Errorf("got writes %q, want none", writes)
	}
}

func testDrift(t *testing.T, access testAccess) {
	want := desired(t, "rome", contract("rome", "train"))
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	r.deliver(want)
	r.settled(t, want)

	rome.patch(sliceKey("train"), map[string]any{"spec": map[string]any{"resources": map[string]any{"nvidia.com/gpu": "8"}}})
	envtest.Eventually(t, "an edit to be undone", func(context.Context) bool {
		return seen.Resources(rome.get(sliceKey("train")), "spec", "resources")["nvidia.com/gpu"] == v1alpha1.AmountOf(4)
	})
	rome.patch(key{Kind: kindNamespace, Name: "vision"}, meta(map[string]any{"annotations": map[string]any{v1alpha1.AnnotationIntents: "nlp.serve"}}))
	envtest.Eventually(t, "the namespace's intents to be put back", func(context.Context) bool {
		return rome.get(key{Kind: kindNamespace, Name: "vision"}).GetAnnotations()[v1alpha1.AnnotationIntents] == "vision.train"
	})
	before := rome.get(nodeKey("train")).GetUID()
	rome.delete(nodeKey("train"))
	envtest.Eventually(t, "a deleted virtual node to come back and its slice to be poked", func(context.Context) bool {
		node := rome.get(nodeKey("train"))
		return node != nil && node.GetUID() != before &&
			rome.get(sliceKey("train")).GetAnnotations()[annotationPoke] == string(node.GetUID())
	})
	rome.delete(key{Kind: kindValidating, Name: "fleetbroker-intent-guard"})
	envtest.Eventually(t, "a deleted policy to come back", func(context.Context) bool {
		return rome.get(key{Kind: kindValidating, Name: "fleetbroker-intent-guard"}) != nil
	})
	if r.confirms.Load() == 0 {
		t.Error("drift was corrected without asking the remote")
	}
}

func testLagging(t *testing.T, access testAccess) {
	want := desired(t, "rome", contract("rome", "train"))
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	r.deliver(want)
	r.settled(t, want)
	r.takeWrites()
	r.root.Store("rome", tree.Hash{7}) // another daemon has pushed
	rome.delete(nodeKey("train"))
	rome.delete(sliceKey("train"))
	asked := r.confirms.Load()
	envtest.Eventually(t, "the remote to be asked again and again", func(context.Context) bool { return r.confirms.Load() > asked+1 })
	if writes := r.takeWrites(); len(writes) > 0 {
		t.Errorf("got writes %q, want none", writes)
	}
	r.deliver(want) // the ledger agrees again
	envtest.Eventually(t, "the slice to come back", func(context.Context) bool { return rome.get(sliceKey("train")) != nil })
}

func testObserve(t *testing.T, access testAccess) {
	c := contract("rome", "train")
	want := desired(t, "rome", c, contract("rome", "ghost", func(c *v1alpha1.Contract) { c.Spec.Stage = v1alpha1.StageReserve }))
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	r.deliver(want)
	r.settled(t, want)
	observed := func() v1alpha1.ConsumerObservation {
		all := flat(r.Observe())
		return all[c.Metadata.Name]
	}
	o := observed()
	if !o.Reachable || o.Slice != v1alpha1.Present || o.VirtualNode != v1alpha1.Present || o.Node != v1alpha1.Absent || o.Granted != nil || o.Offloading {
		t.Errorf("applied: got %+v", o)
	}
	all := flat(r.Observe())
	if ghost := all["vision-ghost-0-aaaa"]; !ghost.Gone() {
		t.Errorf("never applied: got %+v, want gone", ghost)
	}
	set := func(status string, message string, gpus string) {
		rome.patch(sliceKey("train"), map[string]any{"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Resources", "status": status, "message": message, "lastTransitionTime": "2026-11-20T12:00:00Z"}},
			"resources":  map[string]any{"cpu": "16", "nvidia.com/gpu": gpus},
		}}, "status")
	}
	set("Denied", "only 2 GPUs free", "0")
	envtest.Eventually(t, "the denial to be seen", func(context.Context) bool {
		return observed().SliceDenied == "only 2 GPUs free" && observed().Granted == nil
	})
	set("Accepted", "", "4")
	envtest.Eventually(t, "the grant to be seen", func(context.Context) bool {
		return observed().Granted["nvidia.com/gpu"] == v1alpha1.AmountOf(4) && observed().SliceDenied == ""
	})
	rome.createNode("vision-train-0-aaaa", "True", "4")
	envtest.Eventually(t, "the Node to be seen ready", func(context.Context) bool {
		o := observed()
		return o.Node == v1alpha1.Present && o.NodeReady && o.Allocatable["nvidia.com/gpu"] == v1alpha1.AmountOf(4)
	})
	offloading := key{kindOffloading, "vision", offloadingName}
	generation := rome.get(offloading).GetGeneration()
	rome.patch(offloading, map[string]any{"status": map[string]any{"offloadingPhase": "Ready", "observedGeneration": generation - 1}}, "status")
	rome.patch(offloading, map[string]any{"status": map[string]any{"offloadingPhase": "Ready", "observedGeneration": generation}}, "status")
	envtest.Eventually(t, "the offloading to be ready", func(context.Context) bool { return observed().Offloading })

	_, generationBefore := r.Observe()
	rome.patch(key{Kind: kindNode, Name: "vision-train-0-aaaa"}, map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T12:00:00Z"}}}}, "status")
	rome.patch(key{Kind: kindNode, Name: "vision-train-0-aaaa"}, map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False"}}}}, "status")
	envtest.Eventually(t, "the Node to be seen not ready", func(context.Context) bool { return !observed().NodeReady })
	if _, now := r.Observe(); now == generationBefore {
		t.Error("the generation did not grow")
	}
}

// Releasing: slice "false", then the virtual node; drained: the slice. A
// finalizer stands for Liqo's eviction of pods.
func testRelease(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	first := desired(t, "rome", contract("rome", "train"))
	r.deliver(first)
	r.settled(t, first)
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": []any{"example.org/eviction"}}))

	c := contract("rome", "train", releasing)
	second := desired(t, "rome", c)
	r.deliver(second)
	envtest.Eventually(t, "the virtual node to be on its way out", func(context.Context) bool { return terminating(rome.get(nodeKey("train"))) })
	if got := rome.get(sliceKey("train")).GetAnnotations()["liqo.io/create-virtual-node"]; got != "false" {
		t.Errorf("create-virtual-node: got %q", got)
	}
	if got := rome.get(key{Kind: kindNamespace, Name: "vision"}).GetAnnotations()[v1alpha1.AnnotationIntents]; got != "" {
		t.Errorf("intents of the namespace: got %q", got)
	}
	if rome.get(key{kindOffloading, "vision", offloadingName}) == nil {
		t.Error("the offloading went before the pods")
	}
	observed := func() v1alpha1.ConsumerObservation {
		all := flat(r.Observe())
		return all[c.Metadata.Name]
	}
	if observed().Drained() {
		t.Error("said to be drained while the virtual node is there")
	}
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": nil}))
	envtest.Eventually(t, "the virtual node to be gone", func(context.Context) bool { return rome.get(nodeKey("train")) == nil })
	if observed().Drained() {
		t.Error("said to be drained while the Node is there")
	}
	rome.delete(key{Kind: kindNode, Name: "vision-train-0-aaaa"})
	envtest.Eventually(t, "the contract to be drained", func(context.Context) bool { return observed().Drained() && !observed().Gone() })

	third := desired(t, "rome", contract("rome", "train", drained))
	r.deliver(third)
	r.settled(t, third)
	envtest.Eventually(t, "everything to be gone", func(context.Context) bool {
		return observed().Gone() && rome.get(sliceKey("train")) == nil && rome.get(key{kindOffloading, "vision", offloadingName}) == nil &&
			rome.get(key{kindQuota, "vision", "fleetbroker"}) == nil
	})
	if rome.get(key{Kind: kindValidating, Name: "fleetbroker-intent-guard"}) == nil {
		t.Error("the last policies went, which the daemon has no right to make again")
	}
	envtest.Eventually(t, "the namespace to be let go", func(context.Context) bool {
		ns := rome.get(key{Kind: kindNamespace, Name: "vision"})
		_, marked := ns.GetLabels()[v1alpha1.LabelTenant]
		return !terminating(ns) && !marked
	})
}

// Manifests that vanish without a release are released nevertheless: the slice
// stays until the virtual node is gone.
func testVanished(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	first := desired(t, "rome", contract("rome", "train"))
	r.deliver(first)
	r.settled(t, first)
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": []any{"example.org/eviction"}}))
	none := desired(t, "rome")
	r.deliver(none)
	envtest.Eventually(t, "the virtual node to be on its way out", func(context.Context) bool { return terminating(rome.get(nodeKey("train"))) })
	if got := rome.get(sliceKey("train")).GetAnnotations()["liqo.io/create-virtual-node"]; got != "false" {
		t.Errorf("create-virtual-node: got %q", got)
	}
	if rome.get(key{kindOffloading, "vision", offloadingName}) == nil {
		t.Error("the offloading went before the pods")
	}
	rome.patch(nodeKey("train"), meta(map[string]any{"finalizers": nil}))
	envtest.Eventually(t, "all to be gone", func(context.Context) bool {
		return rome.get(sliceKey("train")) == nil && rome.get(key{kindOffloading, "vision", offloadingName}) == nil
	})
}

// Only the holder of the Lease writes; the other takes over when it ends.
func testTwoDaemons(t *testing.T, access testAccess) {
	want := desired(t, "rome", contract("rome", "train"))
	first := newRig(t, access, func(o *Options) { o.Identity = "first" })
	first.deliver(want)
	first.settled(t, want)
	second := newRig(t, access, func(o *Options) { o.Identity = "second" })
	more := desired(t, "rome", contract("rome", "train"), contract("rome", "serve"))
	second.deliver(more)
	envtest.Eventually(t, "the second to see the cluster", func(context.Context) bool { return second.Status()["rome"].Reachable })
	if all := flat(second.Observe()); all["vision-serve-0-aaaa"].Slice != v1alpha1.Unknown {
		t.Error("a daemon without the Lease vouches for an absence")
	} else if !all["vision-serve-0-aaaa"].Bystander || all["vision-train-0-aaaa"].Message != "" {
		t.Errorf("a daemon without the Lease speaks for the one that has it: %+v", all)
	}
	if all := flat(first.Observe()); all["vision-train-0-aaaa"].Bystander {
		t.Error("the daemon with the Lease leaves it to another to speak")
	}
	envtest.Eventually(t, "the second to know that another one serves the cluster", func(context.Context) bool { return second.Status()["rome"].Elsewhere })
	envtest.Eventually(t, "the second to see that the first lives", func(context.Context) bool { return second.Status()["rome"].Renewed })
	if second.Status()["rome"].Leading || len(second.takeWrites()) > 0 {
		t.Error("the second writes beside the first")
	}
	first.Close()
	second.settled(t, more)
	if watch(t, access["rome"]).get(sliceKey("serve")) == nil {
		t.Error("the second did not take over")
	}
	none := desired(t, "rome")
	second.deliver(none)
	second.settled(t, none)
}

func testHanging(t *testing.T, access testAccess) {
	const answer = 8 * time.Second // what oslo would wait for if it waited for rome
	r := newRig(t, access, func(o *Options) { o.CallTimeout = answer })
	first, other := desired(t, "rome", contract("rome", "train")), desired(t, "oslo")
	r.deliver(first, other)
	r.settled(t, first)
	r.settled(t, other)
	if err := access["rome"].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := access["rome"].Resume(); err != nil {
			t.Fatal(err)
		}
	}()
	began := time.Now()
	more := desired(t, "rome", contract("rome", "train"), contract("rome", "serve"))
	next := desired(t, "oslo", contract("oslo", "batch"))
	r.deliver(more, next)
	r.settled(t, next)
	if took := time.Since(began); took > answer/2 {
		t.Errorf("oslo waited %s beside a hanging rome", took)
	}
	envtest.Eventually(t, "rome to be unreachable", func(context.Context) bool {
		all := flat(r.Observe())
		o := all["vision-train-0-aaaa"]
		return !r.Status()["rome"].Reachable && !o.Reachable && o.Slice == v1alpha1.Unknown && o.Message != ""
	})
	if err := access["rome"].Resume(); err != nil {
		t.Fatal(err)
	}
	r.settled(t, more)
}

// flat is what all consumers say, by contract.
func flat(said v1alpha1.ConsumerObservations, _ uint64) map[string]v1alpha1.ConsumerObservation {
	all := map[string]v1alpha1.ConsumerObservation{}
	for _, contracts := range said {
		maps.Copy(all, contracts)
	}
	return all
}
