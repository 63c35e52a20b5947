//go:build e2e

package delivery

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/delivery/watches"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/flux"
)

// TestModes tries what is not everyday: missing namespaces, overlays, GitOps
// tools, refused policies, changed credentials, clusters without Liqo.
func TestModes(t *testing.T) {
	rome := envtest.Cluster(t, env.ClusterOptions{Name: "rome"})
	access := testAccess{"rome": rome}
	t.Run("without Liqo", func(t *testing.T) { testWithoutLiqo(t, access) })
	if err := env.InstallLiqoCRDs(t.Context(), rome.Config); err != nil {
		t.Fatal(err)
	}
	t.Run("a GitOps tool applies", func(t *testing.T) { testObserveOnly(t, access) })
	t.Run("Flux is suspended", func(t *testing.T) { testSuspended(t, rome) })
	t.Run("Argo CD leaves a virtual node", func(t *testing.T) { testUnpruned(t, access) })
	t.Run("another's Secret beside Flux", func(t *testing.T) { testSecretBesideFlux(t, rome) })
	t.Run("a policy is refused", func(t *testing.T) { testPolicyRefused(t, rome) })
	t.Run("namespace that is not to be made", func(t *testing.T) { testMissingNamespace(t, access) })
	t.Run("what is refused is told", func(t *testing.T) { testRefusedIsTold(t, access) })
	t.Run("overlay", func(t *testing.T) { testOverlay(t, access) })
	t.Run("credentials change", func(t *testing.T) { testCredentials(t, rome) })
	t.Run("kubeconfig in a Secret", func(t *testing.T) { testSecret(t, rome) })
	t.Run("a watch is forbidden later", func(t *testing.T) { testForbiddenWatch(t, rome) })
	t.Run("a provider that cannot be reached", func(t *testing.T) { testPeeringMissing(t, rome) })
	t.Run("pods past their budgets", func(t *testing.T) { testPastBudgets(t, access) })
	t.Run("a consumer that is no longer named", func(t *testing.T) { testUnnamed(t, access) })
	t.Run("the daemon's own account", func(t *testing.T) { testLeastPrivilege(t, rome) })
}

func testWithoutLiqo(t *testing.T, access testAccess) {
	r := newRig(t, access, nil)
	r.deliver(desired(t, "rome", contract("rome", "train")))
	envtest.Eventually(t, "the missing Liqo to be named", func(context.Context) bool {
		all := flat(r.Observe())
		o := all["vision-train-0-aaaa"]
		return strings.Contains(r.Status()["rome"].Problem, "install Liqo") && !o.Reachable && strings.Contains(o.Message, "install Liqo")
	})
}

