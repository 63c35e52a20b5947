package daemon

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// A replica hands nothing to a daemon of another fleet, though one authority signed both
// for the same host.
func TestPeerClient_AsksItsOwnFleetAlone(t *testing.T) {
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	files := func(fleet string) *pki.Files {
		t.Helper()
		bundle, err := ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}, Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := bundle.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		out, err := pki.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const ours, others = "a123456789", "b123456789"
	for _, test := range []struct{ own, other, problem string }{
		{"", "", ""}, {ours, ours, ""}, {"", ours, ""}, {ours, others, "is of fleet b123456789"}, {ours, "", "names no fleet"},
	} {
		m, err := files(test.other).Load()
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}}
		server.StartTLS()
		var client peerClient
		err = client.call(t.Context(), files(test.own), strings.TrimPrefix(server.URL, "https://"), "/x", struct{}{}, nil)
		server.Close()
		if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("from fleet %q to %q: %v, want %q", test.own, test.other, err, test.problem)
		}
	}
}
