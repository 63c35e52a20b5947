package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/leaselock"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// Lease is the Lease of the replica that decides, and speaks to people.
const Lease = "fleetbroker-planner"

// Times of the Lease: with the retry of another one and the round that follows a
// takeover takes less than 15 s.
const (
	leaseDuration = 9 * time.Second
	renewDeadline = 6 * time.Second
	retryPeriod   = 2 * time.Second
	// lookEvery is how often the holder looks whether it may lead.
	lookEvery = time.Second
)

// Election elects the one of several replicas that decides. A nil one leads: there
// is nobody else.
type Election struct {
	// Config and Namespace are where the Lease lies.
	Config    *rest.Config
	Namespace string
	// Identity is this replica's name.
	Identity string
	// Fit says why this replica may not lead now, nil when it may; nil: it may.
	Fit func() error
	// Cut says why the store is out of reach, "" when it is not; nil: it never is.
	// While it is, the last one that led goes on.
	Cut func() string
	// Past is what is noted of when this replica led; nil: nothing over a restart.
	Past *Past
	// Changed is called after it has begun or ceased to lead; may be nil.
	Changed func()
	// Log may be nil.
	Log *slog.Logger

	mu     sync.Mutex // of what begins and ends a term
	holds  atomic.Bool
	last   atomic.Bool // it led, and no other one is known to lead since
	leader atomic.Pointer[string]
	// refused is why the Lease was refused last.
	refused atomic.Pointer[store.RefusedError]
	// renewed is when the Lease was renewed last, nil when it is not this one's.
	renewed atomic.Pointer[time.Time]
}

// Leads reports whether this replica decides: it holds the Lease, or was the last one that
// did and the store is out of reach.
func (e *Election) Leads() bool {
	return e.Holds() || !e.holds.Load() && e.last.Load() && e.Cut != nil && e.Cut() != ""
}

// Holds reports whether this replica holds the Lease, and renewed it in time: one that
// stood still, or is cut off, does not know yet that another one may have it.
func (e *Election) Holds() bool {
	if e == nil {
		return true
	}
	at := e.renewed.Load()
	return e.holds.Load() && at != nil && time.Since(*at) < leaseDuration
}

// Leader is the name of the replica that decides, as far as is known; "" when it is
// not, or there is only one.
func (e *Election) Leader() string {
	if e == nil {
		return ""
	}
	if name := e.leader.Load(); name != nil {
		return *name
	}
	return ""
}

// Run takes part until the context ends.
func (e *Election) Run(ctx context.Context) error {
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	config := rest.CopyConfig(e.Config)
	config.Timeout = renewDeadline - time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("elect who decides: %w", err)
	}
	return e.take(ctx, &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: Lease, Namespace: e.Namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
	})
}

// take takes part with a lock until the context ends.
func (e *Election) take(ctx context.Context, lock resourcelock.Interface) error {
	noted := notedLock{leaselock.Own(lock), &e.refused, &e.renewed, e.held}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          noted,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Name:            Lease,
		Callbacks: leaderelection.LeaderCallbacks{ // who leads the lock says, also to one that takes no part
			OnStartedLeading: e.begin,
			OnStoppedLeading: e.end,
		},
	})
	if err != nil {
		return fmt.Errorf("elect who decides: %w", err)
	}
	why := ""
	for ctx.Err() == nil { // an election ends when the Lease is lost
		if err := e.unfit(); err != nil {
			if why != err.Error() {
				why = err.Error()
				e.Log.Info("does not take part in the leader election", "error", err)
			}
			e.resume(ctx, lock)
			e.follow(ctx, noted)
			e.keep()
			sleep(ctx, lookEvery)
			continue
		}
		why = ""
		term, end := context.WithCancel(ctx)
		go func() {
			defer end()
			for term.Err() == nil && e.unfit() == nil {
				e.keep()
				sleep(term, lookEvery)
			}
		}()
		elector.Run(term)
		end()
	}
	return nil
}

// held takes over who has the Lease, as it was read or written last; "" is nobody.
func (e *Election) held(who string) {
	if was := e.leader.Swap(&who); was != nil && *was == who || was == nil && who == "" {
		return
	}
	if who != "" && who != e.Identity {
		e.last.Store(false)
		if e.Past != nil {
			e.Past.over()
		}
		e.Log.Info("another replica decides", "replica", who)
	}
	e.changed()
}

// follow looks who has the Lease while this replica takes no part in the election, so that
// what it is asked for is handed on to who decides.
func (e *Election) follow(ctx context.Context, lock resourcelock.Interface) {
	if e.Cut != nil && e.Cut() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, retryPeriod)
	defer cancel()
	_, _, _ = lock.Get(ctx) // the lock tells
}

func (e *Election) unfit() error {
	if e.Fit == nil {
		return nil
	}
	return e.Fit()
}

// begin notes that this replica holds the Lease, unless the term is over already: it
// is called by a goroutine of its own.
func (e *Election) begin(term context.Context) {
	e.mu.Lock()
	began := term.Err() == nil && !e.holds.Load()
	if began {
		e.last.Store(true)
		e.holds.Store(true)
	}
	e.mu.Unlock()
	if began {
		e.Log.Info("decides, and speaks to people: notifications and pull requests")
		e.changed()
	}
}

// end notes that it holds the Lease no more; the term is over by then.
func (e *Election) end() {
	e.mu.Lock()
	held := e.holds.Swap(false)
	e.mu.Unlock()
	if held {
		e.Log.Info("decides no more")
		e.changed()
	}
}

func (e *Election) changed() {
	if e.Changed != nil {
		e.Changed()
	}
}

// sleep lets time pass, or the context end.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
