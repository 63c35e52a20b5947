package delivery

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// handler turns watch events into dirty units and news.
func (w *worker) handler(c *conn, k kind) cache.ResourceEventHandler {
	event := func(u *unstructured.Unstructured, deleted, news bool) {
		live := liveKey(k, u)
		c.seen(live, u, deleted)
		w.mu.Lock()
		w.markLocked(live.unit())
		if live.unit().Kind == kindContract || k == kindOffloading || k == kindNamespace {
			for unit := range w.waiting {
				w.markLocked(unit)
			}
		}
		w.mu.Unlock()
		w.nudge()
		if news {
			w.bump()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { event(obj.(*unstructured.Unstructured), false, tells(k)) },
		UpdateFunc: func(old, obj any) {
			before, after := old.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
			event(after, false, tells(k) && summary(k, before) != summary(k, after))
		},
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if u, ok := obj.(*unstructured.Unstructured); ok {
				event(u, true, tells(k))
			}
		},
	}
}
