//go:build e2e

package flux

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// at is an intent of a tenant, for its namespace, that takes one provider's.
func at(provider, tenant, name string, gpus int) string {
	return strings.Replace(strings.ReplaceAll(intent(name, gpus), "vision", tenant), "  offload:", "  placement: {providers: {allow: ["+provider+"]}}\n  offload:", 1)
}

// Two tenants and two providers through one Flux, one tenant's namespace over
// both providers: what is released is missed by nobody else.
func TestSeveralThroughFlux(t *testing.T) {
	f := start(t, "1s", "paris", "milan")
	f.Put("vision", "one", at("paris", "vision", "one", 2))
	f.Put("vision", "two", at("milan", "vision", "two", 1))
	f.Put("nlp", "serve", at("paris", "nlp", "serve", 1))
	for tenant, name := range map[string]string{"vision": "two", "nlp": "serve"} {
		f.Contract(tenant, name, "Reserved", "Peering") // their directories are on the ledger
	}
	f.follow("nlp")
	one, two, serve := f.Contract("vision", "one", "Active"), f.Contract("vision", "two", "Active"), f.Contract("nlp", "serve", "Active")
	f.apply(rigtest.Deployment("vision", 3))
	f.apply(rigtest.Deployment("nlp", 1))
	f.Spread("rome", "vision", map[string]int{one: 2, two: 1})
	f.Spread("rome", "nlp", map[string]int{serve: 1})
	f.says(serve+" "+one, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "jsonpath={.items[*].metadata.name}")
	f.says(two, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-milan", "-o", "jsonpath={.items[*].metadata.name}")

	// The pods of one are let go of; what is the others' is not touched.
	others := func() string {
		out := f.kubectl("get", "pods", "-n", "nlp", "-o", "jsonpath={.items[*].metadata.uid}") + "\n" +
			f.kubectl("get", "pods", "-n", "vision", "-o", "jsonpath={.items[*].metadata.uid}") + "\n"
		for line := range strings.Lines(f.objects()) {
			switch kind, _, _ := strings.Cut(line, " "); {
			case strings.Contains(line, one), kind == "Namespace":
			case kind == "NamespaceOffloading": // vision's names its providers: another generation
				out += line[:strings.LastIndex(line, " ")] + "\n"
			default:
				out += line
			}
		}
		return out
	}
	f.kubectl("annotate", "pods", "-n", "vision", "--field-selector", "spec.nodeName="+two, "controller.kubernetes.io/pod-deletion-cost=100")
	f.kubectl("scale", "deployment", "train", "-n", "vision", "--replicas", "1")
	f.Spread("rome", "vision", map[string]int{two: 1})
	before := others()
	f.Remove("vision", "one")
	f.Contract("vision", "one", "Released")
	f.says("", "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,nodes", "-A", "-l", "fleetbroker.io/contract="+one, "-o", "name")
	f.says("vision.two", "get", "namespace", "vision", "-o", `jsonpath={.metadata.annotations.fleetbroker\.io/intents}`)
	f.Spread("rome", "vision", map[string]int{two: 1})
	f.Spread("rome", "nlp", map[string]int{serve: 1})
	if now := others(); now != before {
		t.Errorf("beside what was released there were\n%s\nand are\n%s", before, now)
	}
	f.Sound()
}
