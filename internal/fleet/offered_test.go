package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamesThatNobodyOffers: a resource, a model or a label that no file offers and that is
// nearly one that is known is reported with that one; names of which nothing is known are
// an agent's matter.
func TestNamesThatNobodyOffers(t *testing.T) {
	fleet := base().with(
		"clusters/paris.yaml", group+"kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], labels: {example.org/hall: a}, location: {region: eu-west-3}}\n",
		"flavors/paris/gaudi.yaml", group+"kind: Flavor\nmetadata: {name: gaudi, namespace: paris}\nspec: {capacity: {cpu: 64, habana.ai/gaudi: 8, example.org/npu: 8}, labels: {example.org/row: b}}\n",
		"flavors/paris/tpu.yaml", group+"kind: Flavor\nmetadata: {name: tpu, namespace: paris}\nspec: {capacity: {cpu: 64, google.com/tpu: 8}}\n",
		"flavors/paris/l4.yaml", group+"kind: Flavor\nmetadata: {name: l4, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {vendor: nvidia, model: nvidia-l4, sharing: mps, unitsPerGPU: 4, resourceName: nvidia.com/gpu.shared}}\n",
		"flavors/paris/t4.yaml", group+"kind: Flavor\nmetadata: {name: t4, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {vendor: nvidia, model: nvidia-t4, sharing: time-slicing, unitsPerGPU: 4, resourceName: nvidia.com/gpu.shared}}\n",
		"flavors/paris/own.yaml", group+"kind: Flavor\nmetadata: {name: own, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {vendor: acme, model: acme-warp9, resourceName: acme.com/warp}}\n",
	)
	const plain = "resources: {cpu: 1}"
	for name, tc := range map[string]struct{ wrong, want, right string }{
		"a letter too many":        {"resources: {nvidia.com/gpus: 1}", `warning intents/vision/b.yaml:4:37: spec.resources.nvidia.com/gpus: no file of this fleet offers nvidia.com/gpus (did you mean "nvidia.com/gpu"?)`, "resources: {nvidia.com/gpu: 1}"},
		"a letter too few":         {"resources: {gogle.com/tpu: 1}", `spec.resources.gogle.com/tpu: no file of this fleet offers gogle.com/tpu (did you mean "google.com/tpu"?)`, "resources: {google.com/tpu: 1}"},
		"a letter of an offer":     {"resources: {example.org/npu1: 1}", `(did you mean "example.org/npu"?)`, "resources: {example.org/npu: 1}"},
		"letters swapped":          {plain + ", alternatives: [{google.com/tup: 1}]", `spec.alternatives[0].google.com/tup: no file of this fleet offers google.com/tup (did you mean "google.com/tpu"?)`, plain + ", alternatives: [{google.com/tpu: 1}]"},
		"a device as a model":      {"resources: {gpu: gaudi3:8}", `warning intents/vision/b.yaml:4:25: spec.resources.gpu: files of this fleet offer no GPU gaudi3, and habana.ai/gaudi as a resource of its own; write habana.ai/gaudi: 8 in place of gpu`, "resources: {habana.ai/gaudi: 8}"},
		"a device, vendor's":       {"resources: {gpu: {models: [intel-gaudi3]}}", `spec.resources.gpu.models[0]: files of this fleet offer no GPU intel-gaudi3, and habana.ai/gaudi as a resource of its own; write habana.ai/gaudi: 1 in place of gpu`, "resources: {habana.ai/gaudi: 1}"},
		"a TPU as a model":         {"resources: {gpu: tpu-v5e:4}", `write google.com/tpu: 4 in place of gpu`, "resources: {google.com/tpu: 4}"},
		"a part of a card":         {"resources: {nvidia.com/gpu.shared: 2}", `error intents/vision/b.yaml:4:43: spec.resources.nvidia.com/gpu.shared: what pods ask for as nvidia.com/gpu.shared is offered as gpu; write gpu: {count: 2, vendor: nvidia, sharing: mps}, or gpu: {count: 2, vendor: nvidia, sharing: time-slicing}`, "resources: {gpu: {count: 2, vendor: nvidia, sharing: mps}}"},
		"a card of another's name": {"resources: {acme.com/warp: 1}", `warning intents/vision/b.yaml:4:35: spec.resources.acme.com/warp: what pods ask for as acme.com/warp is offered as gpu; write gpu: {count: 1, vendor: acme, models: [acme-warp9]}`, "resources: {gpu: {count: 1, vendor: acme, models: [acme-warp9]}}"},
		"a label":                  {plain + ", replicas: 2, placement: {within: {by: label, label: topology.kubernetes.io/rak}}", `warning intents/vision/b.yaml:4:81: spec.placement.within.label: no file of this fleet names the label topology.kubernetes.io/rak (did you mean "topology.kubernetes.io/rack"?)`, plain + ", replicas: 2, placement: {within: {by: label, label: topology.kubernetes.io/rack}}"},
		"a label to spread over":   {plain + ", replicas: 2, placement: {spread: [{by: label, label: example.org/hal}]}", `spec.placement.spread[0].label: no file of this fleet names the label example.org/hal (did you mean "example.org/hall"?)`, plain + ", replicas: 2, placement: {spread: [{by: label, label: example.org/hall}]}"},
		"a label of an offer":      {plain + ", placement: {labels: {example.org/rwo: b}}", `spec.placement.labels.example.org/rwo: no file of this fleet names the label example.org/rwo (did you mean "example.org/row"?)`, plain + ", placement: {labels: {example.org/row: b}}"},
	} {
		t.Run(name, func(t *testing.T) {
			said := func(spec string) string {
				f := read(t, NewReader(), fleet.with("intents/vision/b.yaml", intent("vision", "b", spec)), nil)
				return strings.Join(diagnostics(f), "\n")
			}
			if got := said(tc.wrong); !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			if got := said(tc.right); got != "" {
				t.Errorf("the remedy: got %s", got)
			}
		})
	}
	for _, spec := range []string{"resources: {rdma/hca: 1}", "resources: {amd.com/gpu: 1}", "resources: {example.net/npu: 1}", "resources: {acme.com/gpu: 1}",
		"resources: {nvidia.com/mig-1g.10gb: 1}", "resources: {habana.ai/gaudi: 1}", "resources: {aws.amazon.com/neuroncore: 1}",
		plain + ", replicas: 2, placement: {within: {by: label, label: example.com/pod}}"} {
		f := read(t, NewReader(), fleet.with("intents/vision/b.yaml", intent("vision", "b", spec)), nil)
		if len(f.Diagnostics) > 0 {
			t.Errorf("%s: got %s", spec, strings.Join(diagnostics(f), "\n"))
		}
	}
	// What a file offers under that name is asked for by it.
	raw := fleet.with("flavors/paris/l4.yaml", strings.Replace(fleet["flavors/paris/l4.yaml"], "gpu: 8}, gpu: {", "nvidia.com/gpu.shared: 8, gpu: 8}, gpu: {", 1),
		"intents/vision/b.yaml", intent("vision", "b", "resources: {nvidia.com/gpu.shared: 2}"))
	if got := fmt.Sprint(diagnostics(read(t, NewReader(), raw, nil))); strings.Contains(got, "intents/") {
		t.Errorf("offered under its name: got %s", got)
	}
}
