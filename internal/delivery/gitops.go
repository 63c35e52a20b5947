package delivery

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetbroker/fleetbroker/internal/delivery/seen"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
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
	settled map[types.UID]map[string]any          // the newest Ready condition that was no passing one
}

// verdict is what a tool's objects say about one tenant's manifests.
type verdict struct {
	// trouble is what keeps them from being applied, "" for nothing.
	trouble string
	// current: what is not there is not on its way.
	current bool
}

// newGitops makes the watches of a mode; nil for modes without such a tool.
func newGitops(mode string, c *conn, news func()) *gitops {
	watched := map[string][]schema.GroupVersionResource{Flux: {kustomizations, repositories}, ArgoCD: {applications}}[mode]
	if watched == nil {
		return nil
	}
	g := &gitops{mode: mode, informers: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		failed: map[schema.GroupVersionResource]error{}, settled: map[types.UID]map[string]any{}}
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
			UpdateFunc: func(_, obj any) { g.settle(obj); news() },
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
	g.settled[u.GetUID()] = ready
}

func (g *gitops) forget(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.settled, u.GetUID())
	}
}

// ready is the condition by which an object is judged.
func (g *gitops) ready(u *unstructured.Unstructured) map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settled[u.GetUID()]
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
func (g *gitops) of(consumer, tenant string, known func(commit string) bool) verdict {
	for resource, inf := range g.informers {
		if inf.HasSynced() {
			continue
		}
		g.mu.Lock()
		err := g.failed[resource]
		g.mu.Unlock()
		switch {
		case err == nil:
			return verdict{} // being read
		case apierrors.IsNotFound(err) && g.mode == ArgoCD:
			return verdict{current: true} // Argo CD mostly works from another cluster
		case apierrors.IsNotFound(err):
			return verdict{trouble: fmt.Sprintf("cluster %s does not serve %s: install Flux there", consumer, resource.GroupResource()), current: true}
		}
		return verdict{trouble: fmt.Sprintf("watch %s on cluster %s: %v", resource.GroupResource(), consumer, explain(err)), current: true}
	}
	if g.mode == ArgoCD {
		return argoVerdict(consumer, tenant, g.list(applications), known)
	}
	f := fluxView{kustomizations: g.list(kustomizations), sources: g.list(repositories), ready: g.ready}
	return f.verdict(consumer, tenant, known)
}

// list are the cached objects, in order.
func (g *gitops) list(resource schema.GroupVersionResource) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range g.informers[resource].GetStore().List() {
		out = append(out, obj.(*unstructured.Unstructured))
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(named(a), named(b)) })
	return out
}

