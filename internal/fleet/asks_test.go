package fleet

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// TestWhatPeopleWriteFirst: what somebody who knows Kubernetes and clouds writes at the
// first attempt is understood, or refused with what to write.
func TestWhatPeopleWriteFirst(t *testing.T) {
	const plain = "resources: {cpu: 1}"
	spec := func(check func(s *v1alpha1.IntentSpec) bool) func(*Fleet) bool {
		return func(f *Fleet) bool { in := f.Intent("vision", "b"); return in != nil && check(&in.Spec) }
	}
	gpu := func(count int32, vendor string, models ...string) func(*Fleet) bool {
		return spec(func(s *v1alpha1.IntentSpec) bool {
			g := s.Resources.GPU
			return g != nil && g.Count == count && g.Vendor == vendor && strings.Join(g.Models, ",") == strings.Join(models, ",") && len(s.Resources.Named) == 0
		})
	}
	mig := func(count int32, profile string) func(*Fleet) bool {
		return spec(func(s *v1alpha1.IntentSpec) bool {
			g := s.Resources.GPU
			return g != nil && g.Count == count && g.Vendor == "nvidia" && g.Profile == profile && len(s.Resources.Named) == 0
		})
	}
	hours := func(n float64) func(*Fleet) bool {
		return spec(func(s *v1alpha1.IntentSpec) bool { return s.Schedule.Duration.Hours() == n })
	}
	hourly := func(text string) func(*Fleet) bool {
		return spec(func(s *v1alpha1.IntentSpec) bool { return s.Budget.MaxHourly.String() == text })
	}
	class := func(declared, class string) files {
		return files{
			"clusters/paris.yaml":  group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider, consumer], location: {region: eu-west-3}, liqo: {classes: [" + declared + "]}}\n",
			"flavors/paris/f.yaml": group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64}, class: " + class + "}\n",
		}
	}
	row := func(spec string, want string, taken func(*Fleet) bool) struct {
		files files
		want  string
		taken func(*Fleet) bool
	} {
		return struct {
			files files
			want  string
			taken func(*Fleet) bool
		}{files{"intents/vision/b.yaml": intent("vision", "b", spec)}, want, taken}
	}
	fleetOf := func(spec string) files {
		return files{"fleet.yaml": group + "kind: Fleet\nmetadata: {name: acme}\nspec: {" + spec + "}\n"}
	}
	for name, tc := range map[string]struct {
		files files
		want  string // of the only message, "" for none
		taken func(*Fleet) bool
	}{
		"memory in what":          row("resources: {memory: 16}", "intents/vision/b.yaml:4:28: spec.resources.memory: 16 is 16 bytes; write 16Gi", nil),
		"memory in what, quoted":  row(`resources: {memory: "512"}`, "spec.resources.memory: 512 is 512 bytes; write 512Gi", nil),
		"memory in thousandths":   row("resources: {memory: 128m}", "spec.resources.memory: 128m is 1 bytes; write 128Mi", nil),
		"storage in what":         row("resources: {cpu: 1}, alternatives: [{ephemeral-storage: 200}]", "spec.alternatives[0].ephemeral-storage: 200 is 200 bytes; write 200Gi", nil),
		"memory in bytes":         row("resources: {memory: 17179869184}", "", spec(func(s *v1alpha1.IntentSpec) bool { return s.Resources.Named[v1alpha1.Memory].Int64() == 16<<30 })),
		"memory of a mebibyte":    row("resources: {memory: 1048576}", "", spec(func(s *v1alpha1.IntentSpec) bool { return s.Resources.Named[v1alpha1.Memory].Int64() == 1<<20 })),
		"memory in kibibytes":     row("resources: {memory: 512Ki}", "", spec(func(s *v1alpha1.IntentSpec) bool { return s.Resources.Named[v1alpha1.Memory].Int64() == 512<<10 })),
		"memory of the fleet":     {fleetOf("defaults: {memory: 8}"), "fleet.yaml:4:27: spec.defaults.memory: 8 is 8 bytes; write 8Gi", nil},
		"memory of a quota":       {files{"tenants/vision.yaml": group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], quota: {memory: 4}}\n"}, "spec.quota.memory: 4 is 4 bytes; write 4Gi", nil},
		"memory of a flavor":      {files{"flavors/paris/f.yaml": group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64, memory: 512}}\n"}, "spec.capacity.memory: 512 is 512 bytes; write 512Gi", nil},
		"nodes of a flavor":       {files{"flavors/paris/f.yaml": group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec:\n  capacity: {cpu: 64, gpu: 16}\n  gpu: {model: H100}\n  nodes: {count: 4, size: {gpu: 8, cpu: 16}}\n"}, "flavors/paris/f.yaml:7:33: spec.nodes: 4 nodes of 8 gpu have 32 together, and spec.capacity has 16; write a size of at most \"4\", or the capacity of all nodes", nil},
		"memory of a pod":         row("resources: {gpu: 4, memory: 64Gi}, perPod: {gpu: 1, memory: 16}", "intents/vision/b.yaml:4:68: spec.perPod.memory: 16 is 16 bytes; write 16Gi", nil),
		"storage of a pod":        row("resources: {gpu: 4, ephemeral-storage: 64Gi}, perPod: {gpu: 1, ephemeral-storage: 16}", "spec.perPod.ephemeral-storage: 16 is 16 bytes; write 16Gi", nil),
		"memory of another's pod": row("resources: {gpu: 4, memory: 64Gi}, alternatives: [{gpu: 2, perPod: {gpu: 1, memory: 16}}]", "spec.alternatives[0].perPod.memory: 16 is 16 bytes; write 16Gi", nil),
		"memory of a share":       row("resources: {cpu: 4, memory: 64Gi}, virtualNode: {shares: [{cpu: 2, memory: 16}, {cpu: 2, memory: 16Gi}]}", "spec.virtualNode.shares[0].memory: 16 is 16 bytes; write 16Gi", nil),
		"days":                    row(plain+", schedule: {duration: 3d}", "", hours(72)),
		"a week":                  row(plain+", schedule: {duration: 1w}", "", hours(168)),
		"days and hours":          row(plain+", schedule: {duration: 1d12h}", "", hours(36)),
		"days in words":           row(plain+", schedule: {duration: 3 days}", `"3 days" is not a duration: write a number with a unit, such as 72h, 3d, 1w, 10m or 20ms`, nil),
		"a month":                 row(plain+", schedule: {duration: 1M}", `"1M" is not a duration`, nil),
		"hours without a unit":    row(plain+", schedule: {duration: 72}", `"72" is not a duration: write a number with a unit`, nil),
		"no time":                 row(plain+", schedule: {duration: 0h}", `intents/vision/b.yaml:4:50: spec.schedule.duration: "0h" must be greater than zero; leave it out for an open end`, nil),
		"no grace":                row(plain+", preemption: {grace: 0s}", "", spec(func(s *v1alpha1.IntentSpec) bool { return s.Preemption.Grace.Duration == 0 })),
		"money without quotes":    row(plain+", budget: {maxHourly: 2.5}", "", hourly("2.5")),
		"money, its text":         row(plain+", budget: {maxHourly: 0.1000000000000000055}", "0.1000000000000000055\" is not a decimal number", nil),
		"money, 17 digits":        row(plain+", budget: {maxHourly: 1234567.12345678901}", "", hourly("1234567.12345678901")),
		"whole money":             row(plain+", budget: {maxTotal: 6000}", "", spec(func(s *v1alpha1.IntentSpec) bool { return s.Budget.MaxTotal.String() == "6000" })),
		"money as a power":        row(plain+", budget: {maxHourly: 1e3}", "maxHourly: 1e3 is not a plain decimal number; write its digits, such as 12.5", nil),
		"money in thousands":      row(plain+", budget: {maxHourly: 1_000}", "maxHourly: 1_000 is not a plain decimal number", nil),
		"money with its currency": row(plain+", budget: {maxHourly: 5 EUR}", `"5 EUR" is not a decimal number`, nil),
		"price without quotes": {files{"flavors/paris/f.yaml": group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64}, price: {perHour: {cpu: 0.03}, reserved: {cpu: 0.02, term: 30d}}}\n"}, "", func(f *Fleet) bool {
			p := f.Flavors[0].Spec.Price
			return p.PerHour["cpu"].String() == "0.03" && p.Reserved.Term.Hours() == 720
		}},
		"GPUs as pods ask":       row("resources: {nvidia.com/gpu: 2}", "", gpu(2, "nvidia")),
		"GPUs as pods ask, text": row(`resources: {amd.com/gpu: "1"}`, "", gpu(1, "amd")),
		"GPUs twice":             row("resources: {nvidia.com/gpu: 1, gpu: H100}", "intents/vision/b.yaml:4:19: spec.resources: nvidia.com/gpu asks for GPUs a second time; write gpu alone", nil),
		"GPUs of two vendors":    row("resources: {nvidia.com/gpu: 1, amd.com/gpu: 1}", "nvidia.com/gpu asks for GPUs a second time", nil),
		"half a GPU as pods ask": row("resources: {nvidia.com/gpu: 500m}", `spec.resources.nvidia.com/gpu: "500m": must be a whole number`, nil),
		"no GPU as pods ask":     row("resources: {nvidia.com/gpu: 0}", "a count of 0 asks for no GPU; leave gpu out where none is wanted", nil),
		"MIG as pods ask":        row("resources: {nvidia.com/mig-1g.10gb: 2}", "", mig(2, "1g.10gb")),
		"MIG as pods ask, text":  row(`resources: {nvidia.com/mig-1g.10gb.me: "1"}`, "", mig(1, "1g.10gb.me")),
		"MIG of each pod": row("resources: {nvidia.com/mig-1g.10gb: 2}, perPod: {nvidia.com/mig-1g.10gb: 1}", "", spec(func(s *v1alpha1.IntentSpec) bool {
			return s.PerPod != nil && s.PerPod.GPUs == 1 && len(s.PerPod.Named) == 0
		})),
		"MIG as pods ask, otherwise": row(plain+`, alternatives: [{nvidia.com/mig-3g.40gb: 1}]`, "", spec(func(s *v1alpha1.IntentSpec) bool {
			return s.Alternatives[0].GPU != nil && s.Alternatives[0].GPU.Profile == "3g.40gb" && len(s.Alternatives[0].Named) == 0
		})),
		"MIG of no such profile":     row("resources: {nvidia.com/mig-1g.10gb.foo: 1}", `nvidia.com/mig-1g.10gb.foo: "1g.10gb.foo" is not a MIG profile; write for example gpu: {count: 1, vendor: nvidia, profile: 1g.10gb}`, nil),
		"MIG twice":                  row("resources: {nvidia.com/mig-1g.10gb: 1, gpu: H100}", "intents/vision/b.yaml:4:19: spec.resources: nvidia.com/mig-1g.10gb asks for GPUs a second time; write gpu alone, such as gpu: {count: 1, vendor: nvidia, profile: 1g.10gb}", nil),
		"MIG of two profiles":        row("resources: {nvidia.com/mig-1g.10gb: 1, nvidia.com/mig-2g.20gb: 1}", "nvidia.com/mig-2g.20gb asks for GPUs a second time", nil),
		"MIG and a whole GPU":        row("resources: {nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 1}", "nvidia.com/mig-1g.10gb asks for GPUs a second time", nil),
		"half an instance":           row("resources: {nvidia.com/mig-1g.10gb: 500m}", `spec.resources.nvidia.com/mig-1g.10gb: "500m": must be a whole number`, nil),
		"less than no instance":      row("resources: {nvidia.com/mig-1g.10gb: -1}", `spec.resources.nvidia.com/mig-1g.10gb`, nil),
		"no instance":                row("resources: {nvidia.com/mig-1g.10gb: 0}", "a count of 0 asks for no GPU; leave gpu out where none is wanted", nil),
		"no profile of MIG":          row("resources: {nvidia.com/mig-small: 1}", `nvidia.com/mig-small: "small" is not a MIG profile; write for example gpu: {count: 1, vendor: nvidia, profile: 1g.10gb}`, nil),
		"an empty alternative":       row(plain+", alternatives: [{}]", "spec.alternatives[0] asks for what spec.resources asks for", nil),
		"a no-break space":           row("resources: {\u00a0cpu: 1}", `unknown resource "\u00a0cpu": a no-break space (U+00A0) is next to cpu`, nil),
		"count before the model":     row("resources: {gpu: 8xH100}", "", gpu(8, "", "H100")),
		"count, spaced":              row("resources: {gpu: 8 x H100}", "", gpu(8, "", "H100")),
		"count after the model":      row("resources: {gpu: H100 x8}", "", gpu(8, "", "H100")),
		"count at the model":         row("resources: {gpu: H100x8}", "", gpu(8, "", "H100")),
		"a model with an x":          row("resources: {gpu: RTX5090}", "", gpu(0, "", "RTX5090")),
		"a model with an x, twice":   row("resources: {gpu: MI300X x2}", "", gpu(2, "", "MI300X")),
		"count twice":                row("resources: {gpu: 8xH100:4}", `"4" is not a count (write a whole number once`, nil),
		"a range of counts":          row("resources: {gpu: H100:4..8}", `"4..8" is a range of counts, which a replica cannot have; write how many it needs, and fewer under alternatives`, nil),
		"a duration by itself":       row(plain+", duration: 3d", `unknown field "duration"; it belongs under schedule: write schedule: {duration: ...}`, nil),
		"regions by themselves":      row(plain+", region: eu-west-3", `unknown field "region"; it belongs under placement: write placement: {regions: ...}`, nil),
		"a limit by itself":          row(plain+", maxHourly: 3", `unknown field "maxHourly"; it belongs under budget: write budget: {maxHourly: ...}`, nil),
		"labels of two places":       row(plain+", labels: {a: b}", `unknown field "labels" (known here: `, nil),
		"spot by itself":             row(plain+", spot: true", `unknown field "spot"; write purchase: [spot], or [spot, on-demand] where either will do`, nil),
		"a percentage as a ratio":    row(plain+", sla: {availability: 0.999}", `spec.sla.availability: 0.999 is a percentage; write 99.9 for three nines`, nil),
		"yields or not":              row(plain+", preemption: {yields: true}", `spec.preemption.yields: true is a boolean; write booked, or never`, nil),
		"a window in words":          row(plain+`, schedule: {windows: "20:00-06:00"}`, `spec.schedule.windows: "20:00-06:00" is text; write a list of maps: [{from: ..., to: ...}]`, nil),
		"gigabytes with their unit":  row(plain+", data: {region: eu-west-3, sizeGi: 500Gi}", `spec.data.sizeGi: "500Gi" has a unit, and the field counts GiB; write 500`, nil),
		"a spread as pods have it":   row(plain+", replicas: 2, placement: {spread: {topologyKey: zone}}", `unknown field "topologyKey"; write by: zone (or region, provider, network), or by: label and the key under label`, nil),
		"nodes":                      row(plain+", nodes: 3", `unknown field "nodes" (did you mean "replicas"?)`, nil),
		"requests as a pod has them": row("resources: {requests: {cpu: 1}}", `spec.resources.requests is a map; there are no requests and limits here: write what is in it directly under resources, such as`, nil),
		"half a GPU":                 row("resources: {gpu: {count: 0.5}}", `spec.resources.gpu.count: 0.5 is not a whole number; write share: "0.5" for a part of one GPU`, nil),
		"a namespace by its name":    row(plain+", offload: {namespaces: [vision]}", `spec.offload.namespaces[0]: "vision" is text; write {name: vision}`, nil),
		"another's architecture":     row(plain+", placement: {architectures: [x86_64]}", `spec.placement.architectures[0]: unknown architecture "x86_64"; Kubernetes calls it amd64`, nil),
		"both together and apart":    row(plain+", placement: {together: [a], apart: [a]}", `spec.placement.together[0]: a is named in placement.apart too; take it out of one of the two`, nil),
		"a MIG profile": row("resources: {gpu: 1g.10gb:2}", "", spec(func(s *v1alpha1.IntentSpec) bool {
			return s.Resources.GPU.Profile == "1g.10gb" && s.Resources.GPU.Count == 2
		})),
		"a card's MIG profile": row("resources: {gpu: H100:3g.40gb}", "", spec(func(s *v1alpha1.IntentSpec) bool {
			return s.Resources.GPU.Profile == "3g.40gb" && s.Resources.GPU.Models[0] == "H100"
		})),
		"RAM": row("resources: {cpu: 4, ram: 4Gi}", `unknown resource "ram" (did you mean "memory"?)`, nil),
		"a country for a region": {files{
			"clusters/paris.yaml":   group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], location: {region: eu-west-3, country: FR}}\n",
			"intents/vision/b.yaml": intent("vision", "b", plain+", placement: {regions: [FR]}"),
		}, `no cluster or flavor in this repo names the region FR; FR is a country: write where: 'flavor.location.country == "FR"'`, nil},
		"a share, short":  row("resources: {gpu: 0.25}", `"0.25": 0.25 is a share of a card; write gpu: {share: "0.25"}`, nil),
		"an empty update": row(plain+", update: {}", "spec.update is empty; write maxUnavailable: <replicas without capacity during a change>, or moveAfter:", nil),
		"moveAfter alone": row(plain+", update: {moveAfter: 1d}", "", spec(func(s *v1alpha1.IntentSpec) bool {
			return s.Update.MoveAfter.Hours() == 24 && s.Update.MaxUnavailable == nil
		})),
		"moveAfter of no gang":         row(plain+", gang: false, update: {moveAfter: 1h}", "spec.update.moveAfter has no effect with gang: false, or with a split without placement.within", nil),
		"moveAfter of a split":         row(plain+", split: {maxParts: 2}, update: {moveAfter: 1h}", "spec.update.moveAfter has no effect with gang: false, or with a split without placement.within: {policy: Required}", nil),
		"moveAfter, split within":      row(plain+", split: {maxParts: 2}, placement: {within: {by: region}}, update: {moveAfter: 1h}", "", nil),
		"moveAfter, no number":         row(plain+", update: {moveAfter: soon}", `spec.update.moveAfter: "soon" is not a duration`, nil),
		"a model misspelt":             row("resources: {gpu: H1O0}", `intents/vision/b.yaml:4:25: spec.resources.gpu: unknown GPU model "H1O0" (did you mean H100?); known: B300, B200,`, nil),
		"a size without its unit":      row("resources: {gpu: \"A100-80:1\"}", `unknown GPU model "A100-80" (did you mean A100-80GB?)`, nil),
		"a model in words":             row("resources: {gpu: H100 SXM}", `spec.resources.gpu: "H100 SXM": a model has no spaces; write "H100-SXM"`, nil),
		"a model and its memory":       row("resources: {gpu: a100 80gb}", `"a100 80gb": a model has no spaces; write "a100:80gb"`, nil),
		"a model, joined":              row("resources: {gpu: h100_sxm5}", "", gpu(0, "", "h100_sxm5")),
		"a model of nobody":            row("resources: {gpu: {models: [H100, banana]}}", `4:41: spec.resources.gpu.models[1]: unknown GPU model "banana"; known: B300`, nil),
		"a model of another vendor":    row("resources: {gpu: amd-h100:8}", `intents/vision/b.yaml:4:25: spec.resources.gpu: unknown GPU model "amd-h100": H100 is a GPU of nvidia, not of amd; write nvidia-h100`, nil),
		"one vendor, another's":        row("resources: {gpu: {count: 8, vendor: amd, models: [H100, H200]}}", `intents/vision/b.yaml:4:44: spec.resources.gpu.vendor: no GPU of amd is called H100 or H200; leave the vendor out, or write nvidia`, nil),
		"one vendor, another's, short": row("resources: {gpu: amd:H100:8}", `intents/vision/b.yaml:4:25: spec.resources.gpu: no GPU of amd is called H100; leave the vendor out, or write nvidia`, nil),
		"one vendor, models of two":    row("resources: {gpu: {count: 8, vendor: amd, models: [H100, MI300X]}}", "", nil),
		"Intel's A100":                 row("resources: {gpu: intel-a100:1}", `unknown GPU model "intel-a100": A100 is a GPU of nvidia, not of intel; write nvidia-a100`, nil),
		"NVIDIA's MI300X":              row("resources: {gpu: nvidia-mi300x:8}", `unknown GPU model "nvidia-mi300x": MI300X is a GPU of amd, not of nvidia; write amd-mi300x`, nil),
		"one of several models":        row("resources: {gpu: {models: [H100, AMD-A100-80GB]}}", `4:41: spec.resources.gpu.models[1]: unknown GPU model "AMD-A100-80GB": A100 is a GPU of nvidia, not of amd; write nvidia-a100-80gb`, nil),
		"another alternative":          row(plain+", alternatives: [{gpu: amd-h100:8}]", `spec.alternatives[0].gpu: unknown GPU model "amd-h100": H100 is`, nil),
		"a vendor's own brand":         row("resources: {gpu: Tesla-T4:1}", "", gpu(1, "", "Tesla-T4")),
		"a flavor of another vendor":   {files{"flavors/paris/f.yaml": group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {model: amd-h100}}\n"}, `flavors/paris/f.yaml:4:50: spec.gpu.model: unknown GPU model "amd-h100": H100 is a GPU of nvidia, not of amd; write nvidia-h100`, nil},
		"a quota of another vendor":    {files{"tenants/vision.yaml": group + "kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], quota: {byModel: {amd-h100: 4}}}\n"}, `spec.quota.byModel.amd-h100: unknown GPU model "amd-h100": H100 is a GPU of nvidia, not of amd; write nvidia-h100`, nil},
		"a price of another vendor":    {files{"prices/p.yaml": group + "kind: PriceTable\nmetadata: {name: p}\nspec: {currency: EUR, prices: [{provider: paris, model: nvidia-mi300x, perHour: {gpu: 1}}]}\n"}, `spec.prices[0].model: unknown GPU model "nvidia-mi300x": MI300X is a GPU of amd`, nil},
		"replicas in quotes":           row(plain+`, replicas: "3"`, `spec.replicas: "3" is a string; write 3 without quotes`, nil),
		"replicas in words":            row(plain+`, replicas: three`, `spec.replicas: "three" is text; write a whole number, or {min: 1, max: 6} to follow demand`, nil),
		"one price class":              row(plain+", purchase: spot", "", spec(func(s *v1alpha1.IntentSpec) bool { return len(s.Purchase) == 1 && s.Purchase[0] == v1alpha1.Spot })),
		"a price class, misspelt":      row(plain+", purchase: sport", `unknown value "sport" (did you mean "spot"?)`, nil),
		"a declared class": {class("{name: gold, grants: agent}", "gold"), "", func(f *Fleet) bool {
			return f.Clusters["paris"].GrantedByAgent("gold") && f.Flavors[0].Spec.Class == "gold"
		}},
		"another's class":         {class("{name: gold, grants: others}", "gold"), "", func(f *Fleet) bool { return !f.Clusters["paris"].GrantedByAgent("gold") }},
		"an undeclared class":     {class("{name: gold, grants: agent}", "silver"), "flavors/paris/f.yaml:4:36: spec.class: cluster paris declares no slice class \"silver\"; write one of fleetbroker, default, gold, or declare it under spec.liqo.classes of clusters/paris.yaml", nil},
		"a class, misspelt":       {class("{name: gold, grants: agent}", "fleetbrocker"), `unknown value "fleetbrocker" (did you mean "fleetbroker"?)`, nil},
		"who grants it":           {class("{name: gold, grants: me}", "gold"), `spec.liqo.classes[0].grants: unknown value "me"; write one of agent, others`, nil},
		"a class that needs none": {class("{name: default, grants: others}", "default"), "the class default needs no declaration; take it out", nil},
		"a class twice":           {class("{name: gold, grants: agent}, {name: gold, grants: others}", "gold"), "the class gold is declared already", nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := base()
			for p, content := range tc.files {
				all[p] = content
			}
			f := read(t, NewReader(), all, nil)
			got := strings.Join(diagnostics(f), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) || len(f.Diagnostics) > 1 {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			if tc.taken != nil && !tc.taken(f) {
				t.Errorf("taken otherwise: %s", describe(f))
			}
		})
	}
}

