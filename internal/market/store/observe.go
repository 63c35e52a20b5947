package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// observedBy begins the name under which a Heartbeat tells that a cluster's agent
// said again what the store has: no provider's name has a slash.
const observedBy = "observed/"

// seen is what the agent of a cluster saw last, as the store has it.
type seen struct {
	generation wire.Generation // the newest that was written
	digest     string          // of the report without its generation
	version    string
	report     wire.Observed
	size       int64  // packed
	replica    string // that wrote it
	// latest is the highest generation that said this, also where it was not written.
	latest wire.Generation
}

// last is the generation that a newer word must not be below.
func (s *seen) last() wire.Generation {
	if s.latest.Cmp(s.generation) > 0 {
		return s.latest
	}
	return s.generation
}

// Observe implements Store. What has not changed is told by the next Heartbeat.
func (s *Shared) Observe(ctx context.Context, cluster string, report wire.Observed) error {
	if cause := s.cutOff(); cause != nil {
		return cause
	}
	if err := report.Check(); err != nil {
		return fmt.Errorf("what is observed in %s: %w", cluster, err)
	}
	generation := generationOf(report, s.opts.Now())
	if err := s.opts.Market.Check(cluster, generation, nil); err != nil {
		return err
	}
	report, digest, text, why, err := fitSeen(report)
	if err != nil {
		return err
	}
	s.cut(cluster, why)
	looked := false
	for range attempts {
		was := s.seenOf(cluster)
		switch {
		case was != nil && generation.Cmp(was.last()) < 0 && looked:
			return &market.StaleEpochError{Last: was.last()}
		case was != nil && generation.Cmp(was.last()) < 0:
			if err := s.mayLook(observedBy+cluster, "what is seen in "+cluster); err != nil {
				return err
			}
			if err := s.rereadSeen(ctx, cluster); err != nil { // a watch may lag: the object itself tells
				return failed(err)
			}
			looked = true
			continue
		case was != nil && digest == was.digest:
			again := *was
			again.latest = generation
			s.mu.Lock()
			s.setSeen(cluster, &again)
			s.beats.hear(observedBy+cluster, generation)
			s.mu.Unlock()
			return nil
		}
		met, err := s.admitSeen(cluster, len(text))
		if err != nil {
			return err
		}
		o := &marketcrd.Observation{Spec: marketcrd.ObservationSpec{
			Generation: generation.String(), Replica: s.opts.Replica, ObservedAt: metav1.NewTime(s.opts.Now().UTC().Truncate(time.Second)),
			Contracts: int32(min(len(report.Contracts), math.MaxInt32)), Report: text, //nolint:gosec // bounded
		}}
		o.Name = cluster
		if was != nil {
			o.ResourceVersion = was.version
		}
		written, err := s.opts.API.PutObservation(ctx, o)
		s.wrote("observation", cluster, err)
		if err != nil && unmade(err) {
			s.giveBack(met)
		}
		switch {
		case err == nil:
			s.keepSeen(cluster, &seen{generation: generation, digest: digest, version: written.ResourceVersion, report: report, size: int64(len(text)), replica: s.opts.Replica})
			return nil
		case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
			if err := s.rereadSeen(ctx, cluster); err != nil {
				return failed(err)
			}
			looked = true
		default:
			return failed(err)
		}
	}
	return &BusyError{Because: "other replicas write what is seen in cluster " + cluster + " at the same time", After: time.Second}
}

// admitSeen asks the budgets, which are those of lists too.
func (s *Shared) admitSeen(cluster string, size int) (paid, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var replaced int64
	if was := s.seen[cluster]; was != nil {
		replaced = was.size
	}
	takes := s.takes(1, int64(size), replaced)
	return s.paces.admitSeen(cluster, takes, s.opts.Now())
}

// pacedSeen charges a cluster with what another replica wrote of it, as paced does. s.mu
// is held.
func (s *Shared) pacedSeen(cluster string, was, next *seen) {
	if s.link.hears(s.opts.Now()) && next.replica != s.opts.Replica && (was == nil || newer(next.version, was.version)) {
		s.paces.wroteSeen(cluster, next.size, s.opts.Now())
	}
}

// setSeen makes a word, or nil, what the store has of a cluster. s.mu is held.
func (s *Shared) setSeen(cluster string, next *seen) {
	if was := s.seen[cluster]; was != nil {
		s.stored -= was.size
		delete(s.seen, cluster)
	}
	if next != nil {
		s.stored += next.size
		s.seen[cluster] = next
	}
}

// generationOf orders a report; one of an older form by when it came.
func generationOf(report wire.Observed, now time.Time) wire.Generation {
	if g, err := wire.ParseGeneration(report.Generation); err == nil {
		return g
	}
	return wire.Generation{Epoch: uint64(max(now.UnixNano(), 1)), N: 1} //nolint:gosec // above zero
}

// cut logs that not all is told of a cluster, once until all is.
func (s *Shared) cut(cluster, why string) {
	s.mu.Lock()
	was := s.cuts[cluster]
	if delete(s.cuts, cluster); why != "" {
		s.cuts[cluster] = why
	}
	s.mu.Unlock()
	if why != "" && was == "" { // the figures change all the time
		s.opts.Log.Warn("what is seen in a cluster is too much for the other replicas", "cluster", cluster, "why", why)
	}
}

