//go:build e2e

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// user is a client that the API server takes for somebody.
func user(t *testing.T, cluster *env.Cluster, name string, groups ...string) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const everything = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: consumers}]}`

// TestNoOtherClusterAsksForLiqosOwnClass: with install/provider nobody who comes from
// another cluster gets a slice of class default or makes one larger, by whichever of
// Liqo's accounts; contracts' slices, slices that stand, the cluster's own and a
// namespace that is opened are let be, and so is all where the agent does not enforce.
func TestNoOtherClusterAsksForLiqosOwnClass(t *testing.T) {
	paris := bare(t, "paris")
	made := func(class, more string) string {
		return `{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, metadata: {labels: {liqo.io/replicated: "true"}}, spec: {class: "` + class + `", providerClusterID: paris, consumerClusterID: rome, resources: {cpu: "1"}` + more + `}}`
	}
	install(t, paris, "provider")
	lay(t, paris,
		request{gvr: of("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), at: "consumers", body: everything},
		request{gvr: namespaces, at: "liqo-tenant-milan", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {liqo.io/tenant-namespace: "true", fleetbroker.io/class-default: open}}}`},
	)
	consumers := map[string]dynamic.Interface{
		"the account of ours":   user(t, paris, "system:serviceaccount:liqo-tenant-rome:liqo-consumer-rome", "consumers"),
		"Liqo's certificate":    user(t, paris, "rome", "liqo.io", "consumers"),
		"an administrator here": user(t, paris, "grace", "consumers"), // the label says where it comes from
	}
	// A slice from before, made while the door was open.
	if out, err := paris.Kubectl(t.Context(), ".", "delete", "validatingadmissionpolicybinding", "fleetbroker-class-default"); err != nil {
		t.Fatal(out, err)
	}
	before := request{"create", slices, "liqo-tenant-rome/try", made("default", "")}
	envtest.Eventually(t, "the door to be open", func(ctx context.Context) bool { return before.do(ctx, as(t, paris, "")) == nil })
	lay(t, paris, request{gvr: slices, at: "liqo-tenant-rome/old", body: made("default", "")}, request{gvr: slices, at: "liqo-tenant-rome/ours", body: made("fleetbroker", "")})
	install(t, paris, "provider")
	envtest.Eventually(t, "the door to be closed", func(ctx context.Context) bool {
		return apierrors.IsForbidden(before.do(ctx, consumers["the account of ours"]))
	})
	for who, c := range consumers {
		mayNot(t, who, c, map[string]request{
			"ask for a slice of class default": {"create", slices, "liqo-tenant-rome/a", made("default", "")},
			"ask for a slice of no class":      {"create", slices, "liqo-tenant-rome/a", made("", "")},
			"grow a slice":                     {"patch", slices, "liqo-tenant-rome/old", `{"spec": {"resources": {"cpu": "64"}}}`},
			"turn a contract's slice":          {"patch", slices, "liqo-tenant-rome/ours", `{"spec": {"class": "default"}}`},
		}, "grants no slices of class default")
		may(t, who, c, map[string]request{
			"ask for a contract's slice":        {"create", slices, "liqo-tenant-rome/a", made("fleetbroker", "")},
			"grow a contract's slice":           {"patch", slices, "liqo-tenant-rome/ours", `{"spec": {"resources": {"cpu": "64"}}}`},
			"set a finalizer on what stands":    {"patch", slices, "liqo-tenant-rome/old", `{"metadata": {"finalizers": ["example.org/a"]}}`},
			"end what stands":                   {"delete", slices, "liqo-tenant-rome/old", ""},
			"ask in another market's namespace": {"create", slices, "liqo-tenant-milan/a", made("default", "")},
		})
	}
	own := request{"create", slices, "liqo-tenant-rome/own", slice} // asked of others by this cluster
	if err := own.do(t.Context(), user(t, paris, "grace", "consumers")); err != nil {
		t.Errorf("the cluster's own slice: %v", err)
	}

	// Where the agent does not enforce, contracts are of class default themselves.
	dir := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [provider]\ncomponents: [provider/not-enforced]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "provider"), os.DirFS(base+"/provider")); err != nil {
		t.Fatal(err)
	}
	if out, err := paris.Kubectl(t.Context(), dir, "apply", "-k", "."); err != nil {
		t.Fatal(out, err)
	}
	if out, err := paris.Kubectl(t.Context(), ".", "delete", "validatingadmissionpolicybinding", "fleetbroker-class-default"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := paris.Kubectl(t.Context(), dir, "apply", "-k", "."); err != nil || strings.Contains(out, "policybinding.admissionregistration.k8s.io/fleetbroker-class-default") {
		t.Fatalf("the component binds the policy: %v\n%s", err, out)
	}
	envtest.Eventually(t, "contracts of class default to be let in", func(ctx context.Context) bool {
		return before.do(ctx, consumers["the account of ours"]) == nil
	})
}

