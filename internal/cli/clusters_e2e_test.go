//go:build e2e

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/consumers"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// The install base's rights are enough for `status` and for delivery on a real
// consumer, and no more than that.
func TestInstallBaseOnAConsumer(t *testing.T) {
	t.Parallel()
	rome := envtest.Cluster(t, env.ClusterOptions{Name: "rome"})
	ctx := t.Context()
	if err := env.InstallLiqoCRDs(ctx, rome.Config); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"consumer", "agent"} {
		if out, err := rome.Kubectl(ctx, ".", "apply", "-k", template+"/install/"+base); err != nil {
			t.Fatalf("apply install/%s: %v\n%s", base, err, out)
		}
	}
	if out, err := rome.Kubectl(ctx, ".", "apply", "-k", template+"/install/broker"); err != nil {
		t.Fatalf("apply install/broker: %v\n%s", err, out)
	}
	createPeer(ctx, t, rome.Config)

	fleet, configs := t.TempDir(), t.TempDir()
	kubeconfig, err := rome.KubeconfigForServiceAccount(ctx, "fleetbroker", "fleetbroker")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(configs, "rome.kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now}
	if code := Run(ctx, s, []string{"init", fleet}); code != 0 {
		t.Fatal(errs.String())
	}
	out.Reset()
	if code := Run(ctx, s, []string{"status", "-C", fleet, "--kubeconfigs-dir", configs}); code != 0 {
		t.Fatal(errs.String())
	}
	for _, want := range []string{"Virtual nodes", "vision-notebook-0", "yes", "2 nvidia.com/gpu"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "cannot be asked") {
		t.Error(out.String())
	}
	// The modules of a peering, as Liqo v1.2.0's ForeignCluster has them.
	out.Reset()
	asked := consumers.Ask(ctx, map[string]*v1alpha1.Cluster{"rome": {Metadata: v1alpha1.Metadata{Name: "rome"}, Spec: v1alpha1.ClusterSpec{Roles: []string{"consumer"}}}}, access.Kubeconfigs{Dir: configs})
	if len(asked) != 1 || asked[0].State.Error != "" || asked[0].Modules["paris"]["offloading"] != "Established" || asked[0].Modules["paris"]["authentication"] != "Error" || asked[0].Modules["paris"]["networking"] != "" {
		t.Errorf("asked: %+v", asked)
	}
	mayExactly(ctx, t, rome.Config)
	oneDecides(ctx, t, kubeconfig)
	deliversWith(ctx, t, rome.Config, fleet, configs)
}

// deliversWith delivers what the template's fleet would reserve by these
// kubeconfigs: the rights of the install base are enough.
func deliversWith(ctx context.Context, t *testing.T, admin *rest.Config, dir, configs string) {
	t.Helper()
	s := Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Now: time.Now}
	src, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	in, err := new(worldFlags).gather(ctx, src, s)
	if err != nil {
		t.Fatal(err)
	}
	var contracts []*v1alpha1.Contract
	for _, c := range planner.Decide(in.world()).Contracts {
		contracts = append(contracts, c.After)
	}
	out, err := manifests.All(manifests.NewIndex(contracts), in.fleet.Clusters)
	if err != nil || len(contracts) == 0 || len(out.Problems) > 0 {
		t.Fatal(err, len(contracts), out.Problems)
	}
	files := tree.NewMemory().Build(out.Files)
	sub, err := files.Sub(manifests.Dir("rome"))
	if err != nil {
		t.Fatal(err)
	}
	d := delivery.New(delivery.Options{Access: access.Kubeconfigs{Dir: configs}, Identity: "test"})
	defer d.Close()
	d.Deliver(map[string]delivery.Desired{"rome": {Cluster: in.fleet.Clusters["rome"], Tree: sub, Commit: files.Root, Contracts: contracts}})
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	slices := schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "resourceslices"}
	offloadings := schema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1", Resource: "namespaceoffloadings"}
	envtest.Eventually(t, "slice and offloading applied by the install base's ServiceAccount", func(ctx context.Context) bool {
		_, errSlice := client.Resource(slices).Namespace("liqo-tenant-paris").Get(ctx, contracts[0].Metadata.Name, metav1.GetOptions{})
		_, errOff := client.Resource(offloadings).Namespace("vision").Get(ctx, "offloading", metav1.GetOptions{})
		return errSlice == nil && errOff == nil
	})
	for cluster, status := range d.Status() {
		t.Logf("%s: %+v", cluster, status)
	}
}

