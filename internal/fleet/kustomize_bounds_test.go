package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet/references"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// TestKustomize_BoundsReferences: whatever kustomizations name, reading them costs their
// bytes, and what is wrong with them fits on some screens.
func TestKustomize_BoundsReferences(t *testing.T) {
	of := func(n int, text string) files {
		f := base()
		for i := range n {
			f[fmt.Sprintf("intents/vision/k%d/kustomization.yaml", i)] = text
			f[fmt.Sprintf("intents/vision/k%d/a.yaml", i)] = intent("vision", fmt.Sprintf("i%d", i), "resources: {cpu: 1}")
		}
		return f
	}
	shared := of(100, "resources: [../b/0]\n")
	for i := range 60 {
		shared[fmt.Sprintf("intents/vision/b/%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%d]\npatches: []\nbases:\n%s", i+1, strings.Repeat("- a\n", 60))
	}
	for name, tc := range map[string]struct {
		files files
		want  string
		most  int // bytes of messages
	}{
		"missing":             {of(8, "resources:\n"+strings.Repeat("- a\n", 260_000)), "intents/vision/k0/kustomization.yaml:2:1: resources: the kustomization names 260000 files and directories, and at most 5000 are read: split it", 8 << 10},
		"present":             {of(8, "resources:\n"+strings.Repeat("- a.yaml\n", 115_000)), "names 115000 files and directories", 8 << 10},
		"in all lists":        {of(1, "resources:\n"+strings.Repeat("- a.yaml\n", 3000)+"components:\n"+strings.Repeat("- a.yaml\n", 3000)), "kustomization.yaml:3003:1: components: the kustomization names 6000 files and directories", 8 << 10},
		"long names":          {of(1, "resources:\n"+strings.Repeat("- "+strings.Repeat("a", 10_000)+"\n", 100)), "kustomization.yaml:52:3: the kustomization has more than 50 mistakes", 64 << 10},
		"unknown fields":      {of(1, bounded.Numbered(70_000, "k%d: 1\n")), "the field k0 is not supported", 16 << 10},
		"in bases of many":    {shared, "intents/vision/b/0/kustomization.yaml:4:3: \"a\": there is no file or directory", 16 << 10},
		"as many as are read": {of(1, "resources:\n"+strings.Repeat("- a.yaml\n", references.MaxRefs)), "", 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			bounded.Run(t, bounded.Bounds{CPU: 8 * time.Second}, func(t *testing.T) {
				f := read(t, NewReader(), tc.files, nil)
				got := strings.Join(diagnostics(f), "\n")
				if !strings.Contains(got, tc.want) || len(got) > tc.most {
					t.Errorf("got %d bytes, at most %d, %.600s, want %s", len(got), tc.most, got, tc.want)
				}
			})
		})
	}
}

// TestKustomize_ReadsLargeOnesInParts: the texts of kustomizations count against the ration
// of a read. Until the last one is read the tenant keeps what it last said, the others are
// read, and no text is read twice, whatever else of the tenant changes.
func TestKustomize_ReadsLargeOnesInParts(t *testing.T) {
	r := NewReader()
	last := read(t, r, limited("files: 100", 0), nil)
	f := limited("files: 100", 0)
	for i := range 4 {
		dir := fmt.Sprintf("intents/vision/large%d", i)
		f = f.with(dir+"/kustomization.yaml", "resources: [a.yaml]\n"+strings.Repeat("# c\n", 220_000), dir+"/a.yaml", "# no intent\n")
	}
	texts := map[*references.File]bool{}
	readAllParts := func(f files) (parts int) {
		t.Helper()
		at := f.build(tree.NewMemory())
		for {
			got, err := r.ReadAll(t.Context(), Sources{Inputs: at, Last: last, Rationed: true})
			if err != nil {
				t.Fatal(err)
			}
			if parts++; parts > 12 {
				t.Fatal("the read is never finished")
			}
			again, err := NewReader().ReadAll(t.Context(), Sources{Inputs: at, Aside: got.NotRead})
			if err != nil {
				t.Fatal(err)
			}
			if g, w := describe(got), describe(again); g != w {
				t.Fatalf("part %d:\n%.2000s\nread from scratch\n%.2000s", parts, g, w)
			}
			for _, kf := range r.prev.tenants["vision"].opened {
				texts[kf.read] = true
			}
			if last = got; !got.Unfinished {
				return parts
			}
			if got.Intent("nlp", "other") == nil || len(got.Frozen) != 1 || got.Frozen[0].Path != "intents/vision/" {
				t.Fatalf("part %d: intents %v, frozen %v; want nlp/other and intents/vision/", parts, names(got), got.Frozen)
			}
		}
	}
	if parts := readAllParts(f); parts < 4 {
		t.Errorf("4 kustomizations of 880 kB were read in %d parts, want at least 4", parts)
	}
	parts := readAllParts(f.with("intents/vision/next.yaml", intent("vision", "next", "resources: {cpu: 1}")))
	if want := 4 + 2 + 1; len(texts) != want || last.Intent("vision", "next") == nil || parts > 1 {
		t.Errorf("%d texts were read, want %d; the next change took %d parts, want 1; intents %v", len(texts), want, parts, names(last))
	}
}
