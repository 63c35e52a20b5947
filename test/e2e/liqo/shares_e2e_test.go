//go:build e2e && full

package liqo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/doctor"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// shaped is an intent of vision that says how its virtual nodes are made.
func shaped(name string, gpus int, virtualNode string) string {
	return strings.Replace(intent("vision", name, gpus), "spec:\n", "spec:\n  virtualNode: "+virtualNode+"\n", 1)
}

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
	f.apply("rome", rigtest.Deployment("vision", 3))
	f.Spread("rome", "vision", map[string]int{slice + ".1": 2, slice + ".2": 1})
	f.runs("paris", "vision-rome", "paris-gpu", 3)
	f.well(slice)

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

	// What the daemon would mend at once is seen while it is dead.
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	const onRome = "liqo-tenant-paris"
	f.run("rome", "annotate", "resourceslices.authentication.liqo.io", slice, "-n", onRome, "--overwrite", "liqo.io/create-virtual-node=true")
	f.finds(slice, doctor.SliceDoubleNode)
	f.run("rome", "patch", "virtualnodes.offloading.liqo.io", slice+".1", "-n", onRome, "--type=merge", "-p", `{"spec":{"resourceQuota":{"hard":{"nvidia.com/gpu":"2"}}}}`)
	f.finds(slice, doctor.VirtualNodeSize)
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.well(slice)

	// A virtual node of people's Secret: until it is there, and says that it is for
	// the tenant, that is the reason.
	f.Put("vision", "own", shaped("own", 1, "{kubeconfigSecretRef: {name: vision-at-paris}}"))
	own := f.Contract("vision", "own", "Peering")
	f.reason(own, "Peering", "Secret vision-at-paris")
	f.finds(own, doctor.VirtualNodeMissing)
	config, err := f.kubectl("rome", "get", "secret", "kubeconfig-resourceslice-"+own, "-n", "liqo-tenant-paris", "-o", "jsonpath={.data.kubeconfig}")
	if err != nil {
		t.Fatal(err)
	}
	secret := func(kubeconfig string) {
		f.apply("rome", "apiVersion: v1\nkind: Secret\nmetadata: {name: vision-at-paris, namespace: liqo-tenant-paris}\ndata: {kubeconfig: "+kubeconfig+"}\n")
	}
	secret("bm9uZQ==")
	f.reason(own, "Peering", "is not labelled for tenant vision")
	f.run("rome", "label", "secret", "vision-at-paris", "-n", "liqo-tenant-paris", "fleetbroker.io/tenant=nlp")
	f.reason(own, "Peering", "is not labelled for tenant vision")
	f.says("rome", "", "get", "virtualnodes.offloading.liqo.io", "-A", "-l", "fleetbroker.io/contract="+own, "-o", "name")
	f.run("rome", "label", "secret", "vision-at-paris", "-n", "liqo-tenant-paris", "--overwrite", "fleetbroker.io/tenant=vision")
	f.finds(own, doctor.NodeMissing) // of such a kubeconfig nothing can be made
	secret(config)
	f.Contract("vision", "own", "Active")
	f.well(own)
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
	f.apply("rome", refused("no-virtual-node", "virtualnodes, configmaps", "!has(object.metadata.labels) || !('fleetbroker.io/intent' in object.metadata.labels) || object.metadata.labels['fleetbroker.io/intent'] != 'vision.next'"))
	f.refuses("rome", probe)
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
