//go:build e2e

package install

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// kubelet is a virtual node as Liqo's webhook leaves it: with the Deployment that Liqo runs.
func kubelet(image, arguments, pod, more string) string {
	template := `template: {metadata: {name: vision-a, namespace: liqo-tenant-paris}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: virtual-kubelet, ` +
		pod + ` containers: [{name: vk, image: ` + image + `, args: [` + arguments + `]}]}}}}`
	return strings.Replace(node, "spec: {", "spec: {"+more+template+", ", 1)
}

// TestWaysRoundTheRights asks, as the accounts that write to a consumer and a provider, for
// what their rights do not name and what follows from it all the same: the garbage
// collector deletes what has an owner that does not exist, Liqo mirrors each namespace of
// a NamespaceMap, and runs the Deployment in a virtual node.
func TestWaysRoundTheRights(t *testing.T) {
	rome := bare(t, "rome")
	maps := of("offloading.liqo.io", "v1beta1", "namespacemaps")
	templates := of("offloading.liqo.io", "v1beta1", "vkoptionstemplates")
	lay(t, rome,
		request{gvr: namespaces, at: "flux-system", body: plain}, request{gvr: namespaces, at: "liqo", body: plain},
		request{gvr: namespaces, at: "shop", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: shop}}}`},
	)
	install(t, rome, "consumer")
	for _, file := range []string{"accounts.yaml", "vision-rights.yaml"} {
		if out, err := rome.Kubectl(t.Context(), ".", "apply", "-f", base+"/flux/"+file); err != nil {
			t.Fatal(out, err)
		}
	}
	const honest = `"--nodename=vision-a", "--create-node=true", "--foreign-kubeconfig-secret-name=a"`
	lay(t, rome,
		request{gvr: templates, at: "liqo/virtual-kubelet-default", body: `{apiVersion: offloading.liqo.io/v1beta1, kind: VkOptionsTemplate, spec: {containerImage: "ghcr.io/liqotech/virtual-kubelet:v1.2.0", createNode: true, disableNetworkCheck: false, metricsEnabled: false, reflectorsConfig: {}}}`},
		request{gvr: maps, at: "liqo-tenant-paris/paris", body: `{apiVersion: offloading.liqo.io/v1beta1, kind: NamespaceMap, spec: {desiredMapping: {vision: vision-rome}}}`},
		request{gvr: nodes, at: "liqo-tenant-paris/vision-a", body: kubelet("ghcr.io/liqotech/virtual-kubelet:v1.2.0", honest, "", "")},
	)
	const orphan = `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0d3c2f0e-0000-4000-8000-000000000000"}]}}`
	const keeps = `{"metadata": {"finalizers": ["example.org/a"]}}`
	inTemplate := func(path string) string {
		return `{"spec": {"template": ` + path + `}}`
	}
	inPod := func(fields string) string { return inTemplate(`{"spec": {"template": {"spec": {` + fields + `}}}}`) }
	container := func(fields string) string { return inPod(`"containers": [{"name": "vk", ` + fields + `}]`) }
	const image = `"image": "ghcr.io/liqotech/virtual-kubelet:v1.2.0"`

	daemon := as(t, rome, "fleetbroker")
	vision := user(t, rome, "system:serviceaccount:flux-system:fleet-vision", "system:serviceaccounts")
	shared := user(t, rome, "system:serviceaccount:flux-system:fleet-namespaces", "system:serviceaccounts")
	envtest.Eventually(t, "the policies to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"create", namespaces, "kube-x", plain}.do(ctx, daemon)) &&
			apierrors.IsForbidden(request{"create", nodes, "liqo-tenant-paris/vision-b", kubelet("evil.example.org/a:1", honest, "", "")}.do(ctx, daemon))
	})
	may(t, "the daemon", daemon, map[string]request{
		"remind Liqo of a namespace":           {"patch", maps, "liqo-tenant-paris/paris", `{"metadata": {"annotations": {"fleetbroker.io/reminded": "x"}}}`},
		"make a virtual node that Liqo fills":  {"create", nodes, "liqo-tenant-paris/vision-b", kubelet("ghcr.io/liqotech/virtual-kubelet:v1.2.0", honest, "", "")},
		"apply one that is filled":             {"apply", nodes, "liqo-tenant-paris/vision-a", node},
		"name another Secret, as Liqo does it": {"patch", nodes, "liqo-tenant-paris/vision-a", container(image + `, "args": ["--nodename=vision-a", "--create-node=false", "--foreign-kubeconfig-secret-name=b", "--node-check-network=false"]`)},
	})
	owned := map[string]request{
		"delete a namespace by an owner":        {"patch", namespaces, "shop", orphan},
		"make one that is deleted by its owner": {"create", namespaces, "lab", strings.Replace(plain, "}", ", metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: a}]}}", 1)},
		"keep a namespace from being deleted":   {"patch", namespaces, "shop", keeps},
	}
	mayNot(t, "the daemon", daemon, owned, "denied request")
	mayNot(t, "Flux's account", shared, owned, "denied request")
	mayNot(t, "the daemon", daemon, map[string]request{
		"mirror another namespace":  {"patch", maps, "liqo-tenant-paris/paris", `{"spec": {"desiredMapping": {"kube-system": "loot"}}}`},
		"delete a map by an owner":  {"patch", maps, "liqo-tenant-paris/paris", orphan},
		"label a map":               {"patch", maps, "liqo-tenant-paris/paris", `{"metadata": {"labels": {"a": "b"}}}`},
		"annotate a map for others": {"patch", maps, "liqo-tenant-paris/paris", `{"metadata": {"annotations": {"liqo.io/a": "b"}}}`},
	}, "denied request")
	changed := func(body string) request { return request{"patch", nodes, "liqo-tenant-paris/vision-a", body} }
	runs := map[string]request{
		"run another image":                    changed(container(`"image": "evil.example.org/a:1"`)),
		"run another image from the start":     {"create", nodes, "liqo-tenant-paris/vision-b", kubelet("evil.example.org/a:1", honest, "", "")},
		"run a pod with the host's files":      changed(inPod(`"volumes": [{"name": "a", "hostPath": {"path": "/"}}]`)),
		"run a pod on the host's network":      changed(inPod(`"hostNetwork": true`)),
		"run a pod as another account":         changed(inPod(`"serviceAccountName": "default"`)),
		"run a pod with privileges":            changed(container(image + `, "args": [` + honest + `], "securityContext": {"privileged": true}`)),
		"run another command":                  changed(container(image + `, "args": [` + honest + `], "command": ["sh"]`)),
		"run it with other arguments":          changed(container(image + `, "args": [` + honest + `, "--home-cluster-id=oslo"]`)),
		"run a container next to it":           changed(inPod(`"containers": [{"name": "vk", ` + image + `, "args": [` + honest + `]}, {"name": "b", ` + image + `}]`)),
		"run a container before it":            changed(inPod(`"initContainers": [{"name": "b", "image": "evil.example.org/a:1"}]`)),
		"run it in another namespace":          changed(inTemplate(`{"metadata": {"namespace": "kube-system"}}`)),
		"take the pods of others":              changed(inTemplate(`{"spec": {"selector": {"matchLabels": {"k8s-app": "kube-dns"}}}}`)),
		"take the template away":               changed(`{"spec": {"template": null}}`),
		"name another template":                changed(`{"spec": {"vkOptionsTemplateRef": {"name": "evil", "namespace": "shop"}}}`),
		"name another template from the start": {"create", nodes, "liqo-tenant-paris/vision-b", kubelet("ghcr.io/liqotech/virtual-kubelet:v1.2.0", honest, "", "vkOptionsTemplateRef: {name: evil, namespace: shop}, ")},
	}
	mayNot(t, "the daemon", daemon, runs, "denied request")
	mayNot(t, "a tenant's account", vision, runs, "denied request")

	paris := bare(t, "paris")
	install(t, paris, "provider")
	peer := as(t, paris, "fleetbroker")
	envtest.Eventually(t, "the policy on the daemon to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"patch", namespaces, "liqo-tenant-rome", opens}.do(ctx, peer))
	})
	mayNot(t, "the daemon on a provider", peer, map[string]request{
		"delete a peering's namespace by an owner":      {"patch", namespaces, "liqo-tenant-rome", orphan},
		"keep a peering's namespace from being deleted": {"patch", namespaces, "liqo-tenant-rome", keeps},
	}, "denied request")

	install(t, paris, "agent")
	requests := of("fleetbroker.io", "v1alpha1", "resourcerequests")
	lay(t, paris, request{gvr: namespaces, at: "shop", body: plain})
	envtest.Eventually(t, "requests to be served", func(ctx context.Context) bool {
		err := request{"create", requests, "shop/a", asked}.do(ctx, as(t, paris, ""))
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	lay(t, paris, request{gvr: requests, at: "shop/a", body: asked})
	agent := as(t, paris, "fleet-agent")
	envtest.Eventually(t, "the policy on the agent to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"create", events, "shop/a", event}.do(ctx, agent))
	})
	may(t, "the agent", agent, map[string]request{"hold on to what is asked for": {"patch", requests, "shop/a", keeps}})
	mayNot(t, "the agent", agent, map[string]request{"delete what others ask for by an owner": {"patch", requests, "shop/a", orphan}}, "denied request")
}

const asked = `{apiVersion: fleetbroker.io/v1alpha1, kind: ResourceRequest, spec: {resources: {cpu: "1", memory: 1Gi}, duration: 8h}}`
