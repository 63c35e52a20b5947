package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/wires"
)

// hostile is the port for a peer with a certificate, nil without.
func (f *fleet) hostile(pair *tls.Certificate) *wires.Port {
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	config.RootCAs.AppendCertsFromPEM(f.ca.CA())
	if pair != nil {
		config.Certificates = []tls.Certificate{*pair}
	}
	return &wires.Port{Address: strings.TrimPrefix(f.address, "https://"), TLS: config, Get: "/healthz", Post: "/hooks/github"}
}

// rawPorts are the three ports behind TLS.
func rawPorts(t *testing.T) map[string]*fleet {
	t.Helper()
	agents := startPolled(t, 0)
	out := map[string]*fleet{"agents": agents}
	for _, name := range []string{"operators", "webhooks"} {
		f := &fleet{t: t, revocations: new(Revocations), now: time.Now()}
		files := f.certify()
		port := Port{Name: name, Address: "127.0.0.1:0", TLS: ServerTLS(files, quiet), Handler: NewWebhooks(Webhooks{Secret: func(string) []byte { return []byte("s3cret") }, Trigger: func(string) {}})}
		if name == "operators" {
			guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
			if err != nil {
				t.Fatal(err)
			}
			port.TLS = GuardTLS(files, quiet)
			port.Handler = NewOperators(Operators{Metrics: NewMetrics(), Market: &recorder{}, Guard: guard})
		}
		f.address = "https://" + run(t, port)
		out[name] = f
	}
	return out
}

// honest is answered as ever, within a time.
func (f *fleet) honest(port string, pair *tls.Certificate) error {
	client := f.client(nil, func(c *tls.Config) {
		if pair != nil {
			c.Certificates = []tls.Certificate{*pair}
		}
	})
	client.Timeout = 10 * time.Second
	defer client.CloseIdleConnections()
	method, path, want := http.MethodGet, "/healthz", http.StatusOK
	if port == "webhooks" {
		method, path, want = http.MethodPost, "/hooks/gitlab", http.StatusAccepted
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.address+path, strings.NewReader(""))
	if err != nil {
		return err
	}
	r.Header.Set("X-Gitlab-Token", "s3cret")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		return fmt.Errorf("answered %d", answer.StatusCode)
	}
	return nil
}

// pair is a certificate of an agent, nil for the ports that ask for none.
func (f *fleet) pair(port, name string) *tls.Certificate {
	f.t.Helper()
	if port != "agents" {
		return nil
	}
	bundle, err := f.ca.Issue(pki.Request{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	return &pair
}

// in has a subtest fail, not the test, until it ends.
func (f *fleet) in(t *testing.T) (back func()) {
	was := f.t
	f.t = t
	return func() { f.t = was }
}

// TestRawWires: whatever frames and bytes come on connections, whoever is honest is answered
// meanwhile and afterwards, and once the connections are closed memory and goroutines are
// what they were.
func TestRawWires(t *testing.T) {
	for port, f := range rawPorts(t) {
		hostile, honest := f.pair(port, "paris"), f.pair(port, "lyon")
		if err := f.honest(port, honest); err != nil {
			t.Fatalf("%s, before: %v", port, err)
		}
		routines := runtime.NumGoroutine()
		for name, attack := range wires.Attacks {
			t.Run(port+", "+name, func(t *testing.T) {
				defer f.in(t)()
				peer := f.hostile(hostile)
				defer func() { _ = peer.Close() }()
				before := heapBytes()
				ended := make(chan error, 1)
				go func() { ended <- attack(t.Context(), peer) }()
				if err := f.honest(port, honest); err != nil {
					t.Errorf("meanwhile: %v", err)
				}
				if err := <-ended; err != nil {
					t.Logf("the attack ended: %v", err)
				}
				if grown := heapBytes() - before; grown > 32<<20 {
					t.Errorf("%d MiB more are in use, want at most 32", grown>>20)
				}
				if err := f.honest(port, honest); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
		if err := f.honest(port, honest); err != nil {
			t.Errorf("%s, after all: %v", port, err)
		}
		const others = 20 // of who is honest, and of what has just ended
		tick := time.NewTicker(50 * time.Millisecond)
		for end := time.Now().Add(15 * time.Second); runtime.NumGoroutine() > routines+others && time.Now().Before(end); <-tick.C {
		}
		tick.Stop()
		if n := runtime.NumGoroutine(); n > routines+others {
			t.Errorf("%s: %d goroutines are left, there were %d", port, n, routines)
		}
	}
}

// TestAnswersThatNobodyTakes: a peer that leaves answers untaken, on each stream that it may
// have and with headers as large as they may be, has a port hold a bounded amount; what is
// counted includes the peer's own side.
func TestAnswersThatNobodyTakes(t *testing.T) {
	for port, f := range rawPorts(t) {
		t.Run(port, func(t *testing.T) {
			defer f.in(t)()
			peer, honest := f.hostile(f.pair(port, "paris")), f.pair(port, "lyon")
			defer func() { _ = peer.Close() }()
			before := heapBytes()
			block := peer.Request("GET", "/healthz", "x-fill", strings.Repeat("x", 30<<10))
			for range 50 {
				w, err := peer.Open(t.Context(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				for i := 0; i < 64 && err == nil; i++ {
					err = w.Send(block, true)
				}
				if err != nil && w == nil {
					t.Fatal(err)
				}
			}
			if err := f.honest(port, honest); err != nil {
				t.Errorf("meanwhile: %v", err)
			}
			grown := heapBytes() - before
			t.Logf("%.1f MiB more are in use", float64(grown)/(1<<20))
			if grown > 40<<20 {
				t.Errorf("%d MiB more are in use, want at most 40", grown>>20)
			}
		})
	}
}
