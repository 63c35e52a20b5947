package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetbroker/fleetbroker/internal/delivery/applier"
	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
)

// What a GitOps tool applies manifests by.
var (
	kustomizations = gvr("kustomize.toolkit.fluxcd.io", "v1", "kustomizations")
	repositories   = gvr("source.toolkit.fluxcd.io", "v1", "gitrepositories")
	applications   = gvr("argoproj.io", "v1alpha1", "applications")
)

// gitops watches the objects by which Flux or Argo CD applies a consumer's
// manifests, if they are in the consumer: what keeps manifests from it, and
// whether what is there is by the newest of them. A tool that works from another
// cluster is not seen; then its word is taken for granted.
type gitops struct {
	mode      string
	informers map[schema.GroupVersionResource]cache.SharedIndexInformer

	mu      sync.Mutex
	failed  map[schema.GroupVersionResource]error // the newest error of a watch
	settled map[string]map[string]any             // the newest Ready condition that was no passing one, by name
}

// newGitops makes the watches of a mode; nil for modes without such a tool.
func newGitops(mode string, c *conn, news func()) *gitops {
	watched := map[string][]schema.GroupVersionResource{Flux: {kustomizations, repositories}, ArgoCD: {applications}}[mode]
	if watched == nil {
		return nil
	}
	g := &gitops{mode: mode, informers: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		failed: map[schema.GroupVersionResource]error{}, settled: map[string]map[string]any{}}
	for _, resource := range watched {
		inf := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
		// None of these fails before the informer was started.
		_ = inf.SetTransform(c.bounds.Transform(resource.Resource, trimApplier))
		_, _ = inf.AddEventHandler(c.bounds.Gone(resource.Resource))
		_ = inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			g.mu.Lock()
			g.failed[resource] = err
			g.mu.Unlock()
			news()
		})
		_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { g.settle(obj); news() },
			UpdateFunc: func(old, obj any) { g.renamed(old, obj); g.settle(obj); news() },
			DeleteFunc: func(obj any) { g.forget(obj); news() },
		})
		g.informers[resource] = inf
	}
	return g
}

// settle remembers how an object stands, unless it is only on its way: each of
// our commits sets Flux to work, and if its trouble were told as over meanwhile,
// that would be another commit.
func (g *gitops) settle(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	ready := seen.Condition(u, "Ready")
	message, _ := ready["message"].(string)
	waits := strings.HasSuffix(message, "is not ready") || strings.HasSuffix(message, "is not up to date") // for what tells its own trouble
	if ready["status"] == "Unknown" || ready["reason"] == "DependencyNotReady" && waits {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled[applier.Named(u)] = ready
}

func (g *gitops) forget(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.settled, applier.Named(u))
	}
}

// renamed forgets an object that has become another one's: what a cluster tells may be of any
// kind each time.
func (g *gitops) renamed(old, obj any) {
	was, _ := old.(*unstructured.Unstructured)
	if is, ok := obj.(*unstructured.Unstructured); ok && was != nil && applier.Named(was) != applier.Named(is) {
		g.forget(was)
	}
}

// ready is the condition by which an object is judged.
func (g *gitops) ready(u *unstructured.Unstructured) map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settled[applier.Named(u)]
}

// trimApplier leaves out the lists of all applied objects: there may be tens of
// thousands.
func trimApplier(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		unstructured.RemoveNestedField(u.Object, "status", "inventory")
		unstructured.RemoveNestedField(u.Object, "status", "resources")
		unstructured.RemoveNestedField(u.Object, "status", "history")
		unstructured.RemoveNestedField(u.Object, "status", "operationState", "syncResult", "resources")
	}
	return obj, nil
}

// of is the verdict on a tenant's manifests for a consumer; known tells the
// commits that have the newest manifests.
func (g *gitops) of(consumer, tenant string, known func(commit string) bool) applier.Verdict {
	for resource, inf := range g.informers {
		if inf.HasSynced() {
			continue
		}
		g.mu.Lock()
		err := g.failed[resource]
		g.mu.Unlock()
		switch {
		case err == nil:
			return applier.Verdict{} // being read
		case apierrors.IsNotFound(err) && g.mode == ArgoCD:
			return applier.Verdict{Current: true} // Argo CD mostly works from another cluster
		case apierrors.IsNotFound(err):
			return applier.Verdict{Trouble: fmt.Sprintf("cluster %s does not serve %s: install Flux there", consumer, resource.GroupResource()), Current: true}
		}
		return applier.Verdict{Trouble: fmt.Sprintf("watch %s on cluster %s: %v", resource.GroupResource(), consumer, explain(err)), Current: true}
	}
	if g.mode == ArgoCD {
		return applier.ArgoCD(consumer, tenant, g.list(applications), known)
	}
	f := applier.Flux{Kustomizations: g.list(kustomizations), Sources: g.list(repositories), Ready: g.ready}
	return f.Verdict(consumer, tenant, known)
}

// list are the cached objects, in order.
func (g *gitops) list(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range g.informers[resource].GetStore().List() {
		out = append(out, obj.(*unstructured.Unstructured))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(applier.Named(a), applier.Named(b)) })
	return out
}
