package delivery

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// handler turns watch events into dirty units and news.
func (w *worker) handler(c *conn, k kind) cache.ResourceEventHandler {
	if kinds[k].extra {
		return w.listener(k)
	}
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

// listener hears of objects that are never written: they are news, and nothing
// to do.
func (w *worker) listener(k kind) cache.ResourceEventHandler {
	was := func(obj any) string {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		u, _ := obj.(*unstructured.Unstructured)
		if u == nil {
			return ""
		}
		return extraNews(k, u)
	}
	changed := func(before, after string) {
		if before != after {
			w.bump()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed("", was(obj)) },
		UpdateFunc: func(old, obj any) { changed(was(old), was(obj)) },
		DeleteFunc: func(obj any) { changed(was(obj), "") },
	}
}