// The model that is offered, by a flavor or a price table, is as good as a known one, and
// is what a misspelt one may mean.
func TestOfferedModelsAreKnown(t *testing.T) {
	f := read(t, NewReader(), base().with(
		"flavors/paris/f.yaml", group+"kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64, gpu: 8}, gpu: {model: acme-warp9}}\n",
		"prices/p.yaml", group+"kind: PriceTable\nmetadata: {name: p}\nspec: {currency: EUR, prices: [{provider: paris, model: zeta-7, perHour: {gpu: 1}}]}\n",
		"intents/vision/b.yaml", intent("vision", "b", "resources: {gpu: acme-warp9}"),
		"intents/vision/c.yaml", intent("vision", "c", "resources: {gpu: acme-warp8}"),
		"intents/vision/d.yaml", intent("vision", "d", "resources: {gpu: Zeta-7}"),
	), nil)
	if len(f.Diagnostics) != 1 || f.Diagnostics[0].Severity != Warning ||
		!strings.Contains(f.Diagnostics[0].String(), `intents/vision/c.yaml:4:25: spec.resources.gpu: unknown GPU model "acme-warp8" (did you mean ACME-WARP9?); offered by files of this fleet: ACME-WARP9, ZETA-7; known: B300`) {
		t.Errorf("got %s", strings.Join(diagnostics(f), "\n"))
	}
}

