package agent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetbroker/fleetbroker/internal/agent/notes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// drawGPU writes an accelerator down in one line.
func drawGPU(g v1alpha1.FlavorGPU) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s %s %s %s %s %s/%d", g.Vendor, g.Model, g.Memory.Canonical(v1alpha1.Memory),
		g.Architecture, g.Tier, g.Interconnect, g.ComputeCapability, g.Sharing, g.Profile, g.ResourceName, g.UnitsPerGPU)), " ")
}

func TestGPUsOfANode(t *testing.T) {
	labels := func(pairs ...string) nodeOption {
		return func(n *corev1.Node) {
			for i := 0; i < len(pairs); i += 2 {
				n.Labels[pairs[i]] = pairs[i+1]
			}
		}
	}
	annotations := func(pairs ...string) nodeOption {
		return func(n *corev1.Node) {
			for i := 0; i < len(pairs); i += 2 {
				n.Annotations["gpu.fluidos.eu/"+pairs[i]] = pairs[i+1]
			}
		}
	}
	cases := map[string]struct {
		resources string
		options   []nodeOption
		want      string
	}{
		"GPU feature discovery": {"nvidia.com/gpu=8", []nodeOption{h100}, "nvidia nvidia-h100 80Gi hopper 9.0 none nvidia.com/gpu/1"},
		"time-slicing": {"nvidia.com/gpu=32", []nodeOption{h100, labels("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-SHARED", "nvidia.com/gpu.replicas", "4", "nvidia.com/gpu.sharing-strategy", "time-slicing")},
			"nvidia nvidia-h100 20Gi hopper 9.0 time-slicing nvidia.com/gpu/4"},
		"MPS under another name": {"nvidia.com/gpu=0 nvidia.com/gpu.shared=16", []nodeOption{h100, labels("nvidia.com/gpu.replicas", "2", "nvidia.com/gpu.sharing-strategy", "mps")},
			"nvidia nvidia-h100 40Gi hopper 9.0 mps nvidia.com/gpu.shared/2"},
		"MIG, all alike": {"nvidia.com/gpu=14", []nodeOption{h100, labels("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.memory", "4864", "nvidia.com/gpu.family", "ampere", "nvidia.com/gpu.compute.major", "8", "nvidia.com/gpu.count", "14")},
			"nvidia nvidia-a100 5Gi ampere 8.0 mig 1g.5gb nvidia.com/gpu/7"},
		"MIG, mixed": {"nvidia.com/gpu=0 nvidia.com/mig-1g.10gb=14 nvidia.com/mig-1g.10gb.me=1 nvidia.com/mig-3g.40gb=2", []nodeOption{h100},
			"nvidia nvidia-h100 10Gi hopper 9.0 mig 1g.10gb nvidia.com/mig-1g.10gb/7\n" +
				"nvidia nvidia-h100 10Gi hopper 9.0 mig 1g.10gb.me nvidia.com/mig-1g.10gb.me/1\n" +
				"nvidia nvidia-h100 40Gi hopper 9.0 mig 3g.40gb nvidia.com/mig-3g.40gb/2"},
		"AMD": {"amd.com/gpu=8", []nodeOption{labels("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram", "192G")}, "amd amd-mi300x 192Gi none amd.com/gpu/1"},
		"annotations, as documented": {"nvidia.com/gpu=1", []nodeOption{annotations("vendor", "nvidia", "model", "nvidia-a100", "memory", "80Gi", "tier", "premium", "architecture", "Ampere", "interconnect", "NVLink", "compute_capability", "8.0")},
			"nvidia nvidia-a100 80Gi ampere premium nvlink 8.0 none nvidia.com/gpu/1"},
		"annotations, as read by programs": {"nvidia.com/gpu=1", []nodeOption{annotations("model", "nvidia-a100", "memory-per-gpu", "40GB", "compute-capability", "8.0")},
			"nvidia nvidia-a100 40Gi 8.0 none nvidia.com/gpu/1"},
		"both spellings":         {"nvidia.com/gpu=1", []nodeOption{annotations("compute_capability", "7.0", "compute-capability", "8.0")}, "nvidia 0 8.0 none nvidia.com/gpu/1"},
		"annotation over labels": {"nvidia.com/gpu=8", []nodeOption{h100, annotations("tier", "gaming", "architecture", "custom")}, "nvidia nvidia-h100 80Gi custom gaming 9.0 none nvidia.com/gpu/1"},
		"no device plugin":       {"cpu=4", []nodeOption{h100}, ""},
		"nothing known":          {"nvidia.com/gpu=1", nil, "nvidia 0 none nvidia.com/gpu/1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, problems := factsOf(node("a", tc.resources, tc.options...))
			var got []string
			for _, g := range f.GPUs {
				got = append(got, drawGPU(g))
			}
			if drawn := strings.Join(got, "\n"); drawn != tc.want || len(problems) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nproblems %q", drawn, tc.want, problems)
			}
		})
	}
}

