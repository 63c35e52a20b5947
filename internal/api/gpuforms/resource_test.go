package gpuforms

import (
	"strings"
	"testing"
)

func TestByResource(t *testing.T) {
	for name, want := range map[string]string{
		"nvidia.com/gpu": "gpu: {count: 1, vendor: nvidia}", "amd.com/gpu": "gpu: {count: 1, vendor: amd}", "gpu.intel.com/xe": "gpu: {count: 1, vendor: intel}",
		"nvidia.com/mig-1g.10gb": "gpu: {count: 1, vendor: nvidia, profile: 1g.10gb}", "nvidia.com/mig-1g.10gb.me": "gpu: {count: 1, vendor: nvidia, profile: 1g.10gb.me}",
		"nvidia.com/gpu.shared": "", "google.com/tpu": "", "rdma/hca": "", "gpu": "", "cpu": "", "amd.com/mig-1g.10gb": "",
	} {
		vendor, profile, is, err := ByResource(name)
		got := ""
		if is && err == nil {
			got = Object(1, vendor, profile)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestByResource_NamesNoProfile(t *testing.T) {
	for _, name := range []string{"nvidia.com/mig-", "nvidia.com/mig-small", "nvidia.com/mig-1g.10gb.foo"} {
		_, profile, is, err := ByResource(name)
		if !is || profile != "" || err == nil || !strings.Contains(err.Error(), "is not a MIG profile; write for example gpu: {count: 1, vendor: nvidia, profile: 1g.10gb}") {
			t.Errorf("%s: %q, %t, %v", name, profile, is, err)
		}
	}
}

func TestProfile(t *testing.T) {
	for name, want := range map[string]string{"1g.10gb+me": "1g.10gb.me", "1G.10GB.ME": "1g.10gb.me", "1g.24gb+me.all": "1g.24gb.me.all", "": ""} {
		if got := Profile(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestIsProfile(t *testing.T) {
	for token, want := range map[string]bool{
		"1g.10gb": true, "1g.10gb+me": true, "1g.10gb.me": true, "1c.3g.40gb": true, "7g.80gb": true,
		"1g.24gb+me.all": true, "1g.24gb.gfx": true, "1g.10gb.foo": false, "": false, "small": false, "10gb": false, "1g": false, "1g.10gb.": false,
	} {
		if got := IsProfile(token); got != want {
			t.Errorf("%q: got %t, want %t", token, got, want)
		}
	}
}

func TestJoined(t *testing.T) {
	for token, want := range map[string]string{
		"H100 SXM": "H100-SXM", "a100 80gb": "a100:80gb", "H100 8": "H100:8", "H100 SXM 8": "H100-SXM:8", "RTX 4090": "RTX-4090", "A100 80": "A100-80",
		"H100 80GB x8": "H100:80GB:8", "NVIDIA H100 80GB HBM3:8": "NVIDIA-H100-80GB-HBM3:8", "8 x H100 80GB": "H100:80GB:8", "8 H100": "H100:8", "A100 80 GB": "A100:80GB",
		"8x A100 80GB PCIe": "A100-80GB-PCIe:8", "nvidia:H100 SXM:32": "nvidia:H100-SXM:32", "H100 SXM 8:8": "", "8 H100 x8": "", "80 GB": "80GB", "x 8": "", "H100 x": "", "8 8": "",
		"H100": "H100", "": "", "H100 {}": "", "a, b": "",
	} {
		if got := Joined(token); got != want {
			t.Errorf("%q: got %q, want %q", token, got, want)
		}
	}
}
