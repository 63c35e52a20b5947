//go:build e2e && full

package liqo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// Three of examples/needs as they are written, the intent and the workload of each: eight
// GPUs of one node under a budget for all, one that puts others out, two by their memory
// under a budget an hour. Each workload runs on the node that its contract names, where the
// real scheduler of the provider puts it.
func TestNeedsRun(t *testing.T) {
	node := map[string]string{"vision/three-days": "paris-h100", "research/incident": "paris-a100", "research/capped": "paris-l40s"}
	f := startWith(t, func(o *rig.Options) {
		pool := func(name string) map[string]string { return map[string]string{"fleetbroker.io/pool": name} }
		o.Providers["paris"] = []env.GPUNode{
			{Name: "paris-h100", GPUs: 8, Labels: pool("h100")},
			{Name: "paris-a100", GPUs: 4, Product: "NVIDIA-A100-SXM4-80GB", Family: "ampere", MemoryMiB: 81920, Labels: pool("a100")},
			{Name: "paris-l40s", GPUs: 4, Product: "NVIDIA-L40S", Family: "ada-lovelace", MemoryMiB: 46068, Labels: pool("l40s")},
		}
		o.Inputs["tenants/research.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: research}\nspec: {consumers: [rome], namespaces: [research], maxPriority: 900}\n"
		o.Inputs["clusters/paris.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: paris}\nspec:\n  roles: [provider]\n" +
			"  defaultPrice: {currency: EUR, perHour: {gpu: \"0.50\", cpu: \"0.001\", memoryGi: \"0.0001\"}}\n"
	}, func(f *fleet) {
		for _, tenant := range []string{"vision", "research"} {
			f.apply("rome", fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {fleetbroker.io/tenant: %[1]s}}\n", tenant))
		}
	}, "paris")
	read := func(kind, need string) string {
		text, err := os.ReadFile(filepath.Join(f.here(), "..", "..", "..", "examples", "needs", kind, need+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for need := range node {
		tenant, name, _ := strings.Cut(need, "/")
		f.Put(tenant, name, read("intents", need))
	}
	for need, want := range node {
		tenant, name, _ := strings.Cut(need, "/")
		contract := f.Contract(tenant, name, "Active")
		c := f.contractOf(tenant, name, contract)
		if len(c.Spec.Nodes) != 1 || f.nodeOf(c.Spec.Nodes[0].Node) != want {
			t.Errorf("contract %s of %s lies on %v, want node %s", contract, need, c.Spec.Nodes, want)
		}
		f.apply("rome", read("workloads", need))
		f.says("paris", want+" Running", "get", "pods", "-n", tenant+"-rome", "-l", "app="+name, "-o", "jsonpath={.items[*].spec.nodeName} {.items[*].status.phase}")
	}
	f.Sound()
}
