package fleet

import (
	"encoding/json"
	"strings"
	"testing"
)

const solver = `apiVersion: nodecore.fluidos.eu/v1alpha1
kind: Solver
metadata: {name: solver.sample, namespace: fluidos}
spec:
  selector:
    flavorType: K8Slice
    filters:
      architectureFilter: {name: Match, data: {value: amd64}}
      cpuFilter: {name: Range, data: {min: "2"}}
      memoryFilter: {name: Match, data: {value: 8Gi}}
      podsFilter: {name: Range, data: {min: "10", max: "50"}}
      gpuFilters:
      - {field: model, filter: StringFilter, data: {value: nvidia-a100}}
      - {field: count, filter: NumberMatchFilter, data: {value: 2}}
      - {field: memory, filter: ResourceRangeSelector, data: {min: 40Gi}}
  intentID: intent-1
  findCandidate: true
  reserveAndBuy: true
  establishPeering: false
`

func TestSolverBecomesAnIntent(t *testing.T) {
	f := read(t, NewReader(), base().with("intents/vision/s.yaml", solver), nil)
	if len(f.Intents) != 2 || len(f.Errors()) > 0 || len(f.Frozen) > 0 {
		t.Fatalf("%v %v", names(f), diagnostics(f))
	}
	in := f.Intents[1]
	got, err := json.Marshal(in.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"flavorType":"K8Slice","resources":{"cpu":"2","gpu":{"count":2,"models":["nvidia-a100"],"memory":"40Gi"},"memory":"8Gi","pods":"10"},"placement":{"architectures":["amd64"]},"stage":"reserve"}`
	if string(got) != want || in.Metadata.Name != "solver-sample" || in.Metadata.Namespace != "vision" {
		t.Errorf("%s/%s\ngot  %s\nwant %s", in.Metadata.Namespace, in.Metadata.Name, got, want)
	}
	if len(f.Diagnostics) != 1 || !strings.Contains(f.Diagnostics[0].String(), "intents/vision/s.yaml:11:56: spec.selector.filters.podsFilter: an intent asks for a minimum") {
		t.Errorf("got %v", diagnostics(f))
	}
}

func TestSolverThatCannotBeAnIntent(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"no filters":   {solver[strings.Index(solver, "  selector:"):strings.Index(solver, "  intentID")], "", "buys a whole flavor"},
		"only max":     {`{min: "2"}`, `{max: "2"}`, ":9:38: spec.selector.filters.cpuFilter: a Range without min buys nothing"},
		"gpu field":    {"field: model", "field: topology", `an intent cannot filter GPUs by "topology"`},
		"regex":        {`{name: Match, data: {value: amd64}}`, `{name: Range, data: {regex: "^(amd|arm)64$"}}`, ""},
		"no such arch": {`{name: Match, data: {value: amd64}}`, `{name: Range, data: {regex: "^vax$"}}`, "matches none of"},
	} {
		f := read(t, NewReader(), base().with("intents/vision/s.yaml", strings.Replace(solver, tc.old, tc.new, 1)), nil)
		if len(f.Intents) != 2 || (f.Intents[1].Problem != "") != (tc.want != "") || !strings.Contains(f.Intents[1].Problem, tc.want) {
			t.Errorf("%s: %v, want %s", name, diagnostics(f), tc.want)
		}
	}
	f := read(t, NewReader(), base().with("intents/vision/s.yaml", strings.Replace(solver, "cpuFilter", "cpusFilter", 1)), nil)
	if len(f.Intents) != 1 || !strings.Contains(f.Diagnostics[0].Message, `did you mean "cpuFilter"`) {
		t.Errorf("misspelt filter: %v", diagnostics(f))
	}
}

func TestFluidosFlavor(t *testing.T) {
	f := read(t, NewReader(), base().with("flavors/paris/f.yaml", `apiVersion: nodecore.fluidos.eu/v1alpha1
kind: Flavor
metadata: {name: fluidos.eu-k8slice-52dd, namespace: fluidos}
spec:
  providerID: gorlzgruty
  flavorType:
    typeIdentifier: K8Slice
    typeData:
      characteristics: {architecture: amd64, cpu: "15149658066n", memory: 7564624Ki, pods: "110", storage: 20Gi, gpu: {model: "", cores: "0", memory: "0"}}
      properties: {latency: 50, carbon-footprint: {embodied: 0, operational: [56]}}
      policies:
        partitionability: {cpuMin: "1", memoryMin: 1Gi, podsMin: "10", cpuStep: "1", memoryStep: 1Gi, podsStep: "10"}
  owner: {domain: fluidos.eu, nodeID: gorlzgruty, ip: "172.18.0.2:30000"}
  price: {amount: "10", currency: EUR, period: hourly}
  availability: true
  networkPropertyType: networkProperty
  location: {latitude: "10", longitude: "58", country: Italy, city: Turin}
`), nil)
	if len(f.Flavors) != 1 || len(f.Diagnostics) > 0 {
		t.Fatal(diagnostics(f))
	}
	got, err := json.Marshal(f.Flavors[0].Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"K8Slice","architecture":"amd64","capacity":{"cpu":"15149m","ephemeral-storage":"20Gi","memory":"7564624Ki","pods":"110"},` +
		`"partition":{"min":{"cpu":"1","memory":"1Gi","pods":"10"},"step":{"cpu":"1","memory":"1Gi","pods":"10"}},` +
		`"price":{"currency":"EUR","flat":"10"},"location":{"city":"Turin"},"properties":{"latencyMs":50,"carbon":56}}`
	if string(got) != want || f.Flavors[0].Ref() != "paris/fluidos-eu-k8slice-52dd" {
		t.Errorf("%s\ngot  %s\nwant %s", f.Flavors[0].Ref(), got, want)
	}
}
