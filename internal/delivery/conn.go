package delivery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/fleetbroker/fleetbroker/internal/delivery/bulk"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/versions"
	"github.com/fleetbroker/fleetbroker/internal/delivery/watches"
)

// byUnit finds the objects of a contract, whose namespace is not known, byNode
// the pods on a Node.
const (
	byUnit = "unit"
	byNode = "node"
)

// watchesLonger is by how much watches last longer than the library's five to
// ten minutes: opening them anew would be every other request to an idle
// cluster. A dead connection is noticed by its pings.
const watchesLonger = 4

// dialTimeout bounds reaching a cluster, before any call's own timeout.
const dialTimeout = 5 * time.Second

// conn is one connection to a cluster: clients and informers. It is made anew
// when credentials change.
type conn struct {
	config    *rest.Config
	dynamic   dynamic.Interface
	clientset kubernetes.Interface
	informers map[kind]cache.SharedIndexInformer
	bounds    bulk.Bounds
	watches   watches.State
	manager   string // of the fields that are applied
	// foreign reports whether an object is another fleet's; nil: none is.
	foreign func(*unstructured.Unstructured) bool
	// gvrs are how kinds are served; missing are those that the cluster does not serve.
	gvrs    map[kind]schema.GroupVersionResource
	missing []kind
	timeout time.Duration
	clock   clock.PassiveClock
	// answered is when the cluster last did what it was asked, in nanoseconds
	// since 1970; doubt is told when a call had no answer.
	answered atomic.Int64
	doubt    chan struct{}

	mu sync.Mutex
	// written are objects as calls answered them, until a watch shows them.
	written map[key]writtenObject
	// writtenOf are the written objects of a kind that belong to a unit.
	writtenOf map[key][]key
}

type writtenObject struct {
	u  *unstructured.Unstructured
	at time.Time
}

// writtenFor bounds how long an answer stands in for a watch that is late.
const writtenFor = 10 * time.Second

// connect reaches a cluster and finds out what it serves. It starts nothing.
func connect(ctx context.Context, name string, config *rest.Config, o *Options) (*conn, error) {
	config = rest.CopyConfig(config)
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	config.UserAgent = "fleetbroker"
	config.WarningHandler = rest.NoWarnings{}
	c := &conn{
		config: config, manager: fleets.Set{Fleet: o.Fleet}.Name(), timeout: o.CallTimeout, clock: o.Clock, doubt: make(chan struct{}, 1),
		gvrs: map[kind]schema.GroupVersionResource{}, informers: map[kind]cache.SharedIndexInformer{}, written: map[key]writtenObject{}, writtenOf: map[key][]key{},
	}
	c.bounds.On(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return bulk.RoundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			o.Hooks.Called(name, r.Method, strings.TrimSuffix(r.URL.Path, "/"), c.heard(r, answer, err))
			return answer, err
		})
	})
	var err error
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	served, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	for k, info := range kinds {
		at, is := served.Pick(info.gvr, info.older)
		switch {
		case is:
			c.gvrs[k] = at
			c.informers[k] = c.informer(k, info)
		case info.optional:
			c.missing = append(c.missing, k)
		default:
			return nil, fmt.Errorf("the cluster does not serve %s: install Liqo v1.2 or newer there (Kubernetes 1.30 or newer is needed for the policies)", info.gvr.GroupResource())
		}
	}
	slices.Sort(c.missing)
	return c, nil
}

// discover asks for the group versions of all kinds.
func (c *conn) discover(ctx context.Context) (versions.Set, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionResource
	for _, info := range kinds {
		all = append(all, info.gvr)
		if info.older != "" {
			all = append(all, gvr(info.gvr.Group, info.older, info.gvr.Resource))
		}
	}
	return versions.Served(ctx, client.RESTClient(), all, c.call)
}

func (c *conn) informer(k kind, info kindInfo) cache.SharedIndexInformer {
	inf := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, c.gvrs[k], metav1.NamespaceAll, 0,
		indexers(k), func(o *metav1.ListOptions) {
			o.LabelSelector, o.FieldSelector = info.selector, info.fields
			if o.TimeoutSeconds != nil {
				longer := *o.TimeoutSeconds * watchesLonger
				o.TimeoutSeconds = &longer
			}
		}).Informer()
	// No call fails before the informer was started.
	_ = inf.SetTransform(c.bounds.Transform(string(k), trim))
	_, _ = inf.AddEventHandler(c.bounds.Gone(string(k)))
	_ = inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		c.watches.Broke(info.gvr.Resource, inf.LastSyncResourceVersion(), explain(err), c.clock.Now())
	})
	return inf
}

func indexers(k kind) cache.Indexers {
	if k == kindPod {
		return cache.Indexers{byNode: func(obj any) ([]string, error) { return []string{nodeOf(obj.(*unstructured.Unstructured))}, nil }}
	}
	return cache.Indexers{byUnit: func(obj any) ([]string, error) {
		return []string{liveKey(k, obj.(*unstructured.Unstructured)).unit().Name}, nil
	}}
}

// trim keeps caches small: tens of thousands of objects are held.
func trim(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if u.GetKind() == string(kindPod) {
			return trimPod(u), nil
		}
		u.SetManagedFields(nil)
		unstructured.RemoveNestedField(u.Object, "spec", "csr")
		unstructured.RemoveNestedField(u.Object, "status", "authParams")
		unstructured.RemoveNestedField(u.Object, "status", "images")
	}
	return obj, nil
}

