package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of pruning: for how long a cluster is out of the fleet before what the store has
// of it is deleted, and how many clusters' at a time.
const (
	removedFor   = 10 * time.Minute
	prunedAtOnce = 100
)

// Prune implements Store: it deletes the Advertisement and the Observation of each cluster that is not known and
// has not been for ten minutes of this replica's clock, if it decides, and forgets them. A cluster
// whose file cannot be read is known. The error says what could not be deleted.
func (s *Shared) Prune(ctx context.Context, decides bool, known func(cluster string) bool) error {
	s.opts.Market.Prune(known)
	due := s.strangers(known)
	var errs []error
	for _, cluster := range due {
		if decides {
			if err := s.deleteOf(ctx, cluster); err != nil {
				errs = append(errs, err)
				continue
			}
			s.opts.Log.Info("what the market's store had of a cluster is deleted: it is not in the fleet", "cluster", cluster)
		}
		s.forget(cluster)
	}
	return errors.Join(errs...)
}

// strangers are clusters that have been unknown for long enough, in order.
func (s *Shared) strangers(known func(cluster string) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	there := map[string]bool{}
	for cluster := range s.lists {
		there[cluster] = true
	}
	for cluster := range s.seen {
		there[cluster] = true
	}
	for object := range s.bad {
		if kind, cluster, _ := strings.Cut(object, " "); kind == "advertisement" || kind == "observation" {
			there[cluster] = true
		}
	}
	maps.DeleteFunc(s.removed, func(cluster string, _ time.Time) bool { return !there[cluster] || known(cluster) })
	var due []string
	for _, cluster := range slices.Sorted(maps.Keys(there)) {
		since, noted := s.removed[cluster]
		switch {
		case known(cluster):
		case !noted:
			s.removed[cluster] = now
		case now.Sub(since) >= removedFor && len(due) < prunedAtOnce:
			due = append(due, cluster)
		}
	}
	return due
}

// deleteOf deletes a cluster's objects as they are now. That there is none, or that
// somebody writes them just then, is no error: the next time tells.
func (s *Shared) deleteOf(ctx context.Context, cluster string) error {
	a, err := s.opts.API.Advertisement(ctx, cluster)
	if err == nil {
		err = s.opts.API.DeleteAdvertisement(ctx, cluster, a.ResourceVersion)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	o, err := s.opts.API.Observation(ctx, cluster)
	if err == nil {
		err = s.opts.API.DeleteObservation(ctx, cluster, o.ResourceVersion)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// forget drops what is known of a cluster's objects. Parts of its report go as those that
// nobody names.
func (s *Shared) forget(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists[cluster]; l != nil {
		s.leave(l.parts, nil, s.opts.Now())
	}
	s.set(cluster, nil)
	s.setSeen(cluster, nil)
	delete(s.lost, cluster)
	delete(s.doubts, cluster)
	delete(s.removed, cluster)
	delete(s.cuts, cluster)
	delete(s.beats.heard, cluster)
	delete(s.beats.heard, observedBy+cluster)
	for _, kind := range []string{"advertisement ", "observation ", "part "} {
		delete(s.bad, kind+cluster)
		delete(s.refused, kind+cluster)
	}
	delete(s.named, cluster)
	s.paces.forget(cluster)
}
