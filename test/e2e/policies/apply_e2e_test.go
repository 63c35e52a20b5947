//go:build e2e

package policies

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// Where no plugin has put a toleration on the pod before, the obvious form of
// the mutation makes kube-apiserver panic; ours must not.
func TestMutationWithoutDefaultTolerations(t *testing.T) {
	cluster := start(t, env.ClusterOptions{Name: "plain", APIServerArgs: []string{"--disable-admission-plugins=DefaultTolerationSeconds,ServiceAccount"}})
	got, err := clientFor(t, cluster.Config).CoreV1().Pods(twoIntents).Create(t.Context(), pod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Spec.Tolerations) != 2 || !slices.Equal(intentsOf(got), []string{serveIntent, trainIntent}) {
		t.Errorf("got tolerations %v", got.Spec.Tolerations)
	}
}

// Every directory of the rendered tree can be applied alone with plain kubectl.
func TestEveryLevelApplies(t *testing.T) {
	cluster := envtest.Cluster(t, env.ClusterOptions{Name: "levels"})
	if err := env.InstallLiqoCRDs(t.Context(), cluster.Config); err != nil {
		t.Fatal(err)
	}
	api := clientFor(t, cluster.Config)
	for _, name := range []string{peering, oneIntent, twoIntents, somePods, choosyPods} {
		if _, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	root := render(t, v1alpha1.AdmissionV1)
	levels := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "kustomization.yaml" {
			return err
		}
		levels++
		_, err = cluster.Kubectl(t.Context(), filepath.Dir(name), "apply", "-k", ".")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if levels < 6 { // consumer, namespaces, policies, tenant, shards
		t.Errorf("got %d levels", levels)
	}
}
