//go:build e2e && full

package liqo

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// Troubles are made on the real thing, one after the other: the contract's
// phase tells the truth, and the doctor names the cause.
func TestTroubles(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	node := f.Contract("vision", "train", "Active")
	f.well(node)
	f.healthy("rome", "paris")

	// Pods: too large, and older than the namespace's offloading.
	f.apply("rome", rigtest.Deployment("vision", 3))
	f.finds(node, doctor.PodFitsNowhere, "Insufficient nvidia.com/gpu")
	f.bind("vision", node)
	f.finds(node, doctor.PodNotRunning)
	f.run("rome", "scale", "deployment", "train", "-n", "vision", "--replicas", "1")
	f.runs("rome", "vision", node, 1)
	f.says("rome", env.PodLog, "logs", "-n", "vision", "deployment/train")
	f.says("rome", "hello", "exec", "-n", "vision", "deployment/train", "--", "echo", "hello")
	f.run("rome", "cordon", node)
	f.finds(node, doctor.NodeCordoned)
	f.run("rome", "uncordon", node)
	f.well(node)

	// The provider denies it: its administrator refuses the contract.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Cordoned"}}`)
	f.finds(node, doctor.TenantCordoned)
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Active"}}`)

	// Leftovers of another peering.
	f.apply("paris", `apiVersion: v1
kind: Namespace
metadata: {name: liqo-tenant-old, labels: {liqo.io/tenant-namespace: "true", liqo.io/remote-cluster-id: rome}}
`)
	f.finds(node, doctor.TenantNamespaceTwice)
	f.run("paris", "delete", "namespace", "liqo-tenant-old")
	f.well(node)

	// Liqo is dead on the consumer, and nobody answers a slice.
	if err := f.Liqos["rome"].Kill("liqo-crd-replicator"); err != nil {
		t.Fatal(err)
	}
	f.Put("nlp", "serve", intent("nlp", "serve", 1))
	serve := f.Contract("nlp", "serve", "Peering")
	f.reason(serve, "Peering", "nothing is granted yet")
	f.finds(serve, doctor.SliceUnanswered)
	if err := f.Liqos["rome"].Start(f.ctx, "liqo-crd-replicator"); err != nil {
		t.Fatal(err)
	}
	f.Contract("nlp", "serve", "Active")

	// The provider's API server freezes and thaws. What cannot be given back
	// meanwhile is held.
	if err := f.Clusters["paris"].Pause(); err != nil {
		t.Fatal(err)
	}
	f.Remove("nlp", "serve")
	f.reason(node, "Degraded", "ProviderUnreachable")
	f.finds(node, doctor.ForeignUnreachable)
	f.Contract("nlp", "serve", "Releasing")
	f.says("rome", serve, "get", "resourceslices.authentication.liqo.io", serve, "-n", "liqo-tenant-paris", "-o", "jsonpath={.metadata.name}")
	if err := f.Clusters["paris"].Resume(); err != nil {
		t.Fatal(err)
	}
	f.Contract("nlp", "serve", "Released")
	f.says("paris", node, "get", "resourceslices.authentication.liqo.io", "-A", "-o", "jsonpath={.items[*].metadata.name}")
	f.reason(node, "Active", "")
	f.runs("rome", "vision", node, 1)

	// Somebody keeps the namespace from being offloaded: the provider takes no
	// pod of it.
	f.apply("rome", refused("no-offloading", "namespaceoffloadings", "object.metadata.namespace != 'vision'"))
	f.refuses("rome", "apiVersion: offloading.liqo.io/v1beta1\nkind: NamespaceOffloading\nmetadata: {name: offloading, namespace: vision}\nspec: {clusterSelector: {nodeSelectorTerms: []}}\n")
	f.run("rome", "delete", "namespaceoffloadings.offloading.liqo.io", "offloading", "-n", "vision")
	f.apply("rome", stubborn)
	f.reason(node, "Degraded", "OffloadingBackOff")
	f.finds(node, doctor.PodBackOff)
	f.run("rome", "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-offloading")
	f.run("rome", "delete", "pod", "stubborn", "-n", "vision")
	f.reason(node, "Active", "")
	f.run("rome", "delete", "pod", "-n", "vision", "-l", "app=train") // made meanwhile, it fits nowhere
	f.runs("rome", "vision", node, 1)

	// The Tenant is drained: only the provider knows.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Drained"}}`)
	f.reason(node, "Degraded", "is Drained")
	f.finds(node, doctor.TenantDrained)
	f.finds(node, doctor.PodAborted)

	// It is Active again: Liqo by itself gives nothing back.
	f.run("paris", "patch", "tenants.authentication.liqo.io", "rome", "-n", "liqo-tenant-rome", "--type=merge", "-p", `{"spec":{"tenantCondition":"Active"}}`)
	f.reason(node, "Active", "")
	f.runs("paris", "vision-rome", "paris-gpu", 1)
}
