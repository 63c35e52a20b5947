package env

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// GPUResource is the extended resource of NVIDIA's device plugin.
const GPUResource = corev1.ResourceName("nvidia.com/gpu")

// GPUNode describes a Node as a kubelet with NVIDIA's device plugin and GPU
// feature discovery would register it. Zero fields get the defaults named.
type GPUNode struct {
	Name string
	// GPUs is how many GPUs the node has; 0 makes a node without.
	GPUs int64
	// Product is the label nvidia.com/gpu.product, by default
	// NVIDIA-H100-80GB-HBM3; Family is nvidia.com/gpu.family, by default hopper.
	Product, Family string
	// MemoryMiB is one GPU's memory, by default 81559, what an H100 shows.
	MemoryMiB int64
	// CPU, Memory and EphemeralStorage are allocatable, by default 96, 1Ti
	// and 1Ti.
	CPU, Memory, EphemeralStorage string
	// Labels and Annotations are added, over those made from the above; Taints
	// are the node's.
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
	// Extended are further extended resources, for example MIG profiles.
	Extended map[corev1.ResourceName]int64
	// NotReady makes the node say that it is not ready.
	NotReady bool
	// KubeletHost and KubeletPort are where its kubelet answers for logs and
	// exec; by default nowhere.
	KubeletHost string
	KubeletPort int32
}

// CreateGPUNode makes a Node object and its status. No kubelet stands behind
// it: it stays as it is until somebody changes it.
func CreateGPUNode(ctx context.Context, config *rest.Config, spec GPUNode) (*corev1.Node, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	wanted, err := spec.node()
	if err != nil {
		return nil, fmt.Errorf("create node %s: %w", spec.Name, err)
	}
	node, err := client.CoreV1().Nodes().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create node %s: %w", spec.Name, err)
	}
	// Others may write to the node, too: kwok keeps it alive.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if node, err = client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		node.Status = wanted.Status
		if node, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("set the status of node %s: %w", spec.Name, err)
		}
		// Admission taints every new node as not ready, for the node lifecycle
		// controller to lift, which may be off.
		node.Spec.Taints = wanted.Spec.Taints
		if node, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("set the taints of node %s: %w", spec.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// node is the object that the description stands for.
func (n GPUNode) node() (*corev1.Node, error) {
	resources, err := n.resources()
	if err != nil {
		return nil, err
	}
	var addresses []corev1.NodeAddress
	if n.KubeletHost != "" {
		addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.KubeletHost}}
	}
	ready := corev1.ConditionTrue
	if n.NotReady {
		ready = corev1.ConditionFalse
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.labels(), Annotations: n.Annotations},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses:   addresses, DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: n.KubeletPort}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Declared"}},
			NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"},
		},
	}, nil
}

func (n GPUNode) resources() (corev1.ResourceList, error) {
	list := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI)}
	for name, value := range map[corev1.ResourceName]string{
		corev1.ResourceCPU:              orDefault(n.CPU, "96"),
		corev1.ResourceMemory:           orDefault(n.Memory, "1Ti"),
		corev1.ResourceEphemeralStorage: orDefault(n.EphemeralStorage, "1Ti"),
	} {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, value, err)
		}
		list[name] = quantity
	}
	if n.GPUs > 0 {
		list[GPUResource] = *resource.NewQuantity(n.GPUs, resource.DecimalSI)
	}
	for name, count := range n.Extended {
		list[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list, nil
}

// labels are those of kubelet and, on a node with GPUs, of GPU feature
// discovery (NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery).
func (n GPUNode) labels() map[string]string {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	if n.GPUs > 0 {
		memory := n.MemoryMiB
		if memory == 0 {
			memory = 81559
		}
		labels["nvidia.com/gpu.present"] = "true"
		labels["nvidia.com/gpu.product"] = orDefault(n.Product, "NVIDIA-H100-80GB-HBM3")
		labels["nvidia.com/gpu.family"] = orDefault(n.Family, "hopper")
		labels["nvidia.com/gpu.count"] = strconv.FormatInt(n.GPUs, 10)
		labels["nvidia.com/gpu.memory"] = strconv.FormatInt(memory, 10)
		labels["nvidia.com/gpu.replicas"] = "1"
		labels["nvidia.com/mig.capable"] = "true"
		labels["nvidia.com/mig.strategy"] = "none"
	}
	maps.Copy(labels, n.Labels)
	return labels
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// RunPod makes a Pod that is bound to a node and says that it is running, with
// one container that requests the given resources.
func RunPod(ctx context.Context, config *rest.Config, namespace, name, node string, requests corev1.ResourceList) (*corev1.Pod, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	limits := corev1.ResourceList{}
	for key, quantity := range requests {
		// An extended resource (its name has a domain) must be limited to
		// what is requested of it.
		if strings.Contains(string(key), "/") {
			limits[key] = quantity
		}
	}
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name:      "main",
				Image:     "example.org/none",
				Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("run pod %s/%s: %w", namespace, name, err)
	}
	pod.Status.Phase = corev1.PodRunning
	if pod, err = client.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("set pod %s/%s running: %w", namespace, name, err)
	}
	return pod, nil
}
