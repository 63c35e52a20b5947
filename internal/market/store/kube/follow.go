package kube

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// pageSize is how many objects a list is read by: one may have some hundred
// kilobytes.
const pageSize = 100

// Watch implements store.API.
func (a *API) Watch(ctx context.Context, w store.Watcher) error {
	all := &following{watcher: w}
	ads := &follower{
		all: all, list: func() client.ObjectList { return &marketcrd.AdvertisementList{} },
		tell: func(o any) { w.Advertisement(o.(*marketcrd.Advertisement)) }, //nolint:forcetypeassert // a reflector lets no other through
		gone: w.AdvertisementGone,
	}
	seen := &follower{
		all: all, list: func() client.ObjectList { return &marketcrd.ObservationList{} },
		tell: func(o any) { w.Observation(o.(*marketcrd.Observation)) }, //nolint:forcetypeassert // as above
		gone: w.ObservationGone,
	}
	beats := &follower{
		all: all, list: func() client.ObjectList { return &marketcrd.HeartbeatList{} },
		tell: func(o any) { w.Heartbeat(o.(*marketcrd.Heartbeat)) }, //nolint:forcetypeassert // as above
		gone: w.HeartbeatGone,
	}
	all.followers = []*follower{ads, seen, beats}
	for ctx.Err() == nil {
		a.follow(ctx, ads, seen, beats)
		for _, f := range all.followers {
			if f.begins(); ctx.Err() == nil {
				f.broken(errAgain)
			}
		}
	}
	return nil
}

// errAgain is why a watch is interrupted that begins again.
var errAgain = errors.New("all is listed again")

// follow lists and watches all kinds until the context ends, or Again.
func (a *API) follow(ctx context.Context, ads, seen, beats *follower) {
	turn, end := context.WithCancel(ctx)
	defer end()
	var wait sync.WaitGroup
	// A reflector that has ended forgets which version it followed.
	wait.Go(func() { a.reflector("advertisements", &marketcrd.Advertisement{}, ads).RunWithContext(turn) })
	wait.Go(func() { a.reflector("observations", &marketcrd.Observation{}, seen).RunWithContext(turn) })
	wait.Go(func() { a.reflector("heartbeats", &marketcrd.Heartbeat{}, beats).RunWithContext(turn) })
	select {
	case <-ctx.Done():
	case <-a.again:
	}
	end()
	wait.Wait()
}

// Again implements store.API.
func (a *API) Again() {
	select {
	case a.again <- struct{}{}:
	default:
	}
}

// reflector lists and follows one kind.
func (a *API) reflector(name string, object client.Object, f *follower) *cache.Reflector {
	r := cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := f.list()
			err := a.client.List(ctx, list, &client.ListOptions{Namespace: a.namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue})
			if err != nil {
				f.broken(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				f.begins()
			}
			events, err := a.client.Watch(ctx, f.list(), &client.ListOptions{Namespace: a.namespace, Raw: &o})
			if err != nil {
				f.broken(err)
				return nil, err
			}
			f.watches()
			return watched(events, f), nil
		},
	}, object, f, cache.ReflectorOptions{Name: "market " + name, MinWatchTimeout: 5 * time.Minute})
	r.WatchListPageSize = pageSize
	return r
}

// watched tells a follower when a watch ends.
func watched(w watch.Interface, f *follower) watch.Interface {
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if e.Type == watch.Error {
			f.broken(apiStatus(e.Object))
		}
		return e, true
	})
}

// apiStatus is the error that a watch gave.
func apiStatus(o runtime.Object) error {
	if s, ok := o.(*metav1.Status); ok {
		return errors.New(s.Message)
	}
	return errors.New("the watch ended with an error")
}

// following joins the followers of all kinds.
type following struct {
	watcher   store.Watcher
	mu        sync.Mutex
	followers []*follower
}

// follower is a reflector's store: it keeps nothing, and hands on.
type follower struct {
	all  *following
	list func() client.ObjectList
	tell func(any)
	gone func(name string)
	// names of the objects that were handed on; the reflector's goroutine alone uses it.
	names map[string]bool

	// told: what there was when following began has been handed on; watching: the
	// watch is alive. The lock of following guards both.
	told, watching bool
}

func (f *follower) begins() {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.told = false
}

func (f *follower) watches() {
	f.all.mu.Lock()
	f.watching = true
	f.all.mu.Unlock()
	f.all.settle()
}

func (f *follower) broken(err error) {
	f.all.mu.Lock()
	f.watching = false
	f.all.mu.Unlock()
	f.all.watcher.Broken(err)
}

// settle says that all is there when it is.
func (a *following) settle() {
	a.mu.Lock()
	synced := true
	for _, f := range a.followers {
		synced = synced && f.told && f.watching
	}
	a.mu.Unlock()
	if synced {
		a.watcher.Synced()
	}
}

// hand hands an object on; of its managed fields remains who wrote it last, if that is
// another account.
func (f *follower) hand(o any) error {
	if object, ok := o.(client.Object); ok {
		object.SetManagedFields(store.Foreign(object.GetManagedFields()))
		if f.names == nil {
			f.names = map[string]bool{}
		}
		f.names[object.GetName()] = true
	}
	f.tell(o)
	return nil
}

// Add implements cache.ReflectorStore.
func (f *follower) Add(o any) error { return f.hand(o) }

// Update implements cache.ReflectorStore.
func (f *follower) Update(o any) error { return f.hand(o) }

// Delete implements cache.ReflectorStore.
func (f *follower) Delete(o any) error {
	if object, ok := o.(client.Object); ok {
		delete(f.names, object.GetName())
		f.gone(object.GetName())
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *follower) Replace(list []any, _ string) error {
	before := f.names
	f.names = map[string]bool{}
	for _, o := range list {
		if err := f.hand(o); err != nil {
			return err
		}
	}
	for name := range before {
		if !f.names[name] {
			f.gone(name)
		}
	}
	f.all.mu.Lock()
	f.told = true
	f.all.mu.Unlock()
	f.all.settle()
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *follower) Resync() error { return nil }
