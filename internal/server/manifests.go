package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// Delivery is what the agents' port needs of delivery to clusters whose own
// agents apply their manifests; *delivery.Deliverer is one. All three refuse
// other clusters with delivery.ErrNotDelivered.
type Delivery interface {
	// Manifests are what an agent shall apply; the channel is closed once that may be something else.
	Manifests(cluster string) (wire.Manifests, <-chan struct{}, error)
	// Root is the hash of those manifests as the remote has them now.
	Root(ctx context.Context, cluster string) (string, error)
	// Observed takes what an agent sees, and returns once every replica will know it.
	Observed(ctx context.Context, cluster string, report wire.Observed) error
}

// getManifests answers with all that a cluster's agent shall apply, at once, or
// when it is another than the version at hand
// (GET /api/v2/clusters/{id}/manifests?since=…&wait=30s).
func (a *agents) getManifests(w http.ResponseWriter, r *http.Request) {
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
	for {
		m, changed, err := a.Delivery.Manifests(cluster)
		if err != nil {
			refuseDelivery(w, err)
			return
		}
		if m.Version != r.URL.Query().Get("since") {
			w.Header().Set("Cache-Control", "no-store")
			answerJSON(w, http.StatusOK, m)
			return
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		case <-Stopping(ctx):
		}
		a.unchanged(w, cluster, 0)
		return
	}
}

// getManifestsRoot asks the remote on an agent's behalf
// (GET /api/v2/clusters/{id}/manifests/root).
func (a *agents) getManifestsRoot(w http.ResponseWriter, r *http.Request) {
	cluster := r.PathValue("id")
	if !a.admit(w, r, cluster, "") {
		return
	}
	root, err := a.Delivery.Root(r.Context(), cluster)
	if err != nil {
		refuseDelivery(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	answerJSON(w, http.StatusOK, wire.ManifestsRoot{Root: root})
}

// putObservations takes what an agent sees of what it applied
// (PUT /api/v2/clusters/{id}/observations).
func (a *agents) putObservations(w http.ResponseWriter, r *http.Request) {
	cluster := r.PathValue("id")
	if !a.admit(w, r, cluster, "") {
		return
	}
	if !a.begin(cluster + " observations") {
		refuse(w, http.StatusTooManyRequests, "Busy", "observations of %s are being read; send one at a time", cluster)
		return
	}
	defer a.end(cluster + " observations")
	body, err := readBody(w, r, maxReport)
	if err != nil {
		refuseBody(w, err, maxReport)
		return
	}
	done, ok := a.toStore(w, r, len(body))
	if !ok {
		return
	}
	defer done()
	var report wire.Observed
	if err := a.decode(body, &report); err != nil {
		refuse(w, http.StatusBadRequest, "BadReport", "read the observations: %v", err)
		return
	}
	if err := report.Check(); err != nil {
		refuse(w, http.StatusBadRequest, "BadReport", "read the observations: %v", err)
		return
	}
	if err := a.Delivery.Observed(r.Context(), cluster, report); err != nil {
		refuseDelivery(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// waitOf is how long a long poll waits; it answers for what is no duration.
func waitOf(w http.ResponseWriter, r *http.Request) (time.Duration, bool) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, true
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		refuse(w, http.StatusBadRequest, "BadWait", "wait: %q is not a duration; write for example 30s", text)
		return 0, false
	}
	return min(wait, maxWait), true
}

// refuseDelivery tells what is not the agent's task from what cannot be had now.
func refuseDelivery(w http.ResponseWriter, err error) {
	if errors.Is(err, delivery.ErrNotDelivered) {
		refuse(w, http.StatusConflict, wire.ReasonNotDelivered, "%v: set delivery: agent in its file", err)
		return
	}
	var stale *wire.StaleEpochError
	if errors.As(err, &stale) {
		refuseStale(w, stale)
		return
	}
	var busy *store.BusyError
	if errors.As(err, &busy) {
		refuseFor(w, http.StatusTooManyRequests, wire.ReasonPaced, busy.After, err)
		return
	}
	refuseFor(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, 5*time.Second, err)
}
