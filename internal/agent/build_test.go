package agent

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// epoch is when the first node of a test was created.
var epoch = metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

// quantities reads "cpu=4 memory=8Gi".
func quantities(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, pair := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(pair, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return out
}

type nodeOption func(*corev1.Node)

// node is a ready one with capacity and allocatable alike.
func node(name, resources string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: epoch, Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Status.Capacity, n.Status.Allocatable = quantities(resources), quantities(resources)
	n.Status.NodeInfo.Architecture = "amd64"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, option := range options {
		option(n)
	}
	return n
}

func labelled(key, value string) nodeOption { return func(n *corev1.Node) { n.Labels[key] = value } }
func annotated(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}
func pool(name string) nodeOption { return labelled(labelPool, name) }
func cordoned(n *corev1.Node)     { n.Spec.Unschedulable = true }
func notReady(n *corev1.Node)     { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func deleting(n *corev1.Node)     { now := epoch; n.DeletionTimestamp = &now }
func younger(hours int) nodeOption {
	return func(n *corev1.Node) {
		n.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(hours) * time.Hour))
	}
}

// h100 are the labels of GPU feature discovery on an eight-way H100 node.
func h100(n *corev1.Node) {
	for key, value := range map[string]string{
		"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "8",
		"nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0",
		"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none",
	} {
		n.Labels[key] = value
	}
}

type podOption func(*corev1.Pod)

// pod is a running one with a container of these requests.
func pod(name, onNode, requests string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{}}}
	p.Spec.NodeName = onNode
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: quantities(requests)}}}
	p.Status.Phase = corev1.PodRunning
	for _, option := range options {
		option(p)
	}
	return p
}

func phase(phase corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func initial(requests string, sidecar bool) podOption {
	return func(p *corev1.Pod) {
		c := corev1.Container{Name: fmt.Sprint("init", len(p.Spec.InitContainers)), Resources: corev1.ResourceRequirements{Requests: quantities(requests)}}
		if sidecar {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

func overhead(resources string) podOption {
	return func(p *corev1.Pod) { p.Spec.Overhead = quantities(resources) }
}

// offloaded is a pod of another cluster, as Liqo makes it for a slice's user.
func offloaded(user, nodeName string) podOption {
	return func(p *corev1.Pod) {
		p.Labels[labelOrigin], p.Labels[labelOriginNode] = "rome", nodeName
		p.Labels[labelLiqoManaged] = liqoManagedShadow
		if user != "" {
			p.Labels[labelCreator] = user
		}
	}
}

// quota is Liqo's for a slice of the consumer in whose tenant namespace it lies.
func quota(namespace, slice, resources string) *offloadingv1beta1.Quota {
	user := slice + "-ca3704aa0b06"
	return &offloadingv1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{{Kind: "ResourceSlice", Name: slice}}},
		Spec:       offloadingv1beta1.QuotaSpec{User: user, Resources: quantities(resources)},
	}
}

type sliceOption func(*authv1beta1.ResourceSlice)

// accepted is the provider's copy of a slice, granted.
func accepted(namespace, name, resources string, options ...sliceOption) *authv1beta1.ResourceSlice {
	s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{labelReplicated: "true"}, Annotations: map[string]string{}}}
	s.Status.Resources = quantities(resources)
	s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{Type: authv1beta1.ResourceSliceConditionTypeResources, Status: authv1beta1.ResourceSliceConditionAccepted}}
	for _, option := range options {
		option(s)
	}
	return s
}

// draw writes flavors down, one figure a line.
func draw(flavors []v1alpha1.Flavor) string {
	var out strings.Builder
	for _, f := range flavors {
		fmt.Fprintf(&out, "%s", f.Ref())
		if g := f.Spec.GPU; g != nil {
			fmt.Fprintf(&out, " %s %s %s/%d", g.Model, g.Memory.Canonical(v1alpha1.Memory), g.ResourceName, g.UnitsPerGPU)
		}
		if f.Spec.Pool != "" {
			fmt.Fprintf(&out, " pool=%s", f.Spec.Pool)
		}
		if f.Spec.Cordon {
			out.WriteString(" cordoned")
		}
		fmt.Fprintf(&out, "\n  capacity %s\n", figures(f.Spec.Capacity))
		if used := figures(f.Spec.Used); used != "" {
			fmt.Fprintf(&out, "  used %s\n", used)
		}
		names := make([]string, 0, len(f.Spec.Held))
		for name := range f.Spec.Held {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Fprintf(&out, "  held %s %s\n", name, figures(f.Spec.Held[name]))
		}
	}
	return out.String()
}

func figures(r v1alpha1.Resources) string {
	var out []string
	for _, name := range r.Names() {
		if !r[name].IsZero() {
			out = append(out, name+"="+r[name].Canonical(name))
		}
	}
	return strings.Join(out, " ")
}

// collect is a first Collect of the cluster paris.
func collect(t *testing.T, s State) []v1alpha1.Flavor {
	t.Helper()
	s.Cluster = "paris"
	flavors, _, problems := Collect(s, Memory{})
	for _, p := range problems {
		t.Error("problem:", p)
	}
	return flavors
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	want = strings.TrimLeft(want, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
