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
	text, err := os.ReadFile("frameworks/intents/vision/train.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var intent v1alpha1.ResourceIntent
	if err := yaml.UnmarshalStrict(text, &intent); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("frameworks/jobs/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var job map[string]any
		if err := yaml.Unmarshal(text, &job); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if meta, _ := job["metadata"].(map[string]any); meta["namespace"] != intent.Spec.Offload.Namespaces[0].Name {
			t.Errorf("%s is in namespace %v, which the intent does not offload", file, meta["namespace"])
		}
		pods := int64(0)
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
		if want := int64(intent.Spec.Replicas.Max); pods != want {
			t.Errorf("%s has %d pods, the intent %d replicas", file, pods, want)
		}
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
