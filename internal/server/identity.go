package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// TLSSource gives the newest certificates at each handshake, so that renewed
// ones are used without a restart. *pki.Files is one.
type TLSSource interface {
	Load() (*pki.Material, error)
}

// AgentTLS is the agents' port's TLS: 1.3 only, and a certificate of the
// fleet's authority from each peer that connects, not revoked and of a known role:
// who has another ends at the handshake, and takes no place from who has one.
// Connections become known to the revocations, which cut them; nil knows none.
func AgentTLS(source TLSSource, revocations *Revocations, log *slog.Logger) *tls.Config {
	refusals := &quieter{every: time.Minute, last: map[string]time.Time{}}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			m := load(source, log)
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   []string{"h2", "http/1.1"},
				Certificates: []tls.Certificate{m.Pair},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    m.Authorities,
				// A resumed session would be judged by authorities that may have been replaced.
				SessionTicketsDisabled: true,
				VerifyConnection: func(state tls.ConnectionState) error {
					cert := state.PeerCertificates[0]
					err := revocations.admit(hello.Conn, cert)
					if err != nil && refusals.now(certKey(cert)) {
						log.Warn("a connection is refused", "certificate", cert.Subject.CommonName, "serial", cert.SerialNumber.Text(16), "peer", hello.Conn.RemoteAddr().String(), "error", err)
					}
					return err
				},
			}, nil
		},
	}
}

// quieter lets one word a minute through of each certificate. There are as many
// as the authority has issued.
type quieter struct {
	every time.Duration
	mu    sync.Mutex
	last  map[string]time.Time
}

func (q *quieter) now(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if at, ok := q.last[key]; ok && now.Sub(at) < q.every {
		return false
	}
	q.last[key] = now
	return true
}

// ServerTLS is TLS 1.2 or newer without client certificates, for the webhooks'
// port: not every forge speaks 1.3.
func ServerTLS(source TLSSource, log *slog.Logger) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &load(source, log).Pair, nil
		},
	}
}

func load(source TLSSource, log *slog.Logger) *pki.Material {
	m, err := source.Load()
	if err != nil {
		log.Error("certificates changed and cannot be used; the former stay in force", "error", err)
	}
	return m
}

type identityKey struct{}

// identityOf is who sent the request.
func identityOf(r *http.Request) pki.Identity {
	id, _ := r.Context().Value(identityKey{}).(pki.Identity)
	return id
}

// authenticate lets only holders of a valid certificate through. The handshake
// has verified the chain; expiry, revocation and the authority are looked at again
// because connections outlive all three.
func authenticate(revocations *Revocations, now func() time.Time, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cert := peer(r)
		if cert == nil {
			refuse(w, http.StatusUnauthorized, "NoCertificate", "no verified client certificate")
			return
		}
		if now().After(cert.NotAfter) {
			refuse(w, http.StatusUnauthorized, "Expired", "the certificate of %s ended at %s; issue a new one", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
			return
		}
		if revocations.Has(cert) {
			refuse(w, http.StatusForbidden, "Revoked", "the certificate of %s was revoked", cert.Subject.CommonName)
			return
		}
		if !revocations.stand(r.TLS) {
			w.Header().Set("Connection", "close") // who has a newer certificate shows it in the next handshake
			refuse(w, http.StatusUnauthorized, "UnknownAuthority", "the authority that issued the certificate of %s is no longer in ca.crt; issue a new one", cert.Subject.CommonName)
			return
		}
		id, err := pki.IdentityOf(cert)
		if err != nil {
			refuse(w, http.StatusForbidden, "BadIdentity", "%v", err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}

func peer(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// speaksFor refuses a request about a cluster that is not the caller's own.
func speaksFor(w http.ResponseWriter, r *http.Request, cluster string) bool {
	if id := identityOf(r); id.Role != pki.Agent || id.Name != cluster {
		refuse(w, http.StatusForbidden, "ForeignCluster", "the certificate of %s (%s) does not speak for cluster %+.80q", id.Name, id.Role, cluster)
		return false
	}
	return true
}

// mayRead refuses to show what is told to one cluster to anybody but that
// cluster's agent and the fleet's operators.
func mayRead(w http.ResponseWriter, r *http.Request, cluster string) bool {
	return identityOf(r).Role == pki.Operator || speaksFor(w, r, cluster)
}
