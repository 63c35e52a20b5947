//go:build e2e

package install

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// TestPodsAreAdmittedAsRestricted: the pods of the bases pass Pod
// Security's strictest level on a real API server, each lock taken away is
// noticed there, and what keeps them available is about them.
func TestPodsAreAdmittedAsRestricted(t *testing.T) {
	home := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	for _, b := range []string{"broker", "consumer", "provider", "agent"} {
		out, err := home.Kubectl(t.Context(), ".", "apply", "-k", base+"/"+b)
		if err != nil {
			t.Fatalf("apply install/%s: %v\n%s", b, err, out)
		}
		if strings.Contains(out, "Warning") {
			t.Errorf("apply install/%s: %s", b, out)
		}
	}
	api, err := kubernetes.NewForConfig(home.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fleetbroker", "fleet-agent"} {
		t.Run(name, func(t *testing.T) {
			d := workload(t, api, name)
			admitted(t, api, d)
			available(t, api, d)
			locked(t, &d.Spec.Template.Spec)
		})
	}
}

// workload is a Deployment of the base, or its StatefulSet with the claims that its
// pods get.
func workload(t *testing.T, api kubernetes.Interface, name string) *appsv1.Deployment {
	t.Helper()
	if name != "fleetbroker" {
		d, err := api.AppsV1().Deployments("fleetbroker").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	s, err := api.AppsV1().StatefulSets("fleetbroker").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template := s.Spec.Template.DeepCopy()
	for _, claim := range s.Spec.VolumeClaimTemplates {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + name + "-0"},
		}})
	}
	return &appsv1.Deployment{ObjectMeta: s.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: s.Spec.Replicas, Selector: s.Spec.Selector, Template: *template}}
}

// admitted creates the workload's pod, and ones with a lock less, without
// keeping them.
func admitted(t *testing.T, api kubernetes.Interface, d *appsv1.Deployment) {
	t.Helper()
	create := func(change func(*corev1.PodSpec)) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try", Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
		change(&pod.Spec)
		_, err := api.CoreV1().Pods(d.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create(func(*corev1.PodSpec) {}); err != nil {
		t.Errorf("the workload's pod: %v", err)
	}
	yes := true
	for name, change := range map[string]func(*corev1.PodSpec){
		"as root":         func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"without seccomp": func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"with escalation": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
		"with abilities":  func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
		"on the host":     func(s *corev1.PodSpec) { s.HostNetwork = true },
	} {
		if err := create(change); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
			t.Errorf("a pod %s: %v; want it refused by Pod Security", name, err)
		}
	}
}

// available holds what keeps a program running while nodes are drained.
func available(t *testing.T, api kubernetes.Interface, d *appsv1.Deployment) {
	t.Helper()
	if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
		t.Errorf("%v replicas", d.Spec.Replicas)
	}
	budget, err := api.PolicyV1().PodDisruptionBudgets(d.Namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := api.NetworkingV1().NetworkPolicies(d.Namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, selector := range map[string]*metav1.LabelSelector{"PodDisruptionBudget": budget.Spec.Selector, "NetworkPolicy": &policy.Spec.PodSelector} {
		chosen, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if chosen.Empty() || !chosen.Matches(labelsOf(d.Spec.Template.Labels)) {
			t.Errorf("the %s is not about the pods of %s", what, d.Name)
		}
	}
	if len(policy.Spec.PolicyTypes) != 2 {
		t.Errorf("the NetworkPolicy is about %v only", policy.Spec.PolicyTypes)
	}
	c := d.Spec.Template.Spec.Containers[0]
	for what, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			t.Errorf("no %s probe by HTTP", what)
			continue
		}
		if port := probe.HTTPGet.Port.String(); !hasPort(c, port) {
			t.Errorf("the %s probe asks port %s, which the container does not name", what, port)
		}
	}
}

type labelsOf map[string]string

func (l labelsOf) Has(k string) bool              { _, ok := l[k]; return ok }
func (l labelsOf) Get(k string) string            { return l[k] }
func (l labelsOf) Lookup(k string) (string, bool) { v, ok := l[k]; return v, ok }

func hasPort(c corev1.Container, name string) bool {
	for _, p := range c.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

// locked holds what Pod Security does not ask for.
func locked(t *testing.T, s *corev1.PodSpec) {
	t.Helper()
	c := s.Containers[0]
	if ro := c.SecurityContext.ReadOnlyRootFilesystem; ro == nil || !*ro {
		t.Error("the root filesystem can be written")
	}
	if s.SecurityContext.RunAsUser == nil || *s.SecurityContext.RunAsUser == 0 {
		t.Error("the user is not said")
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources are %v", c.Resources)
	}
	for _, v := range s.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is the host's", v.Name)
		}
	}
}
