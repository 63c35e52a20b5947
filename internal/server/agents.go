package server

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/server/ahead"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
)

// maxReport bounds a report, as sent and as unpacked: some ten thousand
// flavors.
const maxReport = 8 << 20

// concurrentReports bounds how many reports are decoded at once, and with it
// memory; further ones wait their turn.
const concurrentReports = 4

// Reports takes what agents report; a store.Store is one.
type Reports interface {
	// Report takes a report, whole. market.ErrUnknownBase asks for a full one; a
	// *market.StaleEpochError names the newest generation; a *store.BusyError and a
	// *store.CutError refuse it for now, a *store.RefusedError until somebody does
	// something; any other error is a mistake in it.
	Report(ctx context.Context, r store.Report) error
}

// Market is what the ports need of the market; *market.Market is one.
type Market interface {
	// Offers are the flavors that a query chooses, in order of provider and name,
	// with the tree of all; the channel is closed once they may be others.
	Offers(market.Query) (tree.Tree, []v1alpha1.Flavor, <-chan struct{})
	// Pods are what consumers' agents last reported of pods on virtual nodes.
	Pods() []wire.PodsReport
}

// Agents is what the agents' port is made of.
type Agents struct {
	// Reports takes the reports.
	Reports Reports
	// Market answers GET /market.
	Market Market
	// Broker decides on reservations; nil serves neither them nor instructions.
	Broker Broker
	// Replicas decides on what other replicas of this daemon hand on; nil has none.
	Replicas Replicas
	// Handed answers what other replicas hand on beside that, by path; only they may ask.
	Handed map[string]http.Handler
	// Peer is an error for the certificate of a daemon that is none of this fleet's; nil takes
	// each that the authority signed.
	Peer func(*x509.Certificate) error
	// Delivery hands manifests to the agents that apply them; nil does not.
	Delivery Delivery
	// Revocations refuse certificates; nil refuses none.
	Revocations *Revocations
	// Enrolled reports whether a cluster is one of the fleet; nil enrols all that hold a certificate.
	Enrolled func(cluster string) bool
	// NotEnrolled says what becomes of a cluster that is not of the fleet; nil
	// only refuses it. role is what the cluster is by what it sent: a provider
	// (it reports flavors), a consumer (it reports that it has none, or asks for
	// capacity), or "" when that cannot be told. It must not block.
	NotEnrolled func(cluster, role string) *wire.Refusal
	// Metrics count reports; may be nil.
	Metrics *Metrics
	// Log of refused reports.
	Log *slog.Logger
	// Limits of each identity; zero fields take the defaults.
	Limits Limits
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// agents serves Agents.
type agents struct {
	Agents
	slots   chan struct{}
	storing *semaphore.Weighted // of bytes of reports that the store is told
	claims  *ahead.Claims
	legacy  *advertisements

	mu   sync.Mutex
	busy map[string]bool // clusters whose report is being read
}

// NewAgents is the handler of the agents' port.
func NewAgents(o Agents) http.Handler {
	a := newAgents(o)
	l := newLimiter(a.Limits, a.Now)
	return authenticate(a.Revocations, a.Now, l.limit(costOf, a.limited, a.routes()))
}

func newAgents(o Agents) *agents {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Revocations == nil {
		o.Revocations = new(Revocations)
	}
	return &agents{Agents: o, slots: make(chan struct{}, concurrentReports), storing: semaphore.NewWeighted(storedAtOnce), claims: ahead.New(), legacy: newAdvertisements(), busy: map[string]bool{}}
}

// routes are what a caller who is known may ask.
func (a *agents) routes() http.Handler {
	mux := routes.NewMux()
	a.register(mux)
	return jsonErrors(mux.ServeMux)
}

func (a *agents) register(mux *routes.Mux) {
	mux.HandleFunc("PUT /api/v2/clusters/{id}/flavors", a.putFlavors)
	mux.HandleFunc("POST /api/v1/advertisements", a.postAdvertisement)
	mux.HandleFunc("GET /api/v1/advertisements/{id}", a.getAdvertisement)
	if a.Broker != nil {
		mux.HandleFunc("POST "+wire.ReservationsPath, a.postReservation)
		mux.HandleFunc("DELETE /api/v2/reservations/{id}", a.deleteReservation)
		mux.HandleFunc("GET "+wire.InstructionsV1Path, charged(a.getInstructionsV1))
		mux.HandleFunc("GET /api/v2/clusters/{id}/instructions", polled(a.getInstructions))
	}
	a.replicaRoutes(mux)
	if a.Delivery != nil {
		mux.HandleFunc("GET /api/v2/clusters/{id}/manifests", polled(a.getManifests))
		mux.HandleFunc("GET /api/v2/clusters/{id}/manifests/root", inTurn(a.getManifestsRoot))
		mux.HandleFunc("PUT /api/v2/clusters/{id}/observations", a.putObservations)
	}
	mux.HandleFunc("GET /market", polled(marketHandler(a.Market).ServeHTTP))
	mux.HandleFunc("GET "+wire.PodsPath, charged(podsHandler(a.Market)))
	mux.HandleFunc("POST "+streamPath, refuseStream)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
}

// streamPath was the route of a gRPC stream of reports, which is gone: one
// certificate could make the daemon hold hundreds of mebibytes by it.
const streamPath = "/fleetbroker.v1.Broker/Connect"

// refuseStream tells an agent that still asks for the stream, in gRPC's own
// form so that its log has the words, what to do.
func refuseStream(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "12") // UNIMPLEMENTED
	w.Header().Set("Grpc-Message", "the stream of reports was removed: start the agent with --broker-transport http")
	w.WriteHeader(http.StatusOK)
}

