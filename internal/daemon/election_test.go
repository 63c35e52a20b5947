package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
)

// lease is one in memory, with versions as an API server keeps them.
type lease struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int
}

// way is one replica's way to it.
type way struct {
	*lease
	name    string
	version int
	cut     bool          // requests fail
	stuck   chan struct{} // requests wait until it is closed, whatever their context says
}

func (w *way) through() error {
	w.mu.Lock()
	cut, stuck := w.cut, w.stuck
	w.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	if cut {
		return errors.New("connection refused")
	}
	return nil
}

func (w *way) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := w.through(); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lease.version == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, Lease)
	}
	record := w.record
	w.version = w.lease.version
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (w *way) write(record resourcelock.LeaderElectionRecord) error {
	if err := w.through(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.version != w.lease.version {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, Lease, errors.New("it was changed"))
	}
	w.lease.version++
	w.record, w.version = record, w.lease.version
	return nil
}

func (w *way) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(record)
}

func (w *way) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(record)
}
func (w *way) RecordEvent(string)             {}
func (w *way) Identity() string               { return w.name }
func (w *way) Describe() string               { return w.name }
func (w *way) GetEventObject() runtime.Object { return nil }

// replica is one that takes part, with a state directory that outlives it.
type replica struct {
	*Election
	way *way
	dir string

	lines logtest.Lines // what it logs

	mu   sync.Mutex
	cut  string // why the store is out of reach
	ill  bool   // it may not lead, with the store in reach
	stop func()
}

// set cuts the replica off from the API server, or lets it back.
func (r *replica) set(cut string) {
	r.mu.Lock()
	r.cut = cut
	r.mu.Unlock()
	r.way.mu.Lock()
	r.way.cut = cut != ""
	r.way.mu.Unlock()
}

// hang makes the replica's requests wait.
func (r *replica) hang(until chan struct{}) {
	r.way.mu.Lock()
	r.way.stuck = until
	r.way.mu.Unlock()
}

func (r *replica) why() string { r.mu.Lock(); defer r.mu.Unlock(); return r.cut }

