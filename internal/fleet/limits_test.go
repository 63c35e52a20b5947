package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// limited is a fleet whose limits are these; nlp has one intent, vision as many
// as said, and one by a kustomization.
func limited(limits string, n int) files {
	f := kustomized().with("fleet.yaml", "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {limits: {"+limits+"}}\n",
		"tenants/nlp.yaml", strings.ReplaceAll(base()["tenants/vision.yaml"], "vision", "nlp"),
		"intents/nlp/other.yaml", intent("nlp", "other", "resources: {cpu: 1}"))
	for i := range n {
		f = f.with(fmt.Sprintf("intents/vision/more/m%d.yaml", i), intent("vision", fmt.Sprintf("m%d", i), "resources: {cpu: 1}"))
	}
	return f
}

// A tenant over a limit is frozen as a whole and told so; others are read. It is
// the same from scratch and read by read, and ends when the limit is raised or
// files go.
func TestTenantOverItsLimits(t *testing.T) {
	for name, tc := range map[string]struct{ limits, raised, want string }{
		"files":   {"files: 10", "files: 100", "intents/vision:1:1: the tenant has 14 files, and at most 10 are read (limits.files of the fleet)"},
		"bytes":   {"bytes: 1Ki", "bytes: 1Mi", "intents/vision:1:1: the tenant's files are larger than 1 KiB together"},
		"intents": {"intents: 10", "intents: 100", "intents/vision:1:1: the tenant has 14 intents, and at most 10 are read (limits.intents of the fleet)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader()
			good := read(t, r, limited(tc.limits, 0), nil)
			if len(good.Diagnostics) > 0 {
				t.Fatal(diagnostics(good))
			}
			for _, reader := range []*Reader{r, NewReader(), r} {
				f := read(t, reader, limited(tc.limits, 10), good)
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
			for what, f := range map[string]files{"raised": limited(tc.raised, 10), "fewer": limited(tc.limits, 0)} {
				if got := read(t, r, f, nil); len(got.Diagnostics) > 0 || len(got.Frozen) > 0 || !slices.Contains(names(got), "vision/small-train") {
					t.Errorf("%s: %v, %v", what, diagnostics(got), got.Frozen)
				}
			}
		})
	}
}

// A tenant that changes thousands of files at once is read in parts: until the
// last it is frozen, the others are read, and who reads from scratch without that
// piece (a replay) reads the same. What was read is not read again.
func TestACrowdIsReadInParts(t *testing.T) {
	r := NewReader()
	good := read(t, r, limited("files: 100", 0), nil)
	crowd := limited("files: 100000", 0).with("intents/nlp/new.yaml", intent("nlp", "new", "resources: {cpu: 1}"))
	for i := range 6000 {
		name := fmt.Sprintf("m%d", i)
		crowd["intents/vision/more/"+name+".yaml"] = intent("vision", name, "resources: {cpu: 1}")
	}
	at := crowd.build(tree.NewMemory())
	last, parts := good, 0
	for {
		f, err := r.ReadAll(t.Context(), Sources{Inputs: at, Last: last, Rationed: true})
		if err != nil {
			t.Fatal(err)
		}
		if parts++; parts > 5 {
			t.Fatal("it has no end")
		}
		again, err := NewReader().ReadAll(t.Context(), Sources{Inputs: at, Aside: f.NotRead})
		if err != nil {
			t.Fatal(err)
		}
		if g, w := describe(f), describe(again); g != w {
			t.Fatalf("part %d:\n%.2000s\nread from scratch\n%.2000s", parts, g, w)
		}
		if again.Unfinished {
			t.Error("who reads from scratch is to read on")
		}
		last = f
		if !f.Unfinished {
			break
		}
		if got := names(f); !slices.Equal(got, []string{"nlp/new", "nlp/other"}) {
			t.Errorf("part %d: intents %v, want the other tenant's", parts, got)
		}
		if len(f.NotRead) != 1 || f.NotRead[0].Path != "intents/vision/" || !f.NotRead[0].Again || !slices.ContainsFunc(f.Frozen, func(fr model.Freeze) bool { return fr.Path == "intents/vision/" }) {
			t.Errorf("part %d: not read %+v, frozen %v", parts, f.NotRead, f.Frozen)
		}
	}
	if parts < 3 || len(last.Intents) < 6000 || len(last.NotRead) > 0 || len(last.Frozen) > 0 {
		t.Errorf("%d parts, %d intents, not read %v, frozen %v", parts, len(last.Intents), last.NotRead, last.Frozen)
	}
	if whole := read(t, NewReader(), crowd, nil); describe(whole) != describe(last) || whole.Unfinished {
		t.Error("read at once it is another fleet")
	}
}

