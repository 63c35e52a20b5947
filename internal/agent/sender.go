package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Waits after a report that did not arrive. The longest is short: a daemon that
// has just started is deaf until its providers are heard.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// reporter carries one report to one broker; a transport.Transport is one.
type reporter interface {
	Put(ctx context.Context, g wire.Generation, packed []byte, honoured uint64) error
}

// sender reports to one broker: in full after a change, without a body while
// nothing changes.
type sender struct {
	broker   string
	line     reporter
	board    *board
	interval time.Duration
	now      func() time.Time
	log      *slog.Logger
	observe  func(broker, result string)

	generation wire.Generation
	version    uint64 // of the list that generation stands for
	known      bool   // the broker has acknowledged that list under that generation
	retry      time.Duration
}

// run reports until the context ends.
func (s *sender) run(ctx context.Context) {
	changed := s.board.subscribe()
	s.generation = wire.Generation{Epoch: uint64(s.now().UnixNano())}
	timer := time.NewTimer(s.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if s.retry > 0 {
				continue // the broker does not listen; the retry will carry the newest list
			}
		case <-timer.C:
		}
		timer.Reset(s.send(ctx))
	}
}

// send reports once and returns how long to wait before the next report.
func (s *sender) send(ctx context.Context) time.Duration {
	l := s.board.newest()
	if l == nil {
		return s.interval
	}
	// A broker may answer once that it wants another form of the same report.
	for range 3 {
		err := s.put(ctx, l)
		if err == nil {
			s.settle("accepted", nil)
			return s.interval
		}
		if ctx.Err() != nil {
			return s.interval
		}
		if wait := paced(err); wait > 0 {
			s.settle("paced", nil)
			return min(wait, s.interval)
		}
		if !s.adapt(err) {
			s.settle("failed", err)
			s.beginAgain()
			break
		}
	}
	s.retry = min(max(2*s.retry, firstRetry), lastRetry)
	return s.retry
}

// paced is for how long the broker asks to gather what changes: it has heard us,
// and goes on with the list that it has. Zero is another error.
func paced(err error) time.Duration {
	var refusal *wire.Refusal
	if errors.As(err, &refusal) && refusal.Body.Reason == wire.ReasonPaced {
		return max(refusal.RetryAfter, time.Second)
	}
	return 0
}

// put sends a list in the shortest form that the broker will understand.
func (s *sender) put(ctx context.Context, l *list) error {
	if l.version != s.version {
		s.generation.N++
		s.version, s.known = l.version, false
	}
	if s.known {
		return s.line.Put(ctx, s.generation, nil, 0)
	}
	if err := s.line.Put(ctx, s.generation, l.packed, l.honoured); err != nil {
		return err
	}
	s.known = true
	return nil
}

// adapt changes what is sent next as the broker asks, and reports whether to
// send it at once.
func (s *sender) adapt(err error) bool {
	var stale *transport.StaleError
	switch {
	case errors.Is(err, transport.ErrUnknownBase):
		// After a full list this makes no sense: do not insist.
		again := s.known
		s.known = false
		s.observe(s.broker, "unknown_base")
		return again
	case errors.As(err, &stale):
		s.generation = wire.Generation{Epoch: max(stale.Last.Epoch+1, uint64(s.now().UnixNano())), N: 1}
		s.known = false
		s.observe(s.broker, "stale")
		return true
	}
	return false
}

// ownEpochs is how far our epoch may be ahead of our clock and still be kept when a
// report fails.
const ownEpochs = 24 * time.Hour

// beginAgain gives an epoch up that our clock did not make: it was wrong at the
// start, or a broker that means harm asked to go above one that no other takes. Where
// it was right, the next answer names it again.
func (s *sender) beginAgain() {
	if now := s.now(); s.generation.Epoch > uint64(now.Add(ownEpochs).UnixNano()) {
		s.generation, s.known = wire.Generation{Epoch: uint64(now.UnixNano()), N: 1}, false
	}
}

// settle counts a result and logs when it is another than the last.
func (s *sender) settle(result string, err error) {
	s.observe(s.broker, result)
	switch {
	case err != nil && s.retry == 0:
		s.log.Warn("broker does not take reports", "broker", s.broker, "error", err)
	case err == nil && s.retry > 0:
		s.log.Info("broker takes reports again", "broker", s.broker, "generation", s.generation.String())
	}
	if err == nil {
		s.retry = 0
	}
}
