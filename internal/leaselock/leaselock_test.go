package leaselock

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is one in memory, with versions as an API server keeps them.
type lease struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.HolderIdentity
}

// way is one elector's way to it, as resourcelock.LeaseLock: who is cut off waits.
type way struct {
	*lease
	name    string
	version int
	cut     chan struct{} // closed when it is over
}

var resource = schema.GroupResource{Resource: "leases"}

func (w *way) through(ctx context.Context) error {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-cut:
		return nil
	}
}

func (w *way) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := w.through(ctx); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lease.version == 0 {
		return nil, nil, apierrors.NewNotFound(resource, "l")
	}
	record := w.record
	w.version = w.lease.version
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (w *way) write(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := w.through(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.version != w.lease.version {
		return apierrors.NewConflict(resource, "l", errors.New("it was changed"))
	}
	w.lease.version++
	w.record, w.version = record, w.lease.version
	return nil
}

func (w *way) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record)
}

func (w *way) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record)
}
func (w *way) RecordEvent(string)             {}
func (w *way) Identity() string               { return w.name }
func (w *way) Describe() string               { return w.name }
func (w *way) GetEventObject() runtime.Object { return nil }
func (w *way) setCut(c chan struct{})         { w.mu.Lock(); defer w.mu.Unlock(); w.cut = c }

// Who was cut off, and comes back while it gives up a Lease that another one has taken
// over, leaves it to that one; who stops in its own term gives it up at once.
func TestOwn_LeavesAnothersLease(t *testing.T) {
	for range 10 { // electors look at random times
		synctest.Test(t, leavesAnothersLease)
	}
}

func leavesAnothersLease(t *testing.T) {
	shared := &lease{}
	a, b := &way{lease: shared, name: "a"}, &way{lease: shared, name: "b"}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer func() {
		cancel()
		wait.Wait()
	}()
	stops := map[string]context.CancelFunc{}
	for _, w := range []*way{a, b} {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: Own(w), LeaseDuration: 9 * time.Second, RenewDeadline: 6 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true, Name: w.name,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		term, stop := context.WithCancel(ctx)
		stops[w.name] = stop
		wait.Go(func() {
			for term.Err() == nil { // as package daemon: the next term with the same elector
				elector.Run(term)
			}
		})
		pass(5 * time.Second)
	}
	if got := shared.holder(); got != "a" {
		t.Fatalf("%q leads at first", got)
	}
	back := make(chan struct{})
	a.setCut(back)
	for i := 0; shared.holder() != "b"; i++ {
		if pass(100 * time.Millisecond); i > 200 {
			t.Fatal("nobody takes over")
		}
	}
	a.setCut(nil)
	close(back)
	for range 300 {
		if pass(100 * time.Millisecond); shared.holder() != "b" {
			t.Fatalf("%q holds the Lease that b has renewed", shared.holder())
		}
	}
	stops["b"]()
	pass(5 * time.Second)
	if got := shared.holder(); got != "a" {
		t.Errorf("%q leads 5 s after b gave it up", got)
	}
}

// pass lets time pass, of the test's own clock.
func pass(d time.Duration) { <-time.After(d) }
