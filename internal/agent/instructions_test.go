package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/agent/within"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// said is a word: version v of the ledger at so many seconds.
func said(v string, at int) *wire.Instructions {
	return &wire.Instructions{Version: v, At: v1alpha1.TimeOf(epoch.Add(time.Duration(at) * time.Second))}
}

// Of several brokers the one counts that is furthest along, as long as it is
// heard.
func TestTheNewestWordCounts(t *testing.T) {
	var got []string
	h := &hearing{told: func(in wire.Instructions, at time.Time, changed bool) {
		got = append(got, fmt.Sprintf("%s %d %t", in.Version, int(at.Sub(epoch.Time).Seconds()), changed))
	}}
	steps := []struct {
		why, broker string
		in          *wire.Instructions
		now         int
		want        string
	}{
		{"nothing follows from a broker that has said nothing", "b", nil, 0, ""},
		{"the first word", "a", said("v1", 10), 1, "v1 1 true"},
		{"one that lags is a sign of life of itself alone", "b", said("v0", 5), 2, "v1 1 false"},
		{"it still holds", "a", nil, 3, "v1 3 false"},
		{"the one that lagged is ahead", "b", said("v2", 20), 4, "v2 4 true"},
		{"the other has not heard of it", "a", nil, 60, "v2 4 false"},
		{"the one that was ahead is silent: what is heard counts", "a", nil, 90, "v1 90 true"},
		{"it comes back", "b", nil, 100, "v2 100 true"},
	}
	for _, s := range steps {
		got = nil
		h.hear(s.broker, s.in, epoch.Add(time.Duration(s.now)*time.Second))
		if text := strings.Join(got, ","); text != s.want {
			t.Errorf("%s: got %q, want %q", s.why, text, s.want)
		}
	}
}

// Behind one address stand several replicas, and one may lag: what it says of an
// older ledger does not count, until nobody has known of the newer one for long.
func TestNeverGoesBack(t *testing.T) {
	var got []string
	h := &hearing{log: quiet, told: func(in wire.Instructions, _ time.Time, _ bool) { got = append(got, in.Version) }}
	numbered := func(v string, seq uint64, at int) *wire.Instructions {
		in := said(v, at)
		in.Seq = seq
		return in
	}
	for _, s := range []struct {
		why  string
		in   *wire.Instructions
		now  time.Duration
		want string
	}{
		{"the first word", numbered("v1", 7, 10), time.Second, "v1"},
		{"a replica that lags", numbered("v0", 6, 9), 2 * time.Second, ""},
		{"one that lags and whose clock is ahead", numbered("v0", 6, 99), 3 * time.Second, ""},
		{"the next", numbered("v2", 8, 11), 4 * time.Second, "v2"},
		{"it still holds", nil, 4 * time.Minute, "v2"},
		{"lower, four minutes after that", numbered("v1", 7, 10), 8 * time.Minute, ""},
		{"lower for longer than anybody lags: the ledger was set back", numbered("v1", 7, 10), 10 * time.Minute, "v1"},
	} {
		got = nil
		h.hear("one address", s.in, epoch.Add(s.now))
		if text := strings.Join(got, ","); text != s.want {
			t.Errorf("%s: got %q, want %q", s.why, text, s.want)
		}
	}
	if h.after() != 7 {
		t.Errorf("asks for what follows %d", h.after())
	}
}

// script answers polls one after the other.
type script struct {
	transport.Transport
	answers []func() (wire.Instructions, error)
	asked   []string
	stop    context.CancelFunc
}

