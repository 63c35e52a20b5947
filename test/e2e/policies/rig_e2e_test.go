//go:build e2e

package policies

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// Namespaces of the tests: one with one intent, one with two, two whose intent
// is for some pods only, by labels and by expressions.
const (
	oneIntent   = "vision"
	twoIntents  = "shared"
	somePods    = "picky"
	choosyPods  = "choosy"
	unlabelled  = "elsewhere"
	peering     = "liqo-tenant-paris"
	trainIntent = "vision.train"
	serveIntent = "vision.serve"
	pickyIntent = "vision.picky"
	choosy      = "vision.choosy"
)

// remoteArgo is the account that an Argo CD of another cluster makes for itself
// here.
const remoteArgo = "system:serviceaccount:kube-system:argocd-manager"

func contract(intent string, namespaces ...v1alpha1.OffloadNamespace) *v1alpha1.Contract {
	return &v1alpha1.Contract{
		Metadata: v1alpha1.Metadata{Name: "vision-" + intent + "-0-aaaa", Namespace: "vision"},
		Spec: v1alpha1.ContractSpec{
			Intent: v1alpha1.ContractIntent{Name: intent}, Consumer: "rome", Provider: "paris",
			Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1000), "nvidia.com/gpu": v1alpha1.AmountOf(1)},
			Offload:   &v1alpha1.Offload{Namespaces: namespaces},
		},
		Status: v1alpha1.ContractStatus{Phase: v1alpha1.PhaseActive},
	}
}

func made(name string) v1alpha1.OffloadNamespace {
	return v1alpha1.OffloadNamespace{Name: name, Create: true, PodOffloadingStrategy: "Remote"}
}

// render writes the manifests of the tests' contracts to a directory and
// returns that of consumer rome.
func render(t *testing.T, form string) string {
	t.Helper()
	picky := made(somePods)
	picky.PodSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "llm", "tier": "gpu"}}
	expressions := made(choosyPods)
	expressions.PodSelector = &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelExpression{
		{Key: "app", Operator: "In", Values: []string{"llm", "vlm"}}, {Key: "stage", Operator: "NotIn", Values: []string{"trial", "old"}},
		{Key: "owner", Operator: "Exists"}, {Key: "debug", Operator: "DoesNotExist"},
	}}
	ix := manifests.NewIndex([]*v1alpha1.Contract{
		contract("train", made(oneIntent), made(twoIntents)),
		contract("serve", made(twoIntents)),
		contract("picky", picky),
		contract("choosy", expressions),
	})
	facts := &manifests.Facts{Fleet: "f3k9q2abu7", Clusters: map[string]*v1alpha1.Cluster{"rome": {
		Metadata: v1alpha1.Metadata{Name: "rome"}, Spec: v1alpha1.ClusterSpec{Deliverers: []string{remoteArgo, "ci@example.org"}, Admission: form},
	}}}
	out, err := facts.All(ix)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, text := range out.Files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, manifests.Dir("rome"))
}

// start starts a consumer with the rendered manifests applied and the policies
// in force.
func start(t *testing.T, options env.ClusterOptions) *env.Cluster {
	t.Helper()
	return startIn(t, v1alpha1.AdmissionV1, options)
}

// startIn is start in a form of admission.
func startIn(t *testing.T, form string, options env.ClusterOptions) *env.Cluster {
	t.Helper()
	cluster := envtest.Cluster(t, options)
	if err := env.InstallLiqoCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), render(t, form), "apply", "--server-side", "-k", "."); err != nil {
		t.Fatal(err)
	}
	ownersIn(t, form, cluster)
	api := clientFor(t, cluster.Config)
	if _, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unlabelled}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if options.ControllerManager {
		for _, ns := range []string{oneIntent, twoIntents, somePods, choosyPods, unlabelled} {
			envtest.Eventually(t, "the ServiceAccount of "+ns, func(ctx context.Context) bool {
				_, err := api.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
				return err == nil
			})
		}
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	last(t, api)
	envtest.Eventually(t, "the policies to be in force", func(ctx context.Context) bool {
		_, err := api.CoreV1().Pods(oneIntent).Create(ctx, pod(blanket()), dryRun)
		got, mutated := api.CoreV1().Pods(oneIntent).Create(ctx, pod(), dryRun)
		return apierrors.IsForbidden(err) && mutated == nil && len(intentsOf(got)) == 1
	})
	return cluster
}

// last makes a policy, and waits until it is in force: the API server takes policies over in
// the order in which they were made, so that all those before are then too.
func last(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	policies := api.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "last"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{ResourceNames: []string{"last"}, RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "last"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	envtest.Eventually(t, "the last policy to be in force", func(ctx context.Context) bool {
		_, err := api.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: policy.ObjectMeta}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "last")
	})
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// as is a client for somebody else.
func as(t *testing.T, cluster *env.Cluster, user string, groups ...string) *rest.Config {
	t.Helper()
	config, err := cluster.ConfigFor(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func pod(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func tolerates(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func blanket() func(*corev1.Pod) {
	return tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})
}

// intent tolerates an intent as the broker writes it.
func intent(value string) func(*corev1.Pod) {
	return tolerates(corev1.Toleration{Key: v1alpha1.TaintIntent, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule})
}

// intentsOf lists the intents that a pod tolerates in full.
func intentsOf(p *corev1.Pod) []string {
	var out []string
	for _, t := range p.Spec.Tolerations {
		if t.Key == v1alpha1.TaintIntent && t.Effect == corev1.TaintEffectNoSchedule {
			out = append(out, t.Value)
		}
	}
	return out
}

// refused checks that an error is a refusal that says text.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("got no error, want a refusal with %q", text)
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err):
		t.Errorf("got %v, want a refusal", err)
	case !strings.Contains(err.Error(), text):
		t.Errorf("got %v, want it to say %q", err, text)
	}
}
