package gpunames_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
)

func TestNormalize(t *testing.T) {
	cases := []struct {
		product string
		mib     int64
		model   string
		gi      int64
	}{
		// What NVIDIA's feature discovery and nvidia-smi report.
		{"NVIDIA-H100-80GB-HBM3", 81559, "nvidia-h100", 80},
		{"NVIDIA H100 PCIe", 81559, "nvidia-h100", 80},
		{"NVIDIA-H100-NVL", 95830, "nvidia-h100", 94},
		{"NVIDIA-H200", 143771, "nvidia-h200", 141},
		{"NVIDIA-H200-NVL", 143771, "nvidia-h200", 141},
		{"NVIDIA-GH200-480GB", 97871, "nvidia-gh200", 96},
		{"NVIDIA-GH200-96GB-HBM3", 97871, "nvidia-gh200", 96},
		{"NVIDIA-B200", 183359, "nvidia-b200", 180},
		{"NVIDIA-A100-SXM4-40GB", 40960, "nvidia-a100", 40},
		{"NVIDIA-A100-SXM4-80GB", 81920, "nvidia-a100", 80},
		{"NVIDIA-A100-PCIE-40GB", 40960, "nvidia-a100", 40},
		{"A100-SXM-64GB", 65536, "nvidia-a100", 64},
		{"NVIDIA A100 80GB PCIe", 81920, "nvidia-a100", 80},
		{"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9728, "nvidia-a100", 10},
		{"NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", 40448, "nvidia-h100", 40},
		{"NVIDIA-A10G", 22888, "nvidia-a10g", 24},
		{"NVIDIA-A10G-SHARED", 22888, "nvidia-a10g", 24},
		{"NVIDIA-A10", 23028, "nvidia-a10", 24},
		{"NVIDIA-A30", 24576, "nvidia-a30", 24},
		{"NVIDIA-A40", 46068, "nvidia-a40", 48},
		{"NVIDIA-L40S", 46068, "nvidia-l40s", 48},
		{"NVIDIA-L40", 46068, "nvidia-l40", 48},
		{"NVIDIA-L4", 23034, "nvidia-l4", 24},
		{"Tesla-T4", 15360, "nvidia-t4", 16},
		{"Tesla-V100-SXM2-16GB", 16384, "nvidia-v100", 16},
		{"Tesla-V100-SXM2-32GB", 32768, "nvidia-v100", 32},
		{"Tesla-V100-DGXS-32GB", 32768, "nvidia-v100", 32},
		{"Tesla-P100-PCIE-16GB", 16384, "nvidia-p100", 16},
		{"Tesla-K80", 11441, "nvidia-k80", 12},
		{"NVIDIA-GeForce-RTX-4090", 24564, "nvidia-rtx-4090", 24},
		{"NVIDIA-GeForce-RTX-4090", 49140, "nvidia-rtx-4090", 48},
		{"NVIDIA-GeForce-RTX-3090", 24576, "nvidia-rtx-3090", 24},
		{"NVIDIA-RTX-A6000", 49140, "nvidia-rtx-a6000", 48},
		{"NVIDIA RTX 6000 Ada Generation", 49140, "nvidia-rtx-6000-ada", 48},
		{"Quadro-RTX-6000", 24220, "nvidia-quadro-rtx-6000", 24},
		{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "nvidia-rtx-pro-6000", 96},
		{"AMD-Instinct-MI300X-OAM", 196592, "amd-mi300x", 192},
		{"AMD Instinct MI250X", 65520, "amd-mi250x", 64},
		{"AMD_Instinct_MI210", 65520, "amd-mi210", 64},
		{"Gaudi2", 0, "intel-gaudi2", 96},
		{"HL-225", 98304, "intel-gaudi2", 96},
		// What price lists and traces write (memory in them is GiB).
		{"H100", 80 * 1024, "nvidia-h100", 80},
		{"A100", 40 * 1024, "nvidia-a100", 40},
		{"A100-80GB", 80 * 1024, "nvidia-a100", 80},
		{"A10G", 22886, "nvidia-a10g", 24},
		{"B300", 275036, "nvidia-b300", 288},
		{"L40S", 45773, "nvidia-l40s", 48},
		{"L4", 11448, "nvidia-l4", 12}, // half a card
		{"T4G", 16 * 1024, "nvidia-t4g", 16},
		{"V100-32GB", 32 * 1024, "nvidia-v100", 32},
		{"V520", 8 * 1024, "amd-radeon-pro-v520", 8},
		{"RTXPRO6000", 96 * 1024, "nvidia-rtx-pro-6000", 96},
		{"RTX-PRO-SERVER-6000", 96 * 1024, "nvidia-rtx-pro-6000", 96},
		{"RTX-PRO-4500", 32 * 1024, "nvidia-rtx-pro-4500", 32},
		{"V100M16", 0, "nvidia-v100", 16},
		{"V100M32", 0, "nvidia-v100", 32},
		{"P100", 0, "nvidia-p100", 0}, // sold with 12 and 16
		{"G2", 0, "nvidia-g2", 0},
		{"G3", 0, "nvidia-g3", 0},
		// What people write.
		{"nvidia-h100", 0, "nvidia-h100", 0},
		{"h100", 0, "nvidia-h100", 0},
		{"rtx4090", 0, "nvidia-rtx-4090", 0},
		{"RTX 4090", 0, "nvidia-rtx-4090", 0},
		{"a100-40g", 0, "nvidia-a100", 0},
		// Not in the table.
		{"NVIDIA-GeForce-RTX-4080-SUPER", 16376, "nvidia-rtx-4080-super", 16},
		{"NVIDIA-X999", 12001, "nvidia-x999", 12},
		{"Some (odd) Card/2", 3000, "some-odd-card-2", 3},
		{"A1000", 8192, "a1000", 8},
		{"", 1000, "", 1},
	}
	for _, tc := range cases {
		vendor, model, memory := gpunames.Normalize(tc.product, tc.mib)
		if model != tc.model || memory.Int64() != tc.gi<<30 {
			t.Errorf("%q %d MiB: %s %s with %d Gi, want %s with %d", tc.product, tc.mib, vendor, model, memory.Int64()>>30, tc.model, tc.gi)
		}
	}
}

func TestMatch(t *testing.T) {
	cases := []struct {
		want, have string
		match      bool
	}{
		{"any", "nvidia-h100", true},
		{"", "nvidia-h100", true},
		{"ANY", "", true},
		{"nvidia-h100", "nvidia-h100", true},
		{"H100", "nvidia-h100", true},
		{"NVIDIA-H100", "h100", true},
		{"h100", "nvidia-h200", false},
		{"a10", "nvidia-a100", false},
		{"a100", "nvidia-a10", false},
		{"a10", "nvidia-a10g", false},
		{"A100-80GB", "nvidia-a100", true},
		{"rtx4090", "nvidia-rtx-4090", true},
		{"V100M32", "nvidia-v100", true},
		{"x999", "nvidia-x999", true},
		{"amd-x999", "nvidia-x999", true}, // the prefix is optional on either side, unknown models have no other vendor
		{"mi300x", "amd-mi300x", true},
		{"h100", "", false},
	}
	for _, tc := range cases {
		if got := gpunames.Match(tc.want, tc.have); got != tc.match {
			t.Errorf("%q wants %q: %v", tc.want, tc.have, got)
		}
	}
}

func TestNamed(t *testing.T) {
	for name, gi := range map[string]int64{"A100-80GB": 80, "V100M32": 32, "h100": 0, "nvidia-a100-40gb": 40, "rtx-4090": 0} {
		if got := gpunames.Named(name).Int64() >> 30; got != gi {
			t.Errorf("%s: %d Gi, want %d", name, got, gi)
		}
	}
}

// TestNormalisedNamesStay: a name that came out of the table goes in and comes
// out again as itself, whatever its memory.
func TestNormalisedNamesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"nvidia", "NVIDIA", "Tesla", "amd", "A100", "a10", "H100", "80GB", "SXM4", "RTX", "4090", "PRO", "6000", "x9", "mi300x", "", "é", "Ti"})
		sep := rapid.SampledFrom([]string{"-", " ", "_", ""})
		var name string
		for range rapid.IntRange(1, 5).Draw(t, "words") {
			name += word.Draw(t, "word") + sep.Draw(t, "sep")
		}
		_, once, _ := gpunames.Normalize(name, rapid.Int64Range(0, 300000).Draw(t, "mib"))
		if twice := gpunames.Model(once); twice != once {
			t.Fatalf("%q became %q and then %q", name, once, twice)
		}
		if !gpunames.Match(name, once) {
			t.Fatalf("%q does not match its own model %q", name, once)
		}
	})
}

