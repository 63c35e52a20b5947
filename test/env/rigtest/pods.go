package rigtest

import (
	"fmt"
	"maps"
	"strings"
)

// Deployment is what a team runs, in its own namespace: nothing in it but its
// GPU request tells of where.
func Deployment(namespace string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: train, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
      - name: main
        image: example.org/train
        resources: {limits: {nvidia.com/gpu: 1, cpu: "1", memory: 1Gi}}
`, namespace, replicas)
}

// Running are a namespace's running pods on a cluster, by the node they are on.
func (f *Fleet) Running(cluster, namespace string) (map[string]int, error) {
	out, err := f.Clusters[cluster].Kubectl(f.ctx, f.Dir, "get", "pods", "-n", namespace, "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].spec.nodeName}")
	nodes := map[string]int{}
	for _, node := range strings.Fields(out) {
		nodes[node]++
	}
	return nodes, err
}

// Spread waits until a namespace's pods run on these nodes of a cluster and no
// others, so many on each.
func (f *Fleet) Spread(cluster, namespace string, want map[string]int) {
	f.t.Helper()
	f.Eventually(fmt.Sprintf("pods of %s run on %v of %s", namespace, want, cluster), func() error {
		got, err := f.Running(cluster, namespace)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("they run on %v", got)
		}
		return err
	})
}
