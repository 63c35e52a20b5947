//go:build e2e

package policies

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"

	offv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

func virtualNode(namespace string, label string, taints ...corev1.Taint) *offv1beta1.VirtualNode {
	node := &offv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "s-", Namespace: namespace},
		Spec:       offv1beta1.VirtualNodeSpec{ClusterID: "paris", Taints: taints},
	}
	if label != "" {
		node.Spec.Labels = map[string]string{v1alpha1.LabelIntent: label}
	}
	return node
}

func testVirtualNodes(t *testing.T, cluster *env.Cluster) {
	scheme := runtime.NewScheme()
	if err := errors.Join(offv1beta1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	taint := func(value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: v1alpha1.TaintIntent, Value: value, Effect: effect}
	}
	other := corev1.Taint{Key: "gpu", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	const text = "must carry the intent taint"
	cases := map[string]struct {
		node    *offv1beta1.VirtualNode
		refused bool
	}{
		"as rendered":              {virtualNode(peering, trainIntent, taint(trainIntent, corev1.TaintEffectNoSchedule)), false},
		"with more taints":         {virtualNode(peering, trainIntent, other, taint(trainIntent, corev1.TaintEffectNoSchedule)), false},
		"as Liqo makes it":         {virtualNode(peering, ""), true},
		"label without taint":      {virtualNode(peering, trainIntent), true},
		"taint without label":      {virtualNode(peering, "", taint(trainIntent, corev1.TaintEffectNoSchedule)), true},
		"label of another":         {virtualNode(peering, serveIntent, taint(trainIntent, corev1.TaintEffectNoSchedule)), true},
		"soft taint":               {virtualNode(peering, trainIntent, taint(trainIntent, corev1.TaintEffectPreferNoSchedule)), true},
		"empty value":              {virtualNode(peering, "", taint("", corev1.TaintEffectNoSchedule)), true},
		"another taint":            {virtualNode(peering, trainIntent, other), true},
		"bare, not our namespace":  {virtualNode(unlabelled, ""), false},
		"bare, offloaded by teams": {virtualNode(oneIntent, ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), tc.node)
			switch {
			case tc.refused:
				refused(t, err, text)
			case err != nil:
				t.Error(err)
			}
		})
	}
	t.Run("named by its provider", func(t *testing.T) {
		node := virtualNode(peering, trainIntent, taint(trainIntent, corev1.TaintEffectNoSchedule))
		ours := map[string]string{v1alpha1.LabelContract: "vision-train-0-k3f9q2ab", v1alpha1.LabelTenant: "vision"}
		node.Labels = maps.Clone(ours)
		maps.Copy(node.Spec.Labels, ours)
		if err := c.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{v1alpha1.LabelContract, v1alpha1.LabelTenant} {
			over := node.DeepCopy()
			over.Spec.Labels[key] = "evil"
			refused(t, c.Update(t.Context(), over), "the broker's to name")
		}
		node.Spec.Labels["gpu.fluidos.eu/model"] = "nvidia-h100"
		if err := c.Update(t.Context(), node); err != nil {
			t.Errorf("a label of the provider's own: %v", err)
		}
	})
	t.Run("pinned", func(t *testing.T) { testPins(t, cluster, c, scheme) })
	t.Run("losing the taint", func(t *testing.T) {
		node := virtualNode(peering, trainIntent, taint(trainIntent, corev1.TaintEffectNoSchedule))
		node.Finalizers = []string{"example.org/eviction"}
		if err := c.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		bare := node.DeepCopy()
		bare.Spec.Taints = nil
		refused(t, c.Update(t.Context(), bare), text)
		// What is on its way out may change: Liqo must get its finalizer off.
		if err := c.Delete(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		patch := []byte(`{"metadata":{"finalizers":null},"spec":{"taints":null}}`)
		if err := c.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Errorf("a virtual node that is being deleted: %v", err)
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node)
		if !apierrors.IsNotFound(err) {
			t.Errorf("after its finalizer went: got %v, want not found", err)
		}
	})
}

