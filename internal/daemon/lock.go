package daemon

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/kube"
)

// notedLock is a Lease that remembers why it is refused, which the library only logs, at
// each try, and tells who has it.
type notedLock struct {
	resourcelock.Interface
	refused *atomic.Pointer[store.RefusedError]
	// renewed is when the newest write as this one's was begun; nil where it is not.
	renewed *atomic.Pointer[time.Time]
	// held takes who has the Lease, at each look and write.
	held func(who string)
}

// wrote takes over what became of a write that was begun at a time: another replica takes
// the Lease no sooner than its duration after that.
func (l notedLock) wrote(record resourcelock.LeaderElectionRecord, began time.Time, err error) error {
	l.note(err)
	switch {
	case err != nil:
		return err
	case record.HolderIdentity == l.Identity():
		l.renewed.Store(&began)
	default:
		l.renewed.Store(nil)
	}
	l.held(record.HolderIdentity)
	return nil
}

// note takes over what became of a request. What was not answered says nothing of what
// the account may do.
func (l notedLock) note(err error) {
	if refused := kube.RefusalOf(err); refused != nil || err == nil {
		l.refused.Store(refused)
	}
}

// Get implements resourcelock.Interface. That the Lease may be read does not say that it
// may be written: what was refused stays so until a write, or another holder's Lease, says
// otherwise.
func (l notedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil || record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.note(err)
	}
	if err == nil {
		l.held(record.HolderIdentity)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l notedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := time.Now()
	return l.wrote(record, began, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l notedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := time.Now()
	return l.wrote(record, began, l.Interface.Update(ctx, record))
}

// Refused says why the Lease is refused to this replica, nil when it is not: while it
// is, this one does not decide.
func (e *Election) Refused() error {
	if e == nil {
		return nil
	}
	refused := e.refused.Load()
	if refused == nil {
		return nil
	}
	return fmt.Errorf("the Lease %s in namespace %s is refused (%s), so that this replica does not decide: %w; grant its account get, create and update of it (install/broker/rbac.yaml)", Lease, e.Namespace, refused.Why, refused.Cause)
}
