package manifests

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// TestTheNumberHoldsTheBytes: what stands in testdata/renderer-<n>.sum of a golden
// file is what rendering n always gives it. Files that are new there are added by
// -update; a line that is there is changed by nothing but a new number.
func TestTheNumberHoldsTheBytes(t *testing.T) {
	goldens, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(goldens) < 10 {
		t.Fatalf("%d golden files (%v)", len(goldens), err)
	}
	sums := filepath.Join("testdata", fmt.Sprintf("renderer-%d.sum", Renderer))
	held := map[string]string{}
	text, err := os.ReadFile(sums)
	if err != nil && !*update {
		t.Fatalf("%v: write the sums of rendering %d with -update", err, Renderer)
	}
	for line := range strings.Lines(string(text)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		held[name] = sum
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, file := range goldens {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archive.Comment = nil
		sum := fmt.Sprintf("%x", sha256.Sum256(txtar.Format(archive)))
		switch {
		case held[name] == sum:
		case held[name] == "" && *update:
			lines = append(lines, name+" "+sum+"\n")
		case held[name] == "":
			t.Errorf("%s is not in %s: add it with -update", file, sums)
		default:
			t.Errorf("%s is not what rendering %d gave: other bytes need another number (raise Renderer)", file, Renderer)
		}
		delete(held, name)
	}
	for name := range held {
		t.Errorf("%s is gone, which rendering %d gave", name, Renderer)
	}
	if *update {
		slices.Sort(lines)
		if err := os.WriteFile(sums, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRenders: histories from before numbering are judged, newer ones are not.
func TestRenders(t *testing.T) {
	for number, want := range map[int]bool{-1: false, 0: true, Renderer: true, Renderer + 1: false} {
		if Renders(number) != want {
			t.Errorf("Renders(%d) = %t", number, !want)
		}
	}
}

// TestConsumerIsItsPartOfAll: one consumer alone renders as among all.
func TestConsumerIsItsPartOfAll(t *testing.T) {
	elsewhere := contract("nlp", "serve", "bbbb", offload(ns{Name: "nlp", Create: true}))
	elsewhere.Spec.Consumer = "milan"
	elsewhere.Spec.Provider = "paris"
	ix := NewIndex([]*v1alpha1.Contract{contract("vision", "train", "aaaa", offload(ns{Name: "vision", Quota: true})), contract("vision", "train", "cccc", provider("milan")), elsewhere})
	all, err := All(ix, fleet())
	if err != nil {
		t.Fatal(err)
	}
	facts := &Facts{Clusters: fleet()}
	n := 0
	for _, consumer := range ix.Consumers() {
		one, err := facts.Consumer(ix, consumer)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range one.Files {
			if n++; string(all.Files[file]) != string(text) || !strings.HasPrefix(file, Dir(consumer)+"/") {
				t.Errorf("%s of %s differs", file, consumer)
			}
		}
	}
	if n != len(all.Files) || len(ix.Consumers()) != 2 {
		t.Errorf("%d files of %d, consumers %v", n, len(all.Files), ix.Consumers())
	}
}