// testPins: who applies manifests says on which of a provider's nodes a virtual node lies,
// and nobody else pins one, moves a pin or takes it off, whatever rights they have.
func testPins(t *testing.T, cluster *env.Cluster, admin client.Client, scheme *runtime.Scheme) {
	const team = "dave"
	brokers := []string{"system:serviceaccount:fleetbroker:fleetbroker", "system:serviceaccount:fleetbroker:fleet-agent", "system:serviceaccount:flux-system:fleet-vision", "system:serviceaccount:argocd:fleet-vision", remoteArgo}
	clients := map[string]client.Client{}
	for _, name := range append(brokers, team, stranger) {
		err := admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "pins-"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if clients[name], err = client.New(as(t, cluster, name), client.Options{Scheme: scheme}); err != nil {
			t.Fatal(err)
		}
		envtest.Eventually(t, name+" to have rights", func(ctx context.Context) bool {
			return clients[name].List(ctx, &offv1beta1.VirtualNodeList{}) == nil
		})
	}
	pinned := func(node string) *offv1beta1.VirtualNode {
		n := virtualNode(peering, trainIntent, corev1.Taint{Key: v1alpha1.TaintIntent, Value: trainIntent, Effect: corev1.TaintEffectNoSchedule})
		if node != "" {
			n.Spec.OffloadingPatch = &offv1beta1.OffloadingPatch{NodeSelector: map[string]string{v1alpha1.LabelNode: node, "fleetbroker.io/pool": "h100"}}
		}
		return n
	}
	const mine, other, text = "n0000000000001", "n0000000000002", "the provider's node of a VirtualNode is written by the broker only"
	for _, name := range brokers {
		n := pinned(mine)
		if err := clients[name].Create(t.Context(), n); err != nil {
			t.Errorf("%s makes a pinned virtual node: %v", name, err)
			continue
		}
		n.Spec.OffloadingPatch.NodeSelector[v1alpha1.LabelNode] = other
		if err := clients[name].Update(t.Context(), n); err != nil {
			t.Errorf("%s moves a pin: %v", name, err)
		}
	}
	there := pinned(mine)
	if err := clients[brokers[0]].Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{team, stranger} {
		if err := clients[name].Create(t.Context(), pinned("")); err != nil {
			t.Errorf("%s makes a virtual node that is pinned nowhere: %v", name, err)
		}
		refused(t, clients[name].Create(t.Context(), pinned(other)), text)
		for what, change := range map[string]func(*offv1beta1.VirtualNode){
			"moves the pin":      func(n *offv1beta1.VirtualNode) { n.Spec.OffloadingPatch.NodeSelector[v1alpha1.LabelNode] = other },
			"takes the pin off":  func(n *offv1beta1.VirtualNode) { delete(n.Spec.OffloadingPatch.NodeSelector, v1alpha1.LabelNode) },
			"drops the patch":    func(n *offv1beta1.VirtualNode) { n.Spec.OffloadingPatch = nil },
			"drops the selector": func(n *offv1beta1.VirtualNode) { n.Spec.OffloadingPatch.NodeSelector = nil },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				over := there.DeepCopy()
				change(over)
				refused(t, clients[name].Update(t.Context(), over), text)
			})
		}
		// What Liqo's controllers write of it stays theirs.
		over := there.DeepCopy()
		over.Finalizers = append(over.Finalizers, "example.org/"+rbacv1.GroupName)
		over.Spec.OffloadingPatch.NodeSelector["fleetbroker.io/pool"] = "a100"
		if err := clients[name].Update(t.Context(), over); err != nil {
			t.Errorf("%s changes something else: %v", name, err)
		}
		there = over
	}
}

// stranger is an Argo CD that no Cluster file names.
const stranger = "system:serviceaccount:argocd:argocd-server"

