package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/drains"
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
			for _, pod := range drains.Left(ctx, c.clientset, c.call, u.GetName()) {
				if overdue[slice] && w.mayWrite() {
					pod.Text += w.force(ctx, c, pod)
				}
				now[slice] = append(now[slice], pod.Text)
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
func (w *worker) force(ctx context.Context, c *conn, pod drains.Pod) string {
	err := c.call(ctx, func(ctx context.Context) error {
		return c.clientset.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return "; the grace is over and it cannot be deleted: " + explain(err).Error()
	}
	w.log.Info("pod is deleted past its budgets: the grace of its contract's release is over", "pod", pod.Namespace+"/"+pod.Name)
	return "; deleted, the grace is over"
}

// endUnpruned deletes, beside Argo CD, the virtual nodes of contracts that are released
// which it does not prune (package drains). Each is deleted by its uid and at most once:
// daemons that lead nothing here may all do it. Why one stays goes into troubles.
func (w *worker) endUnpruned(ctx context.Context, c *conn, troubles map[key]string) error {
	var failures []error
	confirmed := false
	for name, want := range w.desired.contracts {
		unit := key{Kind: kindContract, Name: name}
		d := w.keepLast(c, unit, decision{steps: w.unpruned(c, unit, want)})
		if d.trouble != "" {
			troubles[unit] = d.trouble
		}
		if len(d.steps) == 0 {
			continue
		}
		if !confirmed {
			if err := w.confirm(ctx, []work{{unit: unit, origin: drift}}); err != nil {
				return err
			}
			confirmed = true
		}
		if err := c.carryOut(ctx, d.steps); err != nil {
			troubles[unit] = err.Error()
			if failures = append(failures, err); hopeless(failures) {
				break
			}
			continue
		}
		w.log.Info("virtual node of a release is deleted: Argo CD prunes nothing that has an owner", "slice", name)
	}
	return errors.Join(failures...)
}

// unpruned are the steps that end what Argo CD leaves of a contract whose release the
// ledger states.
func (w *worker) unpruned(c *conn, unit key, want contractWant) []step {
	if want.slice == nil || len(want.nodes) > 0 {
		return nil
	}
	nodes := slices.DeleteFunc(c.every(kindVirtualNode, unit.Name), c.others)
	var out []step
	for _, node := range drains.Unpruned(want.slice.u.GetLabels()[v1alpha1.LabelContract], c.own(want.slice.key), nodes) {
		out = append(out, deletion(kindVirtualNode, node))
	}
	return out
}
