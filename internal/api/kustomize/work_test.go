package kustomize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// listed are n objects with a list of so many fields in each.
func listed(n, fields int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for i := range n {
		fmt.Fprintf(&b, "- apiVersion: fleetbroker.io/v1alpha1\n  kind: Intent\n  metadata: {name: o%d, labels: {a: b}}\n  spec:\n    list:\n", i)
		for j := range fields {
			fmt.Fprintf(&b, "    - {name: n%d, v: x}\n", j)
		}
	}
	return b.String()
}

// lines are n lines of one form.
func lines(n int, form string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(form, "#", fmt.Sprint(i)) + "\n")
	}
	return b.String()
}

// costly are kustomizations of o.yaml that do n times what takes long.
var costly = map[string]func(n int) map[string]string{
	"common annotations": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\ncommonAnnotations:\n" + lines(n, "  l#: x")}
	},
	"lists of labels": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\nlabels:\n" + lines(n, "- {pairs: {l#: x}}")}
	},
	"images": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\nimages:\n" + lines(n, "- {name: i#, newTag: x}")}
	},
	"patches of any": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\npatches:\n" + lines(n, "- target: {kind: Intent}\n  patch: |\n    - {op: add, path: /spec/x, value: y}")}
	},
	"operations of a patch": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\npatches: [{target: {kind: Intent}, path: p.yaml}]\n", "p.yaml": lines(n, "- {op: add, path: /spec/list/0, value: {name: y#}}")}
	},
	"patches of a component": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\ncomponents: [c]\n",
			"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n" + lines(n, "- target: {kind: Intent}\n  patch: |\n    - {op: add, path: /spec/x, value: y}")}
	},
	"field paths": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\n" + replacement + lines(n, "    - spec.a.b.c.d.e.f.g.h.i.j.k#")}
	},
	"field paths over lists": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\n" + replacement + lines(n, "    - spec.list.*.v")}
	},
	"references by configuration": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\nnamePrefix: a-\nconfigurations: [c.yaml]\n",
			"c.yaml": "nameReference:\n" + lines(n, "- {kind: Intent#, fieldSpecs: [{path: spec/list/name}]}")}
	},
	"literals": func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [o.yaml]\nconfigMapGenerator:\n- name: x\n  literals:\n" + lines(n, "  - a#=b")}
	},
}

const replacement = "replacements:\n- source: {kind: Intent, name: o0, fieldPath: metadata.name}\n  targets:\n  - select: {kind: Intent}\n    options: {create: true}\n    fieldPaths:\n"

// costs are the files of one that is costly.
func costs(what string, n, objects, fields int) map[string][]byte {
	files := map[string][]byte{"o.yaml": []byte(listed(objects, fields))}
	for name, text := range costly[what](n) {
		files[name] = []byte(text)
	}
	return files
}

// letThrough is how many times counts allow it at most.
func letThrough(what string, objects, fields int) int {
	low, high := 0, 20_000
	for high-low > 1+low/20 {
		mid := (low + high) / 2
		if _, err := prepare(costs(what, mid, objects, fields), "", OfIntents); err == nil {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// What takes the time of a tenant's kustomization is refused by its count, whatever it
// is that takes it; the most that is let through ends long before the child's bound.
func TestCostlyKustomizations(t *testing.T) {
	for what := range costly {
		for _, c := range [][3]int{{18_000, 1, 3}, {2_000, 30, 3}, {400, 500, 3}, {200, 150, 60}} {
			if c[1] > 1 && (what == "literals") {
				continue // nothing to the objects
			}
			_, err := prepare(costs(what, c[0], c[1], c[2]), "", OfIntents)
			var refused *Refusal
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "split it") {
				t.Errorf("%s: %d times on %d objects of %d fields: %v", what, c[0], c[1], c[2], err)
			}
		}
		if _, err := prepare(costs(what, 20, 30, 3), "", OfIntents); err != nil {
			t.Errorf("%s: 20 times on 30 objects: %v", what, err)
		}
	}
}

func TestCostlyKustomizations_MostIsBuilt(t *testing.T) {
	for _, c := range []struct {
		what            string
		objects, fields int
	}{
		{"patches of any", 300, 3}, {"field paths over lists", 150, 60},
	} {
		n := letThrough(c.what, c.objects, c.fields)
		t.Run(c.what, func(t *testing.T) {
			// Five seconds on a machine that does nothing else; the child's bound is ten.
			bounded.Run(t, bounded.Bounds{CPU: 9 * time.Second}, func(t *testing.T) {
				if _, err := Build(costs(c.what, n, c.objects, c.fields), "", OfIntents); err != nil {
					t.Errorf("%d times: %v", n, err)
				}
			})
		})
	}
}

// What fleets have is let through: many intents with a patch each, and a few things that
// are done to all.
func TestUsualKustomizationsAreLetThrough(t *testing.T) {
	named := lines(300, "- patch: |\n    {apiVersion: fleetbroker.io/v1alpha1, kind: Intent, metadata: {name: o#}, spec: {a: b, c: d}}")
	all := "namespace: n\ncommonLabels: {a: b, c: d}\nnamePrefix: p-\n"
	for what, c := range map[string]struct {
		kustomization string
		objects, size int
	}{
		"a patch for each of 300":  {"resources: [o.yaml]\npatches:\n" + named, 300, 20},
		"labels on 1,000":          {"resources: [o.yaml, p.yaml]\n" + all, 500, 15},
		"a long annotation on 300": {"resources: [o.yaml]\ncommonAnnotations: {about: " + strings.Repeat("x", 10_000) + "}\n", 300, 15},
		"five patches on 100":      {"resources: [o.yaml]\npatches:\n" + lines(5, "- target: {kind: Intent}\n  patch: |\n    - {op: add, path: /spec/x, value: y}"), 100, 20},
	} {
		files := map[string][]byte{"kustomization.yaml": []byte(c.kustomization), "o.yaml": []byte(listed(c.objects, c.size))}
		if strings.Contains(c.kustomization, "p.yaml") {
			files["p.yaml"] = []byte(strings.ReplaceAll(listed(c.objects, c.size), "name: o", "name: p"))
		}
		if _, err := prepare(files, "", OfIntents); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Objects of the kinds that kustomize looks for names in cost by their number times all.
func TestReferrersAreCounted(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for i := range 900 {
		fmt.Fprintf(&b, "- {apiVersion: apps/v1, kind: Deployment, metadata: {name: o%d}, spec: {template: {spec: {volumes: [{name: a, configMap: {name: x}}, {name: b, secret: {secretName: x}}]}}}}\n", i)
	}
	files := map[string][]byte{"kustomization.yaml": []byte("resources: [o.yaml]\nnamePrefix: a-\n"), "o.yaml": []byte(b.String())}
	if _, err := prepare(files, "", OfIntents); err == nil {
		t.Error("900 Deployments are let through")
	}
	files["o.yaml"] = []byte(strings.ReplaceAll(b.String(), "kind: Deployment", "kind: Intent"))
	if _, err := prepare(files, "", OfIntents); err != nil {
		t.Error(err)
	}
	if !slices.IsSorted(referrers) {
		t.Error("referrers are in no order")
	}
}
