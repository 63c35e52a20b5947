package fleet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// swelling is a kustomization whose replacements copy an intent into itself again
// and again: no count shows it, and its process runs out of memory.
func swelling() string {
	return "resources: [../../../../bases/gpu]\n" + bounded.Bomb("ResourceIntent", "metadata")
}

// recorded is a ledger that lists pieces.
func recorded(t *testing.T, pieces ...v1alpha1.SetAsidePiece) tree.Tree {
	t.Helper()
	text, err := genyaml.Marshal(v1alpha1.SetAside{TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSetAside}, Pieces: pieces})
	if err != nil {
		t.Fatal(err)
	}
	return tree.NewMemory().Build(map[string][]byte{recordFile: text})
}

func readAll(t *testing.T, r *Reader, src Sources) *Fleet {
	t.Helper()
	f, err := r.ReadAll(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func codes(f *Fleet) (out []string) {
	for _, d := range f.Diagnostics {
		out = append(out, d.File+" "+d.Code)
	}
	return out
}

// A kustomization that ends its process twice is set aside in the same read, and
// nothing else is; a reader that finds it on the ledger does not try it.
func TestSetAside_KustomizationThatEndsItsProcessTwice(t *testing.T) {
	bounded.Run(t, bounded.Bounds{CPU: 20e9}, func(t *testing.T) {
		const k = "intents/vision/k/small/"
		bad := kustomized().with(k+"kustomization.yaml", swelling()).build(tree.NewMemory())
		r := NewReader()
		f := readAll(t, r, Sources{Inputs: bad})
		if len(f.NotRead) != 1 || f.NotRead[0].Path != k || f.NotRead[0].Again || f.NotRead[0].Why != "took more than 256 MiB of memory" {
			t.Fatalf("not read: %+v; %v", f.NotRead, diagnostics(f))
		}
		if got, want := codes(f), []string{k + "kustomization.yaml SetAside"}; !slices.Equal(got, want) {
			t.Errorf("diagnostics %v, want %v", got, want)
		}
		if got, want := names(f), []string{"vision/a", "vision/large-extra", "vision/large-train"}; !slices.Equal(got, want) {
			t.Errorf("intents %v, want %v", got, want)
		}
		piece := f.NotRead[0].SetAsidePiece
		other := NewReader()
		g := readAll(t, other, Sources{Inputs: bad, Ledger: recorded(t, piece)})
		if len(other.deaths.count) > 0 || !reflect.DeepEqual(g.NotRead, f.NotRead) || !reflect.DeepEqual(g.Diagnostics, f.Diagnostics) || !reflect.DeepEqual(g.Frozen, f.Frozen) {
			t.Errorf("the ledger's list is not as good as trying: tried %v\n%v\nwant\n%v", other.deaths.count, g.Diagnostics, f.Diagnostics)
		}
		good := kustomized().build(tree.NewMemory())
		if h := readAll(t, other, Sources{Inputs: good, Ledger: recorded(t, piece), Last: g}); len(h.NotRead) > 0 || len(h.Diagnostics) > 0 || len(h.Intents) != 4 {
			t.Errorf("after a change: %v, %v", h.NotRead, h.Diagnostics)
		}
		readAll(t, other, Sources{Inputs: bad, Ledger: recorded(t, piece)})
		if readAll(t, other, Sources{Inputs: bad, Ledger: recorded(t)}); other.deaths.count[piece.Hash] != maxDeaths {
			t.Errorf("lifted, it was tried %d times, want %d", other.deaths.count[piece.Hash], maxDeaths)
		}
	})
}

// What is set aside and lifted again, file, tenant's directory or policy, reads
// as from scratch, and hurts no other.
func TestSetAside_EveryPieceIsLiftedAgain(t *testing.T) {
	all := base().with("intents/vision/b.yaml", intent("vision", "b", "resources: {cpu: 1}"))
	in := all.build(tree.NewMemory())
	whole := readAll(t, NewReader(), Sources{Inputs: in})
	for path, left := range map[string][]string{
		"intents/vision/b.yaml": {"vision/a"},
		"intents/vision/":       {},
		"tenants/vision.yaml":   {"vision/a", "vision/b"},
		"fleet.yaml":            {"vision/a", "vision/b"},
	} {
		e, err := in.Find(strings.TrimSuffix(path, "/"))
		if err != nil {
			t.Fatal(err)
		}
		piece := v1alpha1.SetAsidePiece{Path: path, Hash: e.Hash.String(), Why: "crashed"}
		r := NewReader()
		last := readAll(t, r, Sources{Inputs: in})
		f := readAll(t, r, Sources{Inputs: in, Last: last, Aside: []Unread{{SetAsidePiece: piece}}})
		if got := names(f); !slices.Equal(got, left) || len(f.NotRead) != 1 || f.NotRead[0].Path != path {
			t.Errorf("%s: intents %v, want %v; not read %v", path, got, left, f.NotRead)
		}
		if len(f.Diagnostics) != 1 || f.Diagnostics[0].Code != CodeSetAside || !strings.Contains(f.Diagnostics[0].Message, "--lift "+path) {
			t.Errorf("%s: %v", path, f.Diagnostics)
		}
		if scratch := readAll(t, NewReader(), Sources{Inputs: in, Last: last, Aside: []Unread{{SetAsidePiece: piece}}}); !reflect.DeepEqual(scratch.Diagnostics, f.Diagnostics) || !reflect.DeepEqual(scratch.Frozen, f.Frozen) {
			t.Errorf("%s: from scratch %v %v, got %v %v", path, scratch.Diagnostics, scratch.Frozen, f.Diagnostics, f.Frozen)
		}
		g := readAll(t, r, Sources{Inputs: in, Last: f})
		if !slices.Equal(names(g), names(whole)) || len(g.Diagnostics)+len(g.NotRead)+len(g.Frozen) > 0 {
			t.Errorf("%s: lifted, %v %v", path, names(g), g.Diagnostics)
		}
		piece.Hash = strings.Repeat("0", 40)
		if h := readAll(t, r, Sources{Inputs: in, Last: g, Aside: []Unread{{SetAsidePiece: piece}}}); len(h.NotRead)+len(h.Diagnostics) > 0 {
			t.Errorf("%s: of other content %v", path, h.NotRead)
		}
	}
}
