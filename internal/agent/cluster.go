package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
)

// liqoPoll is how often it is looked whether Liqo has been installed.
const liqoPoll = 10 * time.Second

// liqoKinds are watched once they are served.
var liqoKinds = []struct {
	kind   schema.GroupKind
	object client.Object
}{
	{offloadingv1beta1.SchemeGroupVersion.WithKind("Quota").GroupKind(), &offloadingv1beta1.Quota{}},
	{authv1beta1.GroupVersion.WithKind(authv1beta1.ResourceSliceKind).GroupKind(), &authv1beta1.ResourceSlice{}},
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), authv1beta1.AddToScheme(scheme), offloadingv1beta1.AddToScheme(scheme), crd.AddToScheme(scheme))
}

// cacheOptions keep of each object only what Collect reads: a cluster has many
// pods, and most of a pod is none of our business. Liqo's kinds cannot be named
// here, because they may not be served yet.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed"),
				Transform: slimPod,
			},
		},
	}
}

// slimPod drops all but where a pod is or waits to be, whose it is and what it
// requests.
func slimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
		Labels: p.Labels, DeletionTimestamp: p.DeletionTimestamp, OwnerReferences: p.OwnerReferences,
	}}
	slim.Spec.NodeName, slim.Spec.Overhead, slim.Spec.Resources = p.Spec.NodeName, p.Spec.Overhead, p.Spec.Resources
	slim.Spec.Containers, slim.Spec.InitContainers = slimContainers(p.Spec.Containers), slimContainers(p.Spec.InitContainers)
	slim.Spec.Tolerations = slimTolerations(p.Spec.Tolerations)
	slim.Status = p.Status
	return slim, nil
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, 0, len(containers))
	for _, c := range containers {
		out = append(out, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return out
}

// cluster is a cached view of the API server that calls changed after whatever
// may change a flavor.
type cluster struct {
	id      string
	cache   cache.Cache
	mapper  meta.RESTMapper
	log     *slog.Logger
	changed func()
	liqo    atomic.Int32 // how many of liqoKinds are watched
}

// watch starts watching nodes, pods and, where it is installed, Liqo, and
// returns when all of it has been read once: a report that forgets what is held
// would free it.
func (c *cluster) watch(ctx context.Context) error {
	for _, object := range []client.Object{&corev1.Node{}, &corev1.Pod{}} {
		if err := c.follow(ctx, object); err != nil {
			return err
		}
	}
	if err := c.watchLiqo(ctx); err != nil {
		return err
	}
	if !c.cache.WaitForCacheSync(ctx) {
		return fmt.Errorf("read the cluster's nodes and pods: %w", context.Cause(ctx))
	}
	return nil
}

// watchLiqo watches those of Liqo's kinds that are served and not yet watched.
func (c *cluster) watchLiqo(ctx context.Context) error {
	for !c.allOfLiqo() {
		next := liqoKinds[c.liqo.Load()]
		_, err := c.mapper.RESTMapping(next.kind)
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for Liqo's %s: %w", next.kind, err)
		}
		if err := c.follow(ctx, next.object); err != nil {
			return err
		}
		c.liqo.Add(1)
		c.changed()
		c.log.Info("watching Liqo", "kind", next.kind.String())
	}
	return nil
}

// allOfLiqo reports whether everything of Liqo's is watched.
func (c *cluster) allOfLiqo() bool { return int(c.liqo.Load()) == len(liqoKinds) }

// follow makes an informer of a kind and returns when it has read all objects.
func (c *cluster) follow(ctx context.Context, object client.Object) error {
	informer, err := c.cache.GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.changed() },
		DeleteFunc: func(any) { c.changed() },
		UpdateFunc: func(before, after any) {
			if matters(before, after) {
				c.changed()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", object, err)
	}
	return nil
}

// matters reports whether an update can change a flavor or the demand. Pods change often, and
// seldom in what they take.
func matters(before, after any) bool {
	old, ok := before.(*corev1.Pod)
	if !ok {
		return true
	}
	p, ok := after.(*corev1.Pod)
	return !ok || isLive(old) != isLive(p) || waitsForRoom(old) != waitsForRoom(p) || old.Spec.NodeName != p.Spec.NodeName ||
		!apiequality.Semantic.DeepEqual(old.Labels, p.Labels) || !requests(old).Equal(requests(p))
}

// state lists what is cached. The objects are the cache's own: not modified.
func (c *cluster) state(ctx context.Context) (State, error) {
	var (
		nodes  corev1.NodeList
		pods   corev1.PodList
		quotas offloadingv1beta1.QuotaList
		slices authv1beta1.ResourceSliceList
	)
	lists := []client.ObjectList{&nodes, &pods, &quotas, &slices}[:2+c.liqo.Load()]
	for _, l := range lists {
		if err := c.cache.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			return State{}, fmt.Errorf("list %T: %w", l, err)
		}
	}
	return State{
		Cluster: c.id,
		Nodes:   pointers(nodes.Items), Pods: pointers(pods.Items),
		Quotas: pointers(quotas.Items), Slices: pointers(slices.Items),
	}, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
