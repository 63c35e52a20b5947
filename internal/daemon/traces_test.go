package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

// A trace goes on from another replica of this fleet alone, whatever path is asked.
func TestAgentRoutes(t *testing.T) {
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(q pki.Request) *tls.ConnectionState {
		bundle, err := ca.Issue(q)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := bundle.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		files, err := pki.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := files.Load()
		if err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{m.Pair.Leaf}, VerifiedChains: [][]*x509.Certificate{{m.Pair.Leaf}}}
	}
	replica, agent := shown(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}), shown(pki.Request{Name: "rome"})
	unverified := &tls.ConnectionState{PeerCertificates: replica.PeerCertificates}
	ours := func(*x509.Certificate) error { return nil }
	others := func(*x509.Certificate) error { return errors.New("of another fleet") }
	for _, c := range []struct {
		name, method, path, body string
		tls                      *tls.ConnectionState
		peer                     func(*x509.Certificate) error
		want                     tracing.Route
	}{
		{"report with news", "PUT", wire.FlavorsPath("paris"), "x", agent, ours, tracing.Route{Name: "report", Trigger: true, Market: true}},
		{"heartbeat", "PUT", wire.FlavorsPath("paris"), "", agent, ours, tracing.Route{}},
		{"long poll", "GET", wire.InstructionsPath("paris"), "", agent, ours, tracing.Route{}},
		{"reservation", "POST", wire.ReservationsPath, "x", agent, ours, tracing.Route{Name: "reserve", Trigger: true}},
		{"release", "DELETE", wire.ReservationPath("rq-1"), "", agent, ours, tracing.Route{Name: "release", Trigger: true}},
		{"handed on", "POST", wire.HandedReservationsPath, "x", replica, ours, tracing.Route{Name: "reserve for a replica", Trigger: true, Trusted: true}},
		{"release handed on", "POST", wire.HandedReleasesPath, "x", replica, ours, tracing.Route{Name: "release for a replica", Trigger: true, Trusted: true}},
		{"an agent says it hands on", "POST", wire.HandedReservationsPath, "x", agent, ours, tracing.Route{Name: "reserve for a replica", Trigger: true}},
		{"a daemon of another fleet", "POST", wire.HandedReservationsPath, "x", replica, others, tracing.Route{Name: "reserve for a replica", Trigger: true}},
		{"nobody verified it", "POST", wire.HandedReservationsPath, "x", unverified, ours, tracing.Route{Name: "reserve for a replica", Trigger: true}},
		{"no TLS", "POST", wire.HandedReservationsPath, "x", nil, ours, tracing.Route{Name: "reserve for a replica", Trigger: true}},
		{"a replica reserves as an agent does", "POST", wire.ReservationsPath, "x", replica, ours, tracing.Route{Name: "reserve", Trigger: true}},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.TLS = c.tls
		if got := AgentRoutes(c.peer)(r); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := WebhookRoutes(httptest.NewRequest(http.MethodPost, "/hooks/github", nil)); got != (tracing.Route{Name: "webhook", Trigger: true, Told: true}) {
		t.Errorf("a webhook: %+v", got)
	}
	if got := WebhookRoutes(httptest.NewRequest(http.MethodGet, "/", nil)); got != (tracing.Route{}) {
		t.Errorf("another request: %+v", got)
	}
}
