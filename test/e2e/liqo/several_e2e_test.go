//go:build e2e

package liqo

import (
	"fmt"
	"maps"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// at is an intent for one GPU of a provider, for two namespaces.
func at(provider, name string) string {
	return fmt.Sprintf(`apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %[2]s, namespace: vision}
spec:
  consumer: rome
  resources: {cpu: "8", memory: 32Gi, pods: "20", ephemeral-storage: 20Gi, gpu: {count: 1, models: [nvidia-h100]}}
  placement: {providers: {allow: [%[1]s]}}
  offload:
    namespaces: [{name: vision, create: true, podOffloadingStrategy: Remote}, {name: vision-dev, create: true, podOffloadingStrategy: Remote}]
`, provider, name)
}

// One namespace over two providers, two slices of one of them, two namespaces
// on each: and each is given up without the others noticing. Liqo's own
// namespace is another one on two of the clusters.
func TestSeveralSlices(t *testing.T) {
	f := startWith(t, func(o *rig.Options) {
		o.LiqoNamespaces = map[string]string{"rome": liqo.OtherNamespace, "milan": liqo.OtherNamespace}
	}, func(*fleet) {}, "paris", "milan")
	for name, provider := range map[string]string{"one": "paris", "two": "paris", "three": "milan"} {
		f.Put("vision", name, at(provider, name))
	}
	one, two, three := f.Contract("vision", "one", "Active"), f.Contract("vision", "two", "Active"), f.Contract("vision", "three", "Active")
	f.apply("rome", rigtest.Deployment("vision", 2))
	f.apply("rome", rigtest.Deployment("vision-dev", 1))
	f.Eventually("three pods on three nodes", func() error {
		all, err := f.Running("rome", "vision")
		if err != nil {
			return err
		}
		dev, err := f.Running("rome", "vision-dev")
		for node, n := range dev {
			all[node] += n
		}
		if err == nil && !maps.Equal(all, map[string]int{one: 1, two: 1, three: 1}) {
			err = fmt.Errorf("they run on %v", all)
		}
		return err
	})

	// With one slice of paris less, two pods are left, where they were.
	if _, err := f.kubectl("rome", "scale", "deployment", "train", "-n", "vision-dev", "--replicas", "0"); err != nil {
		t.Fatal(err)
	}
	f.Spread("rome", "vision-dev", map[string]int{})
	before, err := f.kubectl("rome", "get", "pods", "-n", "vision", "-o", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	left, err := f.Running("rome", "vision")
	if err != nil {
		t.Fatal(err)
	}
	for name, contract := range map[string]string{"one": one, "two": two, "three": three} {
		if left[contract] == 0 {
			f.Remove("vision", name)
			f.Contract("vision", name, "Released")
		}
	}
	after, err := f.kubectl("rome", "get", "pods", "-n", "vision", "-o", "jsonpath={.items[*].metadata.uid}")
	if err != nil || after != before {
		t.Errorf("the pods were %s and are %s, %v", before, after, err)
	}

	// The last of milan goes, with its remote namespaces; paris serves on.
	if left[three] > 0 {
		f.Remove("vision", "three")
		f.Contract("vision", "three", "Released")
		f.says("milan", "", "get", "namespaces", "-l", "liqo.io/remote-cluster-id=rome", "-o", "jsonpath={.items[?(@.metadata.name==\"vision-rome\")].metadata.name}")
	}
	f.says("rome", "vision", "get", "namespace", "vision", "-o", "jsonpath={.metadata.name}")
	f.Sound()
}
