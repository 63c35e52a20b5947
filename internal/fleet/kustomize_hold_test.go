package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
)

// A kustomization that cannot be built takes nothing away from the directories that it names,
// and brings nothing of them to life, whether its references can be read or not: what they
// had made by themselves stays, and what was only their overlay's does not begin.
func TestKustomize_BrokenOverlayHoldsItsBases(t *testing.T) {
	const k, b = "/kustomization.yaml", "intents/vision/B/kustomization.yaml"
	alone := base().with("intents/vision/A"+k, "resources: [i.yaml]\n", "intents/vision/A/i.yaml", intent("vision", "i", "resources: {cpu: 1}"),
		"intents/vision/C"+k, "resources: [c.yaml]\n", "intents/vision/C/c.yaml", intent("vision", "c", "resources: {cpu: 1}"))
	for name, text := range map[string]string{
		"a field that is not supported": "helmCharts: []\nresources: [../A]\n",
		"a list that has no end":        "resources: [../A\nx: {\n",
		"a list by lines":               "resources:\n  - \"../A\"  # the base\n x: y\n",
		"two documents":                 "resources:\n- ../A\n---\nresources: [../A]\n",
		"a key twice":                   "resources: [../A]\nresources: [../A]\n",
	} {
		t.Run(name, func(t *testing.T) {
			for was, before := range map[string]files{"by itself": alone, "by its overlay": alone.with(b, "namePrefix: b-\nresources: [../A]\n"), "not at all": nil} {
				var last *Fleet
				r := NewReader()
				if before != nil {
					last = read(t, r, before, nil)
				}
				for range 2 { // and again, from what the reader keeps
					last = read(t, r, alone.with(b, text), last)
				}
				if got := names(last); !slices.Equal(got, []string{"vision/a", "vision/c"}) {
					t.Errorf("made %s before: got %v, want what others make", was, got)
				}
				for _, dir := range []string{"intents/vision/A/", "intents/vision/B/"} {
					if !slices.ContainsFunc(last.Frozen, func(fr model.Freeze) bool { return fr.Path == dir }) {
						t.Errorf("made %s before: %s is not frozen: %v", was, dir, last.Frozen)
					}
				}
				if got := strings.Join(diagnostics(last), "\n"); !strings.Contains(got, "error intents/vision/A/kustomization.yaml:1:1: intents/vision/B/kustomization.yaml names it and cannot be built") {
					t.Errorf("made %s before: %s", was, got)
				}
			}
		})
	}
	// Where something else that is built names it, nothing of its own was made, and nothing is held.
	f := read(t, NewReader(), alone.with(b, "resources: [../A\n", "intents/vision/D"+k, "namePrefix: d-\nresources: [../A]\n"), nil)
	if got := names(f); !slices.Equal(got, []string{"vision/a", "vision/c", "vision/d-i"}) || len(f.Errors()) != 1 {
		t.Errorf("with another overlay: %v, %v", got, diagnostics(f))
	}
	// What only looks like a name is none.
	f = read(t, NewReader(), alone.with(b, "commonLabels:\n- A\n- .\n- ..\n- ../nothing\n- ../../nlp\nx: {\n"), nil)
	if got := names(f); !slices.Equal(got, []string{"vision/a", "vision/c", "vision/i"}) || len(f.Errors()) != 1 {
		t.Errorf("no names: %v, %v", got, diagnostics(f))
	}
	// Another tenant's is none of a kustomization's either, whether it can be parsed or not.
	for _, text := range []string{"resources: [../../vision/A]\n", "resources: [../../vision/A\n", "resources:\n- ../../vision/A\n x: {\n"} {
		f = read(t, NewReader(), alone.with("intents/nlp/B/kustomization.yaml", text), nil)
		if got := names(f); !slices.Equal(got, []string{"vision/a", "vision/c", "vision/i"}) || len(f.Errors()) == 0 || slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return strings.HasPrefix(fr.Path, "intents/vision/") }) {
			t.Errorf("%q: %v, %v", text, got, f.Frozen)
		}
	}
}