func (s *Shared) seenOf(cluster string) *seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[cluster]
}

// keepSeen takes over what the store has, unless something newer is known, and
// reports whether it is news.
func (s *Shared) keepSeen(cluster string, next *seen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.seen[cluster]
	if was != nil && next.generation.Cmp(was.last()) < 0 {
		if newer(next.version, was.version) && next.digest != was.digest {
			s.doubtSeen(cluster, was, next)
		}
		return false
	}
	s.pacedSeen(cluster, was, next)
	s.setSeen(cluster, next)
	s.link.sees(next.version)
	return was == nil || was.generation != next.generation
}

// doubtSeen notes that another replica wrote something else before a word that was only said
// again here, because the watch lagged: the store lacks that word, so that the next one is
// written whether or not it says the same, and none is said again until then. s.mu is held.
func (s *Shared) doubtSeen(cluster string, was, next *seen) {
	doubted := *was
	doubted.latest, doubted.digest, doubted.version, doubted.size = was.last(), "", next.version, next.size
	s.pacedSeen(cluster, was, next)
	s.setSeen(cluster, &doubted)
	s.link.sees(next.version)
	delete(s.beats.heard, observedBy+cluster)
}

// rereadSeen takes over what the store has now, and tells another replica's newer word:
// the watch finds it known. What cannot be read is replaced by the next write. What
// Heartbeats said again of the same object stays known. The error says that the store
// could not be asked.
func (s *Shared) rereadSeen(ctx context.Context, cluster string) error {
	o, err := s.opts.API.Observation(ctx, cluster)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	var next *seen
	news := false
	if err == nil {
		if next, err = s.readSeen(o); err != nil {
			next = &seen{version: o.ResourceVersion, size: int64(len(o.Spec.Report))}
		}
		news = err == nil && o.Spec.Replica != s.opts.Replica
	}
	s.mu.Lock()
	was := s.seen[cluster]
	news = news && (was == nil || next.generation.Cmp(was.last()) > 0)
	if was != nil && next != nil && was.version == next.version {
		next.latest = was.latest
	}
	if next != nil && err == nil {
		s.pacedSeen(cluster, was, next)
	}
	s.setSeen(cluster, next)
	s.mu.Unlock()
	if news && s.listening() && s.opts.Observed != nil {
		s.opts.Observed(o.Spec.Replica, cluster, next.report)
	}
	return nil
}

// readSeen reads an object of the store. One whose epoch no clock can have made is no
// word: nobody could go above it.
func (s *Shared) readSeen(o *marketcrd.Observation) (*seen, error) {
	if err := s.ours("observation "+o.Name, o); err != nil {
		return nil, err
	}
	generation, err := wire.ParseGeneration(o.Spec.Generation)
	if err != nil {
		return nil, err
	}
	if err := s.opts.Market.Check(o.Name, generation, nil); err != nil {
		return nil, err
	}
	text, err := unzip(o.Spec.Report, maxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("unpack the report: %w", err)
	}
	out := &seen{generation: generation, version: o.ResourceVersion, size: int64(len(o.Spec.Report)), replica: o.Spec.Replica}
	if err := strictjson.Decode(text, &out.report); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if err := out.report.Check(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	out.digest = hex.EncodeToString(sum[:])
	out.report.Generation = generation.String() // it is not in what is kept
	return out, nil
}

// Observation implements Watcher. What there was before this replica listened is
// nobody's present word.
func (w *watching) Observation(o *marketcrd.Observation) {
	s := w.Shared
	next, err := s.readSeen(o)
	s.note("observation "+o.Name, err)
	if forged(err) {
		s.rewriteSeen(o.Name)
	}
	if err != nil {
		return
	}
	if s.keepSeen(o.Name, next) && s.listening() && s.opts.Observed != nil && o.Spec.Replica != s.opts.Replica {
		s.opts.Observed(o.Spec.Replica, o.Name, next.report)
	}
}

// ObservationGone implements Watcher: what was seen is forgotten, so that the next word is
// written whatever its generation and whether or not it says the same.
func (w *watching) ObservationGone(cluster string) {
	s := w.Shared
	s.mu.Lock()
	s.setSeen(cluster, nil)
	delete(s.beats.heard, observedBy+cluster)
	s.mu.Unlock()
	if s.opts.Unobserved != nil {
		s.opts.Unobserved(cluster)
	}
}

// again tells that another replica heard of a cluster again what the store has.
func (s *Shared) again(replica, cluster string, generation wire.Generation) {
	if s.opts.Market.Check(cluster, generation, nil) != nil {
		return
	}
	s.mu.Lock()
	o := s.seen[cluster]
	known := o != nil && generation.Cmp(o.generation) >= 0
	if known && generation.Cmp(o.last()) > 0 {
		again := *o
		again.latest = generation
		s.setSeen(cluster, &again)
	}
	s.mu.Unlock()
	if known && s.opts.Observed != nil {
		report := o.report
		report.Generation = generation.String()
		s.opts.Observed(replica, cluster, report)
	}
}
