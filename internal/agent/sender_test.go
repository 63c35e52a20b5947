package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

var quiet = slog.New(slog.DiscardHandler)

// broker remembers what it was sent, answers as a market would, and fails when
// told to.
type broker struct {
	lines logtest.Lines // what the agent logs of it
	t     *testing.T
	mu    sync.Mutex
	// last is the generation of the list it knows, zero for none.
	last wire.Generation
	// fail answers instead, while it is set.
	fail error
	got  []sent
}

// sent is one report as it arrived.
type sent struct {
	at      time.Duration
	g       wire.Generation
	flavors []string
	full    bool
}

func (b *broker) Put(_ context.Context, g wire.Generation, packed []byte, _ uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := sent{at: time.Since(start), g: g, full: packed != nil}
	if s.full {
		s.flavors = names(b.t, packed)
	}
	b.got = append(b.got, s)
	switch {
	case b.fail != nil:
		return b.fail
	case g.Cmp(b.last) < 0:
		return &transport.StaleError{Last: b.last}
	case !s.full && g != b.last:
		return transport.ErrUnknownBase
	}
	b.last = g
	return nil
}

func (b *broker) take() []sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.got
	b.got = nil
	return out
}

func (b *broker) set(change func(*broker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// start is when the virtual clock of a test stood at 0.
var start time.Time

func names(t *testing.T, packed []byte) []string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	var report wire.FlavorReport
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, f := range report.Flavors {
		out = append(out, f.Metadata.Name)
	}
	return out
}

// scene runs a sender to a broker on a virtual clock.
func scene(t *testing.T, act func(b *broker, post func(names ...string), results func() map[string]int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start = time.Now()
		b, hung := &broker{t: t}, &board{}
		log := b.lines.Logger()
		var mu sync.Mutex
		counts := map[string]int{}
		s := &sender{broker: "b", line: b, board: hung, interval: 30 * time.Second, now: time.Now, log: log, observe: func(_, result string) {
			mu.Lock()
			defer mu.Unlock()
			counts[result]++
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.run(ctx) }()
		synctest.Wait()
		act(b, func(names ...string) {
			t.Helper()
			flavors := make([]v1alpha1.Flavor, len(names))
			for i, name := range names {
				flavors[i].Metadata.Name = name
			}
			if _, err := hung.post(flavors, nil, 0); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}, func() map[string]int {
			mu.Lock()
			defer mu.Unlock()
			out := counts
			counts = map[string]int{}
			return out
		})
		cancel()
		<-done
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestAReportAtOnceAndThenEveryInterval(t *testing.T) {
	scene(t, func(b *broker, post func(...string), results func() map[string]int) {
		pass(time.Minute)
		if got := b.take(); len(got) != 0 {
			t.Fatalf("before anything is known: sent %+v", got)
		}
		post("a")
		first := b.take()
		if len(first) != 1 || !first[0].full || first[0].at != time.Minute || first[0].g.N != 1 || first[0].g.Epoch == 0 {
			t.Fatalf("first: sent %+v", first)
		}
		post("a") // the same again is no change
		pass(90 * time.Second)
		got := b.take()
		if len(got) != 3 {
			t.Fatalf("in three intervals: sent %+v", got)
		}
		for _, s := range got {
			if s.full || s.g != first[0].g {
				t.Errorf("unchanged: sent %+v", s)
			}
		}
		post("a", "b")
		post()
		got = b.take()
		if len(got) != 2 || !got[0].full || got[0].g.N != 2 || got[1].g.N != 3 || len(got[1].flavors) != 0 || !got[1].full {
			t.Errorf("changes: sent %+v", got)
		}
		if r := results(); r["accepted"] != 6 || len(r) != 1 {
			t.Errorf("counted %v", r)
		}
	})
}

func TestABrokerThatForgotIsSentTheFullList(t *testing.T) {
	scene(t, func(b *broker, post func(...string), results func() map[string]int) {
		post("a")
		b.take()
		b.set(func(b *broker) { b.last = wire.Generation{} })
		pass(30 * time.Second)
		got := b.take()
		if len(got) != 2 || got[0].full || !got[1].full || got[1].g != got[0].g || got[1].at != got[0].at {
			t.Errorf("sent %+v", got)
		}
		if r := results(); r["unknown_base"] != 1 {
			t.Errorf("counted %v", r)
		}
	})
}

func TestAnAgentGoesAboveALaterEpoch(t *testing.T) {
	scene(t, func(b *broker, post func(...string), _ func() map[string]int) {
		post("a")
		later := wire.Generation{Epoch: b.take()[0].g.Epoch + uint64(time.Hour), N: 7} // a clock that was wrong
		b.set(func(b *broker) { b.last = later })
		post("b")
		got := b.take()
		if len(got) != 2 || got[1].g != (wire.Generation{Epoch: later.Epoch + 1, N: 1}) || !got[1].full {
			t.Errorf("sent %+v", got)
		}
		post("c")
		if got := b.take(); len(got) != 1 || got[0].g.N != 2 {
			t.Errorf("then sent %+v", got)
		}
	})
}

// TestAnEpochThatNoBrokerTakesIsGivenUp: a broker that means harm, or our own clock
// before it was set, does not keep the agent from reporting for as long as it runs.
func TestAnEpochThatNoBrokerTakesIsGivenUp(t *testing.T) {
	scene(t, func(b *broker, post func(...string), _ func() map[string]int) {
		post("a")
		first := b.take()[0].g
		b.set(func(b *broker) { b.fail = &transport.StaleError{Last: wire.Generation{Epoch: 1<<63 - 1, N: 9}} })
		post("b")
		b.set(func(b *broker) { b.fail = errors.New("400: its epoch is more than a year ahead") })
		pass(lastRetry)
		b.take()
		b.set(func(b *broker) { b.fail = nil })
		pass(lastRetry)
		got := b.take()
		if len(got) == 0 || !got[0].full || got[0].g.Epoch <= first.Epoch || got[0].g.Epoch > first.Epoch+uint64(time.Hour) {
			t.Errorf("once it listens again: sent %+v, the first was %v", got, first)
		}
	})
}

func TestABrokerThatFailsIsTriedAgainAndHearsTheNewest(t *testing.T) {
	scene(t, func(b *broker, post func(...string), results func() map[string]int) {
		b.set(func(b *broker) { b.fail = errors.New("connection refused") })
		post("a")
		post("b")
		pass(30 * time.Second)
		got := b.take()
		for i := 1; i < len(got); i++ {
			wait := got[i].at - got[i-1].at
			if wait < firstRetry || wait > lastRetry {
				t.Errorf("attempt %d came %s after the one before", i, wait)
			}
		}
		if len(got) < 6 || len(got) > 12 || !got[len(got)-1].full || strings.Join(got[len(got)-1].flavors, "") != "b" {
			t.Errorf("sent %d times, last %+v", len(got), got[len(got)-1])
		}
		b.set(func(b *broker) { b.fail = nil })
		pass(lastRetry)
		got = b.take()
		if len(got) != 1 || strings.Join(got[0].flavors, "") != "b" {
			t.Errorf("once it listens again: sent %+v", got)
		}
		post("c") // prompt again
		if got := b.take(); len(got) != 1 {
			t.Errorf("afterwards: sent %+v", got)
		}
		if r := results(); r["failed"] < 6 || r["accepted"] != 2 {
			t.Errorf("counted %v", r)
		}
		b.lines.Wants(t, "FB1029", "FB1030")
	})
}

// A list whose answer was lost may be known or not; both must end well.
func TestALostAnswer(t *testing.T) {
	for name, persisted := range map[string]bool{"not taken": false, "taken though it failed": true} {
		t.Run(name, func(t *testing.T) {
			scene(t, func(b *broker, post func(...string), _ func() map[string]int) {
				post("a")
				b.set(func(b *broker) { b.fail = errors.New("timeout") })
				post("b")
				g := b.take()[1].g
				b.set(func(b *broker) {
					b.fail = nil
					if persisted {
						b.last = g
					}
				})
				pass(lastRetry)
				if got := b.take(); len(got) != 1 || !got[0].full || got[0].g != g || b.last != g {
					t.Errorf("sent %+v; the broker knows %v", got, b.last)
				}
			})
		})
	}
}

func TestABrokerThatNeverAgreesIsNotHammered(t *testing.T) {
	for name, answer := range map[string]error{"unknown base": transport.ErrUnknownBase, "stale": &transport.StaleError{Last: wire.Generation{Epoch: 1 << 61, N: 1}}} {
		t.Run(name, func(t *testing.T) {
			scene(t, func(b *broker, post func(...string), _ func() map[string]int) {
				b.set(func(b *broker) { b.fail = answer })
				post("a")
				pass(30 * time.Second)
				if got := b.take(); len(got) > 40 {
					t.Errorf("sent %d times in 30 s", len(got))
				}
			})
		})
	}
}