// A file that the daemon writes has bytes, whatever people mean by them.
func TestGeneratedFilesHaveBytes(t *testing.T) {
	c := &checker{file: "requests/vision/202611/rq-1.yaml"}
	c.bytes(at("spec", "resources"), v1alpha1.Resources{v1alpha1.Memory: v1alpha1.AmountOf(16)})
	if len(c.diags) > 0 {
		t.Errorf("got %v", c.diags)
	}
}

// TestOneMistakeOneMessage: what depends on a file that cannot be read is neither right
// nor wrong; only the file is reported, and intents that depend on it say that alone.
func TestOneMistakeOneMessage(t *testing.T) {
	full := base().with(
		"fleet.yaml", group+"kind: Fleet\nmetadata: {name: acme}\nspec: {currency: EUR, rates: [{from: USD, to: EUR, rate: 0.92, date: 2026-11-01}], latency: [{from: rome, to: paris, ms: 12}], policies: [{name: p, match: {tenants: [vision]}, require: 'true'}], limits: {replicas: 5000}}\n",
		"clusters/paris.yaml", group+"kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], location: {region: eu-west-3}, defaultPrice: {currency: USD, perHour: {cpu: 1}}, price: {currency: USD, spot: {cpu: 1}}, reservations: {tenant: vision}}\n",
		"tenants/vision.yaml", group+"kind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome], providers: {allow: [paris]}, budget: {monthly: 100, currency: USD}}\n",
		"flavors/paris/f.yaml", group+"kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64}, price: {currency: USD, perHour: {cpu: 1}}, location: {region: eu-west-4}}\n",
		"prices/p.yaml", group+"kind: PriceTable\nmetadata: {name: p}\nspec: {currency: USD, prices: [{provider: paris, model: nvidia-h100, perHour: {gpu: 1}}]}\n",
		"intents/vision/a.yaml", intent("vision", "a", "resources: {cpu: 1}, consumer: rome, replicas: 4000, budget: {maxHourly: 1, currency: USD}, placement: {providers: {allow: [paris]}, regions: [eu-west-3, eu-west-4], together: [b]}"),
		"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}"),
	)
	if f := read(t, NewReader(), full, nil); len(f.Diagnostics) > 0 {
		t.Fatal(diagnostics(f))
	}
	for path, tc := range map[string]struct{ from, to, intent string }{
		"fleet.yaml":            {"rates:", "ratez:", ""},
		"clusters/rome.yaml":    {"region: eu-south-1", "country: Italy", "the file of cluster rome cannot be read: clusters/rome.yaml:4:"},
		"clusters/paris.yaml":   {"region: eu-west-3", "country: France", ""},
		"tenants/vision.yaml":   {"consumers", "consumer", "the file of tenant vision cannot be read: tenants/vision.yaml:4:"},
		"flavors/paris/f.yaml":  {"capacity", "capacities", ""},
		"prices/p.yaml":         {"prices", "price", ""},
		"intents/vision/b.yaml": {"cpu", "cpus", ""},
	} {
		t.Run(path, func(t *testing.T) {
			f := read(t, NewReader(), full.with(path, strings.ReplaceAll(full[path], tc.from, tc.to)), nil)
			files := map[string]bool{}
			for _, d := range f.Diagnostics {
				files[d.File] = true
			}
			if len(f.Diagnostics) == 0 || len(files) != 1 || !files[path] {
				t.Errorf("got\n%s\nwant messages of %s alone", strings.Join(diagnostics(f), "\n"), path)
			}
			if in := f.Intent("vision", "a"); in == nil || !strings.Contains(in.Problem, tc.intent) || (in.Problem == "") != (tc.intent == "") {
				t.Errorf("the intent: got %+v, want %q", in, tc.intent)
			}
		})
	}
}

