//go:build e2e

package install

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/flux"
)

// fleetRepo is a fleet repo that init made, with further clusters.
func fleetRepo(t *testing.T, clusters map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	program(t, "init", dir)
	for name, spec := range clusters {
		text := "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
		if err := os.WriteFile(filepath.Join(dir, "clusters", name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// program runs the fleetbroker command.
func program(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "fleetbroker"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("fleetbroker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// installed applies what `fleetbroker install` writes for a cluster, twice: the second
// time changes nothing.
func installed(t *testing.T, repo string, cluster *env.Cluster) {
	t.Helper()
	dir := filepath.Join(repo, "install", "clusters", cluster.Name)
	program(t, "install", cluster.Name, "-C", repo, "-o", dir, "--broker-url", "https://broker.acme.example:8443", "--image", "ghcr.io/acme/fleet-agent:v1", "--repo-url", "https://git.acme.example/fleet.git")
	if out, err := cluster.Kubectl(t.Context(), ".", "apply", "-k", dir); err != nil {
		t.Fatalf("apply %s: %v\n%s", dir, err, out)
	}
	out, err := cluster.Kubectl(t.Context(), ".", "apply", "-k", dir)
	if err != nil {
		t.Fatalf("apply %s again: %v\n%s", dir, err, out)
	}
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") && !strings.Contains(line, "admissionpolicy.") && !strings.Contains(line, "poddisruptionbudget.") { // kubectl sends those always
			t.Errorf("the second time: %s", line)
		}
	}
}

// TestInstallCluster_ConsumerAndProviderInOne: a cluster that takes and gives has the
// rights and the bounds of both, for just its peers.
func TestInstallCluster_ConsumerAndProviderInOne(t *testing.T) {
	repo := fleetRepo(t, map[string]string{"bern": "{roles: [consumer, provider]}", "milan": "{roles: [consumer, provider], liqo: {clusterID: milano}}"})
	bern := bare(t, "bern")
	lay(t, bern,
		request{gvr: namespaces, at: "vision", body: `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: vision}}}`},
		request{gvr: of("rbac.authorization.k8s.io", "v1", "clusterroles"), at: "liqo-remote-controlplane", body: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: []}`},
	)
	installed(t, repo, bern)
	c := as(t, bern, "fleetbroker")
	envtest.Eventually(t, "both policies on the daemon to be in force", func(ctx context.Context) bool {
		return apierrors.IsForbidden(request{"create", namespaces, "kube-x", plain}.do(ctx, c)) && apierrors.IsForbidden(request{"create", accounts, "liqo-tenant-milano/other", account}.do(ctx, c))
	})
	const labelled = `{apiVersion: v1, kind: Namespace, metadata: {labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: milano, fleetbroker.io/managed: "true"}}}`
	may(t, "the daemon", c, map[string]request{
		"make a tenant's namespace":     {"apply", namespaces, "nlp", `{apiVersion: v1, kind: Namespace, metadata: {labels: {fleetbroker.io/tenant: nlp}, annotations: {fleetbroker.io/intents: nlp.a}}}`},
		"offload a tenant's namespace":  {"apply", offloadings, "vision/offloading", offload},
		"ask milan for capacity":        {"apply", slices, "liqo-tenant-milano/a", slice},
		"mark the namespace for both":   {"apply", namespaces, "liqo-tenant-milano", labelled},
		"lay milan's Secret":            {"create", secrets, "liqo-tenant-milano/a", "{apiVersion: v1, kind: Secret}"},
		"lay paris' Secret":             {"create", secrets, "liqo-tenant-paris/a", "{apiVersion: v1, kind: Secret}"},
		"make milan's account":          {"apply", accounts, "liqo-tenant-milano/liqo-consumer-milano", account},
		"make rome's account":           {"apply", accounts, "liqo-tenant-rome/liqo-consumer-rome", account},
		"make milan's tenant":           {"apply", tenants, "liqo-tenant-milano/milano", `{apiVersion: authentication.liqo.io/v1beta1, kind: Tenant, spec: {clusterID: milano, authzPolicy: TolerateNoHandshake}}`},
		"renew its own token":           {"token", accounts, "fleetbroker/fleetbroker", tokenOf},
		"tell what it does not deliver": {"create", events, "fleetbroker/a", event},
	})
	mayNot(t, "the daemon", c, map[string]request{
		"open a namespace":             {"patch", namespaces, "vision", opens},
		"open a peering":               {"patch", namespaces, "liqo-tenant-milano", opens},
		"open the class default":       {"patch", namespaces, "liqo-tenant-milano", `{"metadata": {"labels": {"fleetbroker.io/class-default": "open"}}}`},
		"make an account for paris":    {"create", accounts, "liqo-tenant-paris/liqo-consumer-paris", account},
		"lay a Secret for rome":        {"create", secrets, "liqo-tenant-rome/a", "{apiVersion: v1, kind: Secret}"},
		"make another account":         {"create", accounts, "liqo-tenant-milano/other", account},
		"bind another role":            {"create", bindings, "liqo-tenant-milano/liqo-consumer-milano", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`},
		"make a token of a neighbour":  {"token", accounts, "fleetbroker/default", tokenOf},
		"make a token of bern's agent": {"token", accounts, "fleetbroker/fleet-agent", tokenOf},
	})
	if out, err := bern.Kubectl(t.Context(), ".", "-n", "fleetbroker", "get", "deployment", "fleet-agent", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].args}"); err != nil || !strings.HasPrefix(out, "ghcr.io/acme/fleet-agent:v1 ") || !strings.Contains(out, `"--cluster-id=bern","--broker-url=https://broker.acme.example:8443"`) {
		t.Errorf("the agent is %s (%v)", out, err)
	}
}