// named is an object for people.
func named(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// applies reports whether what is applied from a path of the repo brings a
// tenant's contracts, or only the namespaces and policies that they need.
func applies(from, consumer, tenant string) (contracts, basis bool) {
	dir := manifests.Dir(consumer)
	switch strings.TrimPrefix(path.Clean("/"+from), "/") {
	case dir:
		return true, true
	case path.Join(dir, tenant):
		return true, false
	case path.Join(dir, "namespaces"):
		return false, true
	}
	return false, false
}

// fluxView is what a consumer has of Flux.
type fluxView struct {
	kustomizations, sources []*unstructured.Unstructured
	ready                   func(*unstructured.Unstructured) map[string]any
}

func (f fluxView) verdict(consumer, tenant string, known func(string) bool) verdict {
	v, followed := verdict{current: true}, false
	for _, k := range f.kustomizations {
		from, _, _ := unstructured.NestedString(k.Object, "spec", "path")
		contracts, basis := applies(from, consumer, tenant)
		if !contracts && !basis {
			continue
		}
		followed = followed || contracts
		if v.trouble == "" {
			v.trouble = f.trouble(k, nil)
		}
		v.current = v.current && (!contracts || fluxCurrent(k, known))
	}
	if !followed && v.trouble == "" {
		v.trouble = fmt.Sprintf("no Kustomization of Flux on cluster %s applies %s: see install/flux", consumer, path.Join(manifests.Dir(consumer), tenant))
	}
	return v
}

// trouble is what is wrong with a Kustomization, with its source or with what it
// waits for; behind are those that wait for it.
func (f fluxView) trouble(k *unstructured.Unstructured, behind []*unstructured.Unstructured) string {
	if text := f.stopped(k, "kustomization"); text != "" {
		return text
	}
	ref, _, _ := unstructured.NestedMap(k.Object, "spec", "sourceRef")
	if source := referred(f.sources, k, ref); source != nil {
		if text := f.stopped(source, "source git"); text != "" {
			return text
		}
	}
	awaited, _, _ := unstructured.NestedSlice(k.Object, "spec", "dependsOn")
	for _, entry := range awaited {
		ref, _ := entry.(map[string]any)
		first := referred(f.kustomizations, k, ref)
		if first == nil || slices.Contains(behind, first) {
			continue // Flux itself says so
		}
		if text := f.trouble(first, append(behind, k)); text != "" {
			return text
		}
	}
	return ""
}

// referred is what a reference of an object names, nil when it is not there. One
// without a kind is to a Kustomization, one without a namespace to its own.
func referred(all []*unstructured.Unstructured, from *unstructured.Unstructured, ref map[string]any) *unstructured.Unstructured {
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	kind, namespace = cmp.Or(kind, "Kustomization"), cmp.Or(namespace, from.GetNamespace())
	for _, u := range all {
		if u.GetKind() == kind && u.GetName() == name && u.GetNamespace() == namespace {
			return u
		}
	}
	return nil
}

// stopped says why an object of Flux does not do its work.
func (f fluxView) stopped(u *unstructured.Unstructured, command string) string {
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended {
		return fmt.Sprintf("%s is suspended: flux resume %s %s -n %s", named(u), command, u.GetName(), u.GetNamespace())
	}
	if terminating(u) {
		return named(u) + " is being deleted"
	}
	if ready := f.ready(u); ready["status"] == "False" {
		return fmt.Sprintf("%s: %v", named(u), ready["message"])
	}
	return ""
}

// fluxCurrent reports whether a Kustomization has applied one of the known
// commits. One whose health checks fail has: they come after pruning.
func fluxCurrent(k *unstructured.Unstructured, known func(string) bool) bool {
	field := "lastAppliedRevision"
	if ready := seen.Condition(k, "Ready"); ready["status"] == "False" && ready["reason"] == "HealthCheckFailed" {
		field = "lastAttemptedRevision"
	}
	revision, _, _ := unstructured.NestedString(k.Object, "status", field)
	_, hash, ok := strings.Cut(revision, "@sha1:")
	return ok && known(hash)
}

// argoVerdict reads Argo CD's Applications.
func argoVerdict(consumer, tenant string, all []*unstructured.Unstructured, known func(string) bool) verdict {
	v := verdict{current: true}
	for _, a := range all {
		from, _, _ := unstructured.NestedString(a.Object, "spec", "source", "path")
		contracts, basis := applies(from, consumer, tenant)
		if !contracts && !basis {
			continue
		}
		if v.trouble == "" {
			v.trouble = argoTrouble(a)
		}
		revision, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "syncResult", "revision")
		done, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "phase")
		seen, _, _ := unstructured.NestedString(a.Object, "status", "sync", "revision")
		sync, _, _ := unstructured.NestedString(a.Object, "status", "sync", "status")
		v.current = v.current && (!contracts || done == "Succeeded" && known(revision) || sync == "Synced" && known(seen))
	}
	return v
}

// argoTrouble is what is wrong with an Application.
func argoTrouble(a *unstructured.Unstructured) string {
	if terminating(a) {
		return named(a) + " is being deleted"
	}
	list, _, _ := unstructured.NestedSlice(a.Object, "status", "conditions")
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		if kind, _ := c["type"].(string); strings.HasSuffix(kind, "Error") {
			return fmt.Sprintf("%s: %v", named(a), c["message"])
		}
	}
	// While Argo CD tries again what has failed, it calls it Running.
	retried, _, _ := unstructured.NestedInt64(a.Object, "status", "operationState", "retryCount")
	if done, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "phase"); done == "Failed" || done == "Error" || done == "Running" && retried > 0 {
		message, _, _ := unstructured.NestedString(a.Object, "status", "operationState", "message")
		return fmt.Sprintf("%s: %s", named(a), message)
	}
	automated, has, _ := unstructured.NestedMap(a.Object, "spec", "syncPolicy", "automated")
	sync, _, _ := unstructured.NestedString(a.Object, "status", "sync", "status")
	if (!has || automated["enabled"] == false) && sync == "OutOfSync" {
		return named(a) + " does not sync by itself: sync it, or set its syncPolicy.automated"
	}
	return ""
}
