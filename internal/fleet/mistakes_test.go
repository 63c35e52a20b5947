package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// Kustomizations are counted, what they read is part of the tenant's bytes, and
// so is what they make. Others are read, from scratch and read by read.
func TestKustomizationsAreWithinLimits(t *testing.T) {
	many := limited("files: 100000", 0)
	for i := range v1alpha1.MaxKustomizations {
		many[fmt.Sprintf("intents/vision/x/k%d/kustomization.yaml", i)] = "resources: [a.yaml]\n"
	}
	wide := func(bytes string) files {
		return limited("bytes: "+bytes, 0).with("bases/gpu/intent.yaml",
			strings.Replace(intent("vision", "train", "resources: {cpu: 1}"), "metadata: {", "metadata: {annotations: {a.example/b: "+strings.Repeat("x", 3<<10)+"}, ", 1))
	}
	for name, tc := range map[string]struct {
		over, good files
		want       string
	}{
		"count": {many, limited("files: 100000", 0), "intents/vision:1:1: the tenant has 502 kustomizations, and at most 500 are built"},
		"read":  {limited("bytes: 2Ki", 0).with("intents/vision/k/small/notes.txt", strings.Repeat("x", 2<<10)), limited("bytes: 2Ki", 0), "intents/vision:1:1: the tenant's files are larger than 2 KiB together"},
		"made":  {wide("5Ki"), wide("50Ki"), "intents/vision:1:1: the tenant's kustomizations make more than 5 KiB together"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader()
			good := read(t, r, tc.good, nil)
			if len(good.Diagnostics) > 0 {
				t.Fatal(diagnostics(good))
			}
			for _, reader := range []*Reader{r, NewReader(), r} {
				f := read(t, reader, tc.over, good)
				if got := names(f); !slices.Equal(got, []string{"nlp/other"}) {
					t.Errorf("intents %v, want only the other tenant's", got)
				}
				if got := strings.Join(diagnostics(f), "\n"); !strings.Contains(got, tc.want) {
					t.Errorf("got %q, want %s", got, tc.want)
				}
				if !slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return fr.Path == "intents/vision/" }) {
					t.Errorf("not frozen: %v", f.Frozen)
				}
			}
			if got := read(t, r, tc.good, nil); len(got.Diagnostics) > 0 || !slices.Equal(names(got), names(good)) {
				t.Errorf("after it: %v", diagnostics(got))
			}
		})
	}
}

// However many mistakes one document has, a bounded number is listed, and
// warnings hide no error. (Each place costs a walk over the list it stands in.)
func TestMistakesOfOneDocumentAreBounded(t *testing.T) {
	unknown := strings.Repeat("{"+bounded.Numbered(50, "_l%d: 1, ")+"cpu: 1}, ", 30)
	days := strings.Repeat("Mon, ", 25_000)
	for name, tc := range map[string]struct{ spec, want string }{
		"names":    {"alternatives: [" + unknown + "]", "unknown resource"},
		"warnings": {"schedule: {windows: [{days: [" + days + `], from: "08:00", to: "25:00"}]}`, "not a time of day"},
	} {
		f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, "+tc.spec)), nil)
		if n := len(f.Diagnostics); n > 2*(maxDiagnostics+1) {
			t.Errorf("%s: %d diagnostics", name, n)
		}
		list := strings.Join(diagnostics(f), "\n")
		if !strings.Contains(list, tc.want) || !strings.Contains(list, "intents/vision/b.yaml:1:1: one document has more than 100 mistakes") {
			t.Errorf("%s: got %.2000s", name, list)
		}
		if in := f.Intent("vision", "b"); in == nil || in.Problem == "" {
			t.Errorf("%s: not refused: %+v", name, in)
		}
	}
}

