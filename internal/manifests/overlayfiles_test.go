package manifests

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

var plainManifests = map[string][]byte{
	"kustomization.yaml": []byte("resources: [a.yaml]\n"),
	"a.yaml":             []byte("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: " + quotaName + ", namespace: vision}\nspec: {hard: {cpu: \"1\"}}\n"),
}

// What lies where an overlay should, and is none, is ignored by name.
func TestOverlayOf_WhatIsNoDirectory(t *testing.T) {
	m := tree.NewMemory()
	for name, files := range map[string]map[string][]byte{
		"a file":               {"overlays/rome": []byte("../../intents")},
		"a file for all":       {"overlays": []byte("x")},
		"nothing":              {"x": nil},
		"a directory in place": {"overlays/rome/kustomization.yaml": []byte("commonAnnotations: {team: platform}\n")},
	} {
		t.Run(name, func(t *testing.T) {
			overlay, err := OverlayOf(m.Build(files), "rome")
			if err != nil {
				t.Fatal(err)
			}
			out, problem, err := OverlayFiles("rome", plainManifests, overlay)
			want := ""
			if name == "a file" {
				want = "overlays/rome is ignored: it is not a directory; replace it by one with a kustomization.yaml, or delete it"
			}
			if err != nil || problem != want || len(out) == 0 {
				t.Errorf("got %d files, problem %q, %v, want %q", len(out), problem, err, want)
			}
		})
	}
}

// cloning is a store whose files are new bytes each time, as of a disk.
type cloning struct{ *tree.Memory }

// File clones.
func (c cloning) File(h tree.Hash, limit int64) ([]byte, error) {
	b, err := c.Memory.File(h, limit)
	return bytes.Clone(b), err
}

// One blob under many names is gigabytes, and is not read.
func TestOverlayFiles_TakeLittleMemory(t *testing.T) {
	bounded.Run(t, bounded.Bounds{Memory: 256 << 20}, func(t *testing.T) {
		m := tree.NewMemory()
		under := func(blob []byte, names int) tree.Tree {
			h, entries := m.AddFile(blob), make([]tree.Entry, names)
			for i := range entries {
				entries[i] = tree.Entry{Name: fmt.Sprintf("%d.yaml", i), Kind: tree.File, Hash: h}
			}
			return tree.Tree{Store: cloning{m}, Root: m.AddDir(entries)}
		}
		for name, overlay := range map[string]tree.Tree{
			"large": under(make([]byte, 9<<20), 1), "large together": under(make([]byte, 4<<20-1), 2_000), "many": under(nil, 10_000),
		} {
			out, problem, err := OverlayFiles("rome", plainManifests, overlay)
			if err != nil || len(out) != len(plainManifests) || !strings.HasPrefix(problem, "overlays/rome is ignored: it has more than 5000 files or 8 MiB") {
				t.Errorf("%s: %d files, problem %q, %v", name, len(out), problem, err)
			}
		}
	})
}