// start starts a replica, or starts it again: it is cut off until it has read the store.
func (r *replica) start(t *testing.T, cut string) {
	t.Helper()
	way := &way{lease: r.way.lease, name: r.way.name}
	r.way = way
	r.set(cut)
	r.Election = &Election{
		Identity: way.name, Cut: r.why, Log: r.lines.Logger(),
		Past: NewPast(r.dir, statefile.NewHealth(slog.New(slog.DiscardHandler)), time.Now),
		Fit: func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.cut != "" || r.ill {
				return errors.New("it may not lead " + r.cut)
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.take(ctx, way) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// elections runs a test with two replicas of which a leads, in time of its own.
func elections(t *testing.T, test func(t *testing.T, a, b *replica)) {
	t.Helper()
	dirs := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		a, b := &replica{way: &way{lease: shared, name: "a"}, dir: dirs[0]}, &replica{way: &way{lease: shared, name: "b"}, dir: dirs[1]}
		for _, r := range []*replica{a, b} {
			r.start(t, "")
			pass(5 * time.Second)
		}
		defer func() { a.stop(); b.stop() }()
		if !a.Leads() || !a.Holds() || b.Leads() || b.Leader() != "a" {
			t.Fatalf("at first a leads %t, b %t, which takes %q for the leader", a.Leads(), b.Leads(), b.Leader())
		}
		test(t, a, b)
	})
}

// pass lets time pass, of the test's own clock.
func pass(d time.Duration) { <-time.After(d) }

// One that is stopped, or whose requests hang, does not believe that it leads when
// another one may have taken over.
func TestElection_WhoStandsStillDoesNotLead(t *testing.T) {
	elections(t, func(t *testing.T, a, b *replica) {
		stuck := make(chan struct{})
		a.hang(stuck)
		free := sync.OnceFunc(func() { a.hang(nil); close(stuck) })
		defer free()
		for i := 0; !b.Holds(); i++ {
			if pass(100 * time.Millisecond); i > 200 {
				t.Fatal("nobody takes over")
			}
			if a.Leads() && b.Leads() {
				t.Fatal("two lead")
			}
		}
		if !a.Election.holds.Load() || a.Leads() || a.Holds() {
			t.Errorf("the one that hangs knows that its term is over: %t; it leads: %t", !a.Election.holds.Load(), a.Leads())
		}
		free()
		for range 300 {
			if pass(100 * time.Millisecond); a.Leads() || !b.Leads() {
				t.Fatalf("afterwards a leads %t, b %t", a.Leads(), b.Leads())
			}
		}
	})
}

// While the store is out of reach the last one that led goes on, and tells people nothing:
// it does not know whether another one does. What another one writes to the ledger ends
// that.
func TestElection_LastOneGoesOn(t *testing.T) {
	elections(t, func(t *testing.T, a, b *replica) {
		a.set("no route")
		b.set("no route")
		pass(20 * time.Second)
		if !a.Leads() || b.Leads() || a.Holds() {
			t.Fatalf("without the store a leads %t, b %t; a has the Lease %t", a.Leads(), b.Leads(), a.Holds())
		}
		for _, r := range []*replica{a, b} {
			r.lines.Wants(t, "FB1060")
		}
		for _, before := range []time.Time{time.Now().Add(-time.Hour), {}} {
			if a.Wrote("b", before); !a.Leads() {
				t.Errorf("what b wrote at %s ends it", before)
			}
		}
		if a.Wrote("a", time.Now()); !a.Leads() {
			t.Error("what it wrote itself ends it")
		}
		if a.Wrote("b", time.Now()); a.Leads() {
			t.Error("b writes, and a goes on")
		}
		a.set("")
		b.set("")
		pass(20 * time.Second)
		if a.Leads() == b.Leads() {
			t.Errorf("when the store is back a leads %t, b %t", a.Leads(), b.Leads())
		}
	})
}

// The last one that led goes on after a restart too, a minute later; the others do not, nor
// does one of which the ledger or the Lease shows that another has led since.
func TestElection_LastOneGoesOnAfterARestart(t *testing.T) {
	outage := func(a, b *replica) {
		a.set("no route")
		b.set("no route")
		pass(20 * time.Minute)
	}
	for name, c := range map[string]struct {
		test func(t *testing.T, a, b *replica)
		want bool // a leads in the end
	}{
		"it does": {func(t *testing.T, a, b *replica) {
			outage(a, b)
			a.stop()
			pass(10 * time.Minute)
			a.start(t, "it has not been read yet")
			pass(50 * time.Second)
			if a.Leads() {
				t.Error("it goes on at once, though it may hear of another one")
			}
		}, true},
		"not when it was away for long": {func(t *testing.T, a, b *replica) {
			outage(a, b)
			a.stop()
			pass(2 * time.Hour)
			a.start(t, "it has not been read yet")
		}, false},
		"not when another one wrote": {func(t *testing.T, a, b *replica) {
			outage(a, b)
			a.stop()
			a.start(t, "it has not been read yet")
			a.Wrote("b", time.Now())
		}, false},
		"nor one that never led": {func(t *testing.T, a, b *replica) {
			outage(a, b)
			b.stop()
			b.start(t, "it has not been read yet")
			pass(5 * time.Minute)
			if b.Leads() {
				t.Error("b goes on, which never led")
			}
		}, true},
		"nor one after which another led": {func(t *testing.T, a, b *replica) {
			a.stop()
			pass(20 * time.Second)
			if !b.Leads() {
				t.Fatal("nobody took over")
			}
			a.start(t, "")
			pass(20 * time.Second)
			outage(a, b)
			a.stop()
			a.start(t, "it has not been read yet")
			pass(5 * time.Minute)
			if !b.Leads() {
				t.Error("b led last, and does not go on")
			}
		}, false},
		"nor one that can see that another leads": {func(t *testing.T, a, b *replica) {
			a.stop()
			pass(20 * time.Second)
			a.start(t, "it may not be watched")
			a.way.mu.Lock()
			a.way.cut = false // the Lease can be read
			a.way.mu.Unlock()
			pass(5 * time.Minute)
			if a.set("no route"); !b.Holds() {
				t.Error("b does not lead")
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			elections(t, func(t *testing.T, a, b *replica) {
				c.test(t, a, b)
				pass(2 * time.Minute)
				if a.Leads() != c.want {
					t.Errorf("a leads %t, want %t", a.Leads(), c.want)
				}
				if a.Leads() && b.Leads() {
					t.Error("two lead")
				}
			})
		})
	}
}

// A note that cannot be read is none, and nobody is there without an election.
func TestPast_Damaged(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, pastFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	health := statefile.NewHealth(slog.New(slog.DiscardHandler))
	if p := NewPast(dir, health, time.Now); p.note != (note{}) {
		t.Errorf("it reads %+v", p.note)
	}
	p := NewPast(dir, health, time.Now)
	p.leads("a", true)
	if again := NewPast(dir, health, time.Now); again.note.Replica != "a" || health.Err() != nil {
		t.Errorf("the next note reads %+v, %v", again.note, health.Err())
	}
	var none *Election
	none.Wrote("a", time.Now())
	if !none.Leads() || !none.Holds() {
		t.Error("who is alone does not lead")
	}
}

// A replica that may not lead, and so takes no part, knows who does: what it is asked for is
// handed on to that one.
func TestElection_WhoTakesNoPartKnowsWhoLeads(t *testing.T) {
	elections(t, func(t *testing.T, a, b *replica) {
		unfit := func(r *replica, yes bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ill = yes
		}
		unfit(a, true)
		pass(20 * time.Second)
		if a.Leads() || !b.Leads() || a.Leader() != "b" {
			t.Fatalf("a leads %t, b %t; a takes %q for the leader", a.Leads(), b.Leads(), a.Leader())
		}
		unfit(a, false)
		pass(5 * time.Second)
		unfit(b, true)
		pass(20 * time.Second)
		if !a.Leads() || b.Leads() || b.Leader() != "a" || a.Leader() != "a" {
			t.Fatalf("a leads %t, b %t, and they take %q and %q for the leader", a.Leads(), b.Leads(), a.Leader(), b.Leader())
		}
		// One whose former leader is gone names it no more.
		unfit(b, false)
		pass(5 * time.Second)
		unfit(a, true)
		pass(20 * time.Second)
		if a.Leader() != "b" || b.Leader() != "b" {
			t.Errorf("they take %q and %q for the leader", a.Leader(), b.Leader())
		}
		unfit(b, true)
		pass(20 * time.Second)
		if a.Leads() || b.Leads() || a.Leader() != "" {
			t.Errorf("nobody may lead: a leads %t, b %t, and a takes %q for the leader", a.Leads(), b.Leads(), a.Leader())
		}
	})
}
