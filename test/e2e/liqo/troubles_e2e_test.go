//go:build e2e

package liqo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
)

// way lets the daemon's and the doctor's way to a cluster be another one, and
// returns what puts the first back.
func (f *fleet) way(cluster string, kubeconfig []byte) (back func()) {
	f.t.Helper()
	file := filepath.Join(f.Dir, "kubeconfigs", cluster+".kubeconfig")
	was, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	put := func(content []byte) {
		if content == nil {
			err = os.Remove(file)
		} else {
			err = os.WriteFile(file, content, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	put(kubeconfig)
	return func() { put(was) }
}

// Troubles that the daemon, or an agent, would mend at once are made while it
// is dead. Not made here, because the running system leaves no time to see them
// or cannot be brought to it: clusters without Liqo or with an old Kubernetes, a
// slice stuck in its deletion, shrunken and denied slices (the agent mends them), a
// slice of that name elsewhere (Liqo's webhook refuses it), Quotas of another size
// (Liqo undoes that within milliseconds), offloading that fails in part, an identity
// that is gone (Liqo's finalizer keeps it while there are slices). Doctor's own tests
// have those from pictures.
func TestTroublesWhileNobodyMends(t *testing.T) {
	f := start(t, "paris")

	// Without the provider's agent nobody answers its class.
	agent := f.agents["paris"]
	if err := agent.Kill(); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("vision", "train", 2))
	node := f.Contract("vision", "train", "Reserved", "Peering")
	f.finds(node, doctor.LinkSlice, "nobody on the provider answers slices of class fleetbroker")
	var err error
	if f.agents["paris"], err = f.Agent(f.ctx, "paris", f.daemon); err != nil {
		t.Fatal(err)
	}
	f.Contract("vision", "train", "Active")
	f.finds(node, "", "")

	// Its file cannot be read; and its ways lead nowhere.
	f.Put("vision", "train", "kind: [\n")
	f.finds(node, doctor.LinkIntent, "its file is not acted on")
	f.Put("vision", "train", intent("vision", "train", 2))
	back := f.way("paris", nil)
	f.finds(node, doctor.LinkAccess, "there is no way to it")
	back()
	nobody, err := f.Clusters["rome"].KubeconfigForServiceAccount(f.ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	back = f.way("rome", nobody)
	f.finds(node, doctor.LinkRights, "cannot read")
	back()

	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	const onRome, onParis = "liqo-tenant-paris", "liqo-tenant-rome"
	const slices = "resourceslices.authentication.liqo.io"
	for _, c := range []struct {
		name, cluster string
		trouble       []string
		link          doctor.Link
		cause         string
		undo          []string // where the daemon would not
	}{
		{"no annotation", "rome", []string{"annotate", slices, node, "-n", onRome, "liqo.io/create-virtual-node-"}, doctor.LinkSlice, "liqo.io/create-virtual-node is not true",
			[]string{"annotate", slices, node, "-n", onRome, "liqo.io/create-virtual-node=true"}},
		{"no cluster id", "rome", []string{"label", slices, node, "-n", onRome, "liqo.io/remote-cluster-id-"}, doctor.LinkSlice, "gets no virtual node",
			[]string{"label", slices, node, "-n", onRome, "liqo.io/remote-cluster-id=paris"}},
		{"not replicated", "rome", []string{"label", slices, node, "-n", onRome, "liqo.io/replication-"}, doctor.LinkSlice, "nothing is replicated",
			[]string{"label", slices, node, "-n", onRome, "liqo.io/replication=true"}},
		{"no remoteID", "rome", []string{"label", slices, node, "-n", onRome, "liqo.io/remoteID-"}, doctor.LinkSlice, "status stays empty for ever",
			[]string{"label", slices, node, "-n", onRome, "liqo.io/remoteID=paris"}},
		{"a cordoned quota", "paris", []string{"annotate", slices, node, "-n", onParis, "liqo.io/cordon=true"}, doctor.LinkProvider, "it is cordoned",
			[]string{"annotate", slices, node, "-n", onParis, "liqo.io/cordon-"}},
		{"nothing offered", "paris", []string{"label", "node", "paris-gpu", "fleetbroker.io/pool-"}, doctor.LinkProvider, "no node of it is offered",
			[]string{"label", "node", "paris-gpu", "fleetbroker.io/pool=h100"}},
		{"no namespace's labels", "paris", []string{"label", "namespace", onParis, "liqo.io/tenant-namespace-"}, doctor.LinkPeering, "lacks the labels",
			[]string{"label", "namespace", onParis, "liqo.io/tenant-namespace=true"}},
		{"unlabelled", "rome", []string{"label", "namespace", "vision", "fleetbroker.io/tenant-"}, doctor.LinkOffloading, "the policies do not see it",
			[]string{"label", "namespace", "vision", "fleetbroker.io/tenant=vision"}},
		{"not allowed", "rome", []string{"annotate", "namespace", "vision", "fleetbroker.io/intents-"}, doctor.LinkOffloading, "does not list vision.train",
			[]string{"annotate", "namespace", "vision", "fleetbroker.io/intents=vision.train"}},
		{"unguarded", "rome", []string{"label", "namespace", onRome, "fleetbroker.io/managed-"}, doctor.LinkPolicies, "not guarded", nil},
		{"bare", "rome", []string{"patch", "virtualnodes.offloading.liqo.io", node, "-n", onRome, "--type=merge", "-p", `{"spec":{"taints":null}}`}, doctor.LinkVirtualNode, "lacks the taint",
			[]string{"label", "namespace", onRome, "fleetbroker.io/managed=true"}},
		{"no policy", "rome", []string{"delete", "validatingadmissionpolicy", "fleetbroker-intent-guard"}, doctor.LinkPolicies, "tenants are not kept apart", nil},
		{"unbound", "rome", []string{"delete", "mutatingadmissionpolicybinding", "fleetbroker-intent-tolerations"}, doctor.LinkPolicies, "its policy does nothing", nil},
		{"old credentials", "rome", []string{"annotate", "secret", "kubeconfig-controlplane-paris", "-n", onRome, "--overwrite", "fleetbroker.io/renew-after=2020-01-01T00:00:00Z"}, doctor.LinkPeering, "to be renewed", nil},
		{"not offloaded", "rome", []string{"delete", "namespaceoffloadings.offloading.liqo.io", "offloading", "-n", "vision", "--wait=false"}, doctor.LinkOffloading, "OffloadingBackOff", nil},
		{"no virtual node", "rome", []string{"delete", "virtualnodes.offloading.liqo.io", node, "-n", onRome, "--wait=false"}, doctor.LinkVirtualNode, "it does not exist", nil},
		{"no slice", "rome", []string{"delete", slices, node, "-n", onRome, "--wait=false"}, doctor.LinkSlice, "it does not exist", nil},
	} {
		f.run(c.cluster, c.trouble...)
		f.finds(node, c.link, c.cause)
		if c.undo != nil {
			f.run(c.cluster, c.undo...)
		}
	}

	// Nobody who mended them by hand: the daemon puts all of it back.
	f.Remove("vision", "train")
	f.finds(node, doctor.LinkIntent, "no file names this intent any more")
	f.Put("vision", "train", intent("vision", "train", 2))
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.reason(node, "Active", "")
	f.finds(node, "", "")
	f.Sound()
}

// A cluster with neither kubeconfig nor agent: what is wanted there stays
// Reserved, with that reason, and the doctor says it too.
func TestNoWayToTheConsumer(t *testing.T) {
	f := start(t, "paris")
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	back := f.way("rome", nil)
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("vision", "train", 2))
	contract := f.Contract("vision", "train", "Reserved")
	f.reason(contract, "Reserved", "ConsumerUnreachable")
	f.finds(contract, doctor.LinkAccess, "there is no way to it, so that nothing can be applied there")
	f.says("rome", "", "get", "resourceslices.authentication.liqo.io", "-A", "-o", "name")
	back()
	f.Contract("vision", "train", "Active")
	f.finds(contract, "", "")
}
