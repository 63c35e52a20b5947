package gpunames

// family is a model with the names it is found under and the memory sizes it
// is sold with, in GB.
type family struct {
	model  string
	vendor string
	// names are compact: lower case, without separators, vendor and brand
	// words. A product belongs to the family with the longest name that it
	// begins with.
	names []string
	sizes []int64
}

// families are the GPUs that can be met in clouds and clusters. Sizes are those
// of the vendors' data sheets (nvidia.com/data-center, amd.com/instinct,
// habana.ai, intel.com), as they stood in November 2026. Three need a word:
//
//   - b200: NVIDIA first announced 192 GB; the DGX B200 data sheet sells
//     1,440 GB for eight, so 180, and drivers report 183,359 MiB (179.1 GiB).
//   - b300: the DGX B300 data sheet sells 2.3 TB for eight: 288.
//   - h100 at 94 GB is the NVL, at 64 GB the custom one of Leonardo and others.
var families = []family{
	{"nvidia-b300", nvidia, []string{"b300", "gb300"}, []int64{288}},
	{"nvidia-b200", nvidia, []string{"b200", "gb200"}, []int64{180, 192}},
	{"nvidia-h200", nvidia, []string{"h200", "gh200144g", "gh200144"}, []int64{141, 144}},
	{"nvidia-gh200", nvidia, []string{"gh200", "gracehopper"}, []int64{96, 144}},
	{"nvidia-h100", nvidia, []string{"h100"}, []int64{80, 94, 64, 96}},
	{"nvidia-h800", nvidia, []string{"h800"}, []int64{80}},
	{"nvidia-h20", nvidia, []string{"h20"}, []int64{96, 141}},
	{"nvidia-a100", nvidia, []string{"a100"}, []int64{40, 80, 64}},
	{"nvidia-a800", nvidia, []string{"a800"}, []int64{40, 80}},
	{"nvidia-a30", nvidia, []string{"a30"}, []int64{24}},
	{"nvidia-a40", nvidia, []string{"a40"}, []int64{48}},
	{"nvidia-a16", nvidia, []string{"a16"}, []int64{16}},
	{"nvidia-a10g", nvidia, []string{"a10g"}, []int64{24}},
	{"nvidia-a10m", nvidia, []string{"a10m"}, []int64{24}},
	{"nvidia-a10", nvidia, []string{"a10"}, []int64{24}},
	{"nvidia-a2", nvidia, []string{"a2"}, []int64{16}},
	{"nvidia-l40s", nvidia, []string{"l40s"}, []int64{48}},
	{"nvidia-l40", nvidia, []string{"l40"}, []int64{48}},
	{"nvidia-l20", nvidia, []string{"l20"}, []int64{48}},
	{"nvidia-l4", nvidia, []string{"l4"}, []int64{24}},
	{"nvidia-l2", nvidia, []string{"l2"}, []int64{24}},
	{"nvidia-t4g", nvidia, []string{"t4g"}, []int64{16}},
	{"nvidia-t4", nvidia, []string{"t4"}, []int64{16}},
	{"nvidia-v100", nvidia, []string{"v100"}, []int64{16, 32}},
	{"nvidia-p100", nvidia, []string{"p100"}, []int64{16, 12}},
	{"nvidia-p40", nvidia, []string{"p40"}, []int64{24}},
	{"nvidia-p4", nvidia, []string{"p4"}, []int64{8}},
	{"nvidia-k80", nvidia, []string{"k80"}, []int64{12}}, // each of a board's two chips
	{"nvidia-m60", nvidia, []string{"m60"}, []int64{8}},  // likewise
	{"nvidia-gb10", nvidia, []string{"gb10"}, []int64{128}},

	{"nvidia-rtx-pro-6000", nvidia, []string{"rtxpro6000", "rtxproserver6000", "rtxproblackwell6000", "rtx6000blackwell"}, []int64{96}},
	{"nvidia-rtx-pro-5000", nvidia, []string{"rtxpro5000"}, []int64{48, 72}},
	{"nvidia-rtx-pro-4500", nvidia, []string{"rtxpro4500", "rtxproserver4500"}, []int64{32}},
	{"nvidia-rtx-pro-4000", nvidia, []string{"rtxpro4000"}, []int64{24}},
	{"nvidia-rtx-6000-ada", nvidia, []string{"rtx6000ada", "6000ada"}, []int64{48}},
	{"nvidia-rtx-5000-ada", nvidia, []string{"rtx5000ada", "5000ada"}, []int64{32}},
	{"nvidia-rtx-4000-ada", nvidia, []string{"rtx4000ada", "rtx4000sffada", "4000ada"}, []int64{20}},
	{"nvidia-rtx-a6000", nvidia, []string{"rtxa6000", "a6000"}, []int64{48}},
	{"nvidia-rtx-a5000", nvidia, []string{"rtxa5000", "a5000"}, []int64{24}},
	{"nvidia-rtx-a4500", nvidia, []string{"rtxa4500", "a4500"}, []int64{20}},
	{"nvidia-rtx-a4000", nvidia, []string{"rtxa4000", "a4000"}, []int64{16}},
	{"nvidia-rtx-a2000", nvidia, []string{"rtxa2000", "a2000"}, []int64{12, 6}},
	{"nvidia-quadro-rtx-8000", nvidia, []string{"rtx8000"}, []int64{48}},
	{"nvidia-quadro-rtx-6000", nvidia, []string{"rtx6000"}, []int64{24}},
	{"nvidia-quadro-rtx-5000", nvidia, []string{"rtx5000"}, []int64{16}},
	{"nvidia-quadro-rtx-4000", nvidia, []string{"rtx4000"}, []int64{8}},
	{"nvidia-rtx-5090", nvidia, []string{"rtx5090", "5090"}, []int64{32}},
	{"nvidia-rtx-5080", nvidia, []string{"rtx5080", "5080"}, []int64{16}},
	{"nvidia-rtx-5070-ti", nvidia, []string{"rtx5070ti", "5070ti"}, []int64{16}},
	{"nvidia-rtx-4090", nvidia, []string{"rtx4090", "4090"}, []int64{24, 48}}, // 48: re-soldered boards, met at rental hosts
	{"nvidia-rtx-4080", nvidia, []string{"rtx4080", "4080"}, []int64{16}},
	{"nvidia-rtx-3090", nvidia, []string{"rtx3090", "3090"}, []int64{24}},
	{"nvidia-rtx-3080-ti", nvidia, []string{"rtx3080ti", "3080ti"}, []int64{12}},
	{"nvidia-rtx-3080", nvidia, []string{"rtx3080", "3080"}, []int64{10, 12}},
	{"nvidia-rtx-3070", nvidia, []string{"rtx3070", "3070"}, []int64{8}},
	{"nvidia-rtx-3060", nvidia, []string{"rtx3060", "3060"}, []int64{12, 8}},
	{"nvidia-rtx-2080-ti", nvidia, []string{"rtx2080ti", "2080ti"}, []int64{11, 22}},
	{"nvidia-gtx-1080-ti", nvidia, []string{"gtx1080ti", "1080ti"}, []int64{11}},
	{"nvidia-titan-rtx", nvidia, []string{"titanrtx"}, []int64{24}},
	{"nvidia-titan-v", nvidia, []string{"titanv"}, []int64{12}},

	// Alibaba's cluster-trace-gpu-v2023 does not disclose what these two are.
	{"nvidia-g2", nvidia, []string{"g2"}, nil},
	{"nvidia-g3", nvidia, []string{"g3"}, nil},

	{"amd-mi355x", amd, []string{"mi355x", "mi355"}, []int64{288}},
	{"amd-mi350x", amd, []string{"mi350x", "mi350"}, []int64{288}},
	{"amd-mi325x", amd, []string{"mi325x", "mi325"}, []int64{256}},
	{"amd-mi300x", amd, []string{"mi300x", "mi300"}, []int64{192}},
	{"amd-mi300a", amd, []string{"mi300a"}, []int64{128}},
	{"amd-mi250x", amd, []string{"mi250x"}, []int64{128, 64}}, // 64: each of the two dies, as drivers count them
	{"amd-mi250", amd, []string{"mi250"}, []int64{128, 64}},
	{"amd-mi210", amd, []string{"mi210"}, []int64{64}},
	{"amd-mi100", amd, []string{"mi100"}, []int64{32}},
	{"amd-mi50", amd, []string{"mi50", "vega20"}, []int64{16, 32}},
	{"amd-mi25", amd, []string{"mi25"}, []int64{16}},
	{"amd-radeon-pro-v710", amd, []string{"prov710", "v710"}, []int64{28}},
	{"amd-radeon-pro-v620", amd, []string{"prov620", "v620"}, []int64{32}},
	{"amd-radeon-pro-v520", amd, []string{"prov520", "v520"}, []int64{8}},
	{"amd-radeon-pro-w7900", amd, []string{"prow7900", "w7900"}, []int64{48}},
	{"amd-rx-7900-xtx", amd, []string{"rx7900xtx", "7900xtx"}, []int64{24}},

	{"intel-gaudi3", intel, []string{"gaudi3", "hl325", "hl338", "hlb325"}, []int64{128}},
	{"intel-gaudi2", intel, []string{"gaudi2", "hl225", "hl288"}, []int64{96}},
	{"intel-gaudi", intel, []string{"gaudi", "hl205", "hl200"}, []int64{32}},
	{"intel-max-1550", intel, []string{"max1550", "datacentergpumax1550"}, []int64{128}},
	{"intel-max-1100", intel, []string{"max1100", "datacentergpumax1100"}, []int64{48}},
	{"intel-flex-170", intel, []string{"flex170", "datacentergpuflex170"}, []int64{16}},
	{"intel-flex-140", intel, []string{"flex140", "datacentergpuflex140"}, []int64{12, 6}},
}

const (
	nvidia = "nvidia"
	amd    = "amd"
	intel  = "intel"
)

// brands are words before a model that say whose it is and nothing more.
var brands = map[string]string{
	"nvidia": nvidia, "tesla": nvidia, "geforce": nvidia, "quadro": nvidia,
	"amd": amd, "instinct": amd, "radeon": amd, "ati": amd,
	"intel": intel, "habana": intel, "arc": "",
}
