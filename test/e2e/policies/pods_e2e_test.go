//go:build e2e

package policies

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

func TestPolicies(t *testing.T) {
	cluster := start(t, env.ClusterOptions{Name: "rome", ControllerManager: true})
	api := clientFor(t, cluster.Config)
	t.Run("pods created", func(t *testing.T) { testPodsCreated(t, api) })
	t.Run("pods updated", func(t *testing.T) { testPodsUpdated(t, api) })
	t.Run("exemptions", func(t *testing.T) { testExemptions(t, cluster, api) })
	t.Run("daemonsets", func(t *testing.T) { testDaemonSets(t, api) })
	t.Run("roles", func(t *testing.T) { testRoles(t, cluster, api) })
	t.Run("owners", func(t *testing.T) { testOwners(t, cluster) })
	t.Run("virtual nodes", func(t *testing.T) { testVirtualNodes(t, cluster) })
	t.Run("namespaces", func(t *testing.T) { testNamespaces(t, cluster, api) })
	t.Run("intent withdrawn", func(t *testing.T) { testIntentWithdrawn(t, api) })
}

func testPodsCreated(t *testing.T, api kubernetes.Interface) {
	ctx := t.Context()
	// A namespace that is offloaded and may use nothing now.
	bare := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{v1alpha1.LabelTenant: "vision"}}}
	if _, err := api.CoreV1().Namespaces().Create(ctx, bare, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	exempt := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", Labels: map[string]string{"fleetbroker.io/system": "true"}}}
	if _, err := api.CoreV1().Namespaces().Create(ctx, exempt, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForAccount(t, api, "bare")
	waitForAccount(t, api, "monitoring")
	waitForAccount(t, api, metav1.NamespaceSystem)
	if _, err := api.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}, Handler: "liqo"}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	key, noSchedule := v1alpha1.TaintIntent, corev1.TaintEffectNoSchedule
	liqo := "liqo"
	cases := map[string]struct {
		reason    string
		namespace string
		pod       *corev1.Pod
		want      []string // intents tolerated
		refused   string
	}{
		"one intent":          {"the namespace's", oneIntent, pod(), []string{trainIntent}, ""},
		"two intents":         {"both", twoIntents, pod(), []string{serveIntent, trainIntent}, ""},
		"no annotation":       {"nothing is granted", "bare", pod(), nil, ""},
		"unlabelled":          {"not ours", unlabelled, pod(), nil, ""},
		"kube-system":         {"never ours", metav1.NamespaceSystem, pod(), nil, ""},
		"own tolerations":     {"are kept", oneIntent, pod(tolerates(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})), []string{trainIntent}, ""},
		"empty list":          {"is filled", oneIntent, pod(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{} }), []string{trainIntent}, ""},
		"own, right":          {"is not doubled", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Value: trainIntent, Effect: noSchedule})), []string{trainIntent}, ""},
		"own, no effect":      {"is accepted, ours stands beside it", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Value: trainIntent})), []string{trainIntent}, ""},
		"other's":             {"would run on another team's node", oneIntent, pod(intent(serveIntent)), nil, "not granted"},
		"other's, bare":       {"no operator, no effect", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Value: serveIntent})), nil, "not granted"},
		"no value":            {"names nothing", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Effect: noSchedule})), nil, "not granted"},
		"blanket":             {"tolerates everything", oneIntent, pod(blanket()), nil, "without a key"},
		"blanket, effect":     {"tolerates everything of an effect", oneIntent, pod(tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: noSchedule})), nil, "without a key"},
		"any intent":          {"tolerates every intent", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})), nil, "must name one intent"},
		"operator Gt":         {"Kubernetes itself refuses it, or we do", oneIntent, pod(tolerates(corev1.Toleration{Key: key, Operator: "Gt", Value: "1", Effect: noSchedule})), nil, ""},
		"nodeName":            {"goes past the scheduler", oneIntent, pod(func(p *corev1.Pod) { p.Spec.NodeName = "s-b" }), nil, "nodeName"},
		"nodeName elsewhere":  {"not ours", unlabelled, pod(func(p *corev1.Pod) { p.Spec.NodeName = "s-b" }), nil, ""},
		"blanket elsewhere":   {"would take what others pay for", unlabelled, pod(blanket()), nil, "reaches the nodes of every intent"},
		"blanket, NoSchedule": {"the effect of our taint", unlabelled, pod(tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: noSchedule})), nil, "reaches the nodes of every intent"},
		"blanket, NoExecute":  {"does not tolerate our taint", unlabelled, pod(tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})), nil, ""},
		"intent elsewhere":    {"no intent is granted there", unlabelled, pod(intent(trainIntent)), nil, "not granted"},
		"any, elsewhere":      {"nor all of them", unlabelled, pod(tolerates(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})), nil, "must name one intent"},
		"own taint elsewhere": {"is nothing of ours", unlabelled, pod(tolerates(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})), nil, ""},
		"past the scheduler":  {"onto a virtual node", unlabelled, pod(func(p *corev1.Pod) { p.Spec.NodeName = "s-b" }, tolerates(corev1.Toleration{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists})), nil, "with a toleration of virtual nodes"},
		"blanket, system":     {"Kubernetes' own", metav1.NamespaceSystem, pod(blanket()), nil, ""},
		"blanket, exempted":   {"an operator says so", "monitoring", pod(blanket()), nil, ""},
		"runtime class":       {"skips Liqo's selector, not our taint", oneIntent, pod(func(p *corev1.Pod) { p.Spec.RuntimeClassName = &liqo }), []string{trainIntent}, ""},
		"runtime class alone": {"is no way in", "bare", pod(func(p *corev1.Pod) { p.Spec.RuntimeClassName = &liqo }), nil, ""},
		"selected":            {"the intent is for these pods", somePods, pod(labelled("app", "llm", "tier", "gpu", "more", "x")), []string{pickyIntent}, ""},
		"not selected":        {"one label is missing", somePods, pod(labelled("app", "llm")), nil, ""},
		"selected otherwise":  {"one label has another value", somePods, pod(labelled("app", "llm", "tier", "cpu")), nil, ""},
		"not selected, own":   {"and it cannot help itself", somePods, pod(intent(pickyIntent)), nil, "not granted"},
		"selected, own":       {"may say what it gets anyway", somePods, pod(labelled("app", "llm", "tier", "gpu"), intent(pickyIntent)), []string{pickyIntent}, ""},
		"expressions":         {"all of them hold", choosyPods, pod(labelled("app", "vlm", "owner", "ada", "stage", "live")), []string{choosy}, ""},
		"no label to exclude": {"NotIn holds without the label", choosyPods, pod(labelled("app", "llm", "owner", "")), []string{choosy}, ""},
		"not in":              {"a value that In does not list", choosyPods, pod(labelled("app", "ocr", "owner", "ada")), nil, ""},
		"excluded":            {"a value that NotIn lists", choosyPods, pod(labelled("app", "llm", "owner", "ada", "stage", "old")), nil, ""},
		"absent":              {"a label that must exist does not", choosyPods, pod(labelled("app", "llm")), nil, ""},
		"present":             {"a label that must not exist does", choosyPods, pod(labelled("app", "llm", "owner", "ada", "debug", "")), nil, ""},
		"expressions, own":    {"and it cannot help itself", choosyPods, pod(labelled("app", "llm"), intent(choosy)), nil, "not granted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := api.CoreV1().Pods(tc.namespace).Create(ctx, tc.pod, metav1.CreateOptions{})
			if name == "operator Gt" {
				refused(t, err, "")
				return
			}
			if tc.refused != "" {
				refused(t, err, tc.refused)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if intents := intentsOf(got); !slices.Equal(intents, tc.want) {
				t.Errorf("%s: got intents %v, want %v", tc.reason, intents, tc.want)
			}
			for _, own := range tc.pod.Spec.Tolerations {
				if !slices.ContainsFunc(got.Spec.Tolerations, func(have corev1.Toleration) bool { return have.Key == own.Key && have.Value == own.Value }) {
					t.Errorf("%s: toleration %v was lost", tc.reason, own)
				}
			}
		})
	}
}

