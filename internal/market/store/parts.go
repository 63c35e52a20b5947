package store

import (
	"context"
	"errors"
	"slices"
	"time"
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

// keptParts is how long parts stay that no object names: a reader may be on them.
const keptParts = time.Minute

// clear deletes parts that nobody names any more.
func (s *Shared) clear(ctx context.Context) error {
	s.mu.Lock()
	now := s.opts.Now()
	named := map[string]bool{}
	for _, l := range s.lists {
		for _, name := range l.parts {
			named[name] = true
		}
	}
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
	known := map[string]bool{}
	for _, l := range s.lists {
		for _, name := range l.parts {
			known[name] = true
		}
	}
	now := s.opts.Now()
	s.link.orphaned = now
	for _, name := range names {
		if _, noted := s.stale[name]; !noted && !known[name] {
			s.stale[name] = now
		}
	}
	return nil
}
