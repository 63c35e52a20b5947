package store

import (
	"context"
	"errors"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
)

// Errors of an API beside those of reaching it.
var (
	// ErrNotFound: there is no object of the name.
	ErrNotFound = errors.New("there is no such object")
	// ErrConflict: the object is another than the resourceVersion says, or there is one already.
	ErrConflict = errors.New("the object was changed meanwhile")
	// ErrSetBack: a Heartbeat that was written is gone, or is one of before, or what is
	// written now comes before what is known: the store was restored from an older state.
	ErrSetBack = errors.New("the store has an older state than before")
)

// API is what Shared stands on. What it hands out may not be modified; what it is
// handed belongs to the caller. Of managed fields it hands out what Foreign leaves. A *RefusedError says that a write was not made; any
// other error means that this is not known.
type API interface {
	// Advertisement of a provider as it is now, not as a cache has it.
	Advertisement(ctx context.Context, provider string) (*marketcrd.Advertisement, error)
	// PutAdvertisement creates one that has no resourceVersion and updates one that
	// has, and gives it as it is then.
	PutAdvertisement(ctx context.Context, a *marketcrd.Advertisement) (*marketcrd.Advertisement, error)
	// DeleteAdvertisement deletes one if its resourceVersion is still this one.
	DeleteAdvertisement(ctx context.Context, provider, version string) error
	// Part of a report by name.
	Part(ctx context.Context, name string) (*marketcrd.AdvertisementPart, error)
	// PutPart creates one.
	PutPart(ctx context.Context, p *marketcrd.AdvertisementPart) error
	// Parts names all there are.
	Parts(ctx context.Context) ([]string, error)
	// DeletePart deletes one; that it is gone already is no error.
	DeletePart(ctx context.Context, name string) error
	// Observation of a cluster as it is now.
	Observation(ctx context.Context, cluster string) (*marketcrd.Observation, error)
	// PutObservation creates one that has no resourceVersion and updates one that
	// has, and gives it as it is then.
	PutObservation(ctx context.Context, o *marketcrd.Observation) (*marketcrd.Observation, error)
	// DeleteObservation deletes one if its resourceVersion is still this one.
	DeleteObservation(ctx context.Context, cluster, version string) error
	// PutHeartbeat creates or updates a replica's, and gives the resourceVersion that it
	// has then. ErrSetBack says that it was not written.
	PutHeartbeat(ctx context.Context, h *marketcrd.Heartbeat) (version string, err error)
	// DeleteHeartbeat of a replica that is gone.
	DeleteHeartbeat(ctx context.Context, replica string) error
	// Watch tells what there is and what changes until the context ends. It comes
	// back by itself when it is interrupted.
	Watch(ctx context.Context, w Watcher) error
	// Again makes Watch tell all there is anew: what it follows may be of another state
	// of the store than there is now.
	Again()
}

// Watcher is told what the store has, by one goroutine at a time for each kind.
type Watcher interface {
	// Advertisement is there, or is another now.
	Advertisement(a *marketcrd.Advertisement)
	// AdvertisementGone: there is none of that provider any more.
	AdvertisementGone(provider string)
	// Observation is there, or is another now.
	Observation(o *marketcrd.Observation)
	// ObservationGone: there is none of that cluster any more.
	ObservationGone(cluster string)
	// Heartbeat is there, or is another now.
	Heartbeat(h *marketcrd.Heartbeat)
	// HeartbeatGone: there is none of that replica any more.
	HeartbeatGone(replica string)
	// Synced: all that there was when watching began, or began again, has been told.
	Synced()
	// Broken: watching was interrupted, and nothing is told before Synced.
	Broken(err error)
}