// createPeer makes a virtual node and a peering, as Liqo would.
func createPeer(ctx context.Context, t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": "vision-notebook-0", "labels": map[string]any{"liqo.io/type": "virtual-node"}},
	}}
	if node, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.Object["status"] = map[string]any{
		"allocatable": map[string]any{"cpu": "4", "memory": "16Gi", "pods": "30", "nvidia.com/gpu": "2"},
		"capacity":    map[string]any{"cpu": "4", "memory": "16Gi", "pods": "30", "nvidia.com/gpu": "2"},
		"conditions":  []any{map[string]any{"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": nil, "lastTransitionTime": nil}},
	}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}).UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	peer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.liqo.io/v1beta1", "kind": "ForeignCluster",
		"metadata": map[string]any{"name": "paris"},
		"spec":     map[string]any{"clusterID": "paris"},
	}}
	foreign := client.Resource(schema.GroupVersionResource{Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"})
	if peer, err = foreign.Create(ctx, peer, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	module := func(enabled bool, kind, status string) map[string]any {
		return map[string]any{"enabled": enabled, "conditions": []any{map[string]any{"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
	}
	peer.Object["status"] = map[string]any{"modules": map[string]any{
		"offloading": module(true, "OffloadingVirtualNodeStatus", "Established"), "authentication": module(true, "AuthTenantStatus", "Error"), "networking": module(false, "NetworkConnectionStatus", "None"),
	}}
	if _, err := foreign.UpdateStatus(ctx, peer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// oneDecides lets two replicas elect the one that decides, with the rights of the
// install base.
func oneDecides(ctx context.Context, t *testing.T, kubeconfig []byte) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	stops := map[*process.Election]context.CancelFunc{}
	for _, name := range []string{"one", "two"} {
		s := &process.Election{Config: config, Namespace: "fleetbroker", Identity: name}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		stops[s] = stop
		group.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	leads := func() (found []*process.Election) {
		for s := range stops {
			if s.Leads() {
				found = append(found, s)
			}
		}
		return found
	}
	envtest.Eventually(t, "one decides", func(context.Context) bool { return len(leads()) > 0 })
	first := leads()
	if len(first) != 1 {
		t.Fatal("both decide")
	}
	stops[first[0]]()
	envtest.Eventually(t, "the other takes over", func(context.Context) bool {
		now := leads()
		return len(now) == 1 && now[0] != first[0]
	})
}

// mayExactly asks the API server what the ServiceAccounts of the install base
// may do: what they need, and nothing that would make them dangerous.
func mayExactly(ctx context.Context, t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	broker, agent := "system:serviceaccount:fleetbroker:fleetbroker", "system:serviceaccount:fleetbroker:fleet-agent"
	cases := []struct {
		user, verb, group, resource, namespace string
		want                                   bool
	}{
		{broker, "patch", "authentication.liqo.io", "resourceslices", "liqo-tenant-paris", true},
		{broker, "delete", "offloading.liqo.io", "virtualnodes", "liqo-tenant-paris", true},
		{broker, "patch", "", "namespaces", "", true},
		{broker, "delete", "", "namespaces", "", false},
		{broker, "patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", false},
		{broker, "update", "coordination.k8s.io", "leases", "fleetbroker", true},
		{broker, "update", "coordination.k8s.io", "leases", "kube-system", false},
		{broker, "get", "", "secrets", "fleetbroker", false},
		{broker, "get", "", "secrets", "liqo-tenant-paris", true}, // named in peering.yaml
		{broker, "get", "", "secrets", "liqo-tenant-milan", false},
		{broker, "get", "", "secrets", "liqo", false},
		{broker, "list", "", "secrets", "", false},
		{broker, "create", "", "pods", "vision", false},
		{broker, "create", "authentication.k8s.io", "tokenreviews", "", true},
		{broker, "create", "authorization.k8s.io", "subjectaccessreviews", "", true},
		{broker, "create", "", "serviceaccounts/token", "fleetbroker", false},
		{broker, "patch", "", "nodes", "", false},
		{broker, "create", "rbac.authorization.k8s.io", "clusterrolebindings", "", false},
		{agent, "watch", "", "nodes", "", true},
		{agent, "watch", "", "pods", "", true},
		{agent, "list", "offloading.liqo.io", "quotas", "", true},
		{agent, "create", "coordination.k8s.io", "leases", "fleetbroker", true},
		{agent, "update", "coordination.k8s.io", "leases", "kube-system", false},
		{agent, "patch", "", "nodes", "", true}, // one label: install/agent/guard.yaml
		{agent, "update", "", "nodes", "", false},
		{agent, "get", "", "secrets", "fleetbroker", false},
		{agent, "create", "", "pods", "fleetbroker", false},
	}
	for _, c := range cases {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: c.user, Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: c.verb, Group: c.group, Resource: c.resource, Namespace: c.namespace},
		}}
		got, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.Allowed != c.want {
			t.Errorf("%s may %s %s.%s in %q: %t, want %t", c.user, c.verb, c.resource, c.group, c.namespace, got.Status.Allowed, c.want)
		}
	}
}
