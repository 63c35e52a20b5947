//go:build e2e

package delivery

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// contract gives 4 GPUs of paris to a consumer, for namespace vision.
func contract(consumer, intent string, edits ...func(*v1alpha1.Contract)) *v1alpha1.Contract {
	c := &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: "vision-" + intent + "-0-aaaa", Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: intent}, Consumer: consumer, Provider: "paris", Slice: "vision-" + intent + "-0-aaaa",
			Resources: v1alpha1.Resources{
				v1alpha1.CPU: v1alpha1.AmountOf(16000), v1alpha1.Memory: v1alpha1.AmountOf(128 << 30),
				v1alpha1.Pods: v1alpha1.AmountOf(50), "nvidia.com/gpu": v1alpha1.AmountOf(4),
			},
			Stage:   v1alpha1.StagePeer,
			Offload: &v1alpha1.Offload{Namespaces: []v1alpha1.OffloadNamespace{{Name: "vision", Create: true, Quota: true}}},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseReserved},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func releasing(c *v1alpha1.Contract) { c.Status.Phase = v1alpha1.PhaseReleasing }

func drained(c *v1alpha1.Contract) {
	releasing(c)
	c.Status.Drained = v1alpha1.TimeOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
}

// desired renders contracts as Deliver wants them.
func desired(t *testing.T, consumer string, contracts ...*v1alpha1.Contract) Desired {
	t.Helper()
	out, err := manifests.All(manifests.NewIndex(contracts), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems)
	}
	files := tree.NewMemory().Build(out.Files)
	sub, err := files.Sub(manifests.Dir(consumer))
	if err != nil {
		t.Fatal(err)
	}
	return Desired{
		Cluster:   &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: consumer}},
		Tree:      sub,
		Commit:    files.Root,
		Contracts: contracts,
	}
}

// testAccess reaches clusters of package env.
type testAccess map[string]*env.Cluster

// RESTConfig implements Access.
func (a testAccess) RESTConfig(_ context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	return rest.CopyConfig(a[cluster.Metadata.Name].Config), nil
}

// rig is a deliverer under test with what it called.
type rig struct {
	*Deliverer
	mu       sync.Mutex
	writes   []string // "METHOD path", leases left out
	confirms atomic.Int32
	lines    logtest.Lines // what it logs
	// root is what the ledger says, by consumer; missing: what was delivered last.
	root sync.Map
}

func newRig(t *testing.T, access Access, edit func(*Options)) *rig {
	r := &rig{}
	options := Options{
		Access:        access,
		Identity:      t.Name(),
		ProbeInterval: 500 * time.Millisecond,
		CallTimeout:   2 * time.Second,
		LeaseDuration: 3 * time.Second,
		Confirm: func(_ context.Context, consumer string) (tree.Hash, error) {
			r.confirms.Add(1)
			h, _ := r.root.Load(consumer)
			root, _ := h.(tree.Hash)
			return root, nil
		},
		Hooks: Hooks{Called: func(_, method, path string, _ int) {
			if method != "GET" && !strings.Contains(path, "/leases") {
				r.mu.Lock()
				r.writes = append(r.writes, method+" "+path)
				r.mu.Unlock()
			}
		}},
	}
	var to io.Writer = &r.lines
	if testing.Verbose() {
		to = io.MultiWriter(to, os.Stderr)
	}
	options.Log = slog.New(slog.NewTextHandler(to, nil))
	if edit != nil {
		edit(&options)
	}
	r.Deliverer = New(options)
	t.Cleanup(r.Close)
	return r
}

// deliver hands over and makes the ledger agree.
func (r *rig) deliver(all ...Desired) {
	m := map[string]Desired{}
	for _, d := range all {
		m[d.Cluster.Metadata.Name] = d
		r.root.Store(d.Cluster.Metadata.Name, d.Tree.Root)
	}
	r.Deliver(m)
}

// settled waits until everything that was delivered is applied.
func (r *rig) settled(t *testing.T, want Desired) {
	t.Helper()
	name := want.Cluster.Metadata.Name
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status: %+v", r.Status()[name])
		}
	})
	envtest.Eventually(t, "manifests to be applied", func(context.Context) bool { return r.isSettled(want) })
}

func (r *rig) isSettled(want Desired) bool {
	s := r.Status()[want.Cluster.Metadata.Name]
	return s.Commit == want.Commit && s.Pending == 0 && s.Problem == "" && len(s.Troubles) == 0
}

// settledAfterOutage waits as settled does, for a cluster that did not answer a
// while ago: watches of it are tried again after up to a minute (client-go doubles
// the pause to 30 s, and draws up to as much again), and what they saw last is
// what a removal is judged by.
func (r *rig) settledAfterOutage(t *testing.T, want Desired) {
	t.Helper()
	is := func(context.Context) (bool, error) { return r.isSettled(want), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, is); err != nil {
		t.Fatalf("two minutes after the outage: %+v", r.Status()[want.Cluster.Metadata.Name])
	}
}

// takeWrites returns and forgets the calls that changed something.
func (r *rig) takeWrites() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.writes
	r.writes = nil
	return out
}

// watcher reads and changes a cluster as others do.
type watcher struct {
	t   *testing.T
	dyn dynamic.Interface
}

func watch(t *testing.T, cluster *env.Cluster) watcher {
	t.Helper()
	dyn, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	return watcher{t, dyn}
}

func (w watcher) at(k key) dynamic.ResourceInterface {
	info := kinds[k.Kind]
	if info.namespaced {
		return w.dyn.Resource(info.gvr).Namespace(k.Namespace)
	}
	return w.dyn.Resource(info.gvr)
}

// get is an object, or nil when it does not exist.
func (w watcher) get(k key) *unstructured.Unstructured {
	w.t.Helper()
	u, err := w.at(k).Get(w.t.Context(), k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w watcher) patch(k key, patch map[string]any, subresources ...string) *unstructured.Unstructured {
	w.t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := w.at(k).Patch(w.t.Context(), k.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w watcher) delete(k key) {
	w.t.Helper()
	if err := w.at(k).Delete(w.t.Context(), k.Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// createNode makes the Node that Liqo's virtual kubelet would.
func (w watcher) createNode(name string, ready string, gpus string) {
	w.t.Helper()
	k := key{Kind: kindNode, Name: name}
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"liqo.io/type": "virtual-node"}},
	}}
	if _, err := w.at(k).Create(w.t.Context(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.patch(k, map[string]any{"status": map[string]any{
		"conditions":  []any{map[string]any{"type": "Ready", "status": ready}},
		"allocatable": map[string]any{"cpu": "16", "nvidia.com/gpu": gpus},
	}}, "status")
}

func meta(fields map[string]any) map[string]any { return map[string]any{"metadata": fields} }

const tenantNamespace = "liqo-tenant-paris"

func sliceKey(intent string) key {
	return key{kindSlice, tenantNamespace, "vision-" + intent + "-0-aaaa"}
}

func nodeKey(intent string) key {
	return key{kindVirtualNode, tenantNamespace, "vision-" + intent + "-0-aaaa"}
}
