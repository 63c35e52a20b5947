package examples

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// The pods of each framework's job are what Kubernetes reads, and are as many, and as large,
// as the intent has nodes for.
func TestFrameworks(t *testing.T) {
	files, err := filepath.Glob("frameworks/jobs/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		fits(t, file, "frameworks/intents/vision/train.yaml")
	}
}

// One Deployment fits on what is bought on demand and what is bought at spot price together:
// as many pods as both have replicas, in a namespace of both, each as large as a replica of
// either.
func TestBaseAndSpot(t *testing.T) {
	fits(t, "base-and-spot/jobs/api.yaml", "base-and-spot/intents/web/api-base.yaml", "base-and-spot/intents/web/api-rest.yaml")
}

// fits holds a job's pods to the replicas of the intents that it runs on.
func fits(t *testing.T, file string, intents ...string) {
	t.Helper()
	var job map[string]any
	read(t, file, &job)
	pods, replicas := int64(0), int64(0)
	for _, name := range intents {
		var intent v1alpha1.ResourceIntent
		read(t, name, &intent)
		replicas += int64(intent.Spec.Replicas.Max)
		if meta, _ := job["metadata"].(map[string]any); meta["namespace"] != intent.Spec.Offload.Namespaces[0].Name {
			t.Errorf("%s is in namespace %v, which %s does not offload", file, meta["namespace"], name)
		}
		pods = 0
		templates(t, job, 1, func(times int64, pod *corev1.PodTemplateSpec) {
			pods += times
			for name, most := range intent.Spec.Resources.Named {
				asked, err := v1alpha1.AmountOfQuantity(name, pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(name)])
				if err != nil || most.Less(asked) {
					t.Errorf("%s: a pod asks for %s %s (%v), a replica has %s", file, asked.Canonical(name), name, err, most.Canonical(name))
				}
			}
			if gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpus.Value() != int64(intent.Spec.Resources.GPU.Count) {
				t.Errorf("%s: a pod asks for %s GPUs", file, gpus.String())
			}
			if len(pod.Spec.Tolerations) > 0 || pod.Spec.NodeName != "" || pod.Spec.NodeSelector != nil {
				t.Errorf("%s: a pod says where it runs", file)
			}
		})
	}
	if pods != replicas {
		t.Errorf("%s has %d pods, %v have %d replicas", file, pods, intents, replicas)
	}
}

// read reads a file's YAML.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// templates visits the pods' templates of an object, and how many pods each makes.
func templates(t *testing.T, at any, times int64, visit func(int64, *corev1.PodTemplateSpec)) {
	t.Helper()
	switch at := at.(type) {
	case []any:
		for _, v := range at {
			templates(t, v, times, visit)
		}
	case map[string]any:
		for _, name := range []string{"replicas", "parallelism"} {
			if n, is := at[name].(float64); is {
				times *= int64(n)
			}
		}
		if spec, is := at["spec"].(map[string]any); is && spec["containers"] != nil {
			text, err := yaml.Marshal(at)
			var pod corev1.PodTemplateSpec
			if err == nil {
				err = yaml.UnmarshalStrict(text, &pod)
			}
			if err != nil || len(pod.Spec.Containers) != 1 {
				t.Errorf("%s: %v", text, err)
				return
			}
			visit(times, &pod)
			return
		}
		for _, v := range at {
			templates(t, v, times, visit)
		}
	}
}
