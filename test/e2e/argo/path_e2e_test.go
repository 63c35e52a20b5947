//go:build e2e

package argo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/argo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// intent asks for GPUs in rome for a tenant's namespace of the tenant's name.
func intent(tenant, name string, gpus int) string {
	return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %s, namespace: %s}
spec:
  consumer: rome
  resources: {cpu: "4", memory: 16Gi, pods: "20", ephemeral-storage: 20Gi, gpu: {count: %d, models: [nvidia-h100]}}
  offload: {namespaces: [{name: %[2]s, create: true, quota: true, podOffloadingStrategy: Remote}]}
`, name, tenant, gpus)
}

const (
	resourceSlices = "resourceslices.authentication.liqo.io"
	virtualNodes   = "virtualnodes.offloading.liqo.io"
	peering        = "liqo-tenant-paris"
)

// follow has Argo CD apply the ledger by the template's objects.
func (f *fleet) follow() {
	f.t.Helper()
	dir := f.t.TempDir()
	for _, name := range []string{"kustomization.yaml", "accounts.yaml", "vision-rights.yaml", "projects.yaml", "namespaces.yaml", "vision.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(f.here(f.read("install/argocd/"+name))), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	f.on(f.hub, "apply", "-k", dir)
}

// The daemon commits and Argo CD applies, as the tenant's account: to Active, back after
// drift, and to the end. What another account writes to the ledger meanwhile is refused
// by the project or by the account's rights.
func TestThroughArgoCD(t *testing.T) {
	f := start(t, true, nil)
	rome := f.Clusters["rome"]
	f.Put("vision", "train", intent("vision", "train", 2))
	train := f.Contract("vision", "train", "Reserved", "Peering")
	f.follow()
	f.Contract("vision", "train", "Active")
	f.says(rome, "2", "get", "node", train, "-o", `jsonpath={.status.allocatable.nvidia\.com/gpu}`)
	f.application("fleet-vision", "Synced Healthy")
	f.application("fleet-namespaces", "Synced Healthy")
	f.health("fleet-vision", "ResourceSlice", "Healthy: granted")
	f.health("fleet-vision", "VirtualNode", "Healthy: running")
	f.health("fleet-namespaces", "NamespaceOffloading", "Healthy: Ready")
	if got := f.on(rome, "get", resourceSlices, train, "-n", peering, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}"); !strings.Contains(got, "argocd-controller") || strings.Contains(got, "fleetbroker") {
		t.Errorf("the slice was written by %s", got)
	}
	f.quiet()
	f.drift(train)
	f.as()
	f.evil()

	// One source of several, as where a platform's own repo has the rest.
	f.on(f.hub, "patch", applications, "fleet-vision", "-n", argo.Namespace, "--type", "merge", "-p", fmt.Sprintf(
		`{"spec":{"source":null,"sources":[{"repoURL":%[1]q,"targetRevision":"main","ref":"inputs"},{"repoURL":%[1]q,"targetRevision":"ledger","path":"manifests/rome/vision"}]}}`, f.Git.URL(rig.Repo)))
	f.Put("vision", "serve", intent("vision", "serve", 1))
	f.Contract("vision", "serve", "Active")

	// The release of both, in its two commits each, with nobody's help: Argo CD prunes nothing
	// that has an owner, and Liqo makes the slice the owner of its virtual node.
	for _, name := range []string{"serve", "train"} {
		f.Remove("vision", name)
		contract := f.Contract("vision", name, "Releasing", "Released")
		f.Contract("vision", name, "Released")
		f.drained(contract)
	}
	f.says(rome, "", "get", resourceSlices+","+virtualNodes+",nodes", "-A", "-l", "app.kubernetes.io/managed-by=fleetbroker", "-o", "name")
	f.says(rome, "vision", "get", "namespace", "vision", "-o", "jsonpath={.metadata.name}")
	f.application("fleet-vision", "Synced Healthy")
	f.Sound()
}

// drained fails the test unless a contract's virtual node was deleted first, then its Node by
// Liqo, and the slice last; both by Argo CD as the tenant's account, because a contract that
// names its nodes has its virtual nodes in the ledger too.
func (f *fleet) drained(contract string) {
	f.t.Helper()
	calls, err := f.Clusters["rome"].Calls("")
	if err != nil {
		f.t.Fatal(err)
	}
	var order []string
	for _, c := range calls {
		of := c.Verb == "delete" && c.Name == contract && c.Status < 300 && !strings.Contains(c.URI, "dryRun")
		if of && slices.Contains([]string{"virtualnodes", "nodes", "resourceslices"}, c.Resource) && !slices.ContainsFunc(order, func(o string) bool { return strings.HasPrefix(o, c.Resource+" ") }) {
			by := c.User
			if c.As != "" {
				by = c.As
			}
			order = append(order, c.Resource+" by "+by)
		}
	}
	want := []string{"virtualnodes by system:serviceaccount:argocd:fleet-vision", "nodes by system:serviceaccount:liqo:liqo-controller-manager", "resourceslices by system:serviceaccount:argocd:fleet-vision"}
	if !slices.Equal(order, want) {
		f.t.Errorf("%s was released in the order\n%s, want\n%s", contract, strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
}

// refreshed has Argo CD compare everything again.
func (f *fleet) refreshed() {
	f.t.Helper()
	if err := f.argo.Refresh(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.says(f.hub, "", "get", applications, "-n", argo.Namespace, "-o", `jsonpath={.items[*].metadata.annotations.argocd\.argoproj\.io/refresh}`)
}

// quiet fails the test when Argo CD, asked to look again, writes anything that is as
// the ledger says.
func (f *fleet) quiet() {
	f.t.Helper()
	f.refreshed() // what was under way
	before := len(f.writes())
	for range 2 {
		f.refreshed()
	}
	if now := f.writes(); len(now) > before {
		f.t.Errorf("nothing is to be done, and Argo CD wrote:\n%s", now[before:])
	}
}

// drift changes and deletes what Argo CD applied; it puts both back.
func (f *fleet) drift(train string) {
	f.t.Helper()
	rome := f.Clusters["rome"]
	f.on(rome, "patch", resourceSlices, train, "-n", peering, "--type", "merge", "-p", `{"metadata":{"labels":{"fleetbroker.io/contract":"another"}}}`)
	f.says(rome, train, "get", resourceSlices, train, "-n", peering, "-o", `jsonpath={.metadata.labels.fleetbroker\.io/contract}`)
	const quota = "resourcequotas"
	before := f.on(rome, "get", quota, "-n", "vision", "-o", "jsonpath={.items[*].metadata.uid}")
	if before == "" {
		f.t.Fatal("namespace vision has no quota")
	}
	f.on(rome, "delete", quota, "--all", "-n", "vision")
	f.Eventually("the quota is back", func() error {
		after, err := rome.Kubectl(f.ctx, f.Dir, "get", quota, "-n", "vision", "-o", "jsonpath={.items[*].metadata.uid}")
		if err == nil && (after == "" || after == before) {
			err = fmt.Errorf("quotas are %q, were %q", after, before)
		}
		return err
	})
	f.application("fleet-vision", "Synced Healthy")
	f.application("fleet-namespaces", "Synced Healthy")
}

// as fails the test when Argo CD wrote anything as another account than the project's.
func (f *fleet) as() {
	f.t.Helper()
	seen := map[string]bool{}
	for _, c := range f.writes() {
		want := "fleet-namespaces"
		if c.Namespace == peering && (c.Resource == "resourceslices" || c.Resource == "virtualnodes") {
			want = "fleet-vision"
		}
		seen[want] = true
		if c.As != "system:serviceaccount:argocd:"+want {
			f.t.Errorf("Argo CD wrote as another account than %s: %s", want, c)
		}
	}
	if len(seen) != 2 {
		f.t.Errorf("of two accounts only %v wrote", seen)
	}
}

// evil has another account push to the ledger while the daemon is away. Argo CD verifies
// no SSH signature: what bounds it are the projects and the accounts.
func (f *fleet) evil() {
	f.t.Helper()
	if err := f.daemon.Kill(); err != nil {
		f.t.Fatal(err)
	}
	// A kind and a namespace that a tenant's project has not.
	f.push("manifests/rome/vision", map[string]string{
		"evil.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: evil}\n",
		"there.yaml": "apiVersion: authentication.liqo.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: evil, namespace: kube-system}\nspec: {class: fleetbroker, providerClusterID: paris}\n",
	})
	f.refused("fleet-vision", "is not permitted in project fleet-vision", "namespace kube-system is not permitted in project")
	// A kind that the project of namespaces has, with a label that its account may not set.
	f.push("manifests/rome/namespaces", map[string]string{
		"evil.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: evil, labels: {pod-security.kubernetes.io/enforce: privileged}}\n",
	})
	f.refused("fleet-namespaces", "evil", "denied request")
	rome := f.Clusters["rome"]
	if out := f.on(rome, "get", "namespaces,"+resourceSlices, "-A", "-o", "name"); strings.Contains(out, "evil") {
		f.t.Errorf("what another account pushed was applied:\n%s", out)
	}
	if err := f.daemon.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.application("fleet-vision", "Synced Healthy") // it is undone
	f.application("fleet-namespaces", "Synced Healthy")
	f.heard()
}