// TestTheAgentMayDoItsWorkAndNoMore asks as the agent's account.
func TestTheAgentMayDoItsWorkAndNoMore(t *testing.T) {
	paris := bare(t, "paris")
	requests := of("fleetbroker.io", "v1alpha1", "resourcerequests")
	adverts := of("fleetbroker.io", "v1alpha1", "advertisements")
	leases := of("coordination.k8s.io", "v1", "leases")
	machines := of("", "v1", "nodes")
	const labels = `{"metadata": {"labels": {%s}}}`
	install(t, paris, "agent")
	lay(t, paris,
		request{gvr: machines, at: "gpu-1", body: `{apiVersion: v1, kind: Node, metadata: {labels: {fleetbroker.io/pool: h100}}}`},
		request{gvr: namespaces, at: "shop", body: plain}, request{gvr: namespaces, at: "liqo-tenant-rome", body: plain},
		request{gvr: accounts, at: "shop/default", body: account}, request{gvr: pods, at: "shop/theirs", body: podOn("", "a")},
	)
	for name, body := range map[string]string{
		"ours":  `{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, metadata: {labels: {liqo.io/replicated: "true"}}, spec: {class: fleetbroker, providerClusterID: paris}}`,
		"liqos": `{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, metadata: {labels: {liqo.io/replicated: "true"}}, spec: {class: default, providerClusterID: paris}}`,
		"own":   `{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, spec: {class: fleetbroker, providerClusterID: milan}}`,
	} {
		lay(t, paris, request{gvr: slices, at: "liqo-tenant-rome/" + name, body: body})
	}
	envtest.Eventually(t, "requests to be served", func(ctx context.Context) bool {
		_, err := as(t, paris, "").Resource(requests).List(ctx, metav1.ListOptions{})
		return err == nil
	})
	c := as(t, paris, "fleet-agent")
	envtest.Eventually(t, "the policy on the agent to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"create", events, "shop/a", event}.do(ctx, c))
	})
	grant := func(name string) error {
		u, err := c.Resource(slices).Namespace("liqo-tenant-rome").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(u.Object, map[string]any{"cpu": "1"}, "status", "resources"); err != nil {
			t.Fatal(err)
		}
		_, err = c.Resource(slices).Namespace("liqo-tenant-rome").UpdateStatus(t.Context(), u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := grant("ours"); err != nil {
		t.Errorf("a slice of its class: %v", err)
	}
	for _, name := range []string{"liqos", "own"} {
		if err := grant(name); !apierrors.IsForbidden(err) {
			t.Errorf("may answer slice %s: %v", name, err)
		}
	}
	may(t, "the agent", c, map[string]request{
		"tell events":            {"create", events, "default/a", event},
		"hold its Lease":         {"create", leases, "fleetbroker/fleet-agent", `{apiVersion: coordination.k8s.io/v1, kind: Lease}`},
		"look at pods":           {"get", pods, "shop/theirs", ""},
		"look at what is wanted": {"get", slices, "liqo-tenant-rome/ours", ""},
		"name a node by hash":    {"patch", machines, "gpu-1", fmt.Sprintf(labels, `"fleetbroker.io/node": "n0123456789abc"`)},
		"read its salt":          {"get", namespaces, "kube-system", ""},
	})
	// That it has no content is found after it was let in.
	if err := (request{"create", adverts, "paris-h100", `{apiVersion: fleetbroker.io/v1alpha1, kind: Advertisement, spec: {}}`}).do(t.Context(), c); err != nil && !apierrors.IsInvalid(err) {
		t.Errorf("the agent may not show what it sells: %v", err)
	}
	mayNot(t, "the agent", c, map[string]request{
		"name a node by anything":       {"patch", machines, "gpu-1", fmt.Sprintf(labels, `"fleetbroker.io/node": "gpu-1"`)},
		"move a node to another pool":   {"patch", machines, "gpu-1", fmt.Sprintf(labels, `"fleetbroker.io/pool": "a100"`)},
		"take a node out of its pool":   {"patch", machines, "gpu-1", fmt.Sprintf(labels, `"fleetbroker.io/pool": null`)},
		"put another label on a node":   {"patch", machines, "gpu-1", fmt.Sprintf(labels, `"shop": ""`)},
		"annotate a node":               {"patch", machines, "gpu-1", `{"metadata": {"annotations": {"fleetbroker.io/cordon": "true"}}}`},
		"cordon a node":                 {"patch", machines, "gpu-1", `{"spec": {"unschedulable": true}}`},
		"taint a node":                  {"patch", machines, "gpu-1", `{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}`},
		"keep a node from going":        {"patch", machines, "gpu-1", `{"metadata": {"finalizers": ["fleetbroker.io/a"]}}`},
		"delete a node":                 {"delete", machines, "gpu-1", ""},
		"make a node":                   {"create", machines, "a", `{apiVersion: v1, kind: Node}`},
		"look at another namespace":     {"get", namespaces, "shop", ""},
		"ask by itself":                 {"create", requests, "shop/a", `{apiVersion: fleetbroker.io/v1alpha1, kind: ResourceRequest, spec: {}}`},
		"delete what others ask for":    {"delete", requests, "shop/a", ""},
		"make a slice":                  {"create", slices, "liqo-tenant-rome/a", slice},
		"change a slice":                {"patch", slices, "liqo-tenant-rome/ours", `{"spec": {"class": "default"}}`},
		"delete a slice":                {"delete", slices, "liqo-tenant-rome/ours", ""},
		"make a virtual node":           {"create", nodes, "liqo-tenant-rome/a", node},
		"offload":                       {"create", offloadings, "shop/offloading", offload},
		"make a pod":                    {"create", pods, "shop/a", podOn("", "a")},
		"delete a pod":                  {"delete", pods, "shop/theirs", ""},
		"read a Secret":                 {"get", secrets, "fleetbroker/fleet-agent-certs", ""},
		"lay a Secret":                  {"create", secrets, "fleetbroker/a", "{apiVersion: v1, kind: Secret}"},
		"make a namespace":              {"create", namespaces, "a", plain},
		"open a namespace":              {"patch", namespaces, "shop", opens},
		"make an account":               {"create", accounts, "shop/a", account},
		"make a token of another":       {"token", accounts, "shop/default", tokenOf},
		"make a token of its own":       {"token", accounts, "fleetbroker/fleet-agent", tokenOf},
		"bind a role":                   {"create", bindings, "shop/a", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`},
		"make a policy":                 {"create", validating, "a", validates},
		"make a mutation":               {"create", mutating, "a", injects},
		"change who made a request":     {"patch", mutating, "fleetbroker-request-owner", touch},
		"change what bounds it":         {"patch", validating, "fleetbroker-agent", touch},
		"unbind what bounds it":         {"delete", validatingB, "fleetbroker-agent", ""},
		"take another's Lease":          {"patch", leases, "kube-system/kube-scheduler", touch},
		"take a Lease elsewhere":        {"create", leases, "kube-system/a", `{apiVersion: coordination.k8s.io/v1, kind: Lease}`},
		"tell events of others' spaces": {"create", events, "kube-system/a", event},
	})
}

// TestTheDaemonAtHomeMayDoItsWorkAndNoMore asks as the daemon's account in its own
// cluster, with install/broker alone.
func TestTheDaemonAtHomeMayDoItsWorkAndNoMore(t *testing.T) {
	home := bare(t, "home")
	install(t, home, "broker")
	leases := of("coordination.k8s.io", "v1", "leases")
	adverts := of("market.fleetbroker.io", "v1alpha1", "advertisements")
	const advertisement = `{apiVersion: market.fleetbroker.io/v1alpha1, kind: Advertisement, spec: {generation: "1.1", replica: a, reportedAt: "2026-11-25T12:00:00Z", digest: "0", summary: {flavors: 0, gpus: 0, gpusFree: 0}}}`
	const heartbeat = `{apiVersion: market.fleetbroker.io/v1alpha1, kind: Heartbeat, spec: {life: a, beat: 1, at: "2026-11-25T12:00:00Z", serving: true, providers: 0}}`
	lay(t, home, request{gvr: namespaces, at: "shop", body: plain}, request{gvr: accounts, at: "shop/default", body: account})
	c := as(t, home, "fleetbroker")
	may(t, "the daemon", c, map[string]request{
		"hold the planner's Lease": {"create", leases, "fleetbroker/fleetbroker-planner", `{apiVersion: coordination.k8s.io/v1, kind: Lease}`},
		"advertise a provider":     {"create", adverts, "fleetbroker/paris", advertisement},
		"say whom it hears":        {"create", of("market.fleetbroker.io", "v1alpha1", "heartbeats"), "fleetbroker/one", heartbeat},
		"review a token":           {"create", of("authentication.k8s.io", "v1", "tokenreviews"), "", `{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: a}}`},
	})
	mayNot(t, "the daemon", c, map[string]request{
		"read its own Secrets":    {"get", secrets, "fleetbroker/fleetbroker-git", ""},
		"lay a Secret":            {"create", secrets, "fleetbroker/a", "{apiVersion: v1, kind: Secret}"},
		"take another's Lease":    {"patch", leases, "fleetbroker/other", touch},
		"advertise elsewhere":     {"create", adverts, "shop/paris", advertisement},
		"take a Lease elsewhere":  {"create", leases, "kube-system/a", `{apiVersion: coordination.k8s.io/v1, kind: Lease}`},
		"make a token of its own": {"token", accounts, "fleetbroker/fleetbroker", tokenOf},
		"make a token of another": {"token", accounts, "shop/default", tokenOf},
		"make an account":         {"create", accounts, "fleetbroker/a", account},
		"bind a role":             {"create", bindings, "fleetbroker/a", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`},
		"make a pod":              {"create", pods, "shop/a", podOn("", "a")},
		"look at pods":            {"get", pods, "shop/a", ""},
		"look at namespaces":      {"get", namespaces, "shop", ""},
		"make a namespace":        {"create", namespaces, "a", plain},
		"open a namespace":        {"patch", namespaces, "shop", opens},
		"make a slice":            {"create", slices, "shop/a", slice},
		"offload":                 {"create", offloadings, "shop/offloading", offload},
		"make a policy":           {"create", validating, "a", validates},
		"make a mutation":         {"create", mutating, "a", injects},
	})
	// With the component for tenants' own repositories it reads the Secrets named there, and
	// no others.
	vision := request{"get", secrets, "fleetbroker/vision-git", ""}
	mayNot(t, "the daemon", c, map[string]request{"read a source's Secret without the component": vision})
	overlay := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: fleetbroker\nresources: [broker]\ncomponents: [broker/sources]\n"
	if err := errors.Join(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600), os.CopyFS(filepath.Join(overlay, "broker"), os.DirFS(base+"/broker"))); err != nil {
		t.Fatal(err)
	}
	if out, err := home.Kubectl(t.Context(), overlay, "apply", "-k", "."); err != nil {
		t.Fatal(out, err)
	}
	lay(t, home, request{gvr: secrets, at: "fleetbroker/vision-git", body: `{apiVersion: v1, kind: Secret, metadata: {labels: {fleetbroker.io/source: vision}}}`})
	envtest.Eventually(t, "the rights to be in force", func(ctx context.Context) bool { return vision.do(ctx, c) == nil })
	mayNot(t, "the daemon", c, map[string]request{
		"read another Secret":          {"get", secrets, "fleetbroker/fleetbroker-git", ""},
		"read one of that name abroad": {"get", secrets, "shop/vision-git", ""},
		"write a source's Secret":      {"patch", secrets, "fleetbroker/vision-git", touch},
		"delete a source's Secret":     {"delete", secrets, "fleetbroker/vision-git", ""},
	})
	// Who writes the market's objects writes what every provider offers.
	lay(t, home, request{gvr: of("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), at: "consumers", body: everything})
	administrator := user(t, home, "ada", "consumers")
	foreign := map[string]request{
		"advertise a provider":         {"create", adverts, "fleetbroker/oslo", advertisement},
		"advertise a part":             {"create", of("market.fleetbroker.io", "v1alpha1", "advertisementparts"), "fleetbroker/oslo.0", `{apiVersion: market.fleetbroker.io/v1alpha1, kind: AdvertisementPart, spec: {provider: oslo, report: "eA=="}}`},
		"say what a consumer has":      {"create", of("market.fleetbroker.io", "v1alpha1", "observations"), "fleetbroker/rome", `{apiVersion: market.fleetbroker.io/v1alpha1, kind: Observation, spec: {generation: "1.1", replica: a, observedAt: "2026-11-25T12:00:00Z", contracts: 0, report: "eA=="}}`},
		"say whom a replica hears":     {"create", of("market.fleetbroker.io", "v1alpha1", "heartbeats"), "fleetbroker/two", heartbeat},
		"advertise in another's space": {"create", adverts, "shop/oslo", advertisement},
	}
	// Until the binding is in force it is RBAC that refuses, which shows nothing of the policy.
	const refusal = "only the ServiceAccount fleetbroker of the objects' own namespace writes"
	envtest.Eventually(t, "binding and policy to be in force", func(ctx context.Context) bool {
		err := foreign["advertise a provider"].do(ctx, administrator)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), refusal)
	})
	mayNot(t, "an administrator", administrator, foreign, refusal)
}

