package server

import (
	"context"
	"net/http"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
)

// Replicas decides on what other replicas hand on; *reconciler.Reconciler is one.
type Replicas interface {
	// Reserve is Broker's; a replica that does not decide refuses with
	// wire.ReasonStandby.
	Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error)
	// Release is Broker's.
	Release(ctx context.Context, cluster, id string) error
	// Told says whether the client of a reservation was told 2xx by the replica that
	// handed it on.
	Told(id string, told bool)
}

// replicaRoutes are for the other replicas of this daemon alone, who say on whose
// behalf they ask.
func (a *agents) replicaRoutes(mux *routes.Mux) {
	only := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if id := identityOf(r); id.Role != pki.Server {
				refuse(w, http.StatusForbidden, wire.ReasonNotAReplica, "the certificate of %s (%s) is none of the daemon's", id.Name, id.Role)
				return
			}
			if a.Peer != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
				if err := a.Peer(r.TLS.PeerCertificates[0]); err != nil {
					refuse(w, http.StatusForbidden, wire.ReasonNotAReplica, "%v", err)
					return
				}
			}
			next(w, r)
		}
	}
	for path, h := range a.Handed {
		mux.HandleFunc("POST "+path, only(h.ServeHTTP))
	}
	if a.Replicas == nil {
		return
	}
	mux.HandleFunc("POST "+wire.HandedReservationsPath, only(a.postHanded))
	mux.HandleFunc("POST "+wire.HandedReleasesPath, only(a.postHandedRelease))
	mux.HandleFunc("POST "+wire.ToldPath, only(a.postTold))
}

// readHanded reads a body that another replica sent.
func readHanded(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := readBody(w, r, maxReservation+1024)
	if err != nil {
		refuseBody(w, err, maxReservation+1024)
		return false
	}
	if err := decodeStrict(body, into); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "read the request: %v", err)
		return false
	}
	return true
}

// postHanded decides on a reservation that another replica took.
func (a *agents) postHanded(w http.ResponseWriter, r *http.Request) {
	var in wire.HandedReservation
	if !readHanded(w, r, &in) {
		return
	}
	if in.ID == "" || !validKey(in.Key) || !validKey(in.ID) {
		refuse(w, http.StatusBadRequest, "BadRequest", "a reservation that is handed on has a name")
		return
	}
	extend(w, reserveTimeout+answerTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), reserveTimeout)
	defer cancel()
	reservation, err := a.Replicas.Reserve(ctx, wire.Ask{Cluster: in.Cluster, Key: in.Key, ID: in.ID, Handed: true, Request: in.Request})
	if err != nil {
		refuseWith(w, err)
		return
	}
	answerJSON(w, http.StatusOK, reservation)
}

// postHandedRelease releases what a cluster asked another replica to release.
func (a *agents) postHandedRelease(w http.ResponseWriter, r *http.Request) {
	var in wire.HandedRelease
	if !readHanded(w, r, &in) {
		return
	}
	extend(w, reserveTimeout+answerTimeout)
	ctx, cancel := context.WithTimeout(r.Context(), reserveTimeout)
	defer cancel()
	if err := a.Replicas.Release(ctx, in.Cluster, in.ID); err != nil {
		refuseWith(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// postTold notes that a client was told by another replica.
func (a *agents) postTold(w http.ResponseWriter, r *http.Request) {
	var in wire.Told
	if readHanded(w, r, &in) {
		a.Replicas.Told(in.ID, in.Told)
		w.WriteHeader(http.StatusNoContent)
	}
}