// The tables of NVIDIA's MIG user guide, "Supported MIG Profiles".
func TestInstancesOfMIGProfiles(t *testing.T) {
	cases := map[int64]map[string]int32{
		24:  {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
		40:  {"1g.5gb": 7, "1g.5gb.me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
		80:  {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
		94:  {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
		141: {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
		180: {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
	}
	for gi, profiles := range cases {
		for profile, want := range profiles {
			m := migShape.FindStringSubmatch(profile)
			if m == nil {
				t.Errorf("%s is not read", profile)
				continue
			}
			if got := instances(gi, positive(m[1]), positive(m[2]), m[3]); got != want {
				t.Errorf("a card of %d GB makes %d of %s, want %d", gi, got, profile, want)
			}
		}
	}
}

func TestFactsFromAnnotations(t *testing.T) {
	n := node("a", "cpu=16", pool("p"),
		labelled(corev1.LabelTopologyRegion, "eu-west-3"), labelled(corev1.LabelTopologyZone, "eu-west-3a"),
		annotated("location.fluidos.eu/zone", "eu-west-3b"), annotated("location.fluidos.eu/country", "FR"),
		annotated("cost.fluidos.eu/hourly-rate", "3.20"), annotated("cost.fluidos.eu/currency", "EUR"),
		annotated("network.fluidos.eu/latency_ms", "12"), annotated("network.fluidos.eu/bandwidth_gbps", "100"),
		annotated("provider.fluidos.eu/preemptible", "true"), annotated("workload.fluidos.eu/training_score", "0.9"),
		annotated("gpu.fluidos.eu/dedicated", "true"), annotated("other.example.org/x", "y"),
		annotated("workload.fluidos.eu/essay", strings.Repeat("x", notes.MaxText+1)))
	flavors := collect(t, State{Nodes: []*corev1.Node{n}})
	spec := flavors[0].Spec
	if want := (v1alpha1.Location{Region: "eu-west-3", Zone: "eu-west-3b", Country: "FR"}); spec.Location != want {
		t.Errorf("location %+v, want %+v", spec.Location, want)
	}
	if spec.Price == nil || spec.Price.Currency != "EUR" || spec.Price.PerHour["cpu"].String() != "0.2" {
		t.Errorf("price %+v", spec.Price)
	}
	if spec.Properties.LatencyMs == nil || *spec.Properties.LatencyMs != 12 {
		t.Errorf("properties %+v", spec.Properties)
	}
	want := "map[gpu.fluidos.eu/dedicated:true network.fluidos.eu/bandwidth-gbps:100 provider.fluidos.eu/preemptible:true workload.fluidos.eu/training-score:0.9]"
	if got := fmt.Sprint(spec.Labels); got != want {
		t.Errorf("labels %s\nwant   %s", got, want)
	}
}

func TestPricesAreSpreadOverUnits(t *testing.T) {
	rate := annotated("cost.fluidos.eu/hourly-rate", "33.60")
	cases := map[string]struct {
		node *corev1.Node
		want []string
	}{
		"whole cards":  {node("a", "nvidia.com/gpu=8", h100, rate), []string{"gpu 4.2"}},
		"a lost card":  {node("a", "nvidia.com/gpu=7", h100, rate), []string{"gpu 4.2"}},
		"shares":       {node("a", "nvidia.com/gpu=32", h100, rate, labelled("nvidia.com/gpu.replicas", "4")), []string{"gpu 1.05"}},
		"MIG":          {node("a", "nvidia.com/gpu=4 nvidia.com/mig-1g.10gb=28", h100, rate), []string{"gpu 4.2", "gpu 0.6"}},
		"count noted":  {node("a", "nvidia.com/gpu=4", rate, annotated("gpu.fluidos.eu/count", "4")), []string{"gpu 8.4"}},
		"no label":     {node("a", "nvidia.com/gpu=2", rate), []string{"gpu 16.8"}},
		"without GPUs": {node("a", "cpu=16", rate), []string{"cpu 2.1"}},
		"unpriced":     {node("a", "cpu=16"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, problems := factsOf(tc.node)
			var got []string
			for _, p := range f.Prices {
				for key, price := range p.PerHour {
					got = append(got, key+" "+price.String())
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) || len(problems) > 0 {
				t.Errorf("got %q, want %q (%q)", got, tc.want, problems)
			}
		})
	}
}

func TestBrokenAnnotationsAreNamedAndIgnored(t *testing.T) {
	n := node("a", "nvidia.com/gpu=1", pool("p"),
		annotated("gpu.fluidos.eu/memory", "lots"), annotated("gpu.fluidos.eu/count", "-1"),
		annotated("cost.fluidos.eu/hourly-rate", "1e3"), annotated("network.fluidos.eu/latency-ms", "12ms"))
	flavors, _, problems := Collect(State{Cluster: "paris", Nodes: []*corev1.Node{n}}, Memory{})
	if len(problems) != 4 {
		t.Errorf("problems %q", problems)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p, "node a: annotation ") || !strings.Contains(p, " is ignored: ") {
			t.Errorf("problem %q", p)
		}
	}
	if len(flavors) != 1 || flavors[0].Spec.Price != nil || flavors[0].Spec.Capacity["gpu"].Int64() != 1 {
		t.Errorf("got %s", draw(flavors))
	}
}

func TestNamesOfUnlabelledPoolsFollowTheKind(t *testing.T) {
	offer := labelled(labelResources, "true")
	name := func(options ...nodeOption) string {
		flavors := collect(t, State{Nodes: []*corev1.Node{node("a", big, append(options, offer, h100)...)}})
		return flavors[0].Metadata.Name
	}
	plain := name()
	if !strings.HasPrefix(plain, "nvidia-h100-") {
		t.Errorf("name %s", plain)
	}
	if got := name(annotated("cost.fluidos.eu/hourly-rate", "3")); got != plain {
		t.Errorf("a price renames %s to %s", plain, got)
	}
	if got := name(annotated("workload.fluidos.eu/hpc-score", "1")); got != plain {
		t.Errorf("a label renames %s to %s", plain, got)
	}
	if got := name(labelled(corev1.LabelTopologyZone, "z")); got == plain {
		t.Error("another zone is the same kind")
	}
	// Kernels keep a little memory for themselves, and not always the same.
	alike := node("b", "cpu=64 memory=511Gi pods=110 nvidia.com/gpu=8", offer, h100)
	other := node("c", "cpu=64 memory=256Gi pods=110 nvidia.com/gpu=8", offer, h100)
	flavors := collect(t, State{Nodes: []*corev1.Node{node("a", big, offer, h100), alike, other}})
	if len(flavors) != 2 {
		t.Errorf("got\n%s", draw(flavors))
	}
}

func TestOddPoolNames(t *testing.T) {
	flavors := collect(t, State{Nodes: []*corev1.Node{
		node("a", "cpu=1", pool("H100_Pool.x")), node("b", "cpu=2", pool(strings.Repeat("p", 63)), labelled(corev1.LabelTopologyZone, "z1")),
		node("c", "cpu=4", pool(strings.Repeat("p", 63)), labelled(corev1.LabelTopologyZone, "z2"), younger(1)),
	}})
	for _, f := range flavors {
		if len(f.Metadata.Name) > maxName || dnsName(f.Metadata.Name) != f.Metadata.Name {
			t.Errorf("name %q", f.Metadata.Name)
		}
	}
	if len(flavors) != 3 || flavors[0].Metadata.Name != "h100-pool-x" || flavors[0].Spec.NodeSelector[labelPool] != "H100_Pool.x" {
		t.Errorf("got\n%s", draw(flavors))
	}
}

// TestFactsThatAdministratorsKnow: what nobody measures comes from annotations, stays a
// label, and is named where it cannot be read.
func TestFactsThatAdministratorsKnow(t *testing.T) {
	for name, c := range map[string]struct{ key, value, want, problem string }{
		"carbon":             {"carbon-intensity", "56", "carbon 56", ""},
		"carbon, its unit":   {"carbon-intensity", "56 gCO2e/kWh", "carbon 56", ""},
		"carbon, in tons":    {"carbon-intensity", "0.05 tCO2/MWh", "", `"0.05 tCO2/MWh" is not a carbon intensity: write whole grams of CO2 per kWh, such as 56`},
		"reliability":        {"reliability", "0.997", "reliability 0.997", ""},
		"reliability, in %":  {"reliability", "99.7", "", `"99.7" is not between 0 and 1`},
		"reliability, words": {"reliability", "high", "", `"high" is not a decimal number`},
		"standards":          {"security-standards", " SOC2, ISO27001,,SOC2 ", "standards [ISO27001 SOC2]", ""},
		"none":               {"security-standards", " , ", "", ""},
	} {
		n := node("n", big, pool("p"))
		n.Annotations["provider.fluidos.eu/"+c.key] = c.value
		f, problems := factsOf(n)
		got := ""
		if p := f.Properties; p.Carbon != nil {
			got = fmt.Sprintf("carbon %d", *p.Carbon)
		} else if p.Reliability != nil {
			got = "reliability " + p.Reliability.String()
		} else if p.SecurityStandards != nil {
			got = fmt.Sprintf("standards %v", p.SecurityStandards)
		}
		if said := strings.Join(problems, "\n"); got != c.want || !strings.Contains(said, c.problem) || (said == "") != (c.problem == "") {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got, said, c.want, c.problem)
		}
		if f.Labels["provider.fluidos.eu/"+c.key] != strings.TrimSpace(c.value) {
			t.Errorf("%s: labels %v", name, f.Labels)
		}
	}
}
