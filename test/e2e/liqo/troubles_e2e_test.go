//go:build e2e && full

package liqo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// kubectls are calls of kubectl, one after the other.
func (f *fleet) kubectls(cluster string, calls ...[]string) func() {
	return func() {
		f.t.Helper()
		for _, args := range calls {
			f.run(cluster, args...)
		}
	}
}

// trouble is one that the doctor finds.
type trouble struct {
	code doctor.Code
	make func() // the trouble; nil where an earlier one makes it too
	undo func() // where the daemon would not; nil where it goes on
}

// find makes one trouble after the other, and undoes it.
func (f *fleet) find(contract string, troubles ...trouble) {
	f.t.Helper()
	for _, c := range troubles {
		if c.make != nil {
			c.make()
		}
		f.finds(contract, c.code)
		if c.undo != nil {
			c.undo()
		}
	}
}

// poolTroubles are those of a virtual node that Liqo itself makes of a slice: of contracts
// without accelerators, which lie on no node of their own.
func (f *fleet) poolTroubles() {
	f.t.Helper()
	f.Put("vision", "serve", "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: serve, namespace: vision}\n"+
		"spec: {consumer: rome, resources: {cpu: \"2\", memory: 4Gi, pods: \"4\", ephemeral-storage: 4Gi}, placement: {allowAccelerators: true}}\n")
	node := f.Contract("vision", "serve", "Active")
	if c := f.contractOf("vision", "serve", node); len(c.Spec.Nodes) > 0 {
		f.t.Fatalf("a contract without accelerators lies on nodes %v", c.Spec.Nodes)
	}
	f.well(node)
	if err := f.daemon.Kill(); err != nil {
		f.t.Fatal(err)
	}
	const slice, virtual = "resourceslices.authentication.liqo.io", "virtualnodes.offloading.liqo.io"
	resources := func(r string) func() {
		return f.kubectls("paris", []string{"patch", slice, node, "-n", "liqo-tenant-rome", "--subresource=status", "--type=merge", "-p", `{"status":{"resources":{` + r + `}}}`})
	}
	annotate := func(a string) func() {
		return f.kubectls("rome", []string{"annotate", slice, node, "-n", "liqo-tenant-paris", a})
	}
	var liqo func()
	f.find(node,
		trouble{doctor.SliceNoNode, annotate("liqo.io/create-virtual-node-"), annotate("liqo.io/create-virtual-node=true")},
		trouble{doctor.VirtualNodeOrphan, func() {
			liqo = f.dead("rome", "liqo-controller-manager")
			f.run("rome", "patch", virtual, node, "-n", "liqo-tenant-paris", "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`)
		}, func() { liqo() }},
		trouble{doctor.NodeSmall, func() {
			if err := f.agents["paris"].Kill(); err != nil {
				f.t.Fatal(err)
			}
			resources(`"cpu":"1"`)()
		}, resources(`"cpu":"2"`)},
		trouble{doctor.NodeWithoutCPU, resources(`"cpu":"0","memory":"0"`), resources(`"cpu":"2","memory":"4Gi"`)},
	)
	f.revive("paris")
	if err := f.daemon.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.Remove("vision", "serve")
	f.Contract("vision", "serve", "Released")
}

// revive starts a cluster's agent that was killed.
func (f *fleet) revive(cluster string) {
	f.t.Helper()
	var err error
	if f.agents[cluster], err = f.Agent(f.ctx, cluster, f.daemon); err != nil {
		f.t.Fatal(err)
	}
}

// Troubles that the daemon, an agent or Liqo would mend at once are made while
// it is dead.
func TestTroublesWhileNobodyMends(t *testing.T) {
	f := start(t, "paris")

	// Without the provider's agent nobody answers its class.
	if err := f.agents["paris"].Kill(); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("vision", "train", 2))
	node := f.Contract("vision", "train", "Reserved", "Peering")
	f.finds(node, doctor.SliceClassUnanswered, "slices of class fleetbroker")
	agent := func() { f.revive("paris") }
	agent()
	f.Contract("vision", "train", "Active")
	f.well(node)
	f.apply("rome", rigtest.Deployment("vision", 1)+budget)
	f.runs("rome", "vision", node, 1)
	f.poolTroubles()

	// Its file cannot be read; and its ways lead nowhere.
	f.Put("vision", "train", "kind: [\n")
	f.finds(node, doctor.IntentFrozen)
	f.Put("vision", "train", intent("vision", "train", 2))
	back := f.way("paris", nil)
	f.finds(node, doctor.NoAccess)
	back()
	nobody, err := f.Clusters["rome"].KubeconfigForServiceAccount(f.ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	back = f.way("rome", nobody)
	f.finds(node, doctor.Unreadable)
	back()

	const onRome, onParis = "liqo-tenant-paris", "liqo-tenant-rome"
	const slices, nodes, offloadings = "resourceslices.authentication.liqo.io", "virtualnodes.offloading.liqo.io", "namespaceoffloadings.offloading.liqo.io"
	const identity = "kubeconfig-controlplane-paris"
	rome := func(args ...string) func() { return f.kubectls("rome", args) }
	paris := func(args ...string) func() { return f.kubectls("paris", args) }
	slice := func(verb, mark string) func() { return rome(verb, slices, node, "-n", onRome, mark) }
	namespace := func(cluster, verb, name, mark string) func() {
		return f.kubectls(cluster, []string{verb, "namespace", name, mark})
	}
	taints := func(list string) func() {
		return rome("patch", nodes, node, "-n", onRome, "--type=merge", "-p", `{"spec":{"taints":`+list+`}}`)
	}
	// The provider's answer, as its agent would write it.
	answer := func(status string) func() {
		return paris("patch", slices, node, "-n", onParis, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
	}
	resources := func(r string) func() { return answer(`{"resources":{` + r + `}}`) }
	selector := func(patch string) func() {
		return rome("patch", offloadings, "offloading", "-n", "vision", "--type=json", "-p", patch)
	}
	file := func(path, content string) func() {
		return func() {
			t.Helper()
			if _, err := f.Platform.CommitAndPush(f.ctx, "Change "+path, map[string]string{path: content}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cluster, err := os.ReadFile(filepath.Join(f.Platform.Dir, "clusters", "paris.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := string(cluster) + "  liqo: {tenantNamespace: liqo-elsewhere}\n"

	// The phase says at once that the provider has taken back a part, and that
	// the Node is away for a moment.
	if err := f.agents["paris"].Kill(); err != nil {
		t.Fatal(err)
	}
	resources(`"nvidia.com/gpu":"1"`)()
	f.reason(node, "Degraded", "GrantedLess: 1 of 2 nvidia.com/gpu")
	agent() // which knows what it owes, from the daemon
	f.reason(node, "Active", "")
	f.Eventually(node+" is Degraded while its Node flaps", func() error { // Liqo has it ready again within 100 ms
		f.run("rome", "patch", "node", node, "--subresource=status", "--type=strategic", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Flaps","message":"away for a moment"}]}}`)
		s, err := f.state(node)
		if err == nil && (s.Phase != "Degraded" || s.Reason != "NodeNotReady") {
			err = fmt.Errorf("it is %s: %s", s.Phase, s.Why())
		}
		return err
	})
	f.reason(node, "Active", "")

	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	var quota, pod string
	var liqo func()
	f.find(node, []trouble{
		// The identity is deleted, and with its finalizer the daemon mends it.
		{doctor.IdentityDeleting, rome("delete", "secret", identity, "-n", onRome, "--wait=false"), nil},
		{doctor.IdentityMissing, rome("patch", "secret", identity, "-n", onRome, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`), func() {
			if err := f.daemon.Restart(f.ctx); err != nil {
				t.Fatal(err)
			}
			f.well(node)
			if err := f.daemon.Kill(); err != nil {
				t.Fatal(err)
			}
		}},
		{doctor.IdentityLeadsElsewhere, rome("annotate", "secret", identity, "-n", onRome, "--overwrite", "liqo.io/remote-tenant-namespace=elsewhere"),
			rome("annotate", "secret", identity, "-n", onRome, "--overwrite", "liqo.io/remote-tenant-namespace="+onParis)},
		{doctor.IdentityOld, rome("annotate", "secret", identity, "-n", onRome, "--overwrite", "fleetbroker.io/renew-after=2020-01-01T00:00:00Z"), nil},

		// Files say other than what is.
		{doctor.TenantNamespaceOther, file("clusters/paris.yaml", elsewhere), nil},
		{doctor.TenantElsewhere, nil, file("clusters/paris.yaml", string(cluster))},
		{doctor.EnforcementWeak, file("intents/vision/train.yaml", strings.Replace(intent("vision", "train", 2), "spec:\n", "spec:\n  enforcement: Hard\n", 1)),
			file("intents/vision/train.yaml", intent("vision", "train", 2))},
		{doctor.SliceNotInGit, f.unwrite(node), f.rewrite},

		// The slice's marks.
		{doctor.SliceDoubleNode, slice("annotate", "liqo.io/create-virtual-node-"), slice("annotate", "liqo.io/create-virtual-node=false")}, // the contract names its node
		{doctor.SliceNoClusterID, slice("label", "liqo.io/remote-cluster-id-"), slice("label", "liqo.io/remote-cluster-id=paris")},
		{doctor.SliceNotReplicated, slice("label", "liqo.io/replication-"), slice("label", "liqo.io/replication=true")},
		{doctor.SliceNoRemoteID, slice("label", "liqo.io/remoteID-"), slice("label", "liqo.io/remoteID=paris")},

		// Labels on the provider and on the consumer.
		{doctor.QuotaCordoned, paris("annotate", slices, node, "-n", onParis, "liqo.io/cordon=true"), paris("annotate", slices, node, "-n", onParis, "liqo.io/cordon-")},
		{doctor.NothingOffered, paris("label", "node", "paris-gpu", "fleetbroker.io/pool-"), paris("label", "node", "paris-gpu", "fleetbroker.io/pool=h100")},
		{doctor.TenantNamespaceUnlabelled, namespace("paris", "label", onParis, "liqo.io/tenant-namespace-"), namespace("paris", "label", onParis, "liqo.io/tenant-namespace=true")},
		{doctor.NamespaceUnlabelled, namespace("rome", "label", "vision", "fleetbroker.io/tenant-"), namespace("rome", "label", "vision", "fleetbroker.io/tenant=vision")},
		{doctor.NamespaceUnlisted, namespace("rome", "annotate", "vision", "fleetbroker.io/intents-"), namespace("rome", "annotate", "vision", "fleetbroker.io/intents=vision.train")},
		{doctor.NamespaceUnscheduled, func() {
			liqo = f.dead("rome", "liqo-controller-manager") // else it may look at the offloading just then, and label the namespace again
			namespace("rome", "label", "vision", "liqo.io/scheduling-enabled-")()
		}, func() {
			namespace("rome", "label", "vision", "liqo.io/scheduling-enabled=true")()
			liqo()
		}},
		{doctor.NamespaceUnguarded, namespace("rome", "label", onRome, "fleetbroker.io/managed-"), nil},
		{doctor.VirtualNodeUntainted, taints("null"), func() {
			taints(`[{"key":"fleetbroker.io/intent","value":"vision.train","effect":"NoSchedule"}]`)()
			f.run("rome", "label", "namespace", onRome, "fleetbroker.io/managed=true")
		}},
		{doctor.PolicyMissing, rome("delete", "validatingadmissionpolicy", "fleetbroker-intent-guard"), nil},
		{doctor.SliceClassOpen, paris("delete", "validatingadmissionpolicybinding", "fleetbroker-class-default"), paris("apply", "-f", filepath.Join(f.here(), classDefault))},
		{doctor.PolicyUnbound, rome("delete", "mutatingadmissionpolicybinding", "fleetbroker-intent-tolerations"), nil},

		// Liqo's own controllers are dead: on the provider, then on the consumer.
		{doctor.QuotaDiffers, func() {
			liqo = f.dead("paris", "liqo-controller-manager")
			quota = f.name("paris", "quotas.offloading.liqo.io", onParis)
			f.run("paris", "patch", "quotas.offloading.liqo.io", quota, "-n", onParis, "--type=merge", "-p", `{"spec":{"resources":{"nvidia.com/gpu":"1"}}}`)
		}, nil},
		{doctor.QuotaMissing, func() { f.run("paris", "delete", "quotas.offloading.liqo.io", quota, "-n", onParis) }, func() { liqo() }},
		{doctor.OffloadingUnseen, func() {
			liqo = f.dead("rome", "liqo-controller-manager")
			rome("patch", offloadings, "offloading", "-n", "vision", "--type=merge", "-p", `{"spec":{"podOffloadingStrategy":"LocalAndRemote"}}`)()
		}, func() { liqo() }},
		{doctor.CopyMissing, func() {
			liqo = f.dead("rome", "liqo-crd-replicator")
			f.run("paris", "delete", slices, node, "-n", onParis)
		}, func() {
			liqo()
			// An agent that hears no daemon for 75 s leaves a new slice unanswered.
			if err := f.daemon.Restart(f.ctx); err != nil {
				t.Fatal(err)
			}
			f.says("paris", "Accepted", "get", slices, node, "-n", onParis, "-o", `jsonpath={.status.conditions[?(@.type=="Resources")].status}`)
			f.well(node)
			if err := f.daemon.Kill(); err != nil {
				t.Fatal(err)
			}
		}},

		// The provider answers otherwise.
		{doctor.SliceShrunk, func() {
			if err := f.agents["paris"].Kill(); err != nil {
				t.Fatal(err)
			}
			resources(`"nvidia.com/gpu":"1"`)()
		}, resources(`"nvidia.com/gpu":"2"`)},
		{doctor.SliceKeptKey, resources(`"rdma/hca":"1"`), resources(`"rdma/hca":null`)},
		{doctor.SliceDenied, answer(`{"conditions":[{"type":"Authentication","status":"Accepted","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Resources","status":"Denied","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`), agent},

		// What drains waits for budgets, then for its pods, and then is gone.
		{doctor.DrainBlocked, rome("delete", nodes, node, "-n", onRome, "--wait=false"), nil},
		{doctor.DrainWaits, func() {
			pod = f.name("rome", "pods", "vision")
			f.run("rome", "patch", "pod", pod, "-n", "vision", "--type=merge", "-p", `{"metadata":{"finalizers":["example.org/stays"]}}`)
			f.run("rome", "delete", "pdb", "train", "-n", "vision")
		}, nil},
		{doctor.VirtualNodeMissing, func() {
			f.run("rome", "delete", "deployment", "train", "-n", "vision")
			f.run("rome", "patch", "pod", pod, "-n", "vision", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}, nil},
		{doctor.OffloadingUnmatched, nil, nil},
		{doctor.SelectorMissing, selector(`[{"op":"remove","path":"/spec/clusterSelector"}]`), nil},
		{doctor.SelectorNarrow, selector(`[{"op":"add","path":"/spec/clusterSelector","value":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["` + node + `"]}]}]}}]`), nil},
		{doctor.OffloadingMissing, rome("delete", offloadings, "offloading", "-n", "vision", "--wait=false"), nil},
		{doctor.SliceDeleting, func() {
			f.run("paris", "patch", slices, node, "-n", onParis, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers","value":["example.org/stays"]}]`)
			f.run("rome", "delete", slices, node, "-n", onRome, "--wait=false")
		}, nil},
		{doctor.SliceMissing, paris("patch", slices, node, "-n", onParis, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`), nil},
	}...)

	// Nobody who mended them by hand: the daemon puts all of it back.
	f.Remove("vision", "train")
	f.finds(node, doctor.IntentGone)
	f.Put("vision", "train", intent("vision", "train", 2))
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.reason(node, "Active", "")
	f.well(node)
	f.apply("rome", rigtest.Deployment("vision", 1))
	f.runs("rome", "vision", node, 1)
	f.Sound()
}
