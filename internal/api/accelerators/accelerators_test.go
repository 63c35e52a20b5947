package accelerators_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
)

func TestIs(t *testing.T) {
	for name, want := range map[string]bool{
		"gpu": true, "nvidia.com/gpu": true, "nvidia.com/mig-1g.10gb": true, "habana.ai/gaudi": true, "google.com/tpu": true,
		"aws.amazon.com/neuron": true, "huawei.com/Ascend910": true, "amd.com/gpu": true, "gpu.intel.com/xe": true,
		"cpu": false, "memory": false, "pods": false, "ephemeral-storage": false, "rdma/hca": false, "hugepages-2Mi": false,
		"nvidia.com/": false, "nvidia.com/mig-": false, "habana.ai/": false, "example.org/npu": false, "smarter-devices/fuse": false,
	} {
		if got := accelerators.Is(name, nil); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	more := []string{"example.org/npu", "acme.com/warp-*"}
	for name, want := range map[string]bool{"example.org/npu": true, "acme.com/warp-9": true, "acme.com/weft-9": false, "gpu": true} {
		if got := accelerators.Is(name, more); got != want {
			t.Errorf("%s, extended: got %v, want %v", name, got, want)
		}
	}
}