// costOf is what a request costs of its sender's share.
func costOf(r *http.Request) int {
	if r.URL.Path == "/market" || r.URL.Path == wire.PodsPath {
		return marketCost
	}
	return 1
}

// limited counts a report that was held back.
func (a *agents) limited(r *http.Request) { a.countReport(r, "limited") }

// countReport counts a request by its sender if it is a report.
func (a *agents) countReport(r *http.Request, result string) {
	if r.Method == http.MethodPut && r.URL.Path != wire.ObservationsPath(r.PathValue("id")) || r.URL.Path == "/api/v1/advertisements" {
		a.count(identityOf(r).Name, result)
	}
}

// putFlavors takes a cluster's report.
func (a *agents) putFlavors(w http.ResponseWriter, r *http.Request) {
	cluster := r.PathValue("id")
	if !a.speaks(w, r, cluster) {
		return
	}
	if !a.isEnrolled(cluster) {
		a.stranger(w, r, cluster, a.roleIn(w, r, cluster))
		return
	}
	generation, err := wire.ParseGeneration(r.Header.Get(wire.HeaderGeneration))
	if err != nil {
		a.refused(w, cluster, http.StatusBadRequest, "BadGeneration", "header "+wire.HeaderGeneration+": "+err.Error())
		return
	}
	honoured, err := wire.ParseHonoured(r.Header.Get(wire.HeaderHonoured))
	if err != nil {
		a.refused(w, cluster, http.StatusBadRequest, "BadHonoured", "header "+wire.HeaderHonoured+": "+err.Error())
		return
	}
	if !a.begin(cluster) {
		refuse(w, http.StatusTooManyRequests, "Busy", "a report of %s is being read; send one at a time", cluster)
		return
	}
	defer a.end(cluster)
	body, err := readBody(w, r, maxReport)
	if err != nil {
		a.count(cluster, bodyResult(err))
		refuseBody(w, err, maxReport)
		return
	}
	var report wire.FlavorReport
	full := len(body) > 0
	if full {
		done, ok := a.toStore(w, r, len(body))
		if !ok {
			a.count(cluster, "limited")
			return
		}
		defer done()
		if err := a.decode(body, &report); err != nil {
			a.refused(w, cluster, http.StatusBadRequest, "BadReport", "read the report: "+err.Error())
			return
		}
	}
	if !a.complete(w, cluster, report.Flavors) {
		return
	}
	told := store.Report{Cluster: cluster, Generation: generation, Certificate: serialOf(r)}
	if full {
		report.Honoured = max(report.Honoured, honoured)
		told.Content = &report
	}
	if a.answerReport(w, cluster, a.Reports.Report(r.Context(), told)) {
		w.Header().Set(wire.HeaderGeneration, generation.String())
		w.WriteHeader(http.StatusNoContent)
	}
}

// begin lets a cluster send one report at a time: slow ones, however many, then
// delay nobody else's.
func (a *agents) begin(cluster string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[cluster] {
		return false
	}
	a.busy[cluster] = true
	return true
}

func (a *agents) end(cluster string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, cluster)
}

// admit lets a cluster of the fleet speak for itself. role is what a cluster
// that is not of the fleet is by this request, "" when it does not tell.
func (a *agents) admit(w http.ResponseWriter, r *http.Request, cluster, role string) bool {
	if !a.speaks(w, r, cluster) {
		return false
	}
	if !a.isEnrolled(cluster) {
		a.stranger(w, r, cluster, role)
		return false
	}
	return true
}

// speaks lets a cluster speak for itself only.
func (a *agents) speaks(w http.ResponseWriter, r *http.Request, cluster string) bool {
	if !speaksFor(w, r, cluster) {
		a.countReport(r, "rejected")
		return false
	}
	return true
}

func (a *agents) isEnrolled(cluster string) bool { return a.Enrolled == nil || a.Enrolled(cluster) }

