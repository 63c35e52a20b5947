package references

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	got := Read([]byte("kind: Component\nresources:\n- a.yaml\n- ../b\nbases: [c]\ncomponents: [d]\n"))
	want := []Ref{{"a.yaml", 3, 3}, {"../b", 4, 3}, {"c", 5, 9}, {"d", 6, 14}}
	if got.Kind != "Component" || !slices.Equal(got.Refs, want) || len(got.Problems) > 0 {
		t.Errorf("got %+v, want a Component with %v", got, want)
	}
}

// TestRead_BoundsReferences: one with too many has none, in whichever list they are.
func TestRead_BoundsReferences(t *testing.T) {
	for n, want := range map[int]string{
		MaxRefs:     "",
		MaxRefs + 1: "5003:8: bases: the kustomization names 5001 files and directories, and at most 5000 are read: split it",
	} {
		got := Read([]byte("resources:\n" + strings.Repeat("- a\n", n-1) + "# the rest\nbases: [b]\n"))
		switch {
		case want == "" && (len(got.Refs) != n || len(got.Problems) > 0):
			t.Errorf("%d: got %d references, %v", n, len(got.Refs), got.Problems)
		case want != "" && (len(got.Refs) > 0 || len(got.Problems) != 1 || got.Problems[0].String() != want):
			t.Errorf("%d: got %d references, %v, want none and %s", n, len(got.Refs), got.Problems, want)
		}
	}
}

// TestProblems_Add: what is listed is bounded in number and length, and the last entry
// states that there are more.
func TestProblems_Add(t *testing.T) {
	var p Problems
	for i := range 3 * MaxProblems {
		if full := i > MaxProblems; p.Full() != full {
			t.Errorf("after %d: full is %v", i, p.Full())
		}
		p.Add(i+1, 1, "%s", strings.Repeat("x", 10_000))
	}
	if len(p) != MaxProblems+1 || len(p[0].Message) > 1000 || !strings.Contains(p[MaxProblems].String(), "51:1: the kustomization has more than 50 mistakes") {
		t.Errorf("got %d, the first of %d bytes, the last %v", len(p), len(p[0].Message), p[len(p)-1])
	}
}

func TestRead_RefusesFields(t *testing.T) {
	for text, want := range map[string]string{
		"resource: [a]\n":               `1:1: the field resource is not supported in a fleet repo (did you mean "resources"?)`,
		"helmCharts: []\n":              "1:1: the field helmCharts is not supported in a fleet repo: kustomizations here",
		"patches: [{path: https://a}]":  "1:10: patches names an address on the network",
		"resources: {a: b}\n":           "1:12: resources is not a list of paths",
		"a: 1\n---\nb: 1\n":             "1:1: one document is due",
		"resources: [\n":                "the YAML cannot be read",
		"resources: [a]\nresources: []": `2:1: duplicate key "resources"`,
	} {
		if got := fmt.Sprint(Read([]byte(text)).Problems); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
