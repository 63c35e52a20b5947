package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// issued are certificate files of an authority of its own.
func issued(t *testing.T, name string, role pki.Role) (dir string, pair tls.Certificate) {
	t.Helper()
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), name, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := ca.Issue(pki.Request{Name: name, Role: role, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "certs")
	if err := bundle.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	if pair, err = tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	return dir, pair
}

// With ClientCA only who shows a certificate of it is answered; the file counts as it is
// now, and one that cannot be read lets nobody in.
func TestServer_AnswersItsCallersAlone(t *testing.T) {
	serverDir, shown := issued(t, "agent", pki.Server)
	callerDir, caller := issued(t, "apiserver", pki.Reader)
	_, stranger := issued(t, "stranger", pki.Reader)
	file := filepath.Join(t.TempDir(), "ca.crt")
	copyTo := func(from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copyTo(filepath.Join(callerDir, "ca.crt"))
	s := &Server{
		Client: fake.NewClientset(tenants()), ClientCA: file, Log: slog.New(slog.DiscardHandler),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &shown, nil },
	}
	line, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, line) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(serverDir, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		t.Fatal(err)
	}
	asks := func(certs ...tls.Certificate) error {
		c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certs}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
		answer, err := c.Post("https://"+line.Addr().String()+PathPods, "application/json", strings.NewReader(reviewOf("pods", `{"spec":{"containers":[]}}`)))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || !bytes.Contains(text, []byte(`"patch"`)) || answer.ProtoMajor != 2 {
			t.Errorf("answered %s by %s, %v", text, answer.Proto, err)
		}
		return nil
	}
	if err := asks(caller); err != nil {
		t.Errorf("the API server: %v", err)
	}
	if asks() == nil || asks(stranger) == nil {
		t.Error("somebody without its certificate was answered")
	}
	copyTo(filepath.Join(serverDir, "ca.crt")) // another authority now
	if asks(caller) == nil {
		t.Error("an authority that is gone still counts")
	}
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if asks(caller) == nil {
		t.Error("without authorities somebody was answered")
	}
}
