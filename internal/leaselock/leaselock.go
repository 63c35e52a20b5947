package leaselock

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Own is a lock that gives up nothing but what its identity holds; it then reports that
// there is nothing left to give up.
func Own(lock resourcelock.Interface) resourcelock.Interface { return &own{Interface: lock} }

type own struct {
	resourcelock.Interface
	holder string // as it was last read or written
}

// Get implements resourcelock.Interface.
func (l *own) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *own) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *own) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return nil
	}
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return err
}
