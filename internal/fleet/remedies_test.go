package fleet

import (
	"strings"
	"testing"
)

// TestRemediesWork: what a message says to write is what the message contains, and is
// accepted when it is written.
func TestRemediesWork(t *testing.T) {
	const plain = "resources: {cpu: 1}"
	for name, tc := range map[string]struct {
		wrong  string // the specification with the mistake
		want   string // in the only message
		remedy string // which the message states
		right  string // the specification with it
	}{
		"replicas as a power":        {plain + ", replicas: 1e2", "replicas: 1e2 is not what it looks like in YAML", "write 100", plain + ", replicas: 100"},
		"replicas with a zero":       {plain + ", replicas: 03", "", "write 3", plain + ", replicas: 3"},
		"replicas, octal or not":     {plain + ", replicas: 010", "", "write a whole number in plain digits, without a leading zero", plain + ", replicas: 10"},
		"replicas in thousands":      {plain + ", replicas: 1_0", "", "write 10", plain + ", replicas: 10"},
		"least replicas":             {plain + ", replicas: {min: 0x1, max: 2}", "", "write 1", plain + ", replicas: {min: 1, max: 2}"},
		"replicas, yes":              {plain + ", replicas: true", `spec.replicas: "true" is text`, "write a whole number", plain + ", replicas: 2"},
		"a priority with a zero":     {plain + ", priority: 0o17", "", "write 15", plain + ", priority: 15"},
		"a priority, half":           {plain + ", priority: 1e-1", "", "write a whole number", plain + ", priority: 1"},
		"a weight as a power":        {plain + ", weights: {cost: 1e-1}", "", "write 0.1", plain + ", weights: {cost: 0.1}"},
		"a weight without its zero":  {plain + ", weights: {cost: .5}", "", "write 0.5", plain + ", weights: {cost: 0.5}"},
		"cores as a power":           {"resources: {cpu: 1e1}", "", "write 10", "resources: {cpu: 10}"},
		"cores without a zero":       {"resources: {cpu: .5}", "", `write "0.5"`, `resources: {cpu: "0.5"}`},
		"cores, a fraction":          {"resources: {cpu: 0.5}", "", `write "0.5"`, `resources: {cpu: "0.5"}`},
		"cores, yes":                 {"resources: {cpu: yes}", "spec.resources.cpu: yes is a boolean", `a quantity such as "16" or 128Gi`, `resources: {cpu: "16"}`},
		"memory, a fraction":         {"resources: {memory: 1.5}", "memory: 1.5 is a number of bytes", "write 1.5Gi", "resources: {memory: 1.5Gi}"},
		"a duration as a power":      {plain + ", schedule: {duration: 1e2}", "", "write a number with a unit, such as 72h", plain + ", schedule: {duration: 72h}"},
		"memory of a GPU as a power": {"resources: {gpu: {memory: 1e2}}", "", "write a number with Gi or GB, such as 80Gi", "resources: {gpu: {memory: 80Gi}}"},
		"GPUs as a power":            {"resources: {gpu: 1e1}", "", "write 10", "resources: {gpu: 10}"},
		"GPUs without a value":       {"resources: {gpu: }", "spec.resources.gpu has no value", "gpu: H100:1", "resources: {gpu: H100:1}"},
		"GPUs without one, counted":  {"resources: {gpu: }", "", "gpu: 1 ", "resources: {gpu: 1}"},
		"cores without a value":      {"resources: {cpu: }", "spec.resources.cpu has no value", "leave the key out", "resources: {}"},
		"a label without a value":    {plain + ", placement: {labels: {a: }}", "", `write "" for an empty one`, plain + `, placement: {labels: {a: ""}}`},
		"GPUs, yes":                  {"resources: {gpu: true}", "spec.resources.gpu: true is a boolean", "gpu: H100:1", "resources: {gpu: H100:1}"},
		"a model, its memory, count": {"resources: {gpu: 'H100 80GB x8'}", "a model has no spaces", `write "H100:80GB:8"`, `resources: {gpu: "H100:80GB:8"}`},
		"a product and a count":      {"resources: {gpu: 'NVIDIA H100 80GB HBM3:8'}", "", `write "NVIDIA-H100-80GB-HBM3:8"`, `resources: {gpu: "NVIDIA-H100-80GB-HBM3:8"}`},
		"a count and a product":      {"resources: {gpu: 8 x A100 80GB PCIe}", "", `write "A100-80GB-PCIe:8"`, `resources: {gpu: "A100-80GB-PCIe:8"}`},
		"a count and a model":        {"resources: {gpu: 8 H100}", "", `write "H100:8"`, `resources: {gpu: "H100:8"}`},
		"memory and its unit apart":  {"resources: {gpu: A100 80 GB}", "", `write "A100:80GB"`, `resources: {gpu: "A100:80GB"}`},
		"half a GPU as pods ask":     {"resources: {nvidia.com/gpu: 0.5}", "nvidia.com/gpu: 0.5 is not a whole number; cards are counted whole", `gpu: {share: "0.5", vendor: nvidia}`, `resources: {gpu: {share: "0.5", vendor: nvidia}}`},
		"half a GPU as pods ask, m":  {"resources: {nvidia.com/gpu: 500m}", "cards are counted whole", `gpu: {share: "0.5", vendor: nvidia}`, `resources: {gpu: {share: "0.5", vendor: nvidia}}`},
		"a whole GPU instead":        {`resources: {nvidia.com/gpu: "0.5"}`, "cards are counted whole", "write 1", "resources: {nvidia.com/gpu: 1}"},
		"half a device":              {"resources: {habana.ai/gaudi: 1.5}", "habana.ai/gaudi: 1.5 is not a whole number; it is counted whole", "write 2, or 1", "resources: {habana.ai/gaudi: 2}"},
		"pods, a fraction":           {"resources: {pods: 0.5}", "", "write 1", "resources: {pods: 1}"},
		"half a pod's GPU":           {"resources: {nvidia.com/gpu: 2}, perPod: {nvidia.com/gpu: 0.5}", "", "write 1", "resources: {nvidia.com/gpu: 2}, perPod: {nvidia.com/gpu: 1}"},
		"another vendor's model":     {"resources: {gpu: amd-h100:8}", "", "write nvidia-h100", "resources: {gpu: nvidia-h100:8}"},
		"one vendor, another's":      {"resources: {gpu: {vendor: AMD, models: [H100]}}", "no GPU of amd is called H100", "write nvidia", "resources: {gpu: {vendor: nvidia, models: [H100]}}"},
		"a pod without a value":      {plain + ", alternatives: [{gpu: 2, perPod: }]", "spec.alternatives[0].perPod has no value", "{gpu: 1, cpu: 8}", plain + ", alternatives: [{gpu: 2, cpu: 16, perPod: {gpu: 1, cpu: 8}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			said := func(spec string) string {
				f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", spec)), nil)
				return strings.Join(diagnostics(f), "\n")
			}
			if got := said(tc.wrong); !strings.Contains(got, tc.want) || !strings.Contains(got, tc.remedy) || strings.Contains(got, "\n") {
				t.Errorf("\ngot  %s\nwant %s … %s", got, tc.want, tc.remedy)
			}
			if got := said(tc.right); got != "" {
				t.Errorf("the remedy is refused: %s", got)
			}
		})
	}
}