func testNamespaces(t *testing.T, cluster *env.Cluster, api kubernetes.Interface) {
	for _, name := range []string{"operator", "system:serviceaccount:fleetbroker:fleetbroker", "system:serviceaccount:flux-system:kustomize-controller", remoteArgo, stranger} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "all-"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}
		if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	operator := clientFor(t, as(t, cluster, "operator"))
	broker := clientFor(t, as(t, cluster, "system:serviceaccount:fleetbroker:fleetbroker"))
	flux := clientFor(t, as(t, cluster, "system:serviceaccount:flux-system:kustomize-controller"))
	argo, unnamed := clientFor(t, as(t, cluster, remoteArgo)), clientFor(t, as(t, cluster, stranger))
	envtest.Eventually(t, "the roles to be bound", func(ctx context.Context) bool {
		_, err := operator.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil
	})
	patch := func(api kubernetes.Interface, namespace, field string, entries map[string]any) error {
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{field: entries}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, text, metav1.PatchOptions{})
		return err
	}
	const text = "written by the broker only"
	for name, err := range map[string]error{
		"other intents":     patch(operator, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: "nlp.serve"}),
		"no intents":        patch(operator, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: nil}),
		"intents elsewhere": patch(operator, unlabelled, "annotations", map[string]any{v1alpha1.AnnotationIntents: trainIntent}),
		"another tenant":    patch(operator, twoIntents, "labels", map[string]any{v1alpha1.LabelTenant: "nlp"}),
		"no tenant":         patch(operator, twoIntents, "labels", map[string]any{v1alpha1.LabelTenant: nil}),
		"unguarded":         patch(operator, peering, "labels", map[string]any{v1alpha1.LabelManaged: nil}),
		"other pods":        patch(operator, somePods, "annotations", map[string]any{v1alpha1.AnnotationPodsPrefix + pickyIntent: "app=mine"}),
		"all pods":          patch(operator, somePods, "annotations", map[string]any{v1alpha1.AnnotationPodsPrefix + pickyIntent: nil}),
	} {
		t.Run(name, func(t *testing.T) { refused(t, err, text) })
	}
	taken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken", Labels: map[string]string{v1alpha1.LabelTenant: "vision"}}}
	_, err := operator.CoreV1().Namespaces().Create(t.Context(), taken, metav1.CreateOptions{})
	refused(t, err, text)

	free := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free", Labels: map[string]string{"team": "nlp"}}}
	if _, err := operator.CoreV1().Namespaces().Create(t.Context(), free, metav1.CreateOptions{}); err != nil {
		t.Errorf("an ordinary namespace: %v", err)
	}
	if err := patch(operator, twoIntents, "labels", map[string]any{"liqo.io/scheduling-enabled": "true"}); err != nil {
		t.Errorf("a label of others: %v", err)
	}
	testSystemLabel(t, cluster, api, patch)
	if err := patch(broker, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: "vision.serve,vision.train"}); err != nil {
		t.Errorf("the broker: %v", err)
	}
	if err := patch(flux, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: "vision.serve, vision.train"}); err != nil {
		t.Errorf("Flux, which may have to apply: %v", err)
	}
	if err := patch(argo, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: "vision.serve,vision.train"}); err != nil {
		t.Errorf("a deliverer that the Cluster file names: %v", err)
	}
	err = patch(unnamed, twoIntents, "annotations", map[string]any{v1alpha1.AnnotationIntents: "vision.serve"})
	refused(t, err, text)
}

// The label that takes a namespace out of the guards is for who could delete them: a
// right to change namespaces, even that of who applies manifests, is not enough.
func testSystemLabel(t *testing.T, cluster *env.Cluster, api kubernetes.Interface, patch func(kubernetes.Interface, string, string, map[string]any) error) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "spaces"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "create", "patch", "update"}}}}
	if _, err := api.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	users := map[string]kubernetes.Interface{}
	for _, name := range []string{"grace", "ci@example.org"} {
		users[name] = clientFor(t, as(t, cluster, name))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "spaces-"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "spaces"},
		}
		if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label := func(value any) map[string]any { return map[string]any{"fleetbroker.io/system": value} }
	for who, c := range users {
		envtest.Eventually(t, who+" to have the right", func(context.Context) bool {
			return patch(c, unlabelled, "labels", map[string]any{"team": "x"}) == nil
		})
		refused(t, patch(c, unlabelled, "labels", label("true")), "written only by who may delete them")
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hole", Labels: map[string]string{"fleetbroker.io/system": "true"}}}
		_, err := c.CoreV1().Namespaces().Create(t.Context(), made, metav1.CreateOptions{})
		refused(t, err, "written only by who may delete them")
	}
	operator := clientFor(t, as(t, cluster, "operator"))
	if err := patch(operator, unlabelled, "labels", label("true")); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	refused(t, patch(users["grace"], unlabelled, "labels", label(nil)), "written only by who may delete them")
	if err := patch(operator, unlabelled, "labels", label(nil)); err != nil {
		t.Errorf("an administrator takes it back: %v", err)
	}
}
