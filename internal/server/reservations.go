package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

const (
	// maxReservation bounds a request for capacity: an intent's specification.
	maxReservation = 256 << 10
	// maxKey bounds an idempotency key, in bytes.
	maxKey = 255
	// reserveTimeout is how long a request waits for its commit. It is below
	// the time that clients of the first form wait (30 s).
	reserveTimeout = 25 * time.Second
	// answerTimeout is how long an answer may take to be sent.
	answerTimeout = 10 * time.Second
)

// Broker decides on reservations and tells what the ledger says;
// *reconciler.Reconciler is one. Errors that clients shall see are
// *wire.Refusal.
type Broker interface {
	// Reserve makes a reservation and returns once it is on the remote's
	// ledger, or waits in the queue there (phase Pending).
	Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error)
	// Answered says whether the client of a reservation was told 2xx.
	Answered(id string, told bool)
	// Release ends a reservation that the cluster asked for and returns once
	// that is on the remote's ledger.
	Release(ctx context.Context, cluster, id string) error
	// Instructions are what the ledger says of a cluster; the channel is closed
	// once that may have changed.
	Instructions(cluster string) (wire.Instructions, <-chan struct{})
	// Vouches says why what this replica knows of the ledger may be old, nil when it
	// is as new as can be known.
	Vouches() error
	// Newest says why the ledger by which Instructions go may not be the newest that the
	// remote has, nil when it is: the remote answers, and what it has was read.
	Newest() error
	// Reread asks the remote whether the ledger has moved. It returns at once.
	Reread()
	// Owed is what a cluster must provide, in the first form's words.
	Owed(cluster string) []wire.Reservation
	// Held is the capacity that contracts keep of a cluster, all together.
	Held(cluster string) wire.Quantities
}

// postReservation asks for capacity on behalf of a cluster
// (POST /api/v1/reservations).
func (a *agents) postReservation(w http.ResponseWriter, r *http.Request) {
	cluster := identityOf(r).Name
	if !a.admit(w, r, cluster, v1alpha1.RoleConsumer) {
		return
	}
	key := r.Header.Get(wire.HeaderIdempotencyKey)
	if !validKey(key) {
		refuse(w, http.StatusBadRequest, "BadKey", "header %s: at most %d printable characters", wire.HeaderIdempotencyKey, maxKey)
		return
	}
	body, err := readBody(w, r, maxReservation)
	if err != nil {
		refuseBody(w, err, maxReservation)
		return
	}
	ask := wire.Ask{Cluster: cluster, Key: key}
	if err := decodeStrict(body, &ask.Request); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "read the request: %v", err)
		return
	}
	extend(w, reserveTimeout+answerTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), reserveTimeout)
	defer cancel()
	reservation, err := a.Broker.Reserve(ctx, ask)
	if err != nil {
		refuseWith(w, err)
		return
	}
	status := http.StatusCreated
	if reservation.Status.Phase == wire.PhasePending {
		status = http.StatusAccepted
	}
	reservation.Trace = tracing.Of(r.Context()).Traceparent()
	answerJSON(w, status, reservation)
	// If nobody is there any more, what he sends again is a retry.
	a.Broker.Answered(reservation.ID, r.Context().Err() == nil)
}

// deleteReservation releases what a cluster had asked for
// (DELETE /api/v2/reservations/{id}).
func (a *agents) deleteReservation(w http.ResponseWriter, r *http.Request) {
	cluster := identityOf(r).Name
	if !a.admit(w, r, cluster, "") {
		return
	}
	extend(w, reserveTimeout+answerTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), reserveTimeout)
	defer cancel()
	if err := a.Broker.Release(ctx, cluster, r.PathValue("id")); err != nil {
		refuseWith(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuseWith answers with an error of the broker. One that is no Refusal is
// ours, and says nothing about the request.
func refuseWith(w http.ResponseWriter, err error) {
	var refusal *wire.Refusal
	if !errors.As(err, &refusal) {
		refusal = &wire.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: time.Second,
			Body: wire.Error{Error: err.Error(), Reason: wire.ReasonUnavailable},
		}
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	}
	body := refusal.Body
	body.Error = escape.Reason(body.Error) // a git server's words may stand in it
	answerJSON(w, refusal.Status, body)
}

// extend lets an answer take longer than the port's requests do. Reading has
// ended, but its deadline would still end the request.
func extend(w http.ResponseWriter, by time.Duration) {
	c := http.NewResponseController(w)
	// A writer that knows no deadlines, as tests have, needs none put off.
	_ = c.SetWriteDeadline(time.Now().Add(by))
	_ = c.SetReadDeadline(time.Time{})
}

func validKey(key string) bool {
	if len(key) > maxKey || !utf8.ValidString(key) {
		return false
	}
	for _, c := range key {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// decodeStrict reads a document of which every field must be known: one that
// nobody knows is a mistake here, and not a wish to be ignored.
func decodeStrict(body []byte, into any) error {
	if err := strictjson.Check(body); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
