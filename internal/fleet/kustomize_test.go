package fleet

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"slices"
	"strings"
	"testing"
)

// kustomized is a tenant with a base and two overlays.
func kustomized() files {
	return base().with(
		"bases/gpu/kustomization.yaml", "resources: [intent.yaml]\n",
		"bases/gpu/intent.yaml", intent("vision", "train", "resources: {gpu: \"H100:1\"}"),
		"intents/vision/k/small/kustomization.yaml", "resources: [../../../../bases/gpu]\nnamePrefix: small-\n",
		"intents/vision/k/large/kustomization.yaml", `resources: [../../../../bases/gpu, extra.yaml]
namePrefix: large-
patches:
- target: {kind: ResourceIntent, name: train}
  patch: |
    - {op: replace, path: /spec/resources/gpu, value: "H100:8"}
`,
		"intents/vision/k/large/extra.yaml", intent("vision", "extra", "resources: {cpu: 1}"),
	)
}

func TestKustomize(t *testing.T) {
	f := read(t, NewReader(), kustomized(), nil)
	if len(f.Diagnostics) > 0 {
		t.Fatal(diagnostics(f))
	}
	if got, want := names(f), []string{"vision/a", "vision/large-extra", "vision/large-train", "vision/small-train"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	in := f.Intents[2]
	if in.Spec.Resources.GPU.Count != 8 || in.Path != "intents/vision/k/large/kustomization.yaml" {
		t.Errorf("got %d GPUs of %s", in.Spec.Resources.GPU.Count, in.Path)
	}
}

// A base within the tenant's directory makes nothing by itself.
func TestKustomizeBaseWithinTenant(t *testing.T) {
	f := read(t, NewReader(), base().with(
		"intents/vision/base/kustomization.yaml", "resources: [i.yaml]\n",
		"intents/vision/base/i.yaml", intent("vision", "i", "resources: {cpu: 1}"),
		"intents/vision/x/kustomization.yaml", "resources: [../base]\nnamePrefix: x-\n",
		"intents/vision/comp/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: y-\n",
	), nil)
	if got, want := names(f), []string{"vision/a", "vision/x-i"}; !slices.Equal(got, want) || len(f.Diagnostics) > 0 {
		t.Errorf("got %v, want %v; %v", got, want, diagnostics(f))
	}
}

// A kustomization below another that does not refer to it stands for itself.
func TestKustomizeNested(t *testing.T) {
	f := read(t, NewReader(), kustomized().with(
		"intents/vision/k/large/sub/kustomization.yaml", "resources: [../../../../../bases/gpu]\nnamePrefix: sub-\n",
		"intents/vision/k/large/broken/kustomization.yaml", "resources: [\n"), nil)
	if got, want := names(f), []string{"vision/a", "vision/large-extra", "vision/large-train", "vision/small-train", "vision/sub-train"}; !slices.Equal(got, want) || len(f.Errors()) != 1 {
		t.Errorf("got %v, want %v; %v", got, want, diagnostics(f))
	}
}

// A failing kustomization freezes its directory, says where it fails, and
// leaves the others alone.
func TestKustomizeFailures(t *testing.T) {
	const k = "intents/vision/k/small/kustomization.yaml"
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"remote":              {[]string{k, "resources:\n- https://github.com/a/b//c?ref=main\n"}, k + `:2:3: "https://github.com/a/b//c?ref=main" is not a path within the fleet repo; remote bases are not fetched`},
		"like a host":         {[]string{k, "resources:\n- github.com/a/b\n", "intents/vision/k/small/github.com/a/b/kustomization.yaml", "resources: []\n"}, "remote bases are not fetched"},
		"fetched patch":       {[]string{k, "resources: [../../../../bases/gpu]\npatches:\n- path: https://example.org/p.yaml\n"}, k + ":3:1: patches names an address on the network"},
		"fetched replacement": {[]string{k, "resources: [../../../../bases/gpu]\nreplacements: [{path: 'HTTP://example.org/p.yaml'}]\n"}, "nothing is fetched"},
		"another tenant":      {[]string{k, "resources: [../../../nlp]\n", "intents/nlp/n.yaml", ""}, `"../../../nlp" leads out of the tenant's directory`},
		"out of the repo":     {[]string{k, "resources: [../../../../../etc]\n"}, "leads out of the tenant's directory"},
		"absent":              {[]string{k, "resources: [no.yaml]\n"}, `there is no file or directory intents/vision/k/small/no.yaml`},
		"exec":                {[]string{k, "resources: [../../../../bases/gpu]\ngenerators: [x.yaml]\n"}, k + ":2:1: the field generators is not supported in a fleet repo"},
		"helm":                {[]string{k, "helmCharts: [{name: x}]\n"}, "the field helmCharts is not supported"},
		"openapi":             {[]string{k, "openapi: {path: x}\n"}, "the field openapi is not supported"},
		"typo":                {[]string{k, "resource: [x.yaml]\n"}, `(did you mean "resources"?)`},
		"in a base":           {[]string{"bases/gpu/kustomization.yaml", "resources: [intent.yaml]\nopenapi: {path: x}\n"}, "bases/gpu/kustomization.yaml:2:1: the field openapi"},
		"syntax":              {[]string{k, "resources: [\n"}, k + ":1:1: the YAML cannot be read"},
		"what it makes":       {[]string{"bases/gpu/intent.yaml", intent("vision", "train", "resource: {}")}, k + ":1:1: in what the kustomization makes: "},
		"foreign tenant":      {[]string{"bases/gpu/intent.yaml", intent("nlp", "train", "resources: {cpu: 1}")}, `metadata.namespace is "nlp"`},
		"no such patch":       {[]string{k, "resources: [../../../../bases/gpu]\npatches: [{path: no.yaml}]\n"}, k + ":1:1: the kustomization cannot be built"},
		"patch outside":       {[]string{k, "resources: [../../../../bases/gpu]\npatches: [{path: ../../../../clusters/rome.yaml}]\n"}, "the kustomization cannot be built"},
		"a cycle":             {[]string{k, "resources: [../small2]\n", "intents/vision/k/small2/kustomization.yaml", "resources: [../small]\n"}, k + ":1:1: the kustomization leads back to itself (over intents/vision/k/small2)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, NewReader(), kustomized().with(tc.files...), nil)
			if slices.Contains(names(f), "vision/small-train") || !slices.Contains(names(f), "vision/a") {
				t.Errorf("intents: %v", names(f))
			}
			if !strings.Contains(strings.Join(diagnostics(f), "\n"), tc.want) {
				t.Errorf("got %q, want %s", diagnostics(f), tc.want)
			}
			if !slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return fr.Path == "intents/vision/k/small/" }) {
				t.Errorf("the directory is not frozen: %v", f.Frozen)
			}
		})
	}
}

// Builds are cached by what they read, and made again when any of it changes.
func TestKustomizeIsCached(t *testing.T) {
	r := NewReader()
	read(t, r, kustomized(), nil)
	before := r.prev.tenants["vision"].kustomized
	read(t, r, kustomized().with("intents/vision/k/large/extra.yaml", intent("vision", "extra", "resources: {cpu: 2}")), nil)
	after := r.prev.tenants["vision"].kustomized
	if before["intents/vision/k/small"] != after["intents/vision/k/small"] {
		t.Error("an untouched kustomization was built again")
	}
	if before["intents/vision/k/large"] == after["intents/vision/k/large"] {
		t.Error("a changed kustomization was not built again")
	}
	f := read(t, r, kustomized().with("bases/gpu/intent.yaml", intent("vision", "train", "resources: {cpu: 3}")), nil)
	i := slices.IndexFunc(f.Intents, func(in *model.Intent) bool { return in.Metadata.Name == "small-train" })
	if i < 0 || f.Intents[i].Spec.Resources.GPU != nil {
		t.Error("a changed base was not seen")
	}
}
