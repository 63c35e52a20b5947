package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
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
	record := v1alpha1.SourceCopy{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSourceCopy}, Metadata: v1alpha1.Metadata{Name: name},
	}
	into, files := sourced.Dir(name), map[string][]byte{}
	err = disk.Walk(func(p string, e tree.Entry) error {
		if ext := path.Ext(p); e.Kind != tree.File && e.Kind != tree.Executable || ext != ".yaml" && ext != ".yml" {
			return nil
		}
		content, err := disk.Store.File(e.Hash, 0)
		p = path.Join(intentsDir, p)
		files[path.Join(into, p)] = content
		record.Files = append(record.Files, v1alpha1.SourceCopyFile{Path: p, Hash: e.Hash.String()})
		return err
	})
	if err == nil {
		files[path.Join(into, v1alpha1.SourceFile)], err = genyaml.Marshal(record)
	}
	if err != nil {
		return ledger, fmt.Errorf("--source %s: %w", text, err)
	}
	bare, err := tree.With(ledger, map[string]tree.Entry{into: {}})
	if err != nil {
		return ledger, fmt.Errorf("--source %s: %w", text, err)
	}
	return tree.Overlay(bare, files)
}
