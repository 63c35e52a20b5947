package fleet

import (
	stdctx "context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/parallel"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// copies is the tree whose sources/ hold the copies of sources.
func (s Sources) copies() tree.Tree {
	if s.Copies.IsZero() {
		return s.Ledger
	}
	return s.Copies
}

// readSources walks and parses the copies of sources. What is above the bounds of a
// source is never copied, so they are read whole.
func (r *Reader) readSources(ctx stdctx.Context, now *reading, copies tree.Tree, f *Fleet) error {
	list, err := sourced.Read(copies, f.Policy.Sources)
	if err != nil || len(list) == 0 {
		return err
	}
	now.sourced, now.sources, f.Copies = map[string]*dir{}, map[string][]*dir{}, map[string]*v1alpha1.SourceCopy{}
	s := &scanner{store: copies.Store, aside: r.aside}
	for _, c := range list {
		f.Copies[c.Record.Metadata.Name] = c.Record
		for _, t := range c.Tenants {
			d, err := s.scan(r.prev.sourced[t.Path], t.Path, t.Hash, secSources, false)
			if err != nil {
				return err
			}
			now.sourced[t.Path] = d
			now.sources[t.Name] = append(now.sources[t.Name], d)
		}
	}
	return parallel.Each(ctx, len(s.parse), func(i int) error { return s.parse[i].read(copies.Store, r.programs) })
}

// Sourced says of a path who last changed it in its source, by that source's
// history; ok: it is one of a copy.
func (f *Fleet) Sourced(path string) (commit, author string, ok bool) {
	source, below, ok := sourced.Split(path)
	if !ok {
		return "", "", false
	}
	if c := f.Copies[source]; c != nil {
		if file := c.File(below); file != nil {
			return file.Commit, file.Author, true
		}
	}
	return "", "", true
}

// sources checks the entries of other repositories.
func (c *checker) sources(p place, s *v1alpha1.FleetSpec) {
	if len(s.Sources) > v1alpha1.MaxSources {
		c.errorf(p, "BadValue", "%s: %d sources, and at most %d are read", p, len(s.Sources), v1alpha1.MaxSources)
	}
	names := map[string]bool{}
	for i := range s.Sources {
		e, at := &s.Sources[i], p.in(i)
		c.label(at.in("name"), e.Name)
		if names[e.Name] {
			c.errorf(at.in("name"), "Duplicate", "a source called %s stands above already", e.Name)
		}
		names[e.Name] = true
		if _, err := e.Host(); err != nil {
			c.errorf(at.in("url"), "BadValue", "%s: %v", at.in("url"), err)
		}
		if field, err := e.Forge.Check(); err != nil {
			c.errorf(at.in("forge", field), "BadValue", "%s: %v", at.in("forge", field), err)
		}
		c.branch(at.in("branch"), e.Branch)
		if len(e.Tenants) == 0 {
			c.errorf(at.in("tenants"), "BadValue", "%s is empty; name the tenants whose intents may come from there", at.in("tenants"))
		}
		for j, t := range e.Tenants {
			c.label(at.in("tenants", j), t)
		}
		if e.CredentialsRef != nil {
			c.label(at.in("credentialsRef", "name"), e.CredentialsRef.Name)
		}
		c.signers(at.in("signers"), e.Signers)
		if (s.Verification.Intents == "signed" || s.Verification.Mode == "signed") && len(e.Signers) == 0 {
			c.errorf(at, "BadValue", "%s: intents must be signed (spec.verification), so name who signs commits of this source under signers", at)
		}
	}
}
