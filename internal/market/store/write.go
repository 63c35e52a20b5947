package store

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// attempts bounds how often a write is tried that others are faster with.
const attempts = 5

// put writes a list, and makes this market hear it when the store has it.
func (s *Shared) put(ctx context.Context, r Report, p packed) error {
	next := &list{generation: r.Generation, digest: p.digest, size: int64(len(p.bytes)), replica: s.opts.Replica, content: r.Content}
	read := false // the object itself was read
	if s.isLost(r.Cluster) {
		s.reread(ctx, r.Cluster)
	}
	for range attempts {
		was := s.known(r.Cluster)
		if was != nil && next.older(was) {
			switch {
			case was.generation == next.generation: // sent again
				return s.heardHere(r.Cluster, was)
			case read:
				return &market.StaleEpochError{Last: was.generation}
			}
			if err := s.mayLook(r.Cluster, "the list of "+r.Cluster); err != nil {
				return err
			}
			s.reread(ctx, r.Cluster)
			read = true
			continue
		}
		met, err := s.admit(r, was, next, p.objects())
		if err != nil {
			if was != nil && was.digest == next.digest { // it says what the store has, under another number
				return nil
			}
			return err
		}
		made, err := s.write(ctx, r, p, was, next)
		if !made {
			s.giveBack(met)
		}
		switch {
		case err == nil:
			return s.written(r.Cluster, next)
		case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
			s.reread(ctx, r.Cluster)
			read = true
		default:
			if was != nil && refusedBy(err) != nil {
				s.vouchHere(r)
			}
			return failed(err)
		}
	}
	return &BusyError{Because: "other replicas take reports of " + r.Cluster + " at the same time", After: time.Second}
}

// vouchHere notes that a provider is heard whose list the store has not: it is not
// silent, and sells nothing, in no replica's market.
func (s *Shared) vouchHere(r Report) {
	s.mu.Lock()
	s.beats.hear(r.Cluster, r.Generation)
	s.mu.Unlock()
	s.opts.Market.Vouch(r.Cluster)
}

// admit asks the budgets. A provider that has to wait is heard nevertheless: its list is
// kept as it was, but sells nothing where the new one takes something back.
func (s *Shared) admit(r Report, was, next *list, objects int) (paid, error) {
	s.mu.Lock()
	var content *wire.FlavorReport
	var replaced int64
	if was != nil {
		content, replaced = was.content, was.size
	}
	takes := s.takes(objects, next.size, replaced)
	met, err := s.paces.admit(r.Cluster, content, next.content, takes, s.opts.Now())
	s.mu.Unlock()
	switch {
	case err == nil || was == nil:
	case urgent(content, next.content):
		s.vouchHere(r)
	default:
		if told := s.heardHere(r.Cluster, was); told != nil {
			return nil, told
		}
	}
	return met, err
}

// giveBack returns what a write was to cost that was not made.
func (s *Shared) giveBack(met paid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	met.giveBack(s.opts.Now())
}

// unmade reports whether an error of a write says that it was not made.
func unmade(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) || refusedBy(err) != nil
}

// unchanged is nil if the object of a provider is still the one that is known: parts for a
// head that another replica is faster with would be in vain.
func (s *Shared) unchanged(ctx context.Context, provider string, was *list) error {
	a, err := s.opts.API.Advertisement(ctx, provider)
	switch {
	case errors.Is(err, ErrNotFound) && was == nil:
		return nil
	case err == nil && (was == nil || a.ResourceVersion != was.version):
		return ErrConflict
	}
	return err
}

// write writes the parts and then the object that names them. made: something of it may
// be in the store.
func (s *Shared) write(ctx context.Context, r Report, p packed, was, next *list) (made bool, err error) {
	a := &marketcrd.Advertisement{}
	a.Name = r.Cluster
	if was != nil {
		a.ResourceVersion = was.version
	}
	now := s.opts.Now()
	a.Spec = marketcrd.AdvertisementSpec{
		Generation: r.Generation.String(), Replica: s.opts.Replica, Certificate: r.Certificate, ReportedAt: metav1.NewTime(now.UTC().Truncate(time.Second)),
		Summary: summaryOf(r.Content), Digest: p.digest,
	}
	parts := p.parts(r.Cluster, r.Generation)
	if len(parts) > 0 {
		if err := s.unchanged(ctx, r.Cluster, was); err != nil {
			return false, err
		}
	}
	defer func() {
		if made = err == nil || len(a.Spec.Parts) > 0 || !unmade(err); err != nil { // no object names its parts
			s.mu.Lock()
			s.leave(a.Spec.Parts, nil, s.opts.Now())
			s.mu.Unlock()
		}
	}()
	for _, part := range parts {
		err := s.opts.API.PutPart(ctx, part)
		if errors.Is(err, ErrConflict) { // one of that name has the same in it
			err = nil
		}
		s.wrote("part", r.Cluster, err)
		if err != nil {
			return false, err
		}
		a.Spec.Parts = append(a.Spec.Parts, part.Name)
	}
	if len(a.Spec.Parts) == 0 {
		a.Spec.Report = p.bytes
	}
	written, err := s.opts.API.PutAdvertisement(ctx, a)
	s.wrote("advertisement", r.Cluster, err)
	if err != nil {
		return false, err
	}
	next.version, next.parts = written.ResourceVersion, a.Spec.Parts
	s.mu.Lock()
	delete(s.lost, r.Cluster)
	s.paces.written[r.Cluster] = now
	s.beats.hear(r.Cluster, r.Generation)
	if was != nil {
		s.leave(was.parts, next.parts, now)
	}
	s.mu.Unlock()
	return true, nil
}

// written makes the market hear a list that this replica wrote, unless a newer one is
// known by now.
func (s *Shared) written(provider string, l *list) error {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.keep(provider, l)
	if is := s.known(provider); is != nil && is.generation == l.generation {
		l = is // written again under this generation, by another replica
	}
	return current(s.tell(provider, l, here))
}

// paced notes that a list was written, by whichever replica: all have one budget of a
// provider. mu is held. was is what was known before. What was written before this replica
// listened is not counted.
func (s *Shared) paced(provider string, was, l *list) {
	if !s.link.hears(s.opts.Now()) || was != nil && !newer(l.version, was.version) {
		return
	}
	now := s.opts.Now()
	s.paces.written[provider] = now
	if l.replica != s.opts.Replica { // which has paid
		s.paces.wrote(provider, was, l, now)
	}
}
