// Package copied judges what a commit does to the copies of sources on a ledger.
//
// A decision is made again from its commit's own copies. So each must be what its
// source.yaml states, be of an entry of the inputs that the commit acted on, and be
// named by the commit's trailers.
//
// It is pure; the audit calls it for each commit of the daemon's.
package copied

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// Fault is what is wrong with a copy, and where.
type Fault struct{ Path, Why string }

// Commit is what a commit does.
type Commit struct {
	// After is the ledger's tree after it.
	After tree.Tree
	// Changed are the paths that differ.
	Changed []string
	// Said are its trailers Source.
	Said []string
	// Policy of the inputs that it acted on; nil: not known.
	Policy *v1alpha1.FleetSpec
}

// Judge lists what is wrong. The error is one of reading.
func Judge(c Commit) ([]Fault, error) {
	touched := map[string]bool{}
	for _, p := range c.Changed {
		if source, _, ok := sourced.Split(p); ok {
			touched[source] = true
		}
	}
	if len(touched) == 0 && len(c.Said) == 0 {
		return nil, nil
	}
	var out []Fault
	due := map[string]bool{}
	for _, source := range slices.Sorted(maps.Keys(touched)) {
		commit, faults, err := judge(c, source)
		if err != nil {
			return nil, fmt.Errorf("read the copy of source %s: %w", source, err)
		}
		out = append(out, faults...)
		due[source+" "+commit] = true
	}
	said := map[string]bool{}
	for _, t := range c.Said {
		said[t] = true
	}
	if !maps.Equal(said, due) {
		out = append(out, Fault{v1alpha1.SourcesRoot, fmt.Sprintf("Source says %q, what it changes is %q", slices.Sorted(maps.Keys(said)), slices.Sorted(maps.Keys(due)))})
	}
	return out, nil
}

func judge(c Commit, source string) (commit string, out []Fault, err error) {
	dir := sourced.Dir(source)
	left, err := c.After.Sub(dir)
	if err != nil {
		return "", nil, err
	}
	if entries, err := left.Entries(); err != nil || len(entries) == 0 {
		if c.Policy != nil && c.Policy.Source(source) != nil {
			out = append(out, Fault{dir, "deleted, and fleet.yaml names the source"})
		}
		return "-", out, err
	}
	record, err := sourced.Record(c.After, source)
	if err != nil {
		return "", nil, err
	}
	if record == nil {
		return "-", []Fault{{dir + "/" + v1alpha1.SourceFile, "it is missing, or is no SourceCopy of this source"}}, nil
	}
	if _, err := tree.ParseHash(record.Commit); err != nil {
		out = append(out, Fault{dir + "/" + v1alpha1.SourceFile, fmt.Sprintf("commit %q is none", record.Commit)})
	}
	at, why, err := sourced.Mismatch(c.After, record)
	if err != nil {
		return "", nil, err
	}
	if why != "" {
		out = append(out, Fault{at, why})
	}
	if c.Policy == nil {
		return record.Commit, out, nil
	}
	e := c.Policy.Source(source)
	if !record.Of(e) {
		return record.Commit, append(out, Fault{dir, fmt.Sprintf("it is of %s, branch %s, which fleet.yaml does not name under sources", record.URL, record.Branch)}), nil
	}
	for _, f := range record.Files {
		parts := strings.Split(f.Path, "/")
		if len(parts) < 3 || parts[0] != "intents" || !slices.Contains(e.Tenants, parts[1]) {
			out = append(out, Fault{dir + "/" + f.Path, "its entry in fleet.yaml does not allow it"})
		}
	}
	if len(e.Signers) > 0 && record.Signer == "" {
		out = append(out, Fault{dir + "/" + v1alpha1.SourceFile, "its entry in fleet.yaml names signers, and it states none"})
	}
	return record.Commit, out, nil
}
