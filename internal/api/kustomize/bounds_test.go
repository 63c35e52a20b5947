package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// doubling is a directory for each level, which names the one below by two
// others that add a suffix: twice the objects a level.
func doubling(levels int) map[string][]byte {
	files := map[string][]byte{"l0/kustomization.yaml": []byte("resources: [a.yaml]\n"), "l0/a.yaml": []byte(configMap)}
	for i := 1; i <= levels; i++ {
		for _, side := range []string{"a", "b"} {
			files[fmt.Sprintf("l%d%s/kustomization.yaml", i, side)] = fmt.Appendf(nil, "resources: [../l%d]\nnameSuffix: -%s\n", i-1, side)
		}
		files[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Appendf(nil, "resources: [../l%da, ../l%[1]db]\n", i)
	}
	return files
}

// bomb is a kustomization that no memory suffices to build.
var bomb = map[string][]byte{
	"d/kustomization.yaml": []byte("resources: [a.yaml]\n" + bounded.Bomb("ConfigMap", "data")),
	"d/a.yaml":             []byte(configMap + "data: {text: " + strings.Repeat("x", 1000) + "}\n"),
}

// copying is a kustomization whose patch copies so many times.
func copying(n int) map[string][]byte {
	patch := "patches:\n- target: {kind: ConfigMap}\n  patch: |\n" + strings.Repeat("    - {op: copy, from: /data, path: /data/a}\n", n)
	return map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.yaml]\n" + patch), "d/a.yaml": []byte(configMap + "data: {text: x}\n")}
}

func laughs() string {
	var b strings.Builder
	b.WriteString(configMap + "data:\n  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "  a%d: &a%[1]d [%s]\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// What would make too much is refused by its count, before anything is made.
func TestHostileKustomizationsAreRefused(t *testing.T) {
	var many strings.Builder
	for i := range 2_100 {
		fmt.Fprintf(&many, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}},\n", i)
	}
	for name, tc := range map[string]struct {
		files map[string][]byte
		dir   string
		want  string
	}{
		"eleven levels": {doubling(11), "l11", "the kustomization loads more than 1000 others"},
		"sixty levels":  {doubling(60), "l60", "the kustomization loads more than 1000 others"},
		"billion laughs": {map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.yaml]\n"), "d/a.yaml": []byte(laughs())}, "d",
			"d/a.yaml:5:14: aliases expand to more than"},
		"billion laughs in a patch": {map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.yaml]\npatches: [{path: p.yaml}]\n"),
			"d/a.yaml": []byte(configMap), "d/p.yaml": []byte(laughs())}, "d", "d/p.yaml:5:14: aliases expand to more than"},
		"billion laughs under another name": {map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.txt]\n"), "d/a.txt": []byte(laughs())}, "d",
			"d/a.txt:5:14: aliases expand to more than"},
		"in the kustomization": {map[string][]byte{"d/kustomization.yaml": []byte(strings.Replace(laughs(), "data", "commonAnnotations", 1))}, "d",
			"d/kustomization.yaml:5:14: aliases expand to more than"},
		"a list of many": {map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.yaml]\n"), "d/a.yaml": []byte("apiVersion: v1\nkind: List\nitems: [" + many.String() + "]\n")}, "d",
			"the kustomization makes more than 2000 objects"},
		"a circle": {map[string][]byte{"d/kustomization.yaml": []byte("resources: [../e]\n"), "e/kustomization.yaml": []byte("resources: [../d]\n")}, "d",
			"the kustomization leads back to itself"},
		"eleven copies": {copying(11), "d", "the kustomization copies in more than 10 operations"},
		"itself":        {map[string][]byte{"d/kustomization.yaml": []byte("resources: [../d]\n")}, "d", "the kustomization leads back to itself"},
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{}, func(t *testing.T) {
				_, err := Build(tc.files, tc.dir, OfIntents)
				var refused *Refusal
				if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
			})
		})
	}
}

// What counts let through is built within the bounds of the child.
func TestWhatCountsLetThroughIsBuilt(t *testing.T) {
	bounded.Run(t, bounded.Bounds{}, func(t *testing.T) {
		if out, err := Build(copying(10), "d", OfIntents); err != nil || !strings.Contains(string(out), "text: x") {
			t.Errorf("ten copies: %q, %v", out, err)
		}
		out, err := Build(doubling(7), "l7", OfIntents)
		if n := strings.Count(string(out), "kind: ConfigMap"); err != nil || n != 128 {
			t.Errorf("%d objects, %v", n, err)
		}
	})
}

// A build that ended its process twice is not tried a third time by this one: overlays
// are asked for again and again, and everybody's builds wait for each other.
func TestDeathsAreNotRepeated(t *testing.T) {
	bounded.Run(t, bounded.Bounds{CPU: 10 * time.Second}, func(t *testing.T) {
		var last error
		for n := range 1_000 {
			_, err := Build(bomb, "d", OfIntents)
			var death *child.Death
			if !errors.As(err, &death) || !death.Convicts || n > 0 && err.Error() != last.Error() {
				t.Fatalf("build %d: got %v after %v", n, err, last)
			}
			last = err
		}
		other := maps.Clone(bomb)
		other["d/kustomization.yaml"] = []byte("resources: [a.yaml]\n")
		if _, err := Build(other, "d", OfIntents); err != nil {
			t.Errorf("another of the same directory: %v", err)
		}
	})
}

// A build that takes the child's memory is no verdict, and the next one is
// built.
func TestDeathOfTheChildIsNoVerdict(t *testing.T) {
	bounded.Run(t, bounded.Bounds{}, func(t *testing.T) {
		var first error
		for range 2 {
			_, err := Build(bomb, "d", OfIntents)
			var death *child.Death
			if !errors.As(err, &death) || !death.Convicts || !strings.Contains(err.Error(), "more than 256 MiB of memory") {
				t.Fatalf("got %v", err)
			}
			if first == nil {
				first = err
			} else if first.Error() != err.Error() {
				t.Errorf("two deaths have different reasons: %v, %v", first, err)
			}
			if out, err := Build(doubling(1), "l1", OfIntents); err != nil || !strings.Contains(string(out), "name: a-a") {
				t.Fatalf("after a death: %q, %v", out, err)
			}
		}
	})
}
