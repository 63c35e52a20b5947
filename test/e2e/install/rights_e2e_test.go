//go:build e2e

package install

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// request is what the daemon's account asks for, without doing it.
type request struct {
	verb string
	gvr  schema.GroupVersionResource
	at   string // namespace/name
	body string // of create and apply, without what at says; the patch of patch
}

func of(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

var (
	namespaces  = of("", "v1", "namespaces")
	pods        = of("", "v1", "pods")
	quotas      = of("", "v1", "resourcequotas")
	secrets     = of("", "v1", "secrets")
	accounts    = of("", "v1", "serviceaccounts")
	slices      = of("authentication.liqo.io", "v1beta1", "resourceslices")
	tenants     = of("authentication.liqo.io", "v1beta1", "tenants")
	nodes       = of("offloading.liqo.io", "v1beta1", "virtualnodes")
	offloadings = of("offloading.liqo.io", "v1beta1", "namespaceoffloadings")
	validating  = of("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
	validatingB = of("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
	mutating    = of("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies")
	mutatingB   = of("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings")
	events      = of("events.k8s.io", "v1", "events")
	bindings    = of("rbac.authorization.k8s.io", "v1", "rolebindings")
)

const (
	injects   = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, spec: {reinvocationPolicy: Never, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{hostNetwork: true}}"}}]}}`
	injectsB  = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, spec: {policyName: inject}}`
	validates = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, validations: [{expression: "false"}]}}`
	validateB = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, spec: {policyName: inject, validationActions: [Deny]}}`
	plain     = `{apiVersion: v1, kind: Namespace}`
	quota     = `{apiVersion: v1, kind: ResourceQuota, metadata: {labels: {app.kubernetes.io/managed-by: fleetbroker}}, spec: {hard: {pods: "1"}}}`
	offload   = `{apiVersion: offloading.liqo.io/v1beta1, kind: NamespaceOffloading, metadata: {labels: {app.kubernetes.io/managed-by: fleetbroker}}, spec: {podOffloadingStrategy: Remote, namespaceMappingStrategy: DefaultName}}`
	slice     = `{apiVersion: authentication.liqo.io/v1beta1, kind: ResourceSlice, spec: {class: default, providerClusterID: paris}}`
	node      = `{apiVersion: offloading.liqo.io/v1beta1, kind: VirtualNode, metadata: {labels: {fleetbroker.io/tenant: vision}}, spec: {clusterID: paris, labels: {fleetbroker.io/intent: a, fleetbroker.io/tenant: vision}, taints: [{key: fleetbroker.io/intent, value: a, effect: NoSchedule}]}}`
	tokenOf   = `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 600}}`
	event     = `{apiVersion: events.k8s.io/v1, kind: Event, eventTime: "2026-11-20T12:00:00.000000Z", reportingController: fleetbroker.io/delivery, reportingInstance: a, action: Deliver, reason: NotDelivered, type: Warning}`
	account   = `{apiVersion: v1, kind: ServiceAccount}`
	touch     = `{"metadata": {"annotations": {"fleetbroker.io/applied": "x"}}}`
	opens     = `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`
)

// do asks, with dryRun=All.
func (r request) do(ctx context.Context, c dynamic.Interface) error {
	return synced(ctx, func() error { return r.once(ctx, c) })
}

// synced is what ask answers. Until the API server watches a policy's parameters it refuses
// what the policy is for, whoever asks: that answer is waited for to pass.
func synced(ctx context.Context, ask func() error) error {
	var answer error
	_, err := env.Until(ctx, time.Minute, func() error {
		answer = ask()
		if answer != nil && strings.Contains(answer.Error(), "not yet synced") {
			return answer
		}
		return nil
	})
	return cmp.Or(err, answer)
}

// once is do, without waiting for the policies.
func (r request) once(ctx context.Context, c dynamic.Interface) error {
	namespace, name, found := strings.Cut(r.at, "/")
	if !found {
		namespace, name = "", r.at
	}
	in := dynamic.ResourceInterface(c.Resource(r.gvr))
	if namespace != "" {
		in = c.Resource(r.gvr).Namespace(namespace)
	}
	dry := []string{metav1.DryRunAll}
	switch r.verb {
	case "patch":
		_, err := in.Patch(ctx, name, types.MergePatchType, []byte(r.body), metav1.PatchOptions{DryRun: dry})
		return err
	case "delete":
		return in.Delete(ctx, name, metav1.DeleteOptions{DryRun: dry})
	case "get":
		_, err := in.Get(ctx, name, metav1.GetOptions{})
		return err
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(r.body), &object); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetName(name)
	u.SetNamespace(namespace)
	if r.gvr == events { // of something beside it, as its form demands
		u.Object["regarding"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": namespace}
	}
	if r.verb == "token" {
		_, err := in.Create(ctx, u, metav1.CreateOptions{DryRun: dry}, "token")
		return err
	}
	if r.verb == "create" {
		_, err := in.Create(ctx, u, metav1.CreateOptions{DryRun: dry})
		return err
	}
	_, err := in.Apply(ctx, name, u, metav1.ApplyOptions{DryRun: dry, FieldManager: "fleetbroker", Force: true})
	return err
}

// may holds that a client's requests are let in; keys are what each does, after the
// word may.
func may(t *testing.T, who string, c dynamic.Interface, requests map[string]request) {
	t.Helper()
	for what, r := range requests {
		if err := r.do(t.Context(), c); err != nil {
			t.Errorf("%s may not %s: %v", who, what, err)
		}
	}
}

// mayNot holds that each is forbidden, with an answer that has all of says.
func mayNot(t *testing.T, who string, c dynamic.Interface, requests map[string]request, says ...string) {
	t.Helper()
	for what, r := range requests {
		err := r.do(t.Context(), c)
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s may %s: %v, want it forbidden", who, what, err)
			continue
		}
		for _, text := range says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s may not %s: %v, want %q in it", who, what, err, text)
			}
		}
	}
}

// as is a client that the API server takes for a ServiceAccount of fleetbroker's.
func as(t *testing.T, cluster *env.Cluster, name string) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	if name != "" {
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:fleetbroker:" + name,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:fleetbroker", "system:authenticated"},
		}
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bare is a cluster that knows Liqo's kinds.
func bare(t *testing.T, name string) *env.Cluster {
	t.Helper()
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: name})
	if err := env.InstallLiqoCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func install(t *testing.T, cluster *env.Cluster, b string) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), ".", "apply", "-k", base+"/"+b); err != nil {
		t.Fatalf("apply install/%s: %v\n%s", b, err, out)
	}
}

// lay makes objects as who installs the cluster.
func lay(t *testing.T, cluster *env.Cluster, requests ...request) {
	t.Helper()
	c := as(t, cluster, "")
	for _, r := range requests {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(r.body), &object); err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: object}
		namespace, name, found := strings.Cut(r.at, "/")
		if !found {
			namespace, name = "", r.at
		}
		u.SetName(name)
		in := dynamic.ResourceInterface(c.Resource(r.gvr))
		if namespace != "" {
			u.SetNamespace(namespace)
			in = c.Resource(r.gvr).Namespace(namespace)
		}
		err := synced(t.Context(), func() error {
			_, err := in.Create(t.Context(), u, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			t.Fatalf("%s %s: %v", r.gvr.Resource, r.at, err)
		}
	}
}

func podOn(nodeName, toleration string) string {
	return `{apiVersion: v1, kind: Pod, spec: {nodeName: "` + nodeName + `", containers: [{name: a, image: a}], tolerations: [{key: ` + toleration + `, operator: Equal, value: vision.train, effect: NoSchedule}]}}`
}

// TestTheDaemonMayDoItsWorkOnConsumersAndNoMore asks the real API server as the
// daemon's account, one request a verb and kind.
func TestTheDaemonMayDoItsWorkOnConsumersAndNoMore(t *testing.T) {
	for base, name := range map[string]string{"consumer": "fleetbroker", "consumer-agent": "fleet-agent"} {
		t.Run(base, func(t *testing.T) {
			rome := bare(t, "rome")
			lay(t, rome,
				request{gvr: namespaces, at: "vision", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: vision}, annotations: {fleetbroker.io/intents: vision.train}}}`},
				request{gvr: namespaces, at: "shop", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: shop}}}`},
				request{gvr: accounts, at: "vision/default", body: account}, request{gvr: accounts, at: "shop/default", body: account},
				request{gvr: pods, at: "vision/there", body: podOn("vision-train-0-aaaaaaaa", "fleetbroker.io/intent")},
				request{gvr: pods, at: "vision/home", body: podOn("worker-7", "fleetbroker.io/intent")},
				request{gvr: pods, at: "vision/plain", body: podOn("vision-train-0-aaaaaaaa", "gpu")},
				request{gvr: pods, at: "shop/theirs", body: podOn("vision-train-0-aaaaaaaa", "fleetbroker.io/intent")},
				request{gvr: quotas, at: "vision/fleetbroker", body: quota}, request{gvr: quotas, at: "vision/theirs", body: quota},
				request{gvr: offloadings, at: "vision/offloading", body: offload},
			)
			install(t, rome, base)
			c := as(t, rome, name)
			envtest.Eventually(t, "the policy on the daemon to be in force", func(ctx context.Context) bool {
				return apierrors.IsForbidden(request{"create", namespaces, "kube-x", plain}.do(ctx, c))
			})
			may(t, "the account of "+base, c, map[string]request{
				"make a tenant's namespace":         {"apply", namespaces, "nlp", `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: nlp}, annotations: {fleetbroker.io/intents: nlp.a, pods.fleetbroker.io/nlp.a: app=x, fleetbroker.io/applied: x, kustomize.toolkit.fluxcd.io/prune: disabled}}}`},
				"make a peering's namespace":        {"apply", namespaces, "liqo-tenant-milan", `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/managed: "true", liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: milan}}}`},
				"mark a namespace of others":        {"apply", namespaces, "shop", `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: shop}}}`},
				"offload a tenant's namespace":      {"apply", offloadings, "vision/offloading", offload},
				"end an offloading":                 {"delete", offloadings, "vision/offloading", ""},
				"bound a tenant's namespace":        {"apply", quotas, "vision/fleetbroker", quota},
				"lift a bound":                      {"delete", quotas, "vision/fleetbroker", ""},
				"ask for capacity":                  {"apply", slices, "liqo-tenant-paris/a", slice},
				"make a virtual node":               {"apply", nodes, "liqo-tenant-paris/a", node},
				"delete a pod on a virtual node":    {"delete", pods, "vision/there", ""},
				"lay a peering's Secret":            {"create", secrets, "liqo-tenant-paris/a", "{apiVersion: v1, kind: Secret}"},
				"tell what it does not deliver":     {"create", events, "fleetbroker/a", event},
				"look at the policy that bounds it": {"get", validating, "fleetbroker-daemon", ""},
			})
			mayNot(t, "the account of "+base, c, map[string]request{
				"make a mutation":                       {"create", mutating, "inject", injects},
				"apply a mutation":                      {"apply", mutating, "fleetbroker-inject", injects},
				"bind a mutation":                       {"create", mutatingB, "inject", injectsB},
				"delete a mutation":                     {"delete", mutating, "fleetbroker-intent-tolerations", ""},
				"unbind a mutation":                     {"delete", mutatingB, "fleetbroker-intent-tolerations", ""},
				"change a guard":                        {"patch", validating, "fleetbroker-intent-guard", touch},
				"change a guard's binding":              {"patch", validatingB, "fleetbroker-intent-guard", touch},
				"change the mutation":                   {"patch", mutating, "fleetbroker-intent-tolerations", touch},
				"apply the mutation":                    {"apply", mutating, "fleetbroker-intent-tolerations", injects},
				"change the mutation's binding":         {"patch", mutatingB, "fleetbroker-intent-tolerations", touch},
				"make a policy":                         {"create", validating, "inject", validates},
				"bind a policy":                         {"create", validatingB, "inject", validateB},
				"delete a guard":                        {"delete", validating, "fleetbroker-namespace-guard", ""},
				"unbind a guard":                        {"delete", validatingB, "fleetbroker-namespace-guard", ""},
				"change the policy that bounds it":      {"patch", validating, "fleetbroker-daemon", touch},
				"change that policy's binding":          {"patch", validatingB, "fleetbroker-daemon", touch},
				"delete the policy that bounds it":      {"delete", validating, "fleetbroker-daemon", ""},
				"unbind the policy that bounds it":      {"delete", validatingB, "fleetbroker-daemon", ""},
				"touch kube-system":                     {"patch", namespaces, "kube-system", touch},
				"open kube-system":                      {"patch", namespaces, "kube-system", opens},
				"touch its own namespace":               {"patch", namespaces, "fleetbroker", touch},
				"make a system namespace":               {"create", namespaces, "kube-flannel", plain},
				"open a namespace that is there":        {"patch", namespaces, "shop", opens},
				"open a tenant's namespace":             {"patch", namespaces, "vision", opens},
				"make an open namespace":                {"create", namespaces, "nlp", `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: nlp, pod-security.kubernetes.io/enforce: privileged}}}`},
				"take others' labels":                   {"patch", namespaces, "shop", `{"metadata": {"labels": {"team": null}}}`},
				"label a namespace for injection":       {"patch", namespaces, "vision", `{"metadata": {"labels": {"istio-injection": "enabled"}}}`},
				"annotate a namespace for others":       {"patch", namespaces, "vision", `{"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "a=b"}}}`},
				"delete a namespace":                    {"delete", namespaces, "vision", ""},
				"offload another namespace":             {"create", offloadings, "shop/offloading", offload},
				"offload it twice":                      {"create", offloadings, "vision/two", offload},
				"bound another namespace":               {"create", quotas, "shop/fleetbroker", quota},
				"lift another's bound":                  {"delete", quotas, "vision/theirs", ""},
				"ask for capacity elsewhere":            {"create", slices, "vision/a", slice},
				"make a virtual node elsewhere":         {"create", nodes, "shop/a", node},
				"delete a tenant's pod at home":         {"delete", pods, "vision/home", ""},
				"delete a pod that tolerates no intent": {"delete", pods, "vision/plain", ""},
				"delete a pod of another namespace":     {"delete", pods, "shop/theirs", ""},
				"make a pod":                            {"create", pods, "vision/mine", podOn("", "a")},
				"lay a Secret elsewhere":                {"create", secrets, "vision/a", "{apiVersion: v1, kind: Secret}"},
				"read a Secret elsewhere":               {"get", secrets, "kube-system/a", ""},
				"take a namespace out of the guards":    {"patch", namespaces, "shop", `{"metadata": {"labels": {"fleetbroker.io/system": "true"}}}`},
				"make a token of an account":            {"token", accounts, "vision/default", tokenOf},
				"make a token of its neighbour":         {"token", accounts, "fleetbroker/default", tokenOf},
				"tell events elsewhere":                 {"create", events, "vision/a", event},
				"make an account":                       {"create", accounts, "vision/a", account},
				"bind a role":                           {"create", bindings, "vision/a", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`},
			})
			// Its kubeconfig's token it renews by itself; an agent's is the kubelet's business.
			own := map[string]request{"make a token of its own": {"token", accounts, "fleetbroker/" + name, tokenOf}}
			if name == "fleetbroker" {
				may(t, "the daemon", c, own)
			} else {
				mayNot(t, "the agent", c, own)
			}
		})
	}
}

// TestTheDaemonMayPeerOnProvidersAndNoMore is the same for a provider.
func TestTheDaemonMayPeerOnProvidersAndNoMore(t *testing.T) {
	paris := bare(t, "paris")
	install(t, paris, "provider")
	lay(t, paris,
		request{gvr: accounts, at: "liqo-tenant-rome/liqo-consumer-rome", body: account},
		request{gvr: accounts, at: "kube-system/strong", body: account},
		request{gvr: of("rbac.authorization.k8s.io", "v1", "clusterroles"), at: "liqo-remote-controlplane", body: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`},
	)
	c := as(t, paris, "fleetbroker")
	const tenant = `{apiVersion: authentication.liqo.io/v1beta1, kind: Tenant, metadata: {labels: {liqo.io/remote-cluster-id: rome}}, spec: {clusterID: rome, authzPolicy: TolerateNoHandshake}}`
	bind := func(role string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + role + `}, subjects: [{kind: ServiceAccount, name: liqo-consumer-rome, namespace: liqo-tenant-rome}]}`
	}
	envtest.Eventually(t, "the policy on the daemon to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"patch", namespaces, "liqo-tenant-rome", opens}.do(ctx, c))
	})
	may(t, "the daemon", c, map[string]request{
		"renew its own token":       {"token", accounts, "fleetbroker/fleetbroker", tokenOf},
		"make the account's token":  {"token", accounts, "liqo-tenant-rome/liqo-consumer-rome", tokenOf},
		"mark the tenant namespace": {"apply", namespaces, "liqo-tenant-rome", `{apiVersion: v1, kind: Namespace, metadata: {labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: rome}}}`},
		"make the account":          {"apply", accounts, "liqo-tenant-rome/liqo-consumer-rome", account},
		"look at the account":       {"get", accounts, "liqo-tenant-rome/liqo-consumer-rome", ""},
		"delete the account":        {"delete", accounts, "liqo-tenant-rome/liqo-consumer-rome", ""},
		"bind Liqo's role":          {"apply", bindings, "liqo-tenant-rome/liqo-consumer-rome", bind("liqo-remote-controlplane")},
		"make the tenant":           {"apply", tenants, "liqo-tenant-rome/rome", tenant},
	})
	mayNot(t, "the daemon", c, map[string]request{
		"make a namespace":            {"create", namespaces, "anything", plain},
		"open a namespace":            {"patch", namespaces, "kube-system", opens},
		"delete the tenant namespace": {"delete", namespaces, "liqo-tenant-rome", ""},
		"make an account elsewhere":   {"create", accounts, "kube-system/a", account},
		"change another account":      {"patch", accounts, "kube-system/strong", touch},
		"delete another account":      {"delete", accounts, "kube-system/strong", ""},
		"bind Liqo's role elsewhere":  {"create", bindings, "kube-system/a", bind("liqo-remote-controlplane")},
		"bind another role":           {"create", bindings, "liqo-tenant-rome/a", bind("cluster-admin")},
		"change another binding":      {"patch", bindings, "kube-system/kube-proxy", touch},
		"delete another binding":      {"delete", bindings, "liqo-tenant-rome/other", ""},
		"make a tenant elsewhere":     {"create", tenants, "kube-system/rome", tenant},
		"delete another tenant":       {"delete", tenants, "liqo-tenant-rome/milan", ""},
		"make a token of another":     {"token", accounts, "kube-system/strong", tokenOf},
		"make a token of a neighbour": {"token", accounts, "liqo-tenant-rome/default", tokenOf},
		"make another account":        {"create", accounts, "liqo-tenant-rome/other", account},
		"open the peering":            {"patch", namespaces, "liqo-tenant-rome", opens},
		"open the class default":      {"patch", namespaces, "liqo-tenant-rome", `{"metadata": {"labels": {"fleetbroker.io/class-default": "open"}}}`},
		"bind Liqo's role to another": {"apply", bindings, "liqo-tenant-rome/liqo-consumer-rome", strings.Replace(bind("liqo-remote-controlplane"), "{kind: ServiceAccount, name: liqo-consumer-rome", "{kind: ServiceAccount, name: default", 1)},
		"close or open doors":         {"delete", validatingB, "fleetbroker-class-default", ""},
		"change what bounds it":       {"patch", validating, "fleetbroker-daemon-peers", touch},
		"unbind what bounds it":       {"delete", validatingB, "fleetbroker-daemon-peers", ""},
		"lay a Secret":                {"create", secrets, "liqo-tenant-rome/a", "{apiVersion: v1, kind: Secret}"},
		"make a slice":                {"create", slices, "liqo-tenant-rome/a", slice},
		"read a Secret":               {"get", secrets, "liqo-tenant-rome/a", ""},
		"make a mutation":             {"create", mutating, "inject", injects},
		"look at pods of others":      {"get", pods, "kube-system/a", ""},
	})
}