// A tenant that changes many kustomizations at once is read in parts, too, and each
// is built once: also where one line of a base builds all of them again.
func TestKustomizationsAreBuiltInParts(t *testing.T) {
	many := func(cpu string) files {
		f := limited("files: 100000", 0).with("intents/vision/base/kustomization.yaml", "resources: [i.yaml]\n",
			"intents/vision/base/i.yaml", intent("vision", "i", "resources: {cpu: "+cpu+"}"), "intents/nlp/new"+cpu+".yaml", intent("nlp", "new"+cpu, "resources: {cpu: 1}"))
		for i := range 120 {
			f[fmt.Sprintf("intents/vision/m/k%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamePrefix: k%d-\n", i)
		}
		return f
	}
	r := NewReader()
	last := read(t, r, limited("files: 100", 0), nil)
	for _, cpu := range []string{"1", "2"} {
		at, parts, builds := many(cpu).build(tree.NewMemory()), 0, map[*build]bool{}
		for {
			f, err := r.ReadAll(t.Context(), Sources{Inputs: at, Last: last, Rationed: true})
			if err != nil {
				t.Fatal(err)
			}
			if parts++; parts > 12 {
				t.Fatal("it has no end")
			}
			again, err := NewReader().ReadAll(t.Context(), Sources{Inputs: at, Aside: f.NotRead})
			if err != nil {
				t.Fatal(err)
			}
			if g, w := describe(f), describe(again); g != w {
				t.Fatalf("part %d:\n%.2000s\nread from scratch\n%.2000s", parts, g, w)
			}
			if f.Intent("nlp", "new"+cpu) == nil {
				t.Fatalf("part %d: the other tenant's intent waits", parts)
			}
			for _, b := range r.prev.tenants["vision"].kustomized {
				builds[b] = true
			}
			last = f
			if !f.Unfinished {
				break
			}
			if len(f.NotRead) != 1 || f.NotRead[0].Path != "intents/vision/" || f.Intent("vision", "k1-i") != nil {
				t.Errorf("part %d: not read %+v", parts, f.NotRead)
			}
		}
		if whole := read(t, NewReader(), many(cpu), nil); describe(whole) != describe(last) || whole.Unfinished {
			t.Error("read at once it is another fleet")
		}
		// Those of before are kept until the last part.
		if parts < 3 || len(builds) > 2*122+2 || len(last.NotRead) > 0 || last.Intent("vision", "k1-i") == nil {
			t.Errorf("cpu %s: %d parts, %d builds, not read %v", cpu, parts, len(builds), last.NotRead)
		}
	}
}

// A start builds no more than some seconds' worth, and goes on in the next rounds.
func TestAStartBuildsInParts(t *testing.T) {
	f := limited("files: 100000", 0).with("intents/nlp/new.yaml", intent("nlp", "new", "resources: {cpu: 1}"))
	note := strings.Repeat("x", strictyaml.MaxSize)
	for i := range 2 + startRations*ration/(7*strictyaml.MaxSize) { // each reads seven notes, and builds fast
		dir := fmt.Sprintf("intents/vision/k%d/", i)
		for j := range 7 {
			f[fmt.Sprintf("%snote%d.txt", dir, j)] = note
		}
		f[dir+"kustomization.yaml"], f[dir+"i.yaml"] = "resources: [i.yaml]\n", intent("vision", fmt.Sprintf("i%d", i), "resources: {cpu: 1}")
	}
	at, r := f.build(tree.NewMemory()), NewReader()
	first, err := r.ReadAll(t.Context(), Sources{Inputs: at, Starting: true})
	if err != nil {
		t.Fatal(err)
	}
	if !first.Unfinished || first.Intent("nlp", "new") == nil || first.Intent("vision", "i0") != nil {
		t.Errorf("unfinished %v, intents %d", first.Unfinished, len(first.Intents))
	}
	for parts := 0; first.Unfinished; parts++ {
		if parts > 5 {
			t.Fatal("it has no end")
		}
		if first, err = r.ReadAll(t.Context(), Sources{Inputs: at, Last: first, Rationed: true}); err != nil {
			t.Fatal(err)
		}
	}
	if first.Intent("vision", "i4") == nil || len(first.NotRead) > 0 {
		t.Errorf("%d intents, not read %v", len(first.Intents), first.NotRead)
	}
}

// Long conditions, each of its own, are read in more parts than as many short ones: what
// compiling them takes counts, and one that is known costs nothing.
func TestConditionsAreReadInParts(t *testing.T) {
	parts := func(condition func(i int) string) (n int) {
		crowd := limited("files: 100000", 0)
		r := NewReader()
		last := read(t, r, crowd, nil)
		for i := range 300 {
			name := fmt.Sprintf("m%d", i)
			crowd["intents/vision/more/"+name+".yaml"] = intent("vision", name, "resources: {cpu: 1}, placement: {where: '"+condition(i)+"'}")
		}
		at := crowd.build(tree.NewMemory())
		for {
			f, err := r.ReadAll(t.Context(), Sources{Inputs: at, Last: last, Rationed: true})
			if err != nil {
				t.Fatal(err)
			}
			last = f
			if n++; !f.Unfinished || n > 50 {
				break
			}
		}
		if errs := last.Errors(); len(last.Intents) < 300 || len(errs) > 0 {
			t.Fatalf("%d intents, %v", len(last.Intents), errs[:min(len(errs), 2)])
		}
		return n
	}
	long := "flavor.type == \"gpu\"" + strings.Repeat(" || flavor.name.contains(\"x\")", 25)
	if n := parts(func(int) string { return long }); n > 1 {
		t.Errorf("one condition of %d bytes in 300 files is read in %d parts", len(long), n)
	}
	if n := parts(func(i int) string { return fmt.Sprintf("%s || flavor.name == \"%d\"", long, i) }); n < 4 {
		t.Errorf("300 conditions of %d bytes are read in %d parts", len(long), n)
	}
}