func (s *script) Instructions(ctx context.Context, since string, _ uint64, _ time.Duration) (wire.Instructions, error) {
	s.asked = append(s.asked, since)
	if len(s.answers) == 0 {
		s.stop()
		return wire.Instructions{}, ctx.Err()
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next()
}

// Polls go on after trouble, from the version at hand, and not at once.
func TestFollowerGoesOnAfterTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fails := func() (wire.Instructions, error) { return wire.Instructions{}, errors.New("connection refused") }
		line := &script{stop: cancel, answers: []func() (wire.Instructions, error){
			fails, fails,
			func() (wire.Instructions, error) { return *said("v1", 1), nil },
			func() (wire.Instructions, error) { return wire.Instructions{}, transport.ErrUnchanged },
			fails,
			func() (wire.Instructions, error) { return *said("v2", 2), nil },
		}}
		var versions []string
		h := &hearing{told: func(in wire.Instructions, _ time.Time, changed bool) {
			if changed {
				versions = append(versions, in.Version)
			}
		}}
		began := time.Now()
		f := &follower{broker: "a", line: line, hearing: h, now: time.Now, log: slog.New(slog.DiscardHandler)}
		f.run(ctx)
		if !slices.Equal(versions, []string{"v1", "v2"}) || !slices.Equal(line.asked, []string{"", "", "", "v1", "v1", "v1", "v2"}) {
			t.Errorf("heard %v, asked from %v", versions, line.asked)
		}
		if took := time.Since(began); took != 2*firstRetry+2*firstRetry {
			t.Errorf("waited %s", took)
		}
	})
}

func TestReasonsFitAReport(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"as it is":  {"flavor h100 has 3 left", "flavor h100 has 3 left"},
		"lines":     {"a\nb\tc\x07d  e", "a b c d e"},
		"no text":   {"a\xffb", "a?b"},
		"very long": {strings.Repeat("word ", 200), strings.TrimSpace(strings.Repeat("word ", 101)) + "..."},
		"one word":  {strings.Repeat("é", 400), strings.Repeat("é", 254) + "..."},
	} {
		if got := within.Reason(c.in); got != c.want || len(got) > 512 {
			t.Errorf("%s: %d bytes %q", name, len(got), got)
		}
	}
}

// patient answers after the wait, unless it is asked not to.
type patient struct {
	transport.Transport
	waits []time.Duration
}

func (p *patient) Instructions(ctx context.Context, _ string, _ uint64, wait time.Duration) (wire.Instructions, error) {
	p.waits = append(p.waits, wait)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return wire.Instructions{}, ctx.Err()
	case <-timer.C:
		return wire.Instructions{}, transport.ErrUnchanged
	}
}

func TestANudgeIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := &patient{}
		f := &follower{line: line, now: time.Now, nudges: make(chan struct{}, 1), hearing: &hearing{}}
		time.AfterFunc(time.Second, f.nudge)
		began := time.Now()
		if _, err := f.poll(t.Context(), ""); !errors.Is(err, transport.ErrUnchanged) {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second || !slices.Equal(line.waits, []time.Duration{pollWait, 0}) {
			t.Errorf("answered after %s, polled for %v", took, line.waits)
		}
	})
}

// Slices that nobody's contract stands for are asked about at the brokers. A
// tenant who makes them in a loop must not make the agent ask in one.
func TestManyNudgesAreFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		line := &patient{}
		heard := 0
		f := &follower{
			line: line, now: time.Now, nudges: make(chan struct{}, 1), log: quiet,
			hearing: &hearing{told: func(wire.Instructions, time.Time, bool) { heard++ }},
		}
		f.hearing.hear("", said("v1", 0), time.Now())
		done := make(chan struct{})
		go func() {
			defer close(done)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				f.nudge()
				<-tick.C
			}
		}()
		f.run(ctx)
		<-done
		short := 0
		for _, wait := range line.waits {
			if wait == 0 {
				short++
			}
		}
		if limit := int(time.Minute/nudgeRest) + 1; short > limit || short < limit/2 {
			t.Errorf("60,000 nudges in a minute made %d questions, want at most %d and not much fewer", short, limit)
		}
		if heard < short {
			t.Errorf("of %d answers %d were heard", short, heard)
		}
	})
}