// Lists that multiply work are bounded, each by its own name.
func TestListsOfAnIntentAreBounded(t *testing.T) {
	list := func(n int, form string) string {
		var out []string
		for i := range n {
			out = append(out, strings.ReplaceAll(form, "N", fmt.Sprint("n", i)))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	labels := func(n int) string { return "{" + strings.Trim(list(n, "N: x"), "[]") + "}" }
	named := func(n int) string { return "{" + strings.Trim(list(n, "a.b/N: 1"), "[]") + "}" }
	for at, tc := range map[string]struct {
		most int
		spec func(n int) string
	}{
		"spec.offload.namespaces":     {100, func(n int) string { return "resources: {cpu: 1}, offload: {namespaces: " + list(n, "{name: N}") + "}" }},
		"spec.resources":              {64, func(n int) string { return "resources: " + named(n) }},
		"spec.perPod":                 {64, func(n int) string { return "resources: {cpu: 1}, perPod: " + named(n) }},
		"spec.alternatives[1]":        {64, func(n int) string { return "resources: {cpu: 2}, alternatives: [{cpu: 1}, " + named(n) + "]" }},
		"spec.alternatives[0].perPod": {64, func(n int) string { return "resources: {cpu: 2}, alternatives: [{cpu: 1, perPod: " + named(n) + "}]" }},
		"spec.virtualNode.shares[0]":  {64, func(n int) string { return "resources: {cpu: 2}, virtualNode: {shares: [" + named(n) + "]}" }},
		"spec.resources.gpu.models":   {64, func(n int) string { return "resources: {gpu: {count: 1, models: " + list(n, "N") + "}}" }},
		"spec.alternatives[0].gpu.models": {64, func(n int) string {
			return "resources: {cpu: 1}, alternatives: [{gpu: {count: 1, models: " + list(n, "N") + "}}]"
		}},
		"spec.placement.providers.allow": {256, func(n int) string {
			return "resources: {cpu: 1}, placement: {providers: {allow: " + list(n, "N") + "}}"
		}},
		"spec.placement.regions": {256, func(n int) string { return "resources: {cpu: 1}, placement: {regions: " + list(n, "N") + "}" }},
		"spec.virtualNode.taints": {64, func(n int) string {
			return "resources: {cpu: 1}, virtualNode: {taints: " + list(n, "{key: N, effect: NoSchedule}") + "}"
		}},
		"spec.virtualNode.labels": {64, func(n int) string { return "resources: {cpu: 1}, virtualNode: {labels: " + labels(n) + "}" }},
		"spec.placement.labels":   {64, func(n int) string { return "resources: {cpu: 1}, placement: {labels: " + labels(n) + "}" }},
		"spec.offload.namespaces[0].podSelector.matchLabels": {64, func(n int) string {
			return "resources: {cpu: 1}, offload: {namespaces: [{name: vision, podSelector: {matchLabels: " + labels(n) + "}}]}"
		}},
		"spec.offload.namespaces[0].podSelector.matchExpressions": {16, func(n int) string {
			return "resources: {cpu: 1}, offload: {namespaces: [{name: vision, podSelector: {matchExpressions: " + list(n, "{key: N, operator: Exists}") + "}}]}"
		}},
		"spec.offload.namespaces[0].podSelector.matchExpressions[0].values": {32, func(n int) string {
			return "resources: {cpu: 1}, offload: {namespaces: [{name: vision, podSelector: {matchExpressions: [{key: a, operator: In, values: " + list(n, "N") + "}]}}]}"
		}},
		"spec.placement.providers.deny": {256, func(n int) string { return "resources: {cpu: 1}, placement: {providers: {deny: " + list(n, "N") + "}}" }},
	} {
		for _, n := range []int{tc.most, tc.most + 1} {
			f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", tc.spec(n))), nil)
			want := fmt.Sprintf("%s: %d entries, and at most %d are read", at, n, tc.most)
			if got := strings.Join(diagnostics(f), "\n"); strings.Contains(got, want) != (n > tc.most) || strings.Contains(got, "LimitExceeded") {
				t.Errorf("%s, %d entries: got %.500s", at, n, got)
			}
		}
	}
}

// Each contract has the selectors of all namespaces: what they come to together is bounded.
func TestSelectorsAreBoundedTogether(t *testing.T) {
	for n, refused := range map[int]bool{8: false, 9: true} { // of 32 values of 63 bytes each
		var spaces []string
		for i := range n {
			values := make([]string, 32)
			for k := range values {
				values[k] = fmt.Sprintf("%s%02d", strings.Repeat("v", 61), k)
			}
			spaces = append(spaces, fmt.Sprintf("{name: vision-%d, podSelector: {matchExpressions: [{key: a, operator: In, values: [%s]}]}}", i, strings.Join(values, ", ")))
		}
		f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, offload: {namespaces: ["+strings.Join(spaces, ", ")+"]}")), nil)
		if got := strings.Join(diagnostics(f), "\n"); strings.Contains(got, "the selectors have 18171 bytes together, and at most 16384 are read") != refused {
			t.Errorf("%d namespaces: %.500s", n, got)
		}
	}
}

// A time in a year that nobody means is refused with what to do.
func TestTimesFarAhead(t *testing.T) {
	for at, refused := range map[string]bool{"2199-12-31T23:59:59Z": false, "2200-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true} {
		f := read(t, NewReader(), base().with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}, schedule: {deadline: \""+at+"\"}")), nil)
		if got := strings.Join(diagnostics(f), "\n"); strings.Contains(got, "is not between the years 2000 and 2199; leave it out for none") != refused {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// TestResources_OfOneDocumentAreBounded: however many an intent or a flavor names, each is
// looked at in constant time.
func TestResources_OfOneDocumentAreBounded(t *testing.T) {
	many := bounded.Numbered(40_000, "    a.b/c%d: 1\n")
	for name, f := range map[string]files{
		"intent": base().with("intents/vision/r.yaml", group+"kind: ResourceIntent\nmetadata: {name: r, namespace: vision}\nspec:\n  resources:\n"+many),
		"flavor": base().with("flavors/paris/r.yaml", group+"kind: Flavor\nmetadata: {name: r, namespace: paris}\nspec:\n  capacity:\n"+many),
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{CPU: 3 * time.Second}, func(t *testing.T) {
				got := strings.Join(diagnostics(read(t, NewReader(), f, nil)), "\n")
				if refused := strings.Contains(got, "r.yaml:6:5: spec.resources: 40000 entries, and at most 64 are read"); refused != (name == "intent") || len(got) > 8<<10 {
					t.Errorf("got %.600s", got)
				}
			})
		})
	}
}
