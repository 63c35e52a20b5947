package reconciler

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/writers"
)

// named starts a daemon with a name that knows nothing.
func (s *story) named(name string) *Reconciler {
	s.t.Helper()
	s.start()
	opts := s.r.opts
	opts.Replica = name
	s.r = New(opts)
	return s.r
}

// Of two daemons that share no store one decides: the other one stands by, says so,
// and decides when nothing has come of the first for two minutes.
func TestOneDaemonDecides(t *testing.T) {
	s := newDesk(t)
	one := s.named("one")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	if got := s.rest(); len(got) != 2 {
		t.Fatalf("committed %q", got)
	}
	log, err := s.remote.Log("ledger")
	if err != nil || !strings.Contains(log[0].Message, "\nReplica: one\n") {
		t.Fatalf("the newest commit is %q, %v", log[0].Message, err)
	}
	s.at = log[0].Committer.When.Add(30 * time.Second)
	two := s.named("two")
	s.push(map[string]string{"intents/vision/more.yaml": intentOf("more", "1")})
	out, err := two.Round(t.Context())
	if err != nil || len(out.Committed) > 0 || out.Plan == nil || !out.Plan.Changes() {
		t.Fatalf("two wrote %v with %+v, %v", out.Committed, out.Plan, err)
	}
	if want := log[0].Committer.When.Add(writers.Young); out.Due.IsZero() || out.Due.After(want) {
		t.Errorf("two looks again at %s, want %s at the latest", out.Due, want)
	}
	if err := two.Ready(); err == nil || !strings.Contains(err.Error(), "another daemon, one, writes this ledger") {
		t.Errorf("two is ready: %v", err)
	}
	answer := s.ask(context.Background(), "rome", "k", wants("1", "1Gi", "1"))
	if _, err := two.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := (<-answer).refusal(t); r.Status != http.StatusServiceUnavailable || r.Body.Reason != wire.ReasonStandby {
		t.Errorf("a request to two is answered %+v", r)
	}

	// One goes on meanwhile: two waits from then on.
	s.at = s.at.Add(time.Minute)
	one.Reread()
	if out, err := one.Round(t.Context()); err != nil || len(out.Committed) != 1 {
		t.Fatalf("one wrote %v, %v", out.Committed, err)
	}
	s.at = s.at.Add(time.Minute) // the wait that two knows of is over
	if out, err := two.Round(t.Context()); err != nil || len(out.Committed) > 0 {
		t.Fatalf("two wrote %v, %v", out.Committed, err)
	}
	s.push(map[string]string{"intents/vision/last.yaml": intentOf("last", "1")})
	s.at = s.at.Add(2 * time.Minute)
	if out, err := two.Round(t.Context()); err != nil || len(out.Committed) != 1 || two.Ready() != nil {
		t.Fatalf("one is silent, and two wrote %v, %v, %v", out.Committed, err, two.Ready())
	}
	// And now one is the other one.
	one.Reread()
	s.push(map[string]string{"intents/vision/late.yaml": intentOf("late", "1")})
	if out, err := one.Round(t.Context()); err != nil || len(out.Committed) > 0 {
		t.Fatalf("one wrote %v, %v", out.Committed, err)
	}
}

// Whose commits make a daemon stand by.
func TestStandsByFor(t *testing.T) {
	elected := func() bool { return true }
	const longAgo, now = -writers.Young, 0
	for name, tc := range map[string]struct {
		email, trailer string
		age            time.Duration // of the commit, below zero: ago
		elected        func() bool
		waits          time.Duration
	}{
		"another daemon":                     {"broker@example.org", "Replica: one", -30 * time.Second, nil, 90 * time.Second},
		"another daemon, long ago":           {"broker@example.org", "Replica: one", longAgo, nil, 0},
		"another daemon, by a clock ahead":   {"broker@example.org", "Replica: one", 15 * time.Second, nil, 2 * time.Minute},
		"itself before a restart":            {"broker@example.org", "Replica: two", now, nil, 0},
		"an older version":                   {"broker@example.org", "Renderer: 1", -30 * time.Second, nil, 90 * time.Second},
		"an older version, long ago":         {"broker@example.org", "Renderer: 1", longAgo, nil, 0},
		"an operator":                        {"broker@example.org", "Replica: -", now, nil, 0},
		"somebody who calls himself one":     {"mallory@example.org", "Replica: one", now, nil, 0},
		"one of those that hold an election": {"broker@example.org", "Replica: one", now, elected, 0},
		"an older version beside those":      {"broker@example.org", "Renderer: 1", -30 * time.Second, elected, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, "ledger")
			s.rest()
			s.at = s.at.Add(time.Hour)
			who := gitobj.Person{Name: "x", Email: tc.email, When: s.at.Add(tc.age)}
			message := "note\n\nInputs: " + s.remote.Head("main").String() + "\n" + tc.trailer + "\nPlan: render\n"
			if _, err := s.remote.Commit("ledger", who, message, gitobj.Change{Puts: map[string][]byte{"NOTES": []byte("x")}}); err != nil {
				t.Fatal(err)
			}
			r := s.named("two")
			r.turns.Elected = tc.elected
			s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
			began := s.at
			for range 30 {
				out, err := r.Round(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(out.Committed) > 0 {
					break
				}
				s.at = s.at.Add(10 * time.Second)
			}
			if got := s.at.Sub(began); got != tc.waits {
				t.Errorf("it decided after %s, want %s", got, tc.waits)
			}
		})
	}
}

// A daemon that stands by writes nothing else either: foreign edits stay until its turn.
func TestStandsByAndUndoesNothing(t *testing.T) {
	s := newStory(t, "ledger")
	s.named("one")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	two := s.named("two")
	if _, err := two.Round(t.Context()); err != nil || two.Ready() == nil {
		t.Fatalf("two does not stand by: %v", err)
	}
	mallory := gitobj.Person{Name: "M", Email: "mallory@example.org", When: s.at}
	edited, err := s.remote.Commit("ledger", mallory, "Mine", gitobj.Change{Puts: map[string][]byte{romeGuard: []byte("# mine\n")}})
	if err != nil {
		t.Fatal(err)
	}
	two.Reread()
	if out, err := two.Round(t.Context()); err != nil || len(out.Committed) > 0 || s.remote.Head("ledger") != edited {
		t.Fatalf("two wrote %v, %v", out.Committed, err)
	}
	s.at = s.at.Add(writers.Young)
	two.Reread()
	out, err := two.Round(t.Context())
	if err != nil || len(out.Committed) != 1 || !strings.HasPrefix(out.Committed[0].Commit.Subject(), "undo") {
		t.Errorf("after its wait two wrote %v, %v", out.Committed, err)
	}
}