// TestInstallCluster_ForFlux: where Flux applies it has an account for each tenant, bound
// in the namespaces of its peers, and held to its tenant.
func TestInstallCluster_ForFlux(t *testing.T) {
	repo := fleetRepo(t, map[string]string{"rome": "{roles: [consumer], delivery: flux}"})
	rome := bare(t, "rome")
	if err := flux.InstallCRDs(t.Context(), rome.Config); err != nil {
		t.Fatal(err)
	}
	lay(t, rome, request{gvr: namespaces, at: "flux-system", body: plain})
	installed(t, repo, rome)
	if out, err := rome.Kubectl(t.Context(), ".", "-n", "flux-system", "get", "kustomizations.kustomize.toolkit.fluxcd.io,gitrepositories", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.path}{.spec.url}{'\\n'}{end}"); err != nil ||
		out != "fleet-namespaces ./manifests/rome/namespaces\nfleet-vision ./manifests/rome/vision\nfleet-ledger https://git.acme.example/fleet.git\n" {
		t.Errorf("Flux has\n%s (%v)", out, err)
	}
	if out, err := rome.Kubectl(t.Context(), ".", "auth", "can-i", "create", "virtualnodes.offloading.liqo.io", "-n", "liqo-tenant-paris", "--as", "system:serviceaccount:flux-system:fleet-vision"); err != nil || strings.TrimSpace(out) != "yes" {
		t.Errorf("the tenant's account: %s (%v)", out, err)
	}
}

var full = flag.Bool("full", false, "also on the oldest servers that are worked with, which are built first")

// TestInstallCluster_Webhook: what is written for `admission: webhook` is taken by API
// servers without MutatingAdmissionPolicy, the oldest included, and no policy of that kind
// is in it.
func TestInstallCluster_Webhook(t *testing.T) {
	const v1 = "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
	servers := map[string]env.ClusterOptions{"": {APIServerArgs: []string{"--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy", "--runtime-config=" + v1 + "ies=false," + v1 + "ybindings=false"}}}
	if *full {
		servers["1.30"], servers["1.33"] = env.ClusterOptions{Kubernetes: "1.30"}, env.ClusterOptions{Kubernetes: "1.33"}
	}
	repo := fleetRepo(t, map[string]string{"bern": "{roles: [consumer, provider], admission: webhook}", "milan": "{roles: [consumer, provider]}"})
	for version, options := range servers {
		t.Run("on "+version, func(t *testing.T) {
			options.Name = "bern"
			bern := envtest.Cluster(t, options)
			if err := env.InstallLiqoCRDs(t.Context(), bern.Config); err != nil {
				t.Fatal(err)
			}
			installed(t, repo, bern)
			out, err := bern.Kubectl(t.Context(), "", "get", "mutatingwebhookconfigurations", "-o", "jsonpath={.items[*].webhooks[*].clientConfig.service.path}")
			if err != nil || out != "/pods /resourcerequests" {
				t.Errorf("webhooks: %q, %v", out, err)
			}
			if out, err := bern.Kubectl(t.Context(), "", "get", "mutatingadmissionpolicies"); err == nil {
				t.Errorf("the server serves policies, so that nothing was tried: %s", out)
			}
		})
	}
}