func testObserveOnly(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train"))
	want.Mode = Flux
	r.deliver(want)
	observed := func() v1alpha1.ConsumerObservation {
		all := flat(r.Observe())
		return all["vision-train-0-aaaa"]
	}
	envtest.Eventually(t, "the absence to be seen", func(context.Context) bool { return observed().Gone() })
	if writes := r.takeWrites(); len(writes) > 0 {
		t.Errorf("got writes %q beside Flux, want none", writes)
	}
	for _, u := range []*unstructured.Unstructured{
		bare("v1", "Namespace", tenantNamespace),
		{Object: map[string]any{
			"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice", "spec": map[string]any{},
			"metadata": map[string]any{"name": "vision-train-0-aaaa", "namespace": tenantNamespace, "labels": map[string]any{v1alpha1.LabelContract: "vision-train-0-aaaa"}},
		}},
	} {
		if _, err := rome.at(liveKey(kind(u.GetKind()), u)).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	envtest.Eventually(t, "what Flux made to be seen", func(context.Context) bool { return observed().Slice == v1alpha1.Present })
	want.Mode = Direct
	r.deliver(want)
	r.settled(t, want)
	if rome.get(nodeKey("train")) == nil {
		t.Error("after the change to direct: the virtual node is missing")
	}
	none := desired(t, "rome")
	r.deliver(none)
	r.settled(t, none)
}

// Beside Argo CD the virtual nodes of what is released go once the slice says that none is
// to be made anew, but for the last one while another contract with the provider has none
// yet, and only by a daemon that knows the newest ledger; nothing else is written.
func testUnpruned(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	lay := func(k key, more, spec map[string]any) types.UID {
		t.Helper()
		u := bare(kinds[k.Kind].gvr.GroupVersion().String(), string(k.Kind), k.Name)
		maps.Copy(u.Object["metadata"].(map[string]any), more)
		u.Object["spec"] = spec
		answer, err := rome.at(k).Create(t.Context(), u, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rome.at(k).Delete(context.Background(), k.Name, metav1.DeleteOptions{}) })
		return answer.GetUID()
	}
	if rome.get(key{Kind: kindNamespace, Name: tenantNamespace}) == nil {
		if _, err := rome.at(key{Kind: kindNamespace}).Create(t.Context(), bare("v1", "Namespace", tenantNamespace), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	labels := func(intent string) map[string]any {
		return map[string]any{v1alpha1.LabelContract: sliceKey(intent).Name, manifests.LabelRemoteClusterID: "paris"}
	}
	node := func(intent string, slice types.UID) { // as the guard wants it, which is there already
		lay(nodeKey(intent), map[string]any{"labels": labels(intent), "ownerReferences": []any{map[string]any{
			"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice", "name": sliceKey(intent).Name, "uid": string(slice), "controller": true}}},
			map[string]any{
				"labels": map[string]any{v1alpha1.LabelContract: sliceKey(intent).Name, v1alpha1.LabelIntent: "vision." + intent},
				"taints": []any{map[string]any{"key": v1alpha1.TaintIntent, "value": "vision." + intent, "effect": "NoSchedule"}},
			})
	}
	train := lay(sliceKey("train"), map[string]any{"labels": labels("train"), "annotations": map[string]any{manifests.AnnotationCreateVirtualNode: "true"}}, map[string]any{})
	node("train", train)
	serve := lay(sliceKey("serve"), map[string]any{"labels": labels("serve"), "annotations": map[string]any{manifests.AnnotationCreateVirtualNode: "true"}}, map[string]any{})
	want := desired(t, "rome", contract("rome", "train", releasing), contract("rome", "serve"))
	want.Mode = ArgoCD
	r.deliver(want)
	observed := func(text string) func(context.Context) bool {
		return func(context.Context) bool {
			o := flat(r.Observe())["vision-train-0-aaaa"]
			return o.VirtualNode == v1alpha1.Present && strings.Contains(o.Message, text)
		}
	}
	envtest.Eventually(t, "the virtual node to be seen", observed(""))
	rome.patch(sliceKey("train"), meta(map[string]any{"annotations": map[string]any{manifests.AnnotationCreateVirtualNode: "false"}}))
	envtest.Eventually(t, "what it waits for to be told", observed("the last virtual node towards paris stays until that of vision-serve-0-aaaa is there"))
	if writes := r.takeWrites(); len(writes) > 0 || rome.get(nodeKey("train")) == nil {
		t.Errorf("got writes %q, want none", writes)
	}
	r.root.Store("rome", tree.Hash{9}) // the ledger has moved on, and this daemon lags
	node("serve", serve)
	envtest.Eventually(t, "the ledger to be asked again", func(context.Context) bool { return r.confirms.Load() > 1 })
	if writes := r.takeWrites(); len(writes) > 0 || rome.get(nodeKey("train")) == nil {
		t.Errorf("got writes %q by a daemon that lags, want none", writes)
	}
	r.root.Store("rome", want.Tree.Root)
	envtest.Eventually(t, "the virtual node to go", func(context.Context) bool { return rome.get(nodeKey("train")) == nil })
	envtest.Eventually(t, "that it is gone to be seen", func(context.Context) bool {
		o := flat(r.Observe())["vision-train-0-aaaa"]
		return o.VirtualNode == v1alpha1.Absent && o.Slice == v1alpha1.Present && !strings.Contains(o.Message, "virtual node")
	})
	path := "DELETE /apis/offloading.liqo.io/v1beta1/namespaces/" + tenantNamespace + "/virtualnodes/" + nodeKey("train").Name
	if writes := r.takeWrites(); !slices.Equal(slices.Compact(writes), []string{path}) {
		t.Errorf("got writes %q, want %q", writes, path)
	}
	if rome.get(nodeKey("serve")) == nil {
		t.Error("a virtual node went that is not released")
	}
}

// Who waits for Flux is told that it is suspended, at once, and what is not there
// may still come.
func testSuspended(t *testing.T, cluster *env.Cluster) {
	r, rome := newRig(t, testAccess{"rome": cluster}, nil), watch(t, cluster)
	want := desired(t, "rome", contract("rome", "train"))
	want.Mode = Flux
	r.deliver(want)
	says := func(text string, slice v1alpha1.Presence) {
		t.Helper()
		envtest.Eventually(t, text, func(context.Context) bool {
			all := flat(r.Observe())
			o := all["vision-train-0-aaaa"]
			return o.Reachable && strings.Contains(o.Message, text) && o.Slice == slice
		})
	}
	says("install Flux there", v1alpha1.Absent) // or it is in another cluster
	if err := flux.InstallCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	says("no Kustomization of Flux on cluster rome applies manifests/rome/vision", v1alpha1.Absent)
	k := bare("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "fleet")
	k.Object["spec"] = map[string]any{
		"interval": "1m", "prune": true, "suspend": true, "path": "./manifests/rome", "sourceRef": map[string]any{"kind": "GitRepository", "name": "ledger"},
	}
	objects := rome.dyn.Resource(kustomizations).Namespace("default")
	if _, err := objects.Create(t.Context(), k, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("Kustomization default/fleet is suspended: flux resume kustomization fleet -n default", v1alpha1.Unknown)
	if err := objects.Delete(t.Context(), "fleet", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A virtual node with a Secret that is not for its tenant is not usable, whoever
// applied it, until the Secret's label says so.
func testSecretBesideFlux(t *testing.T, cluster *env.Cluster) {
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, testAccess{"rome": cluster}, nil)
	want := desired(t, "rome", contract("rome", "train", func(c *v1alpha1.Contract) {
		c.Spec.VirtualNode = &v1alpha1.VirtualNodeSpec{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: "at-paris"}}
	}))
	want.Mode = Flux
	r.deliver(want)
	says := func(text string) {
		t.Helper()
		envtest.Eventually(t, text, func(context.Context) bool {
			o := flat(r.Observe())["vision-train-0-aaaa"]
			return o.Reachable && !o.NodeReady && strings.Contains(o.Message, text) && o.NodeMessage == o.Message
		})
	}
	says("Secret at-paris of virtualNode.kubeconfigSecretRef is not in namespace " + tenantNamespace)
	secrets := api.CoreV1().Secrets(tenantNamespace)
	secret, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "at-paris", Labels: map[string]string{v1alpha1.LabelTenant: "nlp"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	says("is not labelled for tenant vision")
	secret.Labels[v1alpha1.LabelTenant] = "vision"
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "nothing to be said of it any more", func(context.Context) bool {
		o := flat(r.Observe())["vision-train-0-aaaa"]
		return o.Reachable && !strings.Contains(o.Message, "at-paris") && o.NodeMessage == ""
	})
	if writes := r.takeWrites(); len(writes) > 0 {
		t.Errorf("got writes %q beside Flux, want none", writes)
	}
}

// fixedAccess reaches one cluster as somebody who can be changed.
type fixedAccess struct {
	mu     sync.Mutex
	config *rest.Config
}

// RESTConfig implements Access.
func (a *fixedAccess) RESTConfig(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return rest.CopyConfig(a.config), nil
}

func (a *fixedAccess) set(config *rest.Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config = config
}

// user is somebody with a ClusterRole of these rules.
func user(t *testing.T, cluster *env.Cluster, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := api.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := cluster.ConfigFor(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

var (
	read = []string{"get", "list", "watch"}
	all  = []string{"*"}
)

func testMissingNamespace(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train", func(c *v1alpha1.Contract) { c.Spec.Offload.Namespaces[0] = v1alpha1.OffloadNamespace{Name: "later"} }))
	r.deliver(want)
	envtest.Eventually(t, "the missing namespace to be named", func(context.Context) bool {
		return strings.Contains(strings.Join(r.Status()["rome"].Troubles, " "), "namespace later does not exist") && rome.get(sliceKey("train")) != nil
	})
	if rome.get(key{Kind: kindNamespace, Name: "later"}) != nil {
		t.Fatal("the namespace was made")
	}
	if _, err := rome.at(key{Kind: kindNamespace}).Create(t.Context(), bare("v1", "Namespace", "later"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.settled(t, want)
	if rome.get(key{kindOffloading, "later", offloadingName}) == nil ||
		rome.get(key{Kind: kindNamespace, Name: "later"}).GetAnnotations()[v1alpha1.AnnotationIntents] != "vision.train" {
		t.Error("the namespace was not offloaded when it came")
	}
}

// What the ledger has and nothing renders to, and a namespace whose remote name
// another has, are in the metric, the status and events of the cluster; nothing of
// them is applied.
func testRefusedIsTold(t *testing.T, access testAccess) {
	r := newRig(t, access, nil)
	count := func() int { return r.Status()["rome"].Refused }
	rome := watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train"))
	files, err := readFiles(want.Tree)
	if err != nil {
		t.Fatal(err)
	}
	files["namespaces/evil.yaml"] = []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-evil}\n")
	want.Tree = tree.NewMemory().Build(files)
	want.Refused = map[string]string{"vision": "at paris it would be nlp-rome, which namespace nlp of tenant nlp in rome has"}
	r.deliver(want)
	told := func(text string) bool {
		list, err := rome.dyn.Resource(events).Namespace("fleetbroker").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			regarding, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			if strings.Contains(note, text) && e.Object["reason"] == reasonRefused && e.Object["type"] == "Warning" && regarding == "fleetbroker" {
				return true
			}
		}
		return false
	}
	envtest.Eventually(t, "the refusals to be told", func(context.Context) bool {
		troubles := strings.Join(r.Status()["rome"].Troubles, "\n")
		return count() == 2 && told("manifests/rome/namespaces/evil.yaml is there, and nothing renders to it") && told("namespace vision: at paris it would be nlp-rome") &&
			strings.Contains(troubles, "evil.yaml is there") && strings.Count(troubles, "at paris it would be nlp-rome") == 1
	})
	if rome.get(key{Kind: kindNamespace, Name: "kube-evil"}) != nil || rome.get(key{kindOffloading, "vision", offloadingName}) != nil {
		t.Error("what is refused was applied")
	}
	none := desired(t, "rome")
	r.deliver(none)
	r.settled(t, none)
	if count() != 0 {
		t.Errorf("%d refusals are left", count())
	}
}

func testOverlay(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	overlay := func(patch string) tree.Tree {
		return tree.NewMemory().Build(map[string][]byte{"kustomization.yaml": []byte("patches: [{target: {kind: ResourceSlice}, patch: '" + patch + "'}]\n")})
	}
	want := desired(t, "rome", contract("rome", "train"))
	want.Overlay = overlay(`[{"op": "add", "path": "/metadata/labels/cost-center", "value": "42"}]`)
	r.deliver(want)
	r.settled(t, want)
	if got := rome.get(sliceKey("train")).GetLabels()["cost-center"]; got != "42" {
		t.Errorf("label of the overlay: got %q", got)
	}
	want.Overlay = overlay(`[{"op": "replace", "path": "/spec/resources/cpu", "value": "1"}]`)
	want.Commit = tree.Hash{1}
	r.deliver(want)
	envtest.Eventually(t, "the overlay to be ignored and said so", func(context.Context) bool {
		return strings.Contains(strings.Join(r.Status()["rome"].Troubles, " "), "its specification must stay as it is") &&
			rome.get(sliceKey("train")).GetLabels()["cost-center"] == ""
	})
	if got := seen.Resources(rome.get(sliceKey("train")), "spec", "resources")["cpu"]; got != v1alpha1.AmountOf(16000) {
		t.Errorf("cpu: got %v", got)
	}
	want.Overlay, want.Commit = tree.Tree{}, tree.Hash{2}
	r.deliver(want)
	r.settled(t, want)
}

func testCredentials(t *testing.T, cluster *env.Cluster) {
	nobody, err := cluster.ConfigFor("nobody")
	if err != nil {
		t.Fatal(err)
	}
	access := &fixedAccess{config: nobody}
	r := newRig(t, access, nil)
	want := desired(t, "rome", contract("rome", "train"))
	r.deliver(want)
	envtest.Eventually(t, "the refusal to be said", func(context.Context) bool {
		return strings.Contains(r.Status()["rome"].Problem, "forbidden")
	})
	access.set(cluster.Config)
	r.settled(t, want)
}

// What the daemon's account needs, and no more; the namespace guard knows it by
// its name.
func testLeastPrivilege(t *testing.T, cluster *env.Cluster) {
	const name = "system:serviceaccount:fleetbroker:fleetbroker"
	write := append([]string{"create", "patch", "delete"}, read...)
	config := user(t, cluster, name,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: append([]string{"create", "patch"}, read...)},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: write},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{"authentication.liqo.io"}, Resources: []string{"resourceslices"}, Verbs: write},
		rbacv1.PolicyRule{APIGroups: []string{"offloading.liqo.io"}, Resources: []string{"virtualnodes", "namespaceoffloadings"}, Verbs: write},
		rbacv1.PolicyRule{APIGroups: []string{"offloading.liqo.io"}, Resources: []string{"namespacemaps"}, Verbs: []string{"list", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{admission}, Resources: []string{
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, Verbs: read},
	)
	r, rome := newRig(t, &fixedAccess{config: config}, nil), watch(t, cluster)
	rome.installPolicies()
	want := desired(t, "rome", contract("rome", "train"), contract("rome", "serve"))
	r.deliver(want)
	r.settled(t, want)
	none := desired(t, "rome")
	r.deliver(none)
	r.settled(t, none)
	envtest.Eventually(t, "all to be gone", func(context.Context) bool { return rome.get(sliceKey("train")) == nil })
	if rome.get(key{Kind: kindNamespace, Name: "vision"}) == nil {
		t.Error("a namespace was deleted")
	}
}

// What was made for a consumer stays when the fleet forgets it: nobody said
// that its contracts ended. Its Lease is free at once.
func testUnnamed(t *testing.T, access testAccess) {
	r, rome := newRig(t, access, nil), watch(t, access["rome"])
	want := desired(t, "rome", contract("rome", "train"))
	r.deliver(want)
	r.settled(t, want)
	r.takeWrites()
	r.deliver()
	next := newRig(t, access, func(o *Options) { o.Identity, o.LeaseDuration = "next", time.Minute })
	next.deliver(want)
	next.settled(t, want)
	if all := flat(r.Observe()); len(all) > 0 {
		t.Errorf("got observations %v of a cluster that is not named", all)
	}
	if writes := append(r.takeWrites(), next.takeWrites()...); len(writes) > 0 || rome.get(sliceKey("train")) == nil {
		t.Errorf("got writes %q, want none", writes)
	}
}

func testSecret(t *testing.T, cluster *env.Cluster) {
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "rome-kubeconfig", Namespace: "fleetbroker", Labels: map[string]string{access.LabelCluster: "rome"}},
		Data:       map[string][]byte{"kubeconfig": cluster.Kubeconfig},
	}
	if _, err := api.CoreV1().Secrets("fleetbroker").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, access.Kubeconfigs{Secrets: access.KubernetesSecrets{Client: api, Namespace: "fleetbroker"}}, nil)
	want := desired(t, "rome", contract("rome", "train"))
	want.Cluster.Spec.Access = &v1alpha1.ClusterAccess{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: "rome-kubeconfig", Key: "kubeconfig"}}
	r.deliver(want)
	r.settled(t, want)
}

// A cache that is no longer fed proves nothing, though the cluster answers.
func testForbiddenWatch(t *testing.T, cluster *env.Cluster) {
	everything := rbacv1.PolicyRule{APIGroups: all, Resources: all, Verbs: all}
	config := user(t, cluster, "watcher", everything)
	clock := &skipping{RealClock: clock.RealClock{}}
	r := newRig(t, &fixedAccess{config: config}, func(o *Options) { o.Clock = clock })
	want := desired(t, "rome", contract("rome", "train"))
	r.deliver(want)
	r.settled(t, want)
	api, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	role, err := api.RbacV1().ClusterRoles().Get(t.Context(), "watcher", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: []string{"get", "create", "patch", "update"}}, {NonResourceURLs: all, Verbs: all}}
	if _, err := api.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(t.Context()); err != nil { // open watches are not checked again
		t.Fatal(err)
	}
	clock.skip(2 * watches.Patience)
	envtest.Eventually(t, "what is cached to be disbelieved", func(context.Context) bool {
		clock.skip(time.Second)
		all := flat(r.Observe())
		o := all["vision-train-0-aaaa"]
		return !o.Reachable && o.Slice == v1alpha1.Unknown && strings.Contains(o.Message, "forbidden")
	})
}

// skipping is the real clock, some time ahead.
type skipping struct {
	clock.RealClock
	mu    sync.Mutex
	ahead time.Duration
}

// Now implements clock.PassiveClock.
func (s *skipping) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.RealClock.Now().Add(s.ahead)
}

func (s *skipping) skip(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}
