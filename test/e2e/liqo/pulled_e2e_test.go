//go:build e2e

package liqo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// The consumer's own agent applies and releases, with the install base's rights
// and in the order that Liqo needs; the daemon has no way into the cluster.
func TestReleaseThroughTheAgent(t *testing.T) {
	f := startWith(t, func(o *rig.Options) {
		o.Inputs["clusters/rome.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], delivery: agent}\n"
		o.AgentArgs = append(o.AgentArgs, "--kubeconfigs-dir", filepath.Join(o.Dir, "kubeconfigs"))
	}, func(f *fleet) {
		f.way("rome", nil)
		for _, base := range []string{"agent", "consumer-agent"} {
			dir, err := filepath.Abs("../../../fleet-repo-template/install/" + base)
			if err != nil {
				t.Fatal(err)
			}
			f.run("rome", "apply", "--server-side", "--force-conflicts", "-k", dir)
		}
		kubeconfig, err := f.Clusters["rome"].KubeconfigForServiceAccount(f.ctx, "fleetbroker", "fleet-agent")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Dir, "agents", "rome.kubeconfig"), kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
	}, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	train := f.Contract("vision", "train", "Active")
	f.apply("rome", rigtest.Deployment("vision", 2))
	f.runs("rome", "vision", train, 2)
	f.runs("paris", "vision-rome", "paris-gpu", 2)

	// While a budget holds its pods, the Node is cordoned, the virtual node on its
	// way out, and the slice there but not to make another: capacity is held.
	f.apply("rome", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: train, namespace: vision}\nspec: {minAvailable: 2, selector: {matchLabels: {app: train}}}\n")
	f.says("rome", "2", "get", "pdb", "train", "-n", "vision", "-o", "jsonpath={.status.currentHealthy}")
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Releasing")
	f.says("rome", "true", "get", "node", train, "-o", "jsonpath={.spec.unschedulable}")
	f.says("rome", "false", "get", "resourceslices.authentication.liqo.io", train, "-n", "liqo-tenant-paris", "-o", `jsonpath={.metadata.annotations.liqo\.io/create-virtual-node}{.metadata.deletionTimestamp}`)
	f.Eventually("the agent tells what holds the release up", func() error {
		state, err := f.state(train)
		if err == nil && !strings.Contains(strings.Join(state.Blockers, " "), "(PodDisruptionBudget train allows no disruption)") {
			err = fmt.Errorf("its blockers are %q", state.Blockers)
		}
		return err
	})
	f.runs("paris", "vision-rome", "paris-gpu", 2)
	f.run("rome", "delete", "pdb", "train", "-n", "vision")
	f.Contract("vision", "train", "Released")
	if got := f.steps(train); !strings.HasSuffix(got, "Active -> Releasing, Releasing -> Releasing, Releasing -> Released") {
		t.Errorf("its steps are %s", got)
	}
	f.says("rome", "", "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,node", "-A", "-l", "fleetbroker.io/contract="+train, "-o", "name")
	f.says("paris", "", "get", "resourceslices.authentication.liqo.io,quotas.offloading.liqo.io", "-A", "-o", "name")
	f.says("rome", "vision", "get", "namespace", "vision", "-o", "jsonpath={.metadata.name}")
	f.Sound()
}
