//go:build e2e

package delivery

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/fleets"
	"github.com/fleetbroker/fleetbroker/internal/delivery/reading"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// Without the policies no virtual node: anybody's pods could run there.
func testPolicyRefused(t *testing.T, cluster *env.Cluster) {
	most := user(t, cluster, "system:serviceaccount:fleetbroker:fleet-agent", // the guard of namespaces lets it write on them
		rbacv1.PolicyRule{APIGroups: []string{"", "authentication.liqo.io", "offloading.liqo.io", "coordination.k8s.io"}, Resources: all, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{admission}, Resources: all, Verbs: read})
	var passed atomic.Int32 // whole passes that a refusal ended: it is said while other units are still on their way
	rome := watch(t, cluster)
	for _, k := range policyKinds { // of the deliverers before this one
		if err := rome.at(key{Kind: k}).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, &fixedAccess{config: most}, func(o *Options) {
		o.Hooks.Passed = func(_ string, _ time.Duration, err error) {
			if err != nil {
				passed.Add(1)
			}
		}
	})
	r.deliver(desired(t, "rome", contract("rome", "train")))
	envtest.Eventually(t, "the refusal to be said, with what to do", func(context.Context) bool {
		return strings.Contains(strings.Join(r.Status()["rome"].Troubles, " "), "let the kubeconfig's user do this")
	})
	envtest.Eventually(t, "what needs no protection to be applied all the same", func(context.Context) bool {
		vision := rome.get(key{Kind: kindNamespace, Name: "vision"}) // may be there from before
		return vision != nil && vision.GetAnnotations()[v1alpha1.AnnotationIntents] == "vision.train"
	})
	before := passed.Load()
	envtest.Eventually(t, "a whole pass", func(context.Context) bool { return passed.Load() > before })
	if rome.get(nodeKey("train")) != nil || rome.get(sliceKey("train")) != nil {
		t.Error("virtual node or slice was made without policies")
	}

	rome.installPolicies()
	rome.guarded(user(t, cluster, "stranger", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: all}))
	want := desired(t, "rome", contract("rome", "train"))
	r.settled(t, want)
	for _, k := range policyKinds {
		if list, err := rome.at(key{Kind: k}).List(t.Context(), metav1.ListOptions{LabelSelector: fleets.LabelPartOf}); err != nil || len(list.Items) > 0 {
			t.Errorf("of %s %d were written, of those that install/consumer made (%v)", k, len(list.Items), err)
		}
	}

	// An older version's are told, and keep nothing waiting.
	const guard = "fleetbroker-virtualnode-guard"
	patch := []byte(`{"spec":{"failurePolicy":"Ignore"}}`)
	if _, err := rome.at(key{Kind: kindValidating}).Patch(t.Context(), guard, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	outdated := func() bool {
		return strings.Contains(strings.Join(r.Status()["rome"].Troubles, " "), guard+" is not what is rendered for this cluster: apply install/consumer again")
	}
	envtest.Eventually(t, "the policy that differs to be told", func(context.Context) bool { return outdated() })
	more := desired(t, "rome", contract("rome", "train"), contract("rome", "serve"))
	r.deliver(more)
	envtest.Eventually(t, "a contract beside it", func(context.Context) bool {
		return rome.get(sliceKey("serve")) != nil && r.Status()["rome"].Commit == more.Commit
	})
	if !outdated() {
		t.Error("the policy that differs is told no more")
	}
	rome.installPolicies()
	r.settled(t, more)
}

// guarded waits until the API server goes by the policies, which it does some time after
// they are there: a stranger may write nothing of ours on a namespace.
func (w watcher) guarded(stranger *rest.Config) {
	w.t.Helper()
	dyn, err := dynamic.NewForConfig(stranger)
	if err != nil {
		w.t.Fatal(err)
	}
	patch := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelTenant + `":"nlp"}}}`)
	namespaces := dyn.Resource(kinds[kindNamespace].gvr)
	envtest.Eventually(w.t, "the guards to be gone by", func(ctx context.Context) bool {
		_, err := namespaces.Patch(ctx, "vision", types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "fleetbroker-namespace-guard")
	})
}

// installPolicies makes the policies as install/consumer does, and no members of a set.
func (w watcher) installPolicies() {
	w.t.Helper()
	for _, text := range manifests.Policies("rome", nil, "") {
		objects, err := reading.Objects(text)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, u := range objects {
			if _, err := w.at(liveKey(kind(u.GetKind()), u)).Apply(w.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}
