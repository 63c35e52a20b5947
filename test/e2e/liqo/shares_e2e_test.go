//go:build e2e

package liqo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
)

// shaped is an intent of vision that says how its virtual nodes are made.
func shaped(name string, gpus int, virtualNode string) string {
	return strings.Replace(intent("vision", name, gpus), "spec:\n", "spec:\n  virtualNode: "+virtualNode+"\n", 1)
}

// noVirtualNode keeps an intent's virtual nodes from being made, and a probe of
// the same label, which tells when it is in force.
const noVirtualNode = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-virtual-node}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: [virtualnodes, configmaps]}]}
  matchConditions: [{name: labelled, expression: "has(object.metadata.labels) && 'fleetbroker.io/intent' in object.metadata.labels"}]
  validations: [{expression: "object.metadata.labels['fleetbroker.io/intent'] != 'vision.next'", message: not yet}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-virtual-node}
spec: {policyName: no-virtual-node, validationActions: [Deny]}
`

const probe = `apiVersion: v1
kind: ConfigMap
metadata: {name: probe, namespace: default, labels: {fleetbroker.io/intent: vision.next}}
`

// Several virtual nodes on one slice, one from a Secret that people made, and
// the last towards a provider, which waits for another contract's.
func TestVirtualNodesByHand(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", shaped("train", 3, `{shares: [{cpu: "4", gpu: 2}, {cpu: "4", gpu: 1}]}`))
	slice := f.Contract("vision", "train", "Active")
	f.says("rome", "2 nvidia-h100 1 nvidia-h100", "get", "nodes", slice+".1", slice+".2", "-o",
		"jsonpath={range .items[*]}{.status.allocatable.nvidia\\.com/gpu} {.metadata.labels.gpu\\.fluidos\\.eu/model} {end}")
	f.says("rome", "", "get", "virtualnodes.offloading.liqo.io", "-A", "-o", "jsonpath={.items[?(@.metadata.name==\""+slice+"\")].metadata.name}")
	f.quota(slice, `{"cpu":"8","ephemeral-storage":"20Gi","memory":"32Gi","nvidia.com/gpu":"3","pods":"20"}`)
	f.apply("rome", deployment("vision", 3))
	f.spread("vision", map[string]int{slice + ".1": 2, slice + ".2": 1})
	f.runs("paris", "vision-rome", "paris-gpu", 3)
	f.finds(slice, "", "")

	// Sizes change in place, and what somebody deletes comes back.
	f.Put("vision", "train", shaped("train", 3, `{shares: [{cpu: "4", gpu: 1}, {cpu: "4", gpu: 2}]}`))
	f.says("rome", "1 2", "get", "nodes", slice+".1", slice+".2", "-o", "jsonpath={range .items[*]}{.status.allocatable.nvidia\\.com/gpu} {end}")
	was := f.uid("virtualnodes.offloading.liqo.io", slice+".2")
	f.run("rome", "delete", "virtualnodes.offloading.liqo.io", slice+".2", "-n", "liqo-tenant-paris", "--wait=false")
	f.Eventually("the virtual node is there again", func() error {
		out, err := f.kubectl("rome", "get", "virtualnodes.offloading.liqo.io", slice+".2", "-n", "liqo-tenant-paris", "-o", "jsonpath={.metadata.uid}")
		if err == nil && out == was {
			err = fmt.Errorf("it is still %s", was)
		}
		return err
	})
	f.Contract("vision", "train", "Active")
	f.ready(slice+".2", "vision.train")

	// A virtual node of people's Secret: until it is there, that is the reason.
	f.Put("vision", "own", shaped("own", 1, "{kubeconfigSecretRef: {name: vision-at-paris}}"))
	own := f.Contract("vision", "own", "Peering")
	f.reason(own, "Peering", "Secret vision-at-paris")
	f.finds(own, doctor.LinkNode, "there is none")
	config, err := f.kubectl("rome", "get", "secret", "kubeconfig-resourceslice-"+own, "-n", "liqo-tenant-paris", "-o", "jsonpath={.data.kubeconfig}")
	if err != nil {
		t.Fatal(err)
	}
	f.apply("rome", "apiVersion: v1\nkind: Secret\nmetadata: {name: vision-at-paris, namespace: liqo-tenant-paris}\ndata: {kubeconfig: "+config+"}\n")
	f.Contract("vision", "own", "Active")
	f.finds(own, "", "")
	f.Remove("vision", "own")
	f.Contract("vision", "own", "Released")

	// The last towards paris stays until the next contract's is there: with it
	// Liqo would delete the namespace on paris.
	remote := func() string {
		out, err := f.kubectl("paris", "get", "namespace", "vision-rome", "-o", "jsonpath={.metadata.uid}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	namespace := remote()
	f.apply("rome", noVirtualNode)
	file := filepath.Join(t.TempDir(), "probe.yaml")
	if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Eventually("virtual nodes of vision.next are refused", func() error {
		_, err := f.kubectl("rome", "create", "--dry-run=server", "-f", file)
		if err == nil {
			return errors.New("what bears its label is taken")
		}
		if !strings.Contains(err.Error(), "not yet") {
			return err
		}
		return nil
	})
	f.Put("vision", "next", intent("vision", "next", 1))
	next := f.Contract("vision", "next", "Reserved", "Peering")
	f.Remove("vision", "train")
	f.Contract("vision", "train", "Releasing")
	f.Eventually("what the release waits for is said", func() error {
		state, err := f.state(slice)
		if err == nil && !slices.ContainsFunc(state.Blockers, func(s string) bool {
			return strings.Contains(s, "the last virtual node towards paris stays until that of "+next+" is there")
		}) {
			err = fmt.Errorf("its blockers are %q", state.Blockers)
		}
		return err
	})
	f.run("rome", "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-virtual-node")
	f.Contract("vision", "next", "Active")
	f.Contract("vision", "train", "Released")
	if now := remote(); now != namespace {
		t.Errorf("the namespace on paris was %s and is %s: it was made anew", namespace, now)
	}
	f.Sound()
}
