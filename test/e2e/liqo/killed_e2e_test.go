//go:build e2e

package liqo

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

var full = flag.Bool("full", false, "all faults, which take minutes")

// dies kills the daemon as soon as kubectl prints something (or nothing more),
// and starts it again.
func (f *fleet) dies(cluster string, there bool, args ...string) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("to die at %s %v, there: %v", cluster, args, there), func() error {
		out, err := f.kubectl(cluster, append([]string{"get", "--ignore-not-found", "-o", "name"}, args...)...)
		if there == (out != "") && (err == nil || out != "") {
			return nil
		}
		return fmt.Errorf("it says %q, %w", out, err)
	})
	if err := errors.Join(f.daemon.Kill(), f.daemon.Restart(f.ctx)); err != nil {
		f.t.Fatal(err)
	}
}

// parted waits until rome and paris are not peered.
func (f *fleet) parted() {
	f.t.Helper()
	f.says("rome", "", "get", "secrets", "-A", "-l", "liqo.io/identity-type=ControlPlane", "-o", "name")
	f.says("paris", "", "get", "tenants.authentication.liqo.io", "-A", "-o", "name")
	f.says("paris", "", "get", "serviceaccount", "liqo-consumer-rome", "-n", "liqo-tenant-rome", "--ignore-not-found", "-o", "name")
}

// The daemon dies at each step of a peering, of making a contract real, and of
// its release: whoever starts next goes on, and nothing is left over.
func TestDaemonDiesAtEachStep(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	labelled := []string{"-l", "fleetbroker.io/tenant=vision", "-A"}
	slices, nodes := "resourceslices.authentication.liqo.io", "virtualnodes.offloading.liqo.io"
	if *full {
		f.dies("paris", true, "namespace", "liqo-tenant-rome")
		f.dies("paris", true, "serviceaccount", "liqo-consumer-rome", "-n", "liqo-tenant-rome")
		f.dies("paris", true, "tenants.authentication.liqo.io", "-n", "liqo-tenant-rome")
		f.dies("rome", true, "namespace", "liqo-tenant-paris")
		f.dies("rome", true, "secret", "kubeconfig-controlplane-paris", "-n", "liqo-tenant-paris")
		f.dies("rome", true, append([]string{nodes}, labelled...)...)
	}
	f.dies("rome", true, append([]string{slices}, labelled...)...)
	contract := f.Contract("vision", "train", "Active")
	f.apply("rome", rigtest.Deployment("vision", 2))
	f.runs("rome", "vision", contract, 2)

	f.Remove("vision", "train")
	if *full {
		f.Contract("vision", "train", "Releasing", "Released")
		f.dies("rome", true, "namespace", "liqo-tenant-paris") // at once
	}
	f.dies("rome", false, append([]string{nodes}, labelled...)...)
	if *full {
		f.dies("rome", false, append([]string{slices}, labelled...)...)
	}
	f.Contract("vision", "train", "Released")
	for cluster, kinds := range map[string]string{"rome": slices + "," + nodes, "paris": slices + ",quotas.offloading.liqo.io"} {
		f.says(cluster, "", "get", kinds, "-A", "-o", "name")
	}
	f.says("rome", "", "get", "nodes", "-l", "liqo.io/type=virtual-node", "-o", "name")
	f.says("paris", "namespace/liqo-tenant-rome", "get", "namespaces", "-l", "liqo.io/tenant-namespace=true,liqo.io/remote-cluster-id=rome", "-o", "name")

	// They stay peered without contracts, unless the fleet says otherwise; and are
	// peered again when they need to be.
	f.says("rome", "secret/kubeconfig-controlplane-paris", "get", "secrets", "-A", "-l", "liqo.io/identity-type=ControlPlane", "-o", "name")
	policy, err := os.ReadFile(filepath.Join(f.Platform.Dir, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Platform.CommitAndPush(f.ctx, "Part when idle", map[string]string{"fleet.yaml": string(policy) + "  peering: {auto: true, unpeerWhenIdle: true}\n"}); err != nil {
		t.Fatal(err)
	}
	f.parted()
	f.Put("vision", "again", intent("vision", "again", 8))
	f.ready(f.Contract("vision", "again", "Active"), "vision.again")
	f.Remove("vision", "again")
	f.Contract("vision", "again", "Released")
	f.parted()
	f.Sound()
}
