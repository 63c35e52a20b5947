package daemon

import (
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// AgentRoutes says what is traced of requests to the agents' port: reports with news,
// reservations, and what other replicas hand on. What comes by the second (heartbeats, long
// polls) is not. peer is an error for a certificate of a daemon that is none of this
// fleet's; nil takes each that is a daemon's.
func AgentRoutes(peer func(*x509.Certificate) error) func(*http.Request) tracing.Route {
	return func(r *http.Request) tracing.Route {
		switch path := r.URL.Path; {
		case r.Method == http.MethodPut && strings.HasSuffix(path, "/flavors") && r.ContentLength != 0:
			return tracing.Route{Name: "report", Trigger: true, Market: true}
		case r.Method == http.MethodPost && path == wire.ReservationsPath:
			return tracing.Route{Name: "reserve", Trigger: true}
		case r.Method == http.MethodDelete && strings.HasPrefix(path, wire.ReservationPath("")):
			return tracing.Route{Name: "release", Trigger: true}
		case path == wire.HandedReservationsPath:
			return tracing.Route{Name: "reserve for a replica", Trigger: true, Trusted: isReplica(r, peer)}
		case path == wire.HandedReleasesPath:
			return tracing.Route{Name: "release for a replica", Trigger: true, Trusted: isReplica(r, peer)}
		}
		return tracing.Route{}
	}
}

// WebhookRoutes says what is traced of requests to the webhooks' port. Anybody may call
// it; a call that proves nothing is answered with an error, and leads to no round.
func WebhookRoutes(r *http.Request) tracing.Route {
	if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/hooks/") {
		return tracing.Route{Name: "webhook", Trigger: true, Told: true}
	}
	return tracing.Route{}
}

// isReplica reports whether a request is another replica's, by its certificate.
func isReplica(r *http.Request, peer func(*x509.Certificate) error) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	cert := r.TLS.PeerCertificates[0]
	id, err := pki.IdentityOf(cert)
	return err == nil && id.Role == pki.Server && (peer == nil || peer(cert) == nil)
}
