package delivery

import (
	"time"

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
		w.lookAgain(live)
		if news {
			w.news()
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

// maxMarks bounds the units that events have looked at: names may come and go without end while
// nobody may write. A cluster that is within its bounds has fewer.
const maxMarks = 100_000

// lookAgain has the unit of an object looked at, and those that may wait for it.
func (w *worker) lookAgain(live key) {
	w.mu.Lock()
	if unit := live.unit(); len(w.dirty) < maxMarks {
		w.markLocked(unit)
	} else if _, ok := w.dirty[unit]; !ok {
		w.loaded = 0 // everything is looked at
	}
	if live.unit().Kind == kindContract || live.Kind == kindOffloading || live.Kind == kindNamespace {
		for unit := range w.waiting {
			w.markLocked(unit)
		}
	}
	w.mu.Unlock()
	w.nudge()
}

// lapse has everything looked at again that was judged by an answer which no
// watch has shown since.
func (w *worker) lapse(c *conn) {
	for _, k := range c.lapse() {
		w.lookAgain(k)
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

// newsPatience is how long news waits for the pass that causes it.
const newsPatience = time.Second

// news tells that the cluster may say something else. While a pass writes that is
// said once a second, and when it ends: each object that comes up would have a
// round planned otherwise, and status written for a few contracts at a time.
func (w *worker) news() {
	w.mu.Lock()
	held := w.holding
	w.held = w.held || held
	w.mu.Unlock()
	if !held {
		w.bump()
	}
}

// holdNews holds news back until its result is called, by who then bumps.
func (w *worker) holdNews() (release func()) {
	w.mu.Lock()
	w.holding, w.held = true, false
	w.mu.Unlock()
	ticker := w.options.Clock.NewTicker(newsPatience)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C():
			}
			w.mu.Lock()
			held := w.held
			w.held = false
			w.mu.Unlock()
			if held {
				w.bump()
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		w.mu.Lock()
		w.holding = false
		w.mu.Unlock()
	}
}