// TestWhatIsMissingIsReportedOnce: a cluster without a file, or by a wrong name, is reported
// where it is first counted on; what depends on it is refused, and listed no second time.
func TestWhatIsMissingIsReportedOnce(t *testing.T) {
	tenant := func(name, consumer string) string {
		return group + "kind: Tenant\nmetadata: {name: " + name + "}\nspec: {consumers: [" + consumer + "]}\n"
	}
	full := base().with(
		"fleet.yaml", group+"kind: Fleet\nmetadata: {name: acme}\nspec: {latency: [{from: rome, to: paris, ms: 12}, {from: rome, to: eu-west-3, ms: 13}], warmPools: [{name: p, consumer: rome, count: 1, resources: {cpu: 1}}]}\n",
		"clusters/paris.yaml", group+"kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider], location: {region: eu-west-3}}\n",
		"flavors/paris/f.yaml", group+"kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64}}\n",
		"flavors/paris/g.yaml", group+"kind: Flavor\nmetadata: {name: g, namespace: paris}\nspec: {capacity: {cpu: 64}}\n",
		"tenants/bio.yaml", tenant("bio", "rome"),
		"tenants/vision.yaml", tenant("vision", "rome"),
		"intents/vision/a.yaml", intent("vision", "a", "resources: {cpu: 1}, placement: {providers: {allow: [paris]}, regions: [eu-west-3]}"),
		"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, consumer: rome"),
	)
	if f := read(t, NewReader(), full, nil); len(f.Diagnostics) > 0 {
		t.Fatal(diagnostics(f))
	}
	for name, tc := range map[string]struct {
		files         files
		want, refused string // refused: of vision's intents
	}{
		"a consumer misspelt":      {full.with("tenants/vision.yaml", tenant("vision", "roma"), "intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, consumer: roma")), `error tenants/vision.yaml:4:20: there is no cluster roma (did you mean "rome"?)`, "there is no cluster roma"},
		"a consumer without file":  {full.with("clusters/rome.yaml", ""), "error tenants/bio.yaml:4:20: there is no cluster rome; add clusters/rome.yaml (2 tenants name it)", "there is no cluster rome"},
		"a provider without file":  {full.with("clusters/paris.yaml", ""), "warning flavors/paris/f.yaml:3:32: there is no cluster paris, so nothing is placed on its flavors; add clusters/paris.yaml", ""},
		"a place that is none":     {full.with("fleet.yaml", strings.ReplaceAll(full["fleet.yaml"], "from: rome", "from: roma")), `warning fleet.yaml:4:25: no cluster is called "roma"`, ""},
		"a currency in small":      {full.with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, budget: {maxHourly: 2.5, currency: eur}")), `error intents/vision/b.yaml:4:64: spec.budget.currency: "eur" is not a currency (did you mean "EUR"?)`, ""},
		"a currency in words":      {full.with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, budget: {maxHourly: 2.5, currency: euro}")), `spec.budget.currency: "euro" is not a currency; write three capital letters, such as EUR`, ""},
		"more nodes than there is": {full.with("flavors/paris/f.yaml", group+"kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64, memory: 64Gi, gpu: 8}, gpu: {model: H100}, nodes: {count: 3, size: {cpu: 32, memory: 32Gi, gpu: 4}}}\n"), "spec.nodes.count: 3 nodes of this size have more together than spec.capacity (96 cpu of 64, 12 gpu of 8, 96Gi memory of 64Gi); write count: 2, or the capacity of all nodes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), tc.files, nil)
			if got := strings.Join(diagnostics(f), "\n"); len(f.Diagnostics) != 1 || !strings.Contains(got, tc.want) {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
			for _, in := range []string{"a", "b"} {
				if in := f.Intent("vision", in); tc.refused != "" && !strings.Contains(in.Problem, tc.refused) {
					t.Errorf("the intent: got %q, want %q", in.Problem, tc.refused)
				}
			}
		})
	}
}