// synced reports whether all caches hold what the cluster holds; if not, why.
func (c *conn) synced() (bool, string) {
	if err := c.bounds.Refused(); err != nil {
		return false, err.Error()
	}
	for k, inf := range c.informers {
		if kinds[k].extra {
			continue
		}
		if why := c.watches.Stale(kinds[k].gvr.Resource, inf, c.clock.Now()); why != "" {
			return false, why
		}
	}
	return true, ""
}

// get is a live object as last seen, or nil.
func (c *conn) get(k key) *unstructured.Unstructured {
	c.mu.Lock()
	w, ok := c.written[k]
	c.mu.Unlock()
	if ok && !c.lapsed(w) {
		return w.u
	}
	return c.cached(k)
}

func (c *conn) lapsed(w writtenObject) bool { return c.clock.Now().Sub(w.at) > writtenFor }

// lapse forgets the answers that no watch has shown in time, and returns whose
// they were: what was decided by them is to be looked at again. An object that
// came and went while its watch was broken is never shown.
func (c *conn) lapse() []key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []key
	for k, w := range c.written {
		if c.lapsed(w) {
			c.forget(k)
			out = append(out, k)
		}
	}
	return out
}

func (c *conn) cached(k key) *unstructured.Unstructured {
	inf := c.informers[k.Kind]
	if inf == nil {
		return nil
	}
	id := k.Name
	if k.Namespace != "" {
		id = k.Namespace + "/" + k.Name
	}
	obj, ok, err := inf.GetStore().GetByKey(id)
	if err != nil || !ok {
		return nil
	}
	return obj.(*unstructured.Unstructured)
}

// every is all live objects of a kind that belong to a unit, in order.
func (c *conn) every(k kind, unit string) []*unstructured.Unstructured {
	inf := c.informers[k]
	if inf == nil {
		return nil
	}
	list, err := inf.GetIndexer().ByIndex(byUnit, unit)
	if err != nil {
		return nil
	}
	keys := make([]key, 0, 2)
	for _, obj := range list {
		keys = append(keys, liveKey(k, obj.(*unstructured.Unstructured)))
	}
	c.mu.Lock()
	keys = append(keys, c.writtenOf[key{Kind: k, Name: unit}]...)
	c.mu.Unlock()
	slices.SortFunc(keys, compareKeys)
	var out []*unstructured.Unstructured
	for _, id := range slices.Compact(keys) {
		if u := c.get(id); u != nil {
			out = append(out, u)
		}
	}
	return out
}

// own is get, but for what is another fleet's.
func (c *conn) own(k key) *unstructured.Unstructured {
	if u := c.get(k); !c.others(u) {
		return u
	}
	return nil
}

// others reports whether an object is another fleet's.
func (c *conn) others(u *unstructured.Unstructured) bool { return c.foreign != nil && c.foreign(u) }

// find is a live object by name alone, the one that pick picks where several
// namespaces have it.
func (c *conn) find(k kind, name string, pick func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	var found *unstructured.Unstructured
	for _, u := range c.every(k, key{Kind: k, Name: name}.unit().Name) {
		if u.GetName() == name && !c.others(u) && (found == nil || pick(u)) {
			found = u
		}
	}
	return found
}

// note keeps the answer of a call until the watch shows it.
func (c *conn) note(k key, u *unstructured.Unstructured) {
	if cached := c.cached(k); cached != nil && !newer(u, cached) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[k] = writtenObject{u, c.clock.Now()}
	if of := (key{Kind: k.Kind, Name: k.unit().Name}); !slices.Contains(c.writtenOf[of], k) {
		c.writtenOf[of] = append(c.writtenOf[of], k)
	}
}

// seen forgets an answer: the watch speaks.
func (c *conn) seen(k key, u *unstructured.Unstructured, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.written[k]; ok && (deleted || !newer(w.u, u)) {
		c.forget(k)
	}
}

// forget is called with mu held.
func (c *conn) forget(k key) {
	delete(c.written, k)
	of := key{Kind: k.Kind, Name: k.unit().Name}
	if left := slices.DeleteFunc(c.writtenOf[of], func(one key) bool { return one == k }); len(left) > 0 {
		c.writtenOf[of] = left
	} else {
		delete(c.writtenOf, of)
	}
}

// newer compares resource versions, which are numbers that grow (guaranteed
// since Kubernetes 1.35, true of etcd before).
func newer(a, b *unstructured.Unstructured) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x > y
}

// call bounds a call in time.
func (c *conn) call(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	err := fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		return fmt.Errorf("%w within %s", errNoAnswer, c.timeout)
	}
	return err
}

// errNoAnswer is a cluster that accepts a call and does not answer it.
var errNoAnswer = errors.New("the cluster does not answer")

func (c *conn) resource(k key) dynamic.ResourceInterface {
	if kinds[k.Kind].namespaced {
		return c.dynamic.Resource(c.gvrs[k.Kind]).Namespace(k.Namespace)
	}
	return c.dynamic.Resource(c.gvrs[k.Kind])
}

// probe asks the cluster whether it is there.
func (c *conn) probe(ctx context.Context) error {
	return c.call(ctx, func(ctx context.Context) error {
		return c.clientset.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	})
}

// heard notes what became of a call, and returns the answer's code (0: none).
func (c *conn) heard(r *http.Request, answer *http.Response, err error) int {
	switch {
	case err != nil && errors.Is(r.Context().Err(), context.Canceled):
		return 0 // given up by us
	case err != nil:
		wakeUp(c.doubt)
		return 0
	case answer.StatusCode < http.StatusBadRequest:
		c.answered.Store(c.clock.Now().UnixNano())
	}
	return answer.StatusCode
}

// silentFor is how long ago the cluster last did what it was asked.
func (c *conn) silentFor() time.Duration {
	return c.clock.Now().Sub(time.Unix(0, c.answered.Load()))
}
