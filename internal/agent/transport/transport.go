package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Transport is a line to one broker.
type Transport interface {
	// Put reports flavors: packed is a gzipped wire.FlavorReport, nil says that
	// nothing has changed since the generation. honoured is FlavorReport.Honoured of
	// it. ErrUnknownBase and *StaleError ask for another form of the same report.
	Put(ctx context.Context, g wire.Generation, packed []byte, honoured uint64) error
	// Instructions are what the ledger says of this cluster, once they are of
	// another version than since ("" is any), of a ledger that is not behind after
	// (0 is any); ErrUnchanged after wait, at most a minute.
	Instructions(ctx context.Context, since string, after uint64, wait time.Duration) (wire.Instructions, error)
	// Reserve asks for capacity. Phase Pending says that it waits in the queue.
	// A *wire.Refusal is the broker's answer.
	Reserve(ctx context.Context, key string, q wire.ReservationRequest) (wire.Reservation, error)
	// Release gives back what Reserve got, by its id. One that the broker does
	// not know is a *wire.Refusal with wire.ReasonNotFound.
	Release(ctx context.Context, id string) error
	// Manifests are what the agent of this cluster applies there, once they are
	// of another version than since; ErrUnchanged after wait. A *wire.Refusal
	// with wire.ReasonNotDelivered says that it is not its task.
	Manifests(ctx context.Context, since string, wait time.Duration) (wire.Manifests, error)
	// ManifestsRoot is the hash of those manifests in the remote repository now.
	ManifestsRoot(ctx context.Context) (string, error)
	// Observe tells what is seen of them.
	Observe(ctx context.Context, report wire.Observed) error
	// Close gives up connections. Calls under way fail.
	Close()
}

// KindStream named the stream of earlier versions.
const KindStream = "grpc"

// New is a transport of a kind: "http" (default). The stream of earlier versions
// was removed; who names it gets single requests, on the same port.
func New(kind, broker, cluster string, files *pki.Files) (Transport, error) {
	switch kind {
	case "", "http", KindStream:
		return NewHTTP(broker, cluster, files)
	}
	return nil, fmt.Errorf("transport %q: use http", kind)
}

var (
	// ErrUnknownBase says that the broker does not know the list of the
	// generation: it wants the full one.
	ErrUnknownBase = errors.New("the broker does not know the list")
	// ErrUnchanged says that there is no newer version yet.
	ErrUnchanged = errors.New("nothing has changed")
)

// StaleError says that the broker knows a newer report.
type StaleError struct {
	// Last is the newest that it knows.
	Last wire.Generation
}

// Error says which.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the broker knows the newer report %s", e.Last)
}