// TestTheToolsMayApplyAndNoMore asks as the accounts that Flux and Argo CD act as: who
// writes to the ledger's branch gets no more than these.
func TestTheToolsMayApplyAndNoMore(t *testing.T) {
	rome := bare(t, "rome")
	lay(t, rome,
		request{gvr: namespaces, at: "flux-system", body: plain}, request{gvr: namespaces, at: "argocd", body: plain},
		request{gvr: namespaces, at: "shop", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: shop}}}`},
		request{gvr: namespaces, at: "vision", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: vision}}}`},
		request{gvr: accounts, at: "vision/default", body: account},
	)
	install(t, rome, "consumer")
	of := func(tenant, body string) string {
		return strings.Replace(body, "spec:", "metadata: {labels: {fleetbroker.io/tenant: "+tenant+"}}, spec:", 1)
	}
	lay(t, rome,
		request{gvr: slices, at: "liqo-tenant-paris/nlps", body: of("nlp", slice)}, request{gvr: slices, at: "liqo-tenant-paris/visions", body: of("vision", slice)},
	)
	// What Liqo makes of a slice has its name and is owned by it, and has no tenant yet.
	made := func(name, owner string) request {
		return request{gvr: nodes, at: "liqo-tenant-paris/" + name, body: `{apiVersion: offloading.liqo.io/v1beta1, kind: VirtualNode, metadata: {ownerReferences: [{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, name: ` + owner + `, uid: a}]}, spec: {clusterID: paris}}`}
	}
	lay(t, rome, made("vision-flux", "vision-flux"), made("vision-argocd", "vision-argocd"), made("nlp-made", "nlp-made"), made("vision-other", "another"))
	for tool, in := range map[string]string{"flux": "flux-system", "argocd": "argocd"} {
		for _, file := range []string{"accounts.yaml", "vision-rights.yaml"} {
			if out, err := rome.Kubectl(t.Context(), ".", "apply", "-f", base+"/"+tool+"/"+file); err != nil {
				t.Fatal(out, err)
			}
		}
		shared := user(t, rome, "system:serviceaccount:"+in+":fleet-namespaces", "system:serviceaccounts", "system:serviceaccounts:"+in)
		vision := user(t, rome, "system:serviceaccount:"+in+":fleet-vision", "system:serviceaccounts", "system:serviceaccounts:"+in)
		envtest.Eventually(t, "the policy on "+tool+" to be in force", func(ctx context.Context) bool {
			return apierrors.IsForbidden(request{"create", namespaces, "kube-x", plain}.do(ctx, shared)) && request{"apply", slices, "liqo-tenant-paris/a", of("vision", slice)}.do(ctx, vision) == nil
		})
		marks := "kustomize.toolkit.fluxcd.io/name: fleet-namespaces, kustomize.toolkit.fluxcd.io/namespace: flux-system"
		if tool == "argocd" {
			marks = "app.kubernetes.io/instance: fleet-namespaces"
		}
		may(t, tool, shared, map[string]request{
			"make a tenant's namespace":    {"apply", namespaces, "lab", `{apiVersion: v1, kind: Namespace, metadata: {labels: {liqo.io/tenant-namespace: "true", ` + marks + `}, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled, argocd.argoproj.io/sync-options: Prune=false}}}`},
			"take kubectl's note off":      {"patch", namespaces, "liqo-tenant-paris", `{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": null}}}`},
			"offload a tenant's namespace": {"apply", offloadings, "vision/offloading", offload},
			"bound a tenant's namespace":   {"apply", quotas, "vision/fleetbroker", quota},
		})
		may(t, "a tenant's account of "+tool, vision, map[string]request{
			"make a virtual node":        {"apply", nodes, "liqo-tenant-paris/a", node},
			"take over what Liqo made":   {"apply", nodes, "liqo-tenant-paris/vision-" + tool, node},
			"bring its slice up to date": {"patch", slices, "liqo-tenant-paris/visions", touch},
			"end its slice":              {"delete", slices, "liqo-tenant-paris/visions", ""},
		})
		mayNot(t, tool, shared, map[string]request{
			"open a namespace":                   {"patch", namespaces, "shop", opens},
			"make an open namespace":             {"create", namespaces, "evil", `{apiVersion: v1, kind: Namespace, metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}}`},
			"touch kube-system":                  {"patch", namespaces, "kube-system", touch},
			"take a namespace out of the guards": {"patch", namespaces, "shop", `{"metadata": {"labels": {"fleetbroker.io/system": "true"}}}`},
			"delete a namespace":                 {"delete", namespaces, "vision", ""},
			"offload another namespace":          {"create", offloadings, "shop/offloading", offload},
			"bound another namespace":            {"create", quotas, "shop/fleetbroker", quota},
			"make a slice":                       {"create", slices, "liqo-tenant-paris/a", of("vision", slice)},
			"make a virtual node":                {"create", nodes, "liqo-tenant-paris/a", node},
			"make a mutation":                    {"create", mutating, "inject", injects},
			"apply a mutation":                   {"apply", mutating, "fleetbroker-inject", injects},
			"bind a mutation":                    {"create", mutatingB, "inject", injectsB},
			"change a guard":                     {"patch", validating, "fleetbroker-intent-guard", touch},
			"change a guard's binding":           {"patch", validatingB, "fleetbroker-intent-guard", touch},
			"change the mutation":                {"patch", mutating, "fleetbroker-intent-tolerations", touch},
			"apply the mutation":                 {"apply", mutating, "fleetbroker-intent-tolerations", injects},
			"change the mutation's binding":      {"patch", mutatingB, "fleetbroker-intent-tolerations", touch},
			"make a policy":                      {"create", validating, "inject", validates},
			"bind a policy":                      {"create", validatingB, "inject", validateB},
			"delete a guard":                     {"delete", validating, "fleetbroker-intent-guard", ""},
			"unbind a guard":                     {"delete", validatingB, "fleetbroker-intent-guard", ""},
			"change the policy that bounds it":   {"patch", validating, "fleetbroker-daemon", touch},
			"make a pod":                         {"create", pods, "vision/a", podOn("", "a")},
			"read a Secret":                      {"get", secrets, "vision/a", ""},
			"lay a Secret":                       {"create", secrets, "liqo-tenant-paris/a", "{apiVersion: v1, kind: Secret}"},
			"make an account":                    {"create", accounts, "vision/a", account},
			"make a token":                       {"token", accounts, "vision/default", tokenOf},
			"bind a role":                        {"create", bindings, "vision/a", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`},
		})
		mayNot(t, "a tenant's account of "+tool, vision, map[string]request{
			"make another's slice":         {"apply", slices, "liqo-tenant-paris/a", of("nlp", slice)},
			"make nobody's slice":          {"apply", slices, "liqo-tenant-paris/a", slice},
			"take another's slice":         {"apply", slices, "liqo-tenant-paris/nlps", of("vision", slice)},
			"end another's slice":          {"delete", slices, "liqo-tenant-paris/nlps", ""},
			"make another's virtual node":  {"apply", nodes, "liqo-tenant-paris/a", strings.ReplaceAll(node, "vision", "nlp")},
			"take over another's node":     {"apply", nodes, "liqo-tenant-paris/nlp-made", node},
			"take over what no slice made": {"apply", nodes, "liqo-tenant-paris/vision-other", node},
			"make a slice elsewhere":       {"apply", slices, "vision/a", of("vision", slice)},
			"make a namespace":             {"create", namespaces, "a", plain},
			"write what it may use":        {"patch", namespaces, "vision", `{"metadata": {"annotations": {"fleetbroker.io/intents": "nlp.serve"}}}`},
			"offload":                      {"create", offloadings, "vision/offloading", offload},
			"bound":                        {"create", quotas, "vision/fleetbroker", quota},
			"change a policy":              {"patch", validating, "fleetbroker-intent-guard", touch},
			"make a mutation":              {"create", mutating, "inject", injects},
			"read a Secret of the peering": {"get", secrets, "liqo-tenant-paris/a", ""},
			"make a pod":                   {"create", pods, "vision/a", podOn("", "a")},
			"make a token":                 {"token", accounts, "vision/default", tokenOf},
		})
	}
}

// TestArgoCDsControllerWritesNoGrants: by itself, where its impersonation is not enforced,
// Argo CD's controller compares what a namespace may use and does not write it, though it
// is an administrator; all else of a namespace it writes.
func TestArgoCDsControllerWritesNoGrants(t *testing.T) {
	rome := bare(t, "rome")
	lay(t, rome,
		request{gvr: of("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), at: "consumers", body: everything},
		request{gvr: namespaces, at: "shop", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: shop}}}`},
		request{gvr: namespaces, at: "vision", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: vision}, annotations: {fleetbroker.io/intents: vision.train}}}`},
	)
	install(t, rome, "consumer")
	controller := user(t, rome, "system:serviceaccount:argocd:argocd-application-controller", "consumers")
	apply := func(ctx context.Context, name, body string) error {
		_, err := controller.Resource(namespaces).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	const takes = `{"metadata": {"labels": {"fleetbroker.io/tenant": "vision"}}}`
	tries := 0
	envtest.Eventually(t, "the policy to be in force", func(ctx context.Context) bool {
		tries++ // each another value: what is so already may be written
		return apierrors.IsForbidden(apply(ctx, "shop", fmt.Sprintf(`{"metadata": {"labels": {"fleetbroker.io/managed": "%d"}}}`, tries)))
	})
	for what, r := range map[string]struct{ name, body string }{
		"give a namespace to a tenant": {"shop", takes},
		"take it from a tenant":        {"vision", `{"metadata": {"labels": {"fleetbroker.io/tenant": null}}}`},
		"grant an intent":              {"vision", `{"metadata": {"annotations": {"fleetbroker.io/intents": "vision.train,nlp.serve"}}}`},
		"take an intent":               {"vision", `{"metadata": {"annotations": {"fleetbroker.io/intents": null}}}`},
		"choose an intent's pods":      {"vision", `{"metadata": {"annotations": {"pods.fleetbroker.io/vision.train": "app=llm"}}}`},
	} {
		if err := apply(t.Context(), r.name, r.body); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "as fleet-namespaces alone") {
			t.Errorf("it may %s: %v", what, err)
		}
		may(t, "Argo CD's controller", controller, map[string]request{"compare what would " + what: {"patch", namespaces, r.name, r.body}})
	}
	if err := apply(t.Context(), "vision", `{"metadata": {"labels": {"team": "vision"}}}`); err != nil {
		t.Errorf("it may not write a label of others: %v", err)
	}
}