func labelled(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func waitForAccount(t *testing.T, api kubernetes.Interface, namespace string) {
	t.Helper()
	envtest.Eventually(t, "the ServiceAccount of "+namespace, func(ctx context.Context) bool {
		_, err := api.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// change applies a change to a pod as an update.
func change(t *testing.T, api kubernetes.Interface, p *corev1.Pod, edit func(*corev1.Pod)) error {
	t.Helper()
	live, err := api.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edit(live)
	_, err = api.CoreV1().Pods(p.Namespace).Update(t.Context(), live, metav1.UpdateOptions{})
	return err
}

func testPodsUpdated(t *testing.T, api kubernetes.Interface) {
	p, err := api.CoreV1().Pods(oneIntent).Create(t.Context(), pod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, change(t, api, p, intent(serveIntent)), "not granted")
	refused(t, change(t, api, p, blanket()), "without a key")
	if err := change(t, api, p, tolerates(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})); err != nil {
		t.Errorf("an unrelated toleration: %v", err)
	}
	if err := change(t, api, p, labelled("a", "b")); err != nil {
		t.Errorf("a label: %v", err)
	}
}

// Pods of an intent that was withdrawn live on and can be changed; new ones get
// nothing. It comes last: it changes the namespace.
func testIntentWithdrawn(t *testing.T, api kubernetes.Interface) {
	old, err := api.CoreV1().Pods(oneIntent).Create(t.Context(), pod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotate(t, api, oneIntent, map[string]any{v1alpha1.AnnotationIntents: ""})
	envtest.Eventually(t, "new pods to get no toleration", func(ctx context.Context) bool {
		got, err := api.CoreV1().Pods(oneIntent).Create(ctx, pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(intentsOf(got)) == 0
	})
	_, err = api.CoreV1().Pods(oneIntent).Create(t.Context(), pod(intent(trainIntent)), metav1.CreateOptions{})
	refused(t, err, "not granted")
	if err := change(t, api, old, labelled("still", "here")); err != nil {
		t.Errorf("an old pod cannot be changed: %v", err)
	}
}

func annotate(t *testing.T, api kubernetes.Interface, namespace string, annotations map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, text, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testExemptions: who is let past the toleration guard, and no more. The controllers'
// pods of a DaemonSet tolerate everything where they ask for no devices, and Liqo's own
// controller makes other clusters' pods with the tolerations that they have there.
func testExemptions(t *testing.T, cluster *env.Cluster, api kubernetes.Interface) {
	const controller, liqo = "system:serviceaccount:kube-system:daemon-set-controller", "system:serviceaccount:liqo:liqo-controller-manager"
	clients := map[string]kubernetes.Interface{}
	for _, name := range []string{controller, "system:kube-controller-manager", liqo, "mallory", "system:serviceaccount:liqo:liqo-webhook"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "pods-"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}
		if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		clients[name] = clientFor(t, as(t, cluster, name))
	}
	yes := true
	owned := func(kind string, controls *bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "d", UID: "7b3c2b9c-0000-4000-8000-000000000000", Controller: controls}}
		}
	}
	asks := func(where string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			gpus := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}, Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
			switch where {
			case "container":
				p.Spec.Containers[0].Resources = gpus
			case "init":
				p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "example.org/first", Resources: gpus}}
			case "claim":
				claim := "gpu"
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
			}
		}
	}
	envtest.Eventually(t, "the roles to be bound", func(ctx context.Context) bool {
		_, err := clients["mallory"].CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil
	})
	const reaches = "reaches the nodes of every intent"
	for name, tc := range map[string]struct {
		who     string
		pod     *corev1.Pod
		refused string
	}{
		"a DaemonSet's pod":                     {controller, pod(blanket(), owned("DaemonSet", &yes)), ""},
		"by the whole controller manager":       {"system:kube-controller-manager", pod(blanket(), owned("DaemonSet", &yes)), ""},
		"one that asks for a device":            {controller, pod(blanket(), owned("DaemonSet", &yes), asks("container")), reaches},
		"or in its first container":             {controller, pod(blanket(), owned("DaemonSet", &yes), asks("init")), reaches},
		"or by a claim":                         {controller, pod(blanket(), owned("DaemonSet", &yes), asks("claim")), reaches},
		"one that names an intent":              {controller, pod(intent(trainIntent), owned("DaemonSet", &yes)), "not granted"},
		"a pod that only names a DaemonSet":     {controller, pod(blanket(), owned("DaemonSet", nil)), reaches},
		"a pod of another kind":                 {controller, pod(blanket(), owned("ReplicaSet", &yes)), reaches},
		"somebody who says it is a DaemonSet's": {"mallory", pod(blanket(), owned("DaemonSet", &yes)), reaches},
		"Liqo, for another cluster":             {liqo, pod(blanket()), ""},
		"with an intent of there":               {liqo, pod(intent("theirs.train")), ""},
		"another account of Liqo":               {"system:serviceaccount:liqo:liqo-webhook", pod(blanket()), reaches},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clients[tc.who].CoreV1().Pods(unlabelled).Create(t.Context(), tc.pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil && len(got.Spec.ResourceClaims) < len(tc.pod.Spec.ResourceClaims) {
				return // an old server drops claims, so that the pod asks for nothing
			}
			if tc.refused != "" {
				refused(t, err, tc.refused)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func testDaemonSets(t *testing.T, api kubernetes.Interface) {
	set := func() *appsv1.DaemonSet {
		labels := map[string]string{"app": "d"}
		template := pod(func(p *corev1.Pod) { p.Labels = labels })
		return &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "d-"},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
			},
		}
	}
	_, err := api.AppsV1().DaemonSets(oneIntent).Create(t.Context(), set(), metav1.CreateOptions{})
	refused(t, err, "DaemonSets do not work")
	if _, err := api.AppsV1().DaemonSets(unlabelled).Create(t.Context(), set(), metav1.CreateOptions{}); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
	controller := true
	owned := func(controls *bool) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "7b3c2b9c-0000-4000-8000-000000000000", Controller: controls}}
		}
	}
	_, err = api.CoreV1().Pods(oneIntent).Create(t.Context(), pod(owned(&controller)), metav1.CreateOptions{})
	refused(t, err, "DaemonSets do not work")
	got, err := api.CoreV1().Pods(oneIntent).Create(t.Context(), pod(owned(nil)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || len(intentsOf(got)) != 0 {
		t.Errorf("a pod that names a DaemonSet: got %v, %v; want it without our toleration", intentsOf(got), err)
	}
}

// What the policies do not cover is RBAC's: a team's admin may not bind pods or
// write what the broker writes.
func testRoles(t *testing.T, cluster *env.Cluster, api kubernetes.Interface) {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ada", Namespace: oneIntent},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ada"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
	}
	if _, err := api.RbacV1().RoleBindings(oneIntent).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ada := clientFor(t, as(t, cluster, "ada"))
	allowed := func(a authorizationv1.ResourceAttributes) bool {
		review, err := ada.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	pods := authorizationv1.ResourceAttributes{Namespace: oneIntent, Verb: "create", Resource: "pods"}
	envtest.Eventually(t, "the role to be bound", func(context.Context) bool { return allowed(pods) })
	for name, a := range map[string]authorizationv1.ResourceAttributes{
		"bind pods":              {Namespace: oneIntent, Verb: "create", Resource: "pods", Subresource: "binding"},
		"patch the namespace":    {Namespace: oneIntent, Verb: "patch", Resource: "namespaces", Name: oneIntent},
		"patch the offloading":   {Namespace: oneIntent, Verb: "patch", Group: "offloading.liqo.io", Resource: "namespaceoffloadings"},
		"patch virtual nodes":    {Namespace: peering, Verb: "patch", Group: "offloading.liqo.io", Resource: "virtualnodes"},
		"patch admission policy": {Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	} {
		if allowed(a) {
			t.Errorf("a namespace's admin may %s", name)
		}
	}
}
