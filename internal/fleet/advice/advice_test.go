package advice_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/advice"
)

func TestMemory(t *testing.T) {
	for text, want := range map[string]string{
		"16": "16 is 16 bytes; write 16Gi", "1048575": "1048575 is 1048575 bytes; write 1048575Gi", "1048576": "", "0": "", "": "",
		"128m": "128m is 1 bytes; write 128Mi", "1.5": "1.5 is 2 bytes; write 1.5Gi", "512Ki": "", "1k": "", "16Gi": "",
	} {
		a := v1alpha1.Amount{}
		if text != "" {
			var err error
			if a, err = v1alpha1.ParseAmount(v1alpha1.Memory, text); err != nil {
				t.Fatal(err)
			}
		}
		if got := advice.Memory(v1alpha1.Memory, a, text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := advice.Memory(v1alpha1.CPU, a, text); got != "" {
			t.Errorf("%q of cpu: got %q", text, got)
		}
	}
}

func TestUnknownModels(t *testing.T) {
	var m advice.Models
	m.Offer("")
	m.Offer("acme-warp9")
	for model, want := range map[string]string{
		"H100": "", "nvidia-h100": "", "any": "", "": "", "NVIDIA-H100-80GB-HBM3": "", "A100-80GB": "", "Acme-Warp9": "",
		"RTX4090": "", "L40s": "", "h100_sxm5": "", "H100 SXM": "", "a100 80gb": "", "H100-SXM5-80GB": "",
		"A100-80": "(did you mean A100-80GB?)", "nvidia-a100_40": "(did you mean A100-40GB?)", "A100-77": "(did you mean A100?)", "h100-quick": "(did you mean H100?)", "V100-32-SXM": "(did you mean V100-32GB?)", "RTX-4090-turbo": "(did you mean RTX-4090?)",
		"H1O0": "did you mean H100?", "nvidia-h10O": "did you mean H100?", "acme-warp": "did you mean ACME-WARP9?", "banana": `unknown GPU model "banana"; offered by files of this fleet: ACME-WARP9; known: B300`,
	} {
		if got := m.Unknown(model); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: got %q, want %q", model, got, want)
		}
	}
}

// TestResource: other names of resources lead to those of Kubernetes.
func TestResource(t *testing.T) {
	for name, want := range map[string]string{"ram": "memory", "vCPUs": "cpu", "disk": "ephemeral-storage", "accelerator": "gpu", "rdma": ""} {
		if got := advice.Resource(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
