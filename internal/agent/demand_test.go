package agent

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// waiting is a pod that the scheduler found no room for.
func waiting(name string, intents ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "vision"}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}
	for _, i := range intents {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: v1alpha1.TaintIntent, Value: i})
	}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

func on(node string, p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = node, corev1.PodRunning, nil
	return p
}

func TestDemand(t *testing.T) {
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vision-serve-0", Labels: map[string]string{labelLiqoType: liqoVirtual}}}
	idle := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vision-serve-1", Labels: virtual.Labels}}
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	daemon := on("vision-serve-1", waiting("proxy"))
	yes := true
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
	gated := waiting("gated", "vision.serve")
	gated.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
	leaving := waiting("leaving", "vision.serve")
	leaving.DeletionTimestamp = &metav1.Time{}
	ended := on("vision-serve-1", waiting("ended", "vision.serve"))
	ended.Status.Phase = corev1.PodSucceeded
	s := State{
		Nodes: []*corev1.Node{virtual, idle, own},
		Pods: []*corev1.Pod{
			waiting("a", "vision.serve"), waiting("b", "vision.serve"), waiting("c", "vision.train", "vision.serve"),
			waiting("nobody's"), gated, leaving, daemon, ended,
			on("vision-serve-0", waiting("d", "vision.serve")), on("worker", waiting("e")),
		},
	}
	for i, p := range s.Pods { // as the cache keeps them
		slim, err := slimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		s.Pods[i] = slim.(*corev1.Pod)
	}
	each := v1alpha1.Resources{"nvidia.com/gpu": v1alpha1.AmountOf(2), v1alpha1.Pods: v1alpha1.AmountOf(1)}
	want := &v1alpha1.Demand{
		Pending: []v1alpha1.PendingPods{
			{Namespace: "vision", Intents: []string{"vision.serve", "vision.train"}, Requests: each, Pods: 1},
			{Namespace: "vision", Intents: []string{"vision.serve"}, Requests: each, Pods: 2},
		},
		Nodes: map[string]int64{"vision-serve-0": 1, "vision-serve-1": 0},
	}
	if got := Demand(s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := Demand(State{Nodes: []*corev1.Node{own}, Pods: []*corev1.Pod{on("worker", waiting("e"))}}); got != nil {
		t.Errorf("a cluster that consumes nothing reports %+v", got)
	}
}

func TestPendingPodsMatter(t *testing.T) {
	before := waiting("a", "vision.serve")
	before.Status.Conditions = nil
	if !matters(before, waiting("a", "vision.serve")) || !matters(waiting("a", "vision.serve"), on("n", waiting("a", "vision.serve"))) {
		t.Error("a pod that begins or ends to wait changes nothing")
	}
	if matters(waiting("a", "vision.serve"), waiting("a", "vision.serve")) {
		t.Error("a pod that waits on is news")
	}
}
