//go:build e2e && full

package argo

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/argo"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

var yamlFence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// set is the ApplicationSet of docs/argocd.md.
func set(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(template + "docs/argocd.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range yamlFence.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], "kind: ApplicationSet\n") {
			return m[1]
		}
	}
	t.Fatal("docs/argocd.md has no ApplicationSet")
	return ""
}

// Argo CD of a hub applies to a consumer that it reaches by a Secret, with an Application
// for each tenant that an ApplicationSet finds on the ledger. What is granted is Liqo's
// to say: it does not run here, so nothing is.
func TestHubAndSpoke(t *testing.T) {
	f := start(t, false, envtest.Cluster(t, env.ClusterOptions{Name: "hub", ControllerManager: true}))
	rome := f.Clusters["rome"]
	if err := f.argo.AddCluster(f.ctx, rome); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("vision", "train", 2))
	train := f.Contract("vision", "train", "Reserved", "Peering")

	// The accounts into the consumer, what Argo CD reads into the hub.
	f.on(rome, "create", "namespace", argo.Namespace)
	f.apply(rome, f.read("install/argocd/accounts.yaml"))
	projects := f.here(f.read("install/argocd/projects.yaml"))
	for _, tenant := range []string{"vision", "nlp"} {
		f.apply(rome, of(tenant, f.read("install/argocd/vision-rights.yaml")))
		f.apply(f.hub, of(tenant, projects))
	}
	f.apply(f.hub, f.here(f.read("install/argocd/namespaces.yaml")))
	f.apply(f.hub, f.here(set(t)))

	f.says(rome, train, "get", resourceSlices, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")
	f.says(rome, train, "get", virtualNodes, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")
	f.application("fleet-namespaces", "Synced Progressing")
	f.application("fleet-vision", "Synced Progressing")
	f.health("fleet-vision", "ResourceSlice", "Progressing: nothing granted yet")
	f.health("fleet-vision", "VirtualNode", "Progressing: VirtualKubelet: None")

	// A tenant's first contract makes its Application.
	f.Put("nlp", "serve", intent("nlp", "serve", 1))
	serve := f.Contract("nlp", "serve", "Reserved", "Peering")
	f.says(rome, serve+" "+train, "get", resourceSlices, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")

	f.on(rome, "delete", resourceSlices, train, "-n", peering)
	f.says(rome, serve+" "+train, "get", resourceSlices, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")
	f.on(rome, "patch", resourceSlices, train, "-n", peering, "--type", "merge", "-p", `{"metadata":{"labels":{"fleetbroker.io/contract":"another"}}}`)
	f.says(rome, train, "get", resourceSlices, train, "-n", peering, "-o", `jsonpath={.metadata.labels.fleetbroker\.io/contract}`)
	for _, c := range f.writes() {
		if c.User != manager || !strings.HasPrefix(c.As, "system:serviceaccount:argocd:fleet-") {
			t.Errorf("the hub wrote as another account than a project's: %s", c)
		}
	}

	f.Remove("vision", "train")
	f.Contract("vision", "train", "Released")
	f.says(rome, serve, "get", resourceSlices, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")

	// Without the ApplicationSet there are no Applications, and all stays where it is.
	f.on(f.hub, "delete", "applicationsets.argoproj.io", "--all", "-n", argo.Namespace)
	f.says(f.hub, "fleet-namespaces", "get", applications, "-n", argo.Namespace, "-o", "jsonpath={.items[*].metadata.name}")
	f.says(rome, serve, "get", resourceSlices, "-n", peering, "-o", "jsonpath={.items[*].metadata.name}")
	f.Sound()
}
