package kustomize

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// TestNames_AreBounded: names of objects and of patches, wherever they are, before any is
// compared with another.
func TestNames_AreBounded(t *testing.T) {
	object := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	longest, long := strings.Repeat("a", maxName), strings.Repeat("a", maxName+1)
	const shorten = `"` + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + `"... has 254 bytes, and no object has a name of more than 253: shorten it`
	for name, tc := range map[string]struct {
		kustomization, resource, patch, want string
	}{
		"as long as names are": {"patchesStrategicMerge: [p.yaml]\n", object(longest), object(longest), ""},
		"an object":            {"", object("x") + "---\n" + object(long), "", "a.yaml:7:18: metadata.name: " + shorten},
		"in a list":            {"", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: " + long + "}}\n", "", "a.yaml:1:1: metadata.name: " + shorten},
		"a merged patch":       {"patchesStrategicMerge: [p.yaml]\n", object("x"), object("x") + "---\n" + object(long), "p.yaml: the name that a patch is for: " + shorten},
		"a patch by path":      {"patches: [{path: p.yaml}]\n", object("x"), object(long), "p.yaml: the name that a patch is for: " + shorten},
		"a target":             {"patches: [{target: {name: " + long + "}, path: p.yaml}]\n", object("x"), "[]\n", "kustomization.yaml: the name that a patch is for: " + shorten},
		"a pattern":            {"patches: [{target: {name: '(" + long + "|x)'}, path: p.yaml}]\n", object("x"), "[]\n", ""},
		"a file that is none":  {"configMapGenerator: [{name: c, files: [p.yaml]}]\n", object("x"), object(long), ""},
	} {
		files := map[string][]byte{"kustomization.yaml": []byte("resources: [a.yaml]\n" + tc.kustomization), "a.yaml": []byte(tc.resource), "p.yaml": []byte(tc.patch)}
		if tc.patch == "" {
			delete(files, "p.yaml")
		}
		_, err := prepare(files, "", OfIntents)
		var refused *Refusal
		if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &refused) || err.Error() != tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// TestNames_AreCountedInTime: what the count takes for a patch that passes over objects holds
// for the longest names.
func TestNames_AreCountedInTime(t *testing.T) {
	for name, length := range map[string]int{"longest": maxName - 1, "too long": 9900} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{}
			documents := func(file, name string) {
				var b strings.Builder
				for i := range 100 {
					fmt.Fprintf(&b, "---\n{apiVersion: v1, kind: X, metadata: {name: %s}}\n", strings.ReplaceAll(name, "#", fmt.Sprint(i)))
				}
				files[file] = []byte(b.String())
			}
			kustomization := "resources:\n"
			for i := range 15 {
				file := fmt.Sprintf("r%d.yaml", i)
				documents(file, strings.Repeat("a", 100)+fmt.Sprintf("b%d-#", i))
				kustomization += "- " + file + "\n"
			}
			kustomization += "patchesStrategicMerge:\n"
			for i := range 7 {
				file := fmt.Sprintf("p%d.yaml", i)
				documents(file, strings.Repeat("a", length)+"c")
				kustomization += "- " + file + "\n"
			}
			files["kustomization.yaml"] = []byte(kustomization)
			bounded.Run(t, bounded.Bounds{CPU: 4 * time.Second}, func(t *testing.T) {
				_, err := prepare(files, "", OfIntents)
				if tooLong := length > maxName; (err != nil) != tooLong {
					t.Errorf("got %v, want refused: %v", err, tooLong)
				}
			})
		})
	}
}
