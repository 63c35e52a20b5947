// Package sourced knows the copies of sources on a ledger: what of tenants' own
// repositories (Fleet.spec.sources) is acted on.
//
//	sources/<name>/source.yaml            what was copied: repository, commit, who changed which file
//	sources/<name>/intents/<tenant>/**    the files
//
// Invariants:
//
//   - A copy counts for the tenants of its entry only, whatever lies in it.
//   - A copy without an entry, or whose source.yaml cannot be read, counts for
//     nothing.
//   - Nothing here reaches a network: a decision of the past needs the ledger alone.
//
// The reader of a fleet and the audit call it. All is pure.
package sourced

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
)

// intentsDir is where intents are in a source, as in the fleet repo.
const intentsDir = "intents"

// maxRecord bounds source.yaml, in bytes.
const maxRecord = 4 << 20

// Copy is one source as the ledger has it.
type Copy struct {
	Record *v1alpha1.SourceCopy
	// Tenants of the entry of which the copy has intents.
	Tenants []Tenant
}

// Tenant is a tenant's directory in a copy.
type Tenant struct {
	Name, Path string
	Hash       tree.Hash
}

// Dir is where the copy of a source is.
func Dir(source string) string { return path.Join(v1alpha1.SourcesRoot, source) }

// Split takes a path on the ledger apart: the source, and the path in it; ok: it is
// below a copy.
func Split(p string) (source, below string, ok bool) {
	rest, ok := strings.CutPrefix(p, v1alpha1.SourcesRoot+"/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// Read lists the copies of the entries that a ledger has, in the order of the
// entries. Only failures of the store are errors.
func Read(ledger tree.Tree, entries []v1alpha1.IntentSource) ([]Copy, error) {
	if ledger.IsZero() || len(entries) == 0 {
		return nil, nil
	}
	var out []Copy
	for i := range entries {
		c, err := read(ledger, &entries[i])
		if err != nil {
			return nil, fmt.Errorf("read the copy of source %s: %w", entries[i].Name, err)
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

func read(ledger tree.Tree, e *v1alpha1.IntentSource) (*Copy, error) {
	dir := Dir(e.Name)
	record, err := Record(ledger, e.Name)
	if record == nil || err != nil {
		return nil, err
	}
	c := &Copy{Record: record}
	for _, tenant := range e.Tenants {
		p := path.Join(dir, intentsDir, tenant)
		switch at, err := ledger.Find(p); {
		case errors.Is(err, fs.ErrNotExist), err == nil && at.Kind != tree.Dir:
		case err != nil:
			return nil, err
		default:
			c.Tenants = append(c.Tenants, Tenant{tenant, p, at.Hash})
		}
	}
	return c, nil
}

// Record is source.yaml of a copy, nil when there is none that can be read.
func Record(ledger tree.Tree, source string) (*v1alpha1.SourceCopy, error) {
	if ledger.IsZero() {
		return nil, nil
	}
	content, err := ledger.ReadFile(path.Join(Dir(source), v1alpha1.SourceFile), maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, tree.ErrTooLarge):
		return nil, nil
	case err != nil:
		return nil, err
	}
	record := &v1alpha1.SourceCopy{}
	if genyaml.UnmarshalStrict(content, record) != nil || record.Kind != v1alpha1.KindSourceCopy || record.Metadata.Name != source {
		return nil, nil
	}
	return record, nil
}

// Mismatch is what of a copy is not as its source.yaml states, "" when all is: then
// path is where.
func Mismatch(ledger tree.Tree, record *v1alpha1.SourceCopy) (at, why string, err error) {
	dir := Dir(record.Metadata.Name)
	sub, err := ledger.Sub(dir)
	if err != nil {
		return "", "", err
	}
	stated := map[string]string{}
	for _, f := range record.Files {
		stated[f.Path] = f.Hash
	}
	err = sub.Walk(func(name string, e tree.Entry) error {
		if name == v1alpha1.SourceFile {
			return nil
		}
		is, known := stated[name]
		delete(stated, name)
		if why == "" && (!known || is != e.Hash.String()) {
			at, why = path.Join(dir, name), "its content is not the one that source.yaml states"
			if !known {
				why = "source.yaml does not state it"
			}
		}
		return nil
	})
	if err != nil || why != "" {
		return at, why, err
	}
	for _, f := range record.Files {
		if _, missing := stated[f.Path]; missing {
			return path.Join(dir, f.Path), "it is missing, and source.yaml states it", nil
		}
	}
	return "", "", nil
}

// Changes are what a commit writes so that the copies on one tree become those on
// another.
type Changes struct {
	Puts    map[string][]byte
	Deletes []string
	// Sources whose copies differ.
	Sources []string
	// Trailers name what is copied: "Source: <name> <commit>", "-" for a copy that goes.
	Trailers []string
}

// Trailer names a source in a commit that changes its copy.
const Trailer = "Source"

// Between are the changes from one ledger's tree to another's.
func Between(from, to tree.Tree) (Changes, error) {
	var out Changes
	was, err := from.Sub(v1alpha1.SourcesRoot)
	if err != nil {
		return out, fmt.Errorf("read the copies of sources: %w", err)
	}
	is, err := to.Sub(v1alpha1.SourcesRoot)
	if err != nil || was.Root == is.Root {
		return out, err
	}
	out.Puts = map[string][]byte{}
	touched := map[string]bool{}
	if err := tree.Diff(was, is, func(p string, _, now tree.Entry) error {
		source, _, _ := strings.Cut(p, "/")
		touched[source] = true
		p = path.Join(v1alpha1.SourcesRoot, p)
		if now.Hash.IsZero() {
			out.Deletes = append(out.Deletes, p)
			return nil
		}
		content, err := is.Store.File(now.Hash, 0)
		out.Puts[p] = content
		return err
	}); err != nil {
		return out, fmt.Errorf("copy sources: %w", err)
	}
	out.Sources = slices.Sorted(maps.Keys(touched))
	for _, source := range out.Sources {
		c, err := Record(to, source)
		if err != nil {
			return out, err
		}
		commit := "-"
		if c != nil {
			commit = c.Commit
		}
		out.Trailers = append(out.Trailers, fmt.Sprintf("%s: %s %s", Trailer, source, commit))
	}
	return out, nil
}