// stranger refuses a cluster that is not of the fleet.
func (a *agents) stranger(w http.ResponseWriter, r *http.Request, cluster, role string) {
	a.countReport(r, "rejected")
	if a.NotEnrolled != nil {
		answer := a.NotEnrolled(cluster, role)
		if answer.Status == http.StatusServiceUnavailable {
			w.Header().Set("Connection", "close") // a balancer sends the next one elsewhere
		}
		refuseWith(w, answer)
		return
	}
	refuse(w, http.StatusForbidden, "NotEnrolled", "cluster %s is not in the fleet: add clusters/%s.yaml to the fleet repo", cluster, cluster)
}

// roleIn is what a cluster is by its report: a provider with flavors, a consumer
// without any, "" when the report cannot be read or says nothing new. It is read
// within the same bounds as those of the fleet.
func (a *agents) roleIn(w http.ResponseWriter, r *http.Request, cluster string) string {
	if !a.begin(cluster) {
		return ""
	}
	defer a.end(cluster)
	body, err := readBody(w, r, maxReport)
	if err != nil || len(body) == 0 {
		return ""
	}
	a.slots <- struct{}{}
	defer func() { <-a.slots }()
	var report wire.FlavorReport
	switch err := strictjson.Decode(body, &report); {
	case err != nil:
		return ""
	case len(report.Flavors) > 0:
		return v1alpha1.RoleProvider
	}
	return v1alpha1.RoleConsumer
}

// complete fills in what a report may leave out and refuses flavors of other
// clusters.
func (a *agents) complete(w http.ResponseWriter, cluster string, flavors []v1alpha1.Flavor) bool {
	for i := range flavors {
		f := &flavors[i]
		if f.Metadata.Namespace == "" {
			f.Metadata.Namespace = cluster
		}
		if f.Metadata.Namespace != cluster {
			a.refused(w, cluster, http.StatusForbidden, "ForeignFlavor", "flavor "+f.Ref()+" is not of cluster "+cluster)
			return false
		}
		f.APIVersion, f.Kind = v1alpha1.APIVersion, v1alpha1.KindFlavor
	}
	return true
}

// answerReport counts what became of a report, and answers unless it was taken.
func (a *agents) answerReport(w http.ResponseWriter, cluster string, err error) bool {
	var stale *market.StaleEpochError
	var busy *store.BusyError
	var cut *store.CutError
	var refused *store.RefusedError
	switch {
	case err == nil:
		a.count(cluster, "accepted")
		return true
	case errors.As(err, &busy):
		a.count(cluster, "limited")
		refuseFor(w, http.StatusTooManyRequests, wire.ReasonPaced, busy.After, err)
	case errors.As(err, &cut):
		a.count(cluster, "unavailable")
		w.Header().Set("Connection", "close") // a balancer sends the next one elsewhere
		refuseFor(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, 2*time.Second, err)
	case errors.As(err, &refused):
		a.count(cluster, "unavailable")
		refuseFor(w, http.StatusServiceUnavailable, wire.ReasonUnavailable, 15*time.Second, err)
	case errors.Is(err, market.ErrUnknownBase):
		a.count(cluster, "unknown_base")
		refuse(w, http.StatusPreconditionFailed, wire.ReasonUnknownBase, "%v", err)
	case errors.As(err, &stale):
		a.count(cluster, "stale")
		refuseStale(w, stale)
	default:
		a.refused(w, cluster, http.StatusUnprocessableEntity, "BadReport", err.Error())
	}
	return false
}

// refuseStale answers with the newest generation that is known.
func refuseStale(w http.ResponseWriter, stale *wire.StaleEpochError) {
	answerJSON(w, http.StatusConflict, wire.Error{Error: stale.Error(), Reason: wire.ReasonStaleEpoch, Last: stale.Last.String()})
}

// refuseFor answers that a request may come again after a while.
func refuseFor(w http.ResponseWriter, status int, reason string, after time.Duration, err error) {
	w.Header().Set("Retry-After", strconv.Itoa(int(max(math.Ceil(after.Seconds()), 1))))
	refuse(w, status, reason, "%v", err)
}

// serialOf is the serial number of the certificate that a request came with.
func serialOf(r *http.Request) string {
	if cert := peer(r); cert != nil {
		return cert.SerialNumber.Text(16)
	}
	return ""
}

// refused counts, logs and answers a report that will be no better next time.
func (a *agents) refused(w http.ResponseWriter, cluster string, status int, reason, message string) {
	a.count(cluster, "rejected")
	a.Log.Warn("report refused", "cluster", cluster, "reason", reason, "error", message)
	refuse(w, status, reason, "%s", message)
}

func (a *agents) count(cluster, result string) {
	if a.Metrics != nil {
		a.Metrics.Advert(cluster, result)
	}
}

// bodyResult is how a report whose body could not be read is counted.
func bodyResult(err error) string {
	if errors.Is(err, errTooFast) {
		return "limited"
	}
	return "rejected"
}
