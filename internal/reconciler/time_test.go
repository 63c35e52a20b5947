package reconciler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/clock"
)

// timed is a story whose daemon knows of a monotonic clock beside its own.
func timed(t *testing.T, intents int) (s *story, mono *time.Duration) {
	t.Helper()
	s, mono = newStory(t, "ledger"), new(time.Duration)
	files := map[string]string{}
	for i := range intents {
		name := fmt.Sprintf("t%d", i)
		files["intents/vision/"+name+".yaml"] = strings.Replace(intentOf(name, "1"), "spec:\n", "spec:\n  schedule: {duration: 12h}\n", 1)
	}
	s.push(files)
	s.r.opts.Clock = clock.New(func() time.Time { return s.at }, func() time.Duration { return *mono })
	return s, mono
}

func (s *story) heard(date time.Time) { s.r.opts.Clock.(*clock.Check).Heard("git server", date, 0) }

// pass lets time pass on both clocks.
func (s *story) pass(mono *time.Duration, d time.Duration) { s.at, *mono = s.at.Add(d), *mono+d }

// A clock that jumps by a day in either direction ends nothing, commits nothing
// and makes the daemon not ready, until it is right again.
func TestRound_DoesNotPlanByAWrongClock(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		s, mono := timed(t, 2)
		s.heard(s.at)
		for range 4 {
			s.pass(mono, time.Minute)
			s.r.Reread()
			if _, err := s.r.Round(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		held, head := s.r.View().Contracts.Held(), s.remote.Head("ledger")
		if held != 2 {
			t.Fatalf("%d contracts are held: %v", held, s.r.View().Fleet.Diagnostics)
		}
		truth := s.at
		s.at = s.at.Add(by)
		for range 3 {
			s.pass(mono, time.Minute)
			truth = truth.Add(time.Minute)
			s.heard(truth)
			s.r.Reread()
			out, err := s.r.Round(context.Background())
			if err == nil || len(out.Committed) > 0 || s.remote.Head("ledger") != head {
				t.Errorf("jump by %s: %v, committed %v", by, err, out.Committed)
			}
			if err := s.r.Ready(); err == nil || !strings.Contains(err.Error(), "this machine's clock is 2") {
				t.Errorf("jump by %s: ready %v", by, err)
			}
		}
		s.at = truth
		s.r.Reread()
		if _, err := s.r.Round(context.Background()); err != nil || s.r.Ready() != nil {
			t.Errorf("set right: %v, ready %v", err, s.r.Ready())
		}
		if got := s.r.View().Contracts.Held(); got != held {
			t.Errorf("jump by %s and back: %d contracts are held, %d were", by, got, held)
		}
	}
}

// jumping is a clock that jumps right after it was found right.
type jumping struct {
	*clock.Check
	jump func()
}

// Err implements Clock.
func (j *jumping) Err() error {
	err := j.Check.Err()
	if j.jump != nil {
		j.jump()
		j.jump = nil
	}
	return err
}

// A clock that jumps between the check and the plan brings nothing on the ledger.
func TestRound_DoesNotPlanByAClockThatJumpsMeanwhile(t *testing.T) {
	s, mono := timed(t, 2)
	s.heard(s.at)
	for range 4 {
		s.pass(mono, time.Minute)
		s.r.Reread()
		if _, err := s.r.Round(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
	s.pass(mono, time.Second)
	head := s.remote.Head("ledger")
	s.r.opts.Clock = &jumping{s.r.opts.Clock.(*clock.Check), func() { s.at = s.at.Add(24 * time.Hour) }}
	s.r.Reread()
	if out, err := s.r.Round(context.Background()); err == nil || s.remote.Head("ledger") != head {
		t.Errorf("after a jump in the middle of a round: %v, committed %v", err, out.Committed)
	}
}

// Where no server shows the time, many ends for time alone wait after a jump,
// and are made once a server has confirmed it.
func TestRound_HoldsEndsOfAJumpBack(t *testing.T) {
	s, mono := timed(t, 7)
	for range 6 {
		s.pass(mono, time.Minute)
		s.r.Reread()
		if _, err := s.r.Round(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if held := s.r.View().Contracts.Held(); held != 7 {
		t.Fatalf("%d contracts are held", held)
	}
	s.at = s.at.Add(24 * time.Hour)
	head := s.remote.Head("ledger")
	s.r.Reread()
	if _, err := s.r.Round(context.Background()); err == nil || !strings.Contains(err.Error(), "7 contracts would end for time alone after this machine's clock jumped by 24h0m0s") {
		t.Errorf("after a jump: %v", err)
	}
	if got := s.remote.Head("ledger"); got != head {
		t.Errorf("the ledger moved to %s", got.Short())
	}
	s.heard(s.at)
	for range 6 {
		s.pass(mono, time.Minute)
		s.r.Reread()
		if _, err := s.r.Round(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.isOver(7)
}

// Leave for the ends of a jump, given on a commit of the inputs, holds on later ones where
// no other contracts end by it, and on no others.
func TestRound_AllowsEndsOfAJumpOnALaterCommit(t *testing.T) {
	shorter := strings.Replace(intentOf("stays", "1"), "spec:\n", "spec:\n  schedule: {duration: 12h}\n", 1)
	for name, c := range map[string]struct {
		later map[string]string
		ends  bool
	}{
		"the same ends": {map[string]string{"README.md": "Moved on\n"}, true},
		"one more":      {map[string]string{"intents/vision/stays.yaml": shorter}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, mono := timed(t, 7)
			s.push(map[string]string{"intents/vision/stays.yaml": intentOf("stays", "1")})
			seen := s.remote.Head("main")
			round := func() error {
				s.pass(mono, time.Minute)
				s.r.Reread()
				_, err := s.r.Round(context.Background())
				return err
			}
			for range 6 {
				if err := round(); err != nil {
					t.Fatal(err)
				}
			}
			s.push(c.later)
			s.at = s.at.Add(24 * time.Hour)
			if err := round(); err == nil || !strings.Contains(err.Error(), "would end for time alone") {
				t.Fatalf("without leave: %v", err)
			}
			s.r.opts.AllowEnds = seen
			if err := round(); (err == nil) != c.ends {
				t.Errorf("with leave for an earlier commit: %v", err)
			}
		})
	}
}

// Time that passes on both clocks is no jump, however much ends by it.
func TestRound_EndsWhatTimeEnds(t *testing.T) {
	s, mono := timed(t, 7)
	for i := range 12 {
		s.pass(mono, time.Minute)
		if i == 6 {
			s.pass(mono, 24*time.Hour)
		}
		s.r.Reread()
		if _, err := s.r.Round(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.isOver(7)
}

// isOver fails unless there were some contracts, and all have ended or are about to.
func (s *story) isOver(want int) {
	s.t.Helper()
	n := 0
	for c := range s.r.View().Contracts.Contracts() {
		n++
		if c.Status.Phase.Charged() {
			s.t.Errorf("%s is still %s a day after its start", c.Metadata.Name, c.Status.Phase)
		}
	}
	if n != want {
		s.t.Errorf("there were %d contracts, want %d", n, want)
	}
}
