package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// drainInterval is how often a Node that is drained is looked at: Liqo says
// what holds it up only in its log.
const drainInterval = 2 * time.Second

// watchDrains keeps what is left on Nodes whose virtual node is on its way out,
// while there are any.
func (w *worker) watchDrains(ctx context.Context, c *conn) {
	ticker := w.options.Clock.NewTicker(drainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if ok, _ := c.synced(); !ok {
			continue
		}
		now := map[string][]string{}
		overdue := w.overdue()
		for _, obj := range c.informers[kindVirtualNode].GetStore().List() {
			u := obj.(*unstructured.Unstructured)
			if !terminating(u) || c.others(u) {
				continue
			}
			slice := liveKey(kindVirtualNode, u).unit().Name
			for _, pod := range c.blockers(ctx, u.GetName()) {
				if overdue[slice] && w.mayWrite() {
					pod.text += w.force(ctx, c, pod)
				}
				now[slice] = append(now[slice], pod.text)
			}
		}
		for _, list := range now {
			slices.Sort(list)
		}
		maps.DeleteFunc(now, func(_ string, list []string) bool { return len(list) == 0 })
		w.mu.Lock()
		changed := !maps.EqualFunc(now, w.blockers, slices.Equal[[]string])
		w.blockers = now
		w.mu.Unlock()
		if changed {
			w.bump()
		}
	}
}

// overdue are the slices of contracts whose release has taken as long as their
// intent's grace.
func (w *worker) overdue() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]bool{}
	for _, c := range w.target.Contracts {
		if grace := c.Spec.Grace.Duration; c.Status.Phase == v1alpha1.PhaseReleasing && grace > 0 && w.options.Clock.Since(c.Status.Since.Time) >= grace {
			out[manifests.SliceName(c)] = true
		}
	}
	return out
}

// force deletes a pod that its budget keeps past the grace: it gets its own
// termination grace period, and no more. It says what became of that.
func (w *worker) force(ctx context.Context, c *conn, pod leftPod) string {
	err := c.call(ctx, func(ctx context.Context) error {
		return c.clientset.CoreV1().Pods(pod.namespace).Delete(ctx, pod.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.uid}})
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return "; the grace is over and it cannot be deleted: " + explain(err).Error()
	}
	w.log.Info("pod is deleted past its budgets: the grace of its contract's release is over", "pod", pod.namespace+"/"+pod.name)
	return "; deleted, the grace is over"
}

// leftPod is a pod that is left on a Node that is drained.
type leftPod struct {
	namespace, name string
	uid             types.UID
	// text names it and what keeps it.
	text string
}

// blockers are the pods that are left on a Node, each with the
// PodDisruptionBudget that allows no eviction. An account that may not read
// them sees none.
func (c *conn) blockers(ctx context.Context, node string) []leftPod {
	var pods *corev1.PodList
	err := c.call(ctx, func(ctx context.Context) (err error) {
		pods, err = c.clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		return err
	})
	if err != nil {
		return nil
	}
	budgets := map[string][]policyv1.PodDisruptionBudget{}
	var out []leftPod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
			continue // Liqo's drain does not count them
		}
		list, known := budgets[pod.Namespace]
		if !known {
			_ = c.call(ctx, func(ctx context.Context) error { // without the right there is only less to tell
				all, err := c.clientset.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
				if err == nil {
					list = all.Items
				}
				return err
			})
			budgets[pod.Namespace] = list
		}
		out = append(out, leftPod{pod.Namespace, pod.Name, pod.UID, "pod " + pod.Namespace + "/" + pod.Name + heldBy(pod, list)})
	}
	return out
}

// heldBy names the budget that allows no eviction of a pod, "" for none.
func heldBy(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) string {
	for i := range budgets {
		b := &budgets[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Status.DisruptionsAllowed > 0 || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		return " (PodDisruptionBudget " + b.Name + " allows no disruption)"
	}
	return ""
}