func TestSold(t *testing.T) {
	for name, gb := range map[string]int64{"A100": 80, "nvidia-a100": 40, "H100 SXM": 94, "rtx-4090": 24} {
		if !gpunames.Sold(name, gb) || gpunames.Sold(name, gb+1) {
			t.Errorf("%s: of %d GB %t, of %d GB %t; want only the first", name, gb, gpunames.Sold(name, gb), gb+1, gpunames.Sold(name, gb+1))
		}
	}
	if gpunames.Sold("banana", 80) || gpunames.Sold("", 0) {
		t.Error("what nobody makes is sold")
	}
}

// A name that states another vendor than makes its model is no name of it; brands of the
// right vendor, other models and names without one are.
func TestContrary(t *testing.T) {
	for name, want := range map[string][4]string{
		"amd-h100":                  {"H100", "amd", "nvidia", "nvidia-h100"},
		"Intel A100 80GB":           {"A100", "intel", "nvidia", "nvidia-a100-80gb"},
		"nvidia-mi300x":             {"MI300X", "nvidia", "amd", "amd-mi300x"},
		"tesla-gaudi3":              {"GAUDI3", "nvidia", "intel", "intel-gaudi3"},
		"amd-a100-mig-1g.10gb":      {"A100", "amd", "nvidia", "nvidia-a100"},
		"h100":                      {},
		"nvidia-h100":               {},
		"NVIDIA-A10G-SHARED":        {},
		"Tesla-T4":                  {},
		"AMD-Instinct-MI300X-OAM":   {},
		"Habana-Gaudi2":             {},
		"acme-h100":                 {},
		"amd-radeon-w6800":          {},
		"intel-data-center-gpu-max": {},
		"any":                       {},
		"":                          {},
	} {
		model, stated, vendor, write := gpunames.Contrary(name)
		if got := [4]string{model, stated, vendor, write}; got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
		if write != "" && !gpunames.Known(write) {
			t.Errorf("%q: %q is not known either", name, write)
		}
	}
}
