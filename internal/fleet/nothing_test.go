package fleet

import (
	"strings"
	"testing"
)

// A replica of nothing costs nothing and counts against no quota of resources:
// ten thousand of them would fill a ledger.
func TestRequestsOfNothing(t *testing.T) {
	for spec, want := range map[string]string{
		`resources: {cpu: "0", memory: 0, pods: 0, ephemeral-storage: 0}, replicas: 10000`: "4:25: spec.resources.cpu is 0, and a Node without it runs nothing: write what is needed at least, or leave it out for the fleet's default",
		`resources: {memory: 0Gi}`:                                 "spec.resources.memory is 0",
		`resources: {pods: 0}`:                                     "spec.resources.pods is 0",
		`resources: {gpu: "H100:1", cpu: 0}`:                       "spec.resources.cpu is 0",
		`resources: {cpu: 4}, alternatives: [{cpu: 2}, {cpu: 0m}]`: "spec.alternatives[1].cpu is 0",
		`resources: {cpu: 1m, memory: 1Mi, pods: 1}`:               "",
		`resources: {cpu: 1, ephemeral-storage: 0}`:                "",
		`resources: {gpu: "H100:1"}`:                               "",
		`resources: {}`:                                            "",
	} {
		f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", spec)), nil)
		if len(f.Intents) != 2 {
			t.Fatalf("%s: %v", spec, diagnostics(f))
		}
		in := f.Intents[1]
		if got := in.Problem; !strings.Contains(got, want) || (got == "") != (want == "") || want != "" && in.ProblemCode != "BadValue" {
			t.Errorf("%s:\ngot  %q (%s)\nwant %q", spec, got, in.ProblemCode, want)
		}
	}
	for name := range map[string]bool{"cpu": true, "memory": true, "pods": true} {
		f := read(t, NewReader(), base().with("fleet.yaml", group+"kind: Fleet\nmetadata: {name: acme}\nspec: {defaults: {"+name+": \"0\"}}\n"), nil)
		if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, "fleet.yaml:4:") || !strings.Contains(got, "spec.defaults."+name+" is 0") {
			t.Errorf("a default of no %s: got %q", name, got)
		}
	}
	pool := group + "kind: Fleet\nmetadata: {name: acme}\nspec: {warmPools: [{name: p, consumer: rome, count: 2, resources: {cpu: 0}}]}\n"
	if got := strings.Join(diagnostics(read(t, NewReader(), base().with("fleet.yaml", pool), nil)), "\n"); !strings.Contains(got, "spec.warmPools[0].resources.cpu is 0") {
		t.Errorf("a warm pool of nothing: got %q", got)
	}
}

// Go's zero time, as programs write it for "none", must not count as not stated,
// and a clock that was not set must not decide when a term ends.
func TestTimesBeforeTheFleet(t *testing.T) {
	for when, refused := range map[string]bool{
		"0001-01-01T00:00:00Z": true, "0001-01-01T01:00:00+01:00": true, "0001-01-01T00:00:00.5Z": true,
		"1970-01-01T00:00:00Z": true, "1999-12-31T23:59:59Z": true,
		"2000-01-01T00:00:00Z": false, "2026-12-01T08:00:00Z": false,
	} {
		cluster := func(field string) string {
			return group + "kind: Cluster\nmetadata: {name: paris}\nspec: {roles: [provider, consumer]" + field + "}\n"
		}
		for where, with := range map[string][]string{
			"deadline":      {"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, schedule: {deadline: "+when+"}")},
			"notBefore":     {"intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, schedule: {notBefore: "+when+"}")},
			"cluster drain": {"clusters/paris.yaml", cluster(", drain: " + when)},
			"flavor drain":  {"flavors/paris/f.yaml", group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {capacity: {cpu: 64}, drain: " + when + "}\n"},
		} {
			got := strings.Join(diagnostics(read(t, NewReader(), base().with(with...), nil)), "\n")
			if !refused && got != "" || refused && (!strings.Contains(got, with[0]+":4:") || !strings.Contains(got, "leave it out for none")) {
				t.Errorf("%s %s: got %q", where, when, got)
			}
		}
	}
}

// What a flavor's file lists under the name that pods have for GPUs is found by nobody.
func TestCapacityByTheNameOfPods(t *testing.T) {
	for capacity, want := range map[string]string{
		`nvidia.com/mig-1g.10gb: 14`:            `flavors/paris/f.yaml:4:67: spec.capacity.nvidia.com/mig-1g.10gb: intents that ask for nvidia.com/mig-1g.10gb are read as gpu of profile 1g.10gb and do not find it; write gpu: "14" under capacity, and gpu: {vendor: nvidia, model: <model>, sharing: mig, profile: 1g.10gb, unitsPerGPU: <instances of a card>, resourceName: nvidia.com/mig-1g.10gb} under spec`,
		`amd.com/gpu: 8`:                        `spec.capacity.amd.com/gpu: intents that ask for amd.com/gpu are read as gpu and do not find it; write gpu: "8" under capacity, and gpu: {vendor: amd, model: <model>, resourceName: amd.com/gpu} under spec`,
		`nvidia.com/mig-small: 2`:               `spec.capacity.nvidia.com/mig-small: "small" is not a MIG profile`,
		`google.com/tpu: 4, rdma/hca: 8`:        "",
		`habana.ai/gaudi: 8, nvidia.com/gpu: 0`: "",
	} {
		file := group + "kind: Flavor\nmetadata: {name: f, namespace: paris}\nspec: {type: K8Slice, capacity: {cpu: 64, " + capacity + "}, price: {perHour: {cpu: 1}}}\n"
		got := strings.Join(diagnostics(read(t, NewReader(), base().with("flavors/paris/f.yaml", file), nil)), "\n")
		if !strings.Contains(got, want) || strings.Contains(got, "spec.capacity") != (want != "") || want != "" && strings.Contains(got, "names no price") {
			t.Errorf("%s:\ngot  %q\nwant %q", capacity, got, want)
		}
	}
}
