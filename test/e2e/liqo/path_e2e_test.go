//go:build e2e

package liqo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/howto"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// intent asks for GPUs in rome for one namespace.
func intent(tenant, name string, gpus int) string {
	return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  consumer: rome
  resources: {cpu: "8", memory: 32Gi, pods: "20", ephemeral-storage: 20Gi, gpu: {count: %[3]d, models: [nvidia-h100]}}
  offload:
    namespaces: [{name: %[1]s, create: true, podOffloadingStrategy: Remote}]
`, tenant, name, gpus)
}

// runs waits until a namespace's pods run on one node and no other.
func (f *fleet) runs(cluster, namespace, node string, pods int) {
	f.t.Helper()
	f.Spread(cluster, namespace, map[string]int{node: pods})
}

// quota waits until the provider's Quota of a slice is what the contract says.
func (f *fleet) quota(slice, want string) {
	f.t.Helper()
	f.Eventually("the provider's Quota of "+slice, func() error {
		out, err := f.kubectl("paris", "get", "quotas.offloading.liqo.io", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec.resources}{\"\\n\"}{end}")
		for line := range strings.Lines(out) {
			if name, got, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, slice) && got == want {
				return nil
			}
		}
		if err == nil {
			err = fmt.Errorf("the Quotas are\n%s", out)
		}
		return err
	})
}

// how is the manifest that the command gives of an intent, with an image.
func (f *fleet) how(intent string) string {
	f.t.Helper()
	out, err := exec.CommandContext(f.ctx, filepath.Join(bin, "fleetbroker"), "how", intent, "--kind", howto.Pod, "-o", "manifest", "-C", f.Git.URL(rig.Repo)).Output()
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.ReplaceAll(string(out), howto.Image, "example.org/train")
}

// From a merged intent to a pod on another cluster, and back: two tenants on
// one provider, each on its own slice.
func TestFromIntentToPod(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	f.Put("nlp", "serve", intent("nlp", "serve", 3))
	vision, nlp := f.Contract("vision", "train", "Active"), f.Contract("nlp", "serve", "Active")

	f.says("rome", "2 nvidia-h100 vision.train", "get", "node", vision, "-o",
		"jsonpath={.status.allocatable.nvidia\\.com/gpu} {.metadata.labels.gpu\\.fluidos\\.eu/model} {.metadata.labels.fleetbroker\\.io/intent}")
	f.says("rome", "Ready", "get", "namespaceoffloadings.offloading.liqo.io", "offloading", "-n", "vision", "-o", "jsonpath={.status.offloadingPhase}")
	f.quota(vision, `{"cpu":"8","ephemeral-storage":"20Gi","memory":"32Gi","nvidia.com/gpu":"2","pods":"20"}`)

	f.apply("rome", f.how("vision/train"))
	f.runs("rome", "vision", vision, 1)
	f.runs("paris", "vision-rome", "paris-gpu", 1)
	f.run("rome", "delete", "pod", "train", "-n", "vision")

	f.apply("rome", rigtest.Deployment("vision", 2))
	f.apply("rome", rigtest.Deployment("nlp", 3))
	f.runs("rome", "vision", vision, 2)
	f.runs("rome", "nlp", nlp, 3)
	f.runs("paris", "vision-rome", "paris-gpu", 2)
	f.runs("paris", "nlp-rome", "paris-gpu", 3)

	f.attack()
	f.runs("paris", "nlp-rome", "paris-gpu", 3)

	f.Put("vision", "train", intent("vision", "train", 4))
	f.says("rome", "4", "get", "node", vision, "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu}")

	// A budget that allows no disruption holds the release up.
	f.apply("rome", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: train, namespace: vision}\nspec: {minAvailable: 2, selector: {matchLabels: {app: train}}}\n")
	f.says("rome", "2", "get", "pdb", "train", "-n", "vision", "-o", "jsonpath={.status.currentHealthy}")
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Releasing")
	f.says("rome", "true", "get", "node", vision, "-o", "jsonpath={.spec.unschedulable}")
	f.runs("rome", "vision", vision, 2)
	f.Eventually("what holds the release up is said", func() error {
		state, err := f.state(vision)
		want := "(PodDisruptionBudget train allows no disruption)"
		if err == nil && (len(state.Blockers) != 2 || !strings.HasPrefix(state.Blockers[0], "pod vision/train-") || !strings.HasSuffix(state.Blockers[0], want)) {
			err = fmt.Errorf("its blockers are %q", state.Blockers)
		}
		return err
	})
	if _, err := f.kubectl("rome", "delete", "pdb", "train", "-n", "vision"); err != nil {
		t.Fatal(err)
	}
	f.Contract("vision", "train", "Released")
	f.says("rome", "", "get", "resourceslices.authentication.liqo.io,virtualnodes.offloading.liqo.io,node", "-A", "-l", "fleetbroker.io/contract="+vision, "-o", "name")
	f.says("paris", "", "get", "resourceslices.authentication.liqo.io", "-A", "-o", "jsonpath={.items[?(@.metadata.name==\""+vision+"\")].metadata.name}")
	f.says("rome", "vision", "get", "namespace", "vision", "-o", "jsonpath={.metadata.name}")
	f.runs("rome", "nlp", nlp, 3)
	// Another that states a grace is not held up for longer than that.
	f.Put("nlp", "serve", strings.Replace(intent("nlp", "serve", 3), "spec:\n", "spec:\n  preemption: {grace: 5s}\n", 1))
	f.apply("rome", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: train, namespace: nlp}\nspec: {minAvailable: 3, selector: {matchLabels: {app: train}}}\n")
	f.says("rome", "0", "get", "pdb", "train", "-n", "nlp", "-o", "jsonpath={.status.disruptionsAllowed}")
	f.Remove("nlp", "serve")
	f.Contract("nlp", "serve", "Released")
	if log, err := os.ReadFile(f.daemon.LogFile()); err != nil || !strings.Contains(string(log), "pod is deleted past its budgets: the grace of its contract's release is over") {
		t.Errorf("no budget was passed over, %v", err)
	}
	metrics, err := f.ask("/metrics")
	if err != nil || !strings.Contains(metrics, "fleetbroker_time_to_active_seconds_count 2\n") {
		t.Errorf("time to active is not measured twice, %v:\n%s", err, metrics)
	}
	f.Sound()
}
