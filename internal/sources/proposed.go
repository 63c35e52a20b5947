package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// Proposed is a ledger's tree with a directory in place of the copy of a source: what a
// pull request of the source would bring. text is NAME=DIR, empty for none. Who may
// change what is not looked at.
func Proposed(ledger tree.Tree, text string) (tree.Tree, error) {
	if text == "" {
		return ledger, nil
	}
	name, dir, ok := strings.Cut(text, "=")
	if !ok || name == "" || dir == "" || strings.Contains(name, "/") {
		return ledger, fmt.Errorf("--source %s: write NAME=DIR, the source's name in fleet.yaml and a checkout of it", text)
	}
	disk, err := tree.FromDisk(path.Join(dir, intentsDir), v1alpha1.MaxSourceFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s has no directory %s", dir, intentsDir)
	}
	if err != nil {
		return ledger, fmt.Errorf("--source %s: %w", text, err)
	}
	files := map[string][]byte{}
	err = disk.Walk(func(p string, e tree.Entry) error {
		if ext := path.Ext(p); e.Kind != tree.File && e.Kind != tree.Executable || ext != ".yaml" && ext != ".yml" {
			return nil
		}
		content, err := disk.Store.File(e.Hash, 0)
		files[path.Join(intentsDir, p)] = content
		return err
	})
	if err == nil {
		ledger, err = Replaced(ledger, name, files)
	}
	if err != nil {
		return ledger, fmt.Errorf("--source %s: %w", text, err)
	}
	return ledger, nil
}

// Replaced is a ledger's tree with other files, by path in the source, in place of the
// copy of a source. Who changed them is not stated.
func Replaced(ledger tree.Tree, name string, files map[string][]byte) (tree.Tree, error) {
	record := v1alpha1.SourceCopy{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSourceCopy}, Metadata: v1alpha1.Metadata{Name: name},
	}
	into, puts := sourced.Dir(name), map[string][]byte{}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		puts[path.Join(into, p)] = files[p]
		record.Files = append(record.Files, v1alpha1.SourceCopyFile{Path: p, Hash: tree.BlobHash(files[p]).String()})
	}
	text, err := genyaml.Marshal(record)
	if err != nil {
		return ledger, fmt.Errorf("write what a source proposes: %w", err)
	}
	puts[path.Join(into, v1alpha1.SourceFile)] = text
	bare, err := tree.With(ledger, map[string]tree.Entry{into: {}})
	if err != nil {
		return ledger, fmt.Errorf("lay a proposal over the ledger: %w", err)
	}
	return tree.Overlay(bare, puts)
}