// TestFacts_Files: a flavor's file without a capacity adds facts, and says nothing of what
// the agent knows; a cluster has facts of all its flavors.
func TestFacts_Files(t *testing.T) {
	flavor := func(spec string) string {
		return group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {" + spec + "}\n"
	}
	cluster := func(spec string) string {
		return group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider, consumer], location: {region: eu-west-3}, " + spec + "}\n"
	}
	for name, tc := range map[string]struct{ path, content, want string }{
		"all of them":          {"flavors/paris/f.yaml", flavor(`properties: {carbon: 56, reliability: 0.997, latencyMs: 3, securityStandards: [ISO27001, SOC2]}, partition: {min: {gpu: 2}, step: {gpu: 2}}, labels: {tier: gold}, price: {windows: [{from: "00:00", to: "06:00", perHour: {gpu: 1}}]}`), ""},
		"what the agent knows": {"flavors/paris/f.yaml", flavor("properties: {carbon: 56}, gpu: {model: H100}"), "flavors/paris/f.yaml:4:7: spec has no capacity: such a file adds partition, properties, labels and price to the flavor that the agent of paris reports as f, and nothing else"},
		"a price":              {"flavors/paris/f.yaml", flavor("price: {perHour: {gpu: 1}}"), ""},
		"a price that is none": {"flavors/paris/f.yaml", flavor("price: {perHour: {gpu: -1}}"), "spec.price.perHour.gpu"},
		"a bad ratio":          {"flavors/paris/f.yaml", flavor("properties: {reliability: 1.1}"), "spec.properties.reliability: 1.1 is not between 0 and 1"},
		"carbon below nothing": {"flavors/paris/f.yaml", flavor("properties: {carbon: -1}"), "spec.properties.carbon: -1 is less than 0"},
		"carbon in words":      {"flavors/paris/f.yaml", flavor("properties: {carbon: low}"), "a whole number"},
		"no standard":          {"flavors/paris/f.yaml", flavor(`properties: {securityStandards: [""]}`), "spec.properties.securityStandards[0] is empty or longer than 63 bytes; write for example ISO27001"},
		"of a cluster":         {"clusters/paris.yaml", cluster("properties: {carbon: 56, securityStandards: [SOC2]}"), ""},
		"of a cluster, bad":    {"clusters/paris.yaml", cluster("properties: {reliability: 99}"), "spec.properties.reliability: 99 is not between 0 and 1"},
		"bounds":               {"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, placement: {maxCarbon: 100, minReliability: 0.99}"), ""},
		"bounds below nothing": {"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, placement: {maxCarbon: -5}"), "spec.placement.maxCarbon: -5 is less than 0"},
		"bounds in percent":    {"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, placement: {minReliability: 99}"), "spec.placement.minReliability: 99 is not between 0 and 1"},
		"accelerators":         {"fleet.yaml", group + "kind: Fleet\nmetadata: {name: acme}\nspec: {accelerators: [example.org/npu, acme.com/warp-*]}\n", ""},
		"accelerators, known":  {"fleet.yaml", group + "kind: Fleet\nmetadata: {name: acme}\nspec: {accelerators: [google.com/tpu]}\n", "spec.accelerators[0]: google.com/tpu counts as an accelerator already; take it out"},
		"accelerators, bare":   {"fleet.yaml", group + "kind: Fleet\nmetadata: {name: acme}\nspec: {accelerators: [npu]}\n", `spec.accelerators[0]: "npu" is not an extended resource; write its whole name, such as example.org/npu`},
		"a price of no GPUs":   {"prices/p.yaml", group + "kind: PriceTable\nmetadata: {name: p}\nspec: {currency: EUR, prices: [{provider: paris, model: H100, perHour: {cpu: 1}}]}\n", `spec.prices[0].perHour names no price for gpu, so none of paris's H100 are sold at it; add gpu: "<price an hour>"`},
		"a profile":            {"prices/p.yaml", group + "kind: PriceTable\nmetadata: {name: p}\nspec: {currency: EUR, prices: [{provider: paris, model: H100, profile: 1g.10gb, perHour: {gpu: 1}}, {provider: paris, model: H100, perHour: {gpu: 7}}]}\n", ""},
		"no profile":           {"prices/p.yaml", group + "kind: PriceTable\nmetadata: {name: p}\nspec: {currency: EUR, prices: [{provider: paris, model: H100, profile: small, perHour: {gpu: 1}}]}\n", `spec.prices[0].profile: "small" is not a MIG profile`},
		"GPUs for nothing":     {"flavors/paris/f.yaml", flavor(`capacity: {cpu: 64, gpu: 8}, gpu: {model: H100}, price: {perHour: {cpu: 1, gpu: "0"}}`), ""},
		"GPUs without a price": {"flavors/paris/f.yaml", flavor("capacity: {cpu: 64, gpu: 8}, gpu: {model: H100}, price: {perHour: {cpu: 1}}"), `flavors/paris/f.yaml:4:74: spec.price.perHour names no price for gpu, so none of paris/f is sold; add gpu: "<price an hour>" ("0" sells it for nothing)`},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), base().with(tc.path, tc.content), nil)
			if got := strings.Join(diagnostics(f), "\n"); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) || len(f.Diagnostics) > 1 {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
	// The cluster's price is the one that lacks it.
	f := read(t, NewReader(), base().with("clusters/paris.yaml", cluster("defaultPrice: {perHour: {cpu: 1}}"),
		"flavors/paris/f.yaml", flavor("capacity: {cpu: 64, google.com/tpu: 4}")), nil)
	if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, "clusters/paris.yaml:4:") || !strings.Contains(got, "spec.defaultPrice.perHour names no price for google.com/tpu, so none of paris/f is sold") || len(f.Diagnostics) != 1 {
		t.Errorf("got %s", got)
	}
}

