package server

import (
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// TestTheBrokersCertificateIsRenewedWithoutARestart: new connections are shown
// the new certificate, and those that stand go on.
func TestTheBrokersCertificateIsRenewedWithoutARestart(t *testing.T) {
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics(), now: time.Now()}
	var err error
	if f.ca, err = pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	issue := func() *big.Int {
		t.Helper()
		bundle, err := f.ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{pki.CertFile: bundle.Cert, pki.KeyFile: bundle.Key, pki.CAFile: bundle.CA} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return leaf(t, bundle).SerialNumber
	}
	first := issue()
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.address = "https://" + run(t, Port{Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, f.lines.Logger()), Handler: NewAgents(Agents{Reports: f.market, Market: f.market, Log: quiet})})
	shown := func(client *http.Client) *big.Int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber
	}
	old := f.client(paris, nil)
	if got := shown(old); got.Cmp(first) != 0 {
		t.Fatalf("shown is %s, issued was %s", got, first)
	}
	second := issue()
	if got := shown(f.client(paris, nil)); got.Cmp(second) != 0 {
		t.Errorf("a new connection is shown %s, issued was %s after %s", got, second, first)
	}
	if got := shown(old); got.Cmp(first) != 0 {
		t.Errorf("the connection that stood was cut: it is shown %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, pki.CertFile), []byte("-----BEGIN NOTHING-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(f.client(paris, nil)); got.Cmp(second) != 0 {
		t.Errorf("with a file that is broken, a new connection is shown %s, want %s as before", got, second)
	}
	f.lines.Wants(t, "FB1052")
}
