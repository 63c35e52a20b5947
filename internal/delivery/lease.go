package delivery

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/fleetbroker/fleetbroker/internal/delivery/fields"
	"github.com/fleetbroker/fleetbroker/internal/leaselock"
)

// DefaultLeaseDuration is after what time another daemon may take a silent one's
// Lease.
const DefaultLeaseDuration = 20 * time.Second

// retries of the election in one Lease's duration: 1.3 s of the default.
const retries = 15

// Takeover is how long a cluster is without its daemon at the most when that
// one is killed and another runs: until the other, whose looks at the Lease are
// spread by jitter, has seen the last renewal, waited for the Lease's duration,
// and looked again. 25.9 s by default.
func Takeover(lease time.Duration) time.Duration {
	look := time.Duration(float64(lease/retries) * (1 + leaderelection.JitterFactor))
	return look + lease + look
}

// leaseTimeout bounds calls about the Lease, and with it how long a dead
// cluster can hold up the daemon's end.
const leaseTimeout = 5 * time.Second

// elect takes part in the election for the cluster's Lease until the context
// ends; then the Lease is given up.
func (w *worker) elect(ctx context.Context, c *conn) {
	for ctx.Err() == nil {
		err := w.electOnce(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.mu.Lock()
			w.problems.lease = "take part in the election for the Lease: " + explain(err).Error()
			w.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-w.options.Clock.After(w.options.LeaseDuration / 5):
		}
	}
}

func (w *worker) electOnce(ctx context.Context, c *conn) error {
	if err := c.ensureNamespace(ctx, w.options.Namespace); err != nil {
		return err
	}
	config := rest.CopyConfig(c.config)
	config.Timeout = min(w.options.CallTimeout, leaseTimeout)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &sparingLock{saw: w.saw, held: w.renew, refused: w.leaseRefused, clock: w.options.Clock, every: w.options.LeaseDuration * 4 / 15, Interface: leaselock.Own(&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: w.own.Name(), Namespace: w.options.Namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.options.Identity},
		})},
		// 20 s, 12 s, 1.3 s. Renewals are skipped for 5.3 s after one (sparingLock):
		// who cannot renew stops 17.3 s after the last that was written.
		LeaseDuration:   w.options.LeaseDuration,
		RenewDeadline:   w.options.LeaseDuration * 3 / 5,
		RetryPeriod:     w.options.LeaseDuration / retries,
		ReleaseOnCancel: true,
		Name:            w.name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: w.lead,
			OnStoppedLeading: w.unlead,
			OnNewLeader:      w.follow,
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// lead begins a term: everything is looked at again, because others may have
// written since.
func (w *worker) lead(ctx context.Context) {
	w.mu.Lock()
	w.leading, w.adopted = ctx, false
	w.problems.lease = ""
	w.loaded = 0
	for unit := range w.dirty {
		w.dirty[unit] = drift
	}
	w.mu.Unlock()
	w.log.Info("holds the cluster's Lease")
	w.nudge()
	wakeUp(w.peers)
	w.bump()
}

// renew notes that the Lease was written as ours. One that had lapsed, with
// nobody there to take it, begins a term.
func (w *worker) renew(at time.Time) {
	w.mu.Lock()
	term := w.leading
	lapsed := term != nil && term.Err() == nil && !w.leads()
	w.wrote, w.problems.lease = at, ""
	w.mu.Unlock()
	if lapsed {
		w.lead(term)
	}
}

func (w *worker) unlead() {
	w.mu.Lock()
	w.leading = nil
	w.mu.Unlock()
	w.log.Info("does not hold the cluster's Lease")
	w.bump()
}

// follow notes who holds the Lease now.
func (w *worker) follow(holder string) {
	w.mu.Lock()
	w.holder = holder
	w.mu.Unlock()
	w.bump()
}

// sparingLock tells of each look at a Lease, and renews it only every so often:
// the library would each time that it looks whether it can have one, which is
// what most requests to an idle cluster were.
type sparingLock struct {
	resourcelock.Interface
	saw  func(resourcelock.LeaderElectionRecord)
	held func(at time.Time)
	// refused is told why this account may not have the Lease.
	refused func(error)
	clock   clock.PassiveClock
	every   time.Duration

	// The newest that was written, and when. The library asks from one goroutine.
	wrote resourcelock.LeaderElectionRecord
	at    time.Time
}

// Update implements resourcelock.Interface.
func (l *sparingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	same := record
	same.RenewTime = l.wrote.RenewTime
	if same == l.wrote && l.clock.Since(l.at) < l.every {
		return nil
	}
	began := l.clock.Now()
	if err := l.Interface.Update(ctx, record); err != nil {
		l.wrote = resourcelock.LeaderElectionRecord{}
		return l.failed(err)
	}
	l.wrote, l.at = record, began
	if record.HolderIdentity != "" { // else it was given up
		l.held(began)
	}
	return nil
}

// Create implements resourcelock.Interface.
func (l *sparingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := l.clock.Now()
	if err := l.Interface.Create(ctx, record); err != nil {
		return l.failed(err)
	}
	l.held(began)
	return nil
}

// Get implements resourcelock.Interface.
func (l *sparingLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.saw(*record)
	}
	return record, raw, l.failed(err)
}

// failed tells of a refusal, which the library only logs, and gives the error on.
func (l *sparingLock) failed(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		l.refused(err)
	}
	return err
}

// leaseRefused notes that this account may not have the Lease.
func (w *worker) leaseRefused(err error) {
	text := "the cluster's Lease is refused, so that nothing is delivered: " + explain(err).Error()
	w.mu.Lock()
	news := w.problems.lease != text
	w.problems.lease = text
	w.mu.Unlock()
	if news {
		w.log.Warn("the cluster's Lease is refused", "error", err)
		w.bump()
	}
}

// saw notes that the election can be taken part in, and whether the Lease's holder
// lives: one that does renews it every few seconds. What a Lease says of the time
// is by its holder's clock.
func (w *worker) saw(now resourcelock.LeaderElectionRecord) {
	w.mu.Lock()
	before := w.record
	w.record = now
	if now.HolderIdentity != "" && now.HolderIdentity != w.options.Identity { // whoever may read it may be refused to write it
		w.problems.lease = ""
	}
	renewed := before.HolderIdentity != "" && !before.RenewTime.Equal(&now.RenewTime)
	if renewed {
		w.renewed = w.options.Clock.Now()
	}
	w.mu.Unlock()
	if renewed {
		w.bump()
	}
}

// ensureNamespace makes the namespace of Lease and ApplySet where it is missing.
func (c *conn) ensureNamespace(ctx context.Context, name string) error {
	k := key{Kind: kindNamespace, Name: name}
	return c.call(ctx, func(ctx context.Context) error {
		_, err := c.resource(k).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		_, err = c.resource(k).Create(ctx, bare("v1", string(kindNamespace), name), metav1.CreateOptions{FieldManager: c.manager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// applyParent writes the ApplySet's parent, unless it is as wanted.
func (c *conn) applyParent(ctx context.Context, parent *unstructured.Unstructured) error {
	configMaps := c.dynamic.Resource(gvr("", "v1", "configmaps")).Namespace(parent.GetNamespace())
	return c.call(ctx, func(ctx context.Context) error {
		live, err := configMaps.Get(ctx, parent.GetName(), metav1.GetOptions{})
		if err == nil && fields.Covered(live.Object, parent.Object) {
			return nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		_, err = configMaps.Apply(ctx, parent.GetName(), parent, metav1.ApplyOptions{FieldManager: c.manager, Force: true})
		return err
	})
}