// TestPolicies_ExcludeWhatIsNotStated: the offers that a policy excludes for a number that
// they do not state are named.
func TestPolicies_ExcludeWhatIsNotStated(t *testing.T) {
	fleet := func(require string) string {
		return group + "kind: Fleet\nmetadata: {name: acme}\nspec: {policies: [{name: clean, require: '" + require + "'}]}\n"
	}
	all := base().with(
		"flavors/paris/a.yaml", group+"kind: Flavor\nmetadata: {name: a, namespace: paris}\nspec: {capacity: {cpu: 64}}\n",
		"flavors/paris/b.yaml", group+"kind: Flavor\nmetadata: {name: b, namespace: paris}\nspec: {capacity: {cpu: 64}, properties: {carbon: 56}}\n",
		"flavors/paris/c.yaml", group+"kind: Flavor\nmetadata: {name: c, namespace: paris}\nspec: {properties: {reliability: 0.9}}\n",
	)
	for require, want := range map[string]string{
		"flavor.properties.carbon < 100":                                   "fleet.yaml:4:42: spec.policies[0].require: excludes paris/a, because flavor.properties.carbon is not stated there; state it under properties of the flavor",
		"!(flavor.properties.carbon > 100)":                                "excludes paris/a, because flavor.properties.carbon is not stated there",
		"flavor.properties.reliability > 0.9":                              "excludes paris/a, paris/b, because flavor.properties.reliability is not stated there",
		"!has(flavor.properties.carbon) || flavor.properties.carbon < 100": "",
		`flavor.properties.carbon < 100 || flavor.provider == "paris"`:     "",
	} {
		f := read(t, NewReader(), all.with("fleet.yaml", fleet(require)), nil)
		if got := strings.Join(diagnostics(f), "\n"); (want == "") != (got == "") || !strings.Contains(got, want) || len(f.Diagnostics) > 1 {
			t.Errorf("%s:\ngot  %s\nwant %s", require, got, want)
		}
	}
}
