package agent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

const (
	// pollWait is how long a broker is asked to wait for news.
	pollWait = 30 * time.Second
	// silence is after which nobody vouches for a broker's word any more: longer
	// than a poll that finds nothing, and one more that gets no answer.
	silence = 75 * time.Second
	// nudgeRest is between two nudges that a broker is troubled with: what asks
	// for them are slices, and a tenant can make those in a loop.
	nudgeRest = time.Second
)

// word is what one broker said last, and when it last said that it holds.
type word struct {
	in wire.Instructions
	at time.Time
}

// hearing is what the brokers say about this cluster. Of several the one counts
// that is furthest along the ledger, as long as it is heard.
type hearing struct {
	// told is called with the words that count: changed when they are others than before.
	told func(in wire.Instructions, at time.Time, changed bool)

	log *slog.Logger // may be nil

	mu      sync.Mutex
	words   map[string]word
	version string
	// seq is the highest number of the ledger that was heard, and when one that is
	// not below it was heard last.
	seq uint64
	at  time.Time
}

// setBack is for how long nobody may know of a number of the ledger that was heard
// before lower ones count: its operators have set it back.
const setBack = 5 * time.Minute

// after is the highest number of the ledger that was heard.
func (h *hearing) after() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seq
}

// resume takes over the number that an agent before this one was told: lower ones do not
// count, until nobody has known of it for long.
func (h *hearing) resume(seq uint64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seq > h.seq {
		h.seq, h.at = seq, now
	}
}

// behind reports whether a word is of a ledger that was further already: a broker
// that lags gave it. h.mu is held.
func (h *hearing) behind(in *wire.Instructions, now time.Time) bool {
	switch {
	case in.Seq == 0: // it has no numbers
		return false
	case in.Seq >= h.seq:
		h.seq, h.at = in.Seq, now
		return false
	case now.Sub(h.at) < setBack:
		return true
	}
	if h.log != nil {
		h.log.Warn("the ledger was set back: what it says now is taken", "from", h.seq, "to", in.Seq)
	}
	h.seq, h.at = in.Seq, now
	return false
}

// hear takes a broker's word; nil says that the last one still holds.
// It reports whether it took it.
func (h *hearing) hear(broker string, in *wire.Instructions, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.words == nil {
		h.words = map[string]word{}
	}
	w, known := h.words[broker]
	switch {
	case in != nil && h.behind(in, now):
		return false
	case in != nil:
		w.in = *in
	case !known:
		return false
	case w.in.Seq != 0 && w.in.Seq == h.seq:
		h.at = now
	}
	w.at = now
	h.words[broker] = w
	best := w
	for _, name := range slices.Sorted(maps.Keys(h.words)) {
		o := h.words[name]
		if now.Sub(o.at) <= silence && further(&o.in, &best.in) {
			best = o
		}
	}
	changed := best.in.Version != h.version
	h.version = best.in.Version
	h.told(best.in, best.at, changed)
	return true
}

// further reports whether a word is of a ledger further on than another one's.
func further(a, b *wire.Instructions) bool {
	if a.Seq != 0 && b.Seq != 0 {
		return a.Seq > b.Seq
	}
	return a.At.After(b.At.Time)
}

// follower listens to one broker.
type follower struct {
	broker  string
	line    transport.Transport
	hearing *hearing
	now     func() time.Time
	log     *slog.Logger
	// nudges ask for an answer now instead of at the end of the poll.
	nudges chan struct{}
	// nudged is when the broker was last asked because of one.
	nudged time.Time
}

// nudge lets the broker be heard soon: at once, or when the rest since the last
// nudge is over. However many call it, the broker answers once a nudgeRest.
func (f *follower) nudge() {
	select {
	case f.nudges <- struct{}{}:
	default: // it has been asked for already
	}
}

// poll waits for news, or for the answer that there are none: at the end of the
// wait, or soon after a nudge.
func (f *follower) poll(ctx context.Context, since string) (wire.Instructions, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		in  wire.Instructions
		err error
	}
	done := make(chan result, 1)
	go func() {
		in, err := f.line.Instructions(waiting, since, f.hearing.after(), pollWait)
		done <- result{in, err}
	}()
	nudges, rested := f.nudges, (<-chan time.Time)(nil)
	for {
		select {
		case r := <-done:
			return r.in, r.err
		case <-nudges:
			nudges = nil
			rest := time.NewTimer(f.nudged.Add(nudgeRest).Sub(f.now()))
			defer rest.Stop()
			rested = rest.C
		case <-rested:
			f.nudged = f.now()
			cancel()
			if r := <-done; r.err == nil || errors.Is(r.err, transport.ErrUnchanged) {
				return r.in, r.err // it came just then
			}
			return f.line.Instructions(ctx, since, f.hearing.after(), 0)
		}
	}
}

// run listens until the context ends.
func (f *follower) run(ctx context.Context) {
	since, retry := "", time.Duration(0)
	for ctx.Err() == nil {
		in, err := f.poll(ctx, since)
		switch {
		case err == nil && !f.hearing.hear(f.broker, &in, f.now()):
			pause(ctx, lastRetry) // it lags: another answer may be newer
			continue
		case err == nil:
			since = in.Version
		case errors.Is(err, transport.ErrUnchanged):
			f.hearing.hear(f.broker, nil, f.now())
		default:
			if retry == 0 && ctx.Err() == nil {
				f.log.Warn("broker gives no instructions", "broker", f.broker, "error", err)
			}
			retry = min(max(2*retry, firstRetry), lastRetry)
			pause(ctx, retry)
			continue
		}
		if retry > 0 {
			f.log.Info("broker gives instructions again", "broker", f.broker)
		}
		retry = 0
	}
}
