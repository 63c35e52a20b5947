package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/server/ahead"
)

// maxWait bounds a long poll.
const maxWait = time.Minute

// getInstructionsV1 answers agents of the first form with what they owe, null
// when that is nothing (GET /api/v1/instructions).
func (a *agents) getInstructionsV1(w http.ResponseWriter, r *http.Request) {
	cluster := identityOf(r).Name
	if a.admit(w, r, cluster, "") {
		answerJSON(w, http.StatusOK, a.Broker.Owed(cluster))
	}
}

// getInstructions answers with all that the ledger says of a cluster, at once,
// or when it is another than the version at hand
// (GET /api/v2/clusters/{id}/instructions?since=…&wait=30s).
func (a *agents) getInstructions(w http.ResponseWriter, r *http.Request) {
	cluster := r.PathValue("id")
	if !a.admit(w, r, cluster, "") {
		return
	}
	wait, ok := waitOf(w, r)
	if !ok {
		return
	}
	extend(w, wait+answerTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64) // none, or none that counts
	since := r.URL.Query().Get("since")
	if a.setBack(cluster, after) {
		since, after = "", 0 // the agent takes a lower number from a whole answer alone
	}
	in, ok := a.newer(ctx, cluster, since, after)
	if !ok {
		a.unchanged(w, cluster, after)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	answerJSON(w, http.StatusOK, in)
}

// setBack reports whether an agent knows of a number that the ledger has no more: it has
// asked for what follows that for long, and what was read here is the remote's newest.
func (a *agents) setBack(cluster string, after uint64) bool {
	in, _ := a.Broker.Instructions(cluster)
	return a.claims.SetBack(cluster, in.Seq != 0 && in.Seq < after, a.Now()) && a.Broker.Newest() == nil
}

// unchanged answers that what a cluster was told still holds, or sends it to a replica that
// can say so.
func (a *agents) unchanged(w http.ResponseWriter, cluster string, after uint64) {
	if err := a.vouches(cluster, after); err != nil {
		w.Header().Set("Connection", "close")
		refuseFor(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, 2*time.Second, err)
		return
	}
	w.WriteHeader(http.StatusNotModified)
}

// vouches says why nobody here can say that what a cluster was told still holds.
func (a *agents) vouches(cluster string, after uint64) error {
	if a.Broker == nil {
		return nil
	}
	if in, _ := a.Broker.Instructions(cluster); in.Seq != 0 && in.Seq < after {
		return fmt.Errorf("the ledger was read up to %d here, and is at %d", in.Seq, after)
	}
	return a.Broker.Vouches()
}

// newer waits for instructions of another version, of a ledger that is not behind a
// number, until the context ends or the port is about to close.
func (a *agents) newer(ctx context.Context, cluster, since string, after uint64) (wire.Instructions, bool) {
	for {
		in, changed := a.Broker.Instructions(cluster)
		behind := in.Version != "" && in.Seq != 0 && in.Seq < after
		if in.Version != "" && in.Version != since && !behind {
			return in, true
		}
		again := maxWait
		if behind {
			if again = a.claims.Take(cluster, a.Now()); again == 0 {
				a.Broker.Reread()
				again = ahead.Each
			}
		}
		if !awaitNews(ctx, changed, again) {
			return wire.Instructions{}, false
		}
	}
}

// awaitNews waits until a channel is closed, or for some time; false where the request's
// context ends before, or the port is about to close.
func awaitNews(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-Stopping(ctx):
		return false
	case <-changed:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

type stoppingKey struct{}

// Stopping is closed when the port that serves a request is about to close;
// nil, which is never, for requests of no port.
func Stopping(ctx context.Context) <-chan struct{} {
	ch, _ := ctx.Value(stoppingKey{}).(chan struct{})
	return ch
}
