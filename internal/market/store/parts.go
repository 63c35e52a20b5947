package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
)

// leave notes parts that no object names any more.
func (s *Shared) leave(was, now []string, at time.Time) {
	for _, name := range was {
		if !slices.Contains(now, name) {
			s.stale[name] = at
		}
	}
	for _, name := range now {
		delete(s.stale, name)
	}
}

// naming are the parts that a version of a provider's object names.
type naming struct {
	version string
	parts   []string
}

// maxNamed bounds how many of them are remembered: the definitions let an object name no
// more. A later version of this program may cut a report into more than this one does.
const maxNamed = 8

// names notes the parts that an object names, whether or not this replica can read the
// report: another one may, so that they are no orphans.
func (s *Shared) names(a *marketcrd.Advertisement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.named[a.Name]; ok && newer(was.version, a.ResourceVersion) {
		return // a watch that lags
	}
	delete(s.named, a.Name)
	if parts := a.Spec.Parts; len(parts) > 0 {
		s.named[a.Name] = naming{a.ResourceVersion, slices.Clone(parts[:min(len(parts), maxNamed)])}
	}
}

// inUse are the parts that an object names. mu is held.
func (s *Shared) inUse() map[string]bool {
	out := map[string]bool{}
	for _, l := range s.lists {
		for _, name := range l.parts {
			out[name] = true
		}
	}
	for _, n := range s.named {
		for _, name := range n.parts {
			out[name] = true
		}
	}
	return out
}

// taken is how much the store has of lists and of what is seen, packed, with the parts
// that are to be deleted, each counted as a whole one. Those of a replica that died count
// once they are found. mu is held.
func (s *Shared) taken() int64 { return s.stored + int64(len(s.stale))*maxObject }

// keptParts is how long parts stay that no object names: a reader may be on them.
const keptParts = time.Minute

// clear deletes parts that nobody names any more.
func (s *Shared) clear(ctx context.Context) error {
	s.mu.Lock()
	now := s.opts.Now()
	named := s.inUse()
	var due []string
	for name, since := range s.stale {
		switch {
		case named[name]:
			delete(s.stale, name)
		case now.Sub(since) >= keptParts:
			due = append(due, name)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(slices.Values(due)) {
		if err := s.opts.API.DeletePart(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		delete(s.stale, name)
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// orphans notes the parts that nobody names at a start: a replica died between
// them and their object.
func (s *Shared) orphans(ctx context.Context) error {
	names, err := s.opts.API.Parts(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.inUse()
	now := s.opts.Now()
	s.link.orphaned = now
	for _, name := range names {
		if _, noted := s.stale[name]; !noted && !known[name] {
			s.stale[name] = now
		}
	}
	return nil
}
