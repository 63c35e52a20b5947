//go:build e2e

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// TestTokensAreReviewed: the operators' port asks the real API server, with the
// rights that install/broker gives the daemon, who shows a token and what he
// may.
func TestTokensAreReviewed(t *testing.T) {
	home := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	if out, err := home.Kubectl(t.Context(), ".", "apply", "-k", base+"/broker"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	get := guarded(t, home)
	prometheus, ada, nobody := token(t, home, "prometheus", "fleetbroker-metrics"), token(t, home, "ada", "fleetbroker-viewer"), token(t, home, "nobody", "")
	member := token(t, home, "mo", "fleetbroker-member")
	cases := map[string]struct {
		token, path string
		want        int
	}{
		"no token":                   {"", "/metrics", 401},
		"no token, a probe":          {"", "/healthz", 200},
		"a made-up token":            {"made.up.token", "/metrics", 401},
		"a token without rights":     {nobody, "/metrics", 403},
		"a scraper, metrics":         {prometheus, "/metrics", 200},
		"a scraper, the market":      {prometheus, "/market", 403},
		"a person, metrics":          {ada, "/metrics", 200},
		"a person, reasons":          {ada, "/readyz", 200},
		"a person, what is not":      {ada, "/secrets", 403},
		"a person, the dashboard":    {ada, "/ui/", 200},
		"a member, the dashboard":    {member, "/api/ui/fleet", 200},
		"a member, the market":       {member, "/market", 403},
		"a scraper, the dashboard":   {prometheus, "/ui/", 403},
		"a token in the wrong place": {"", "/metrics?token=" + ada, 401},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, body := get(tc.token, tc.path); got != tc.want {
				t.Errorf("answered %d %s; want %d", got, body, tc.want)
			}
		})
	}
}

// TestWhoSeesAllTenants: of those who may get the dashboard, who may list it sees every
// tenant, and the others their groups'.
func TestWhoSeesAllTenants(t *testing.T) {
	home := envtest.Cluster(t, env.ClusterOptions{Name: "home"})
	if out, err := home.Kubectl(t.Context(), ".", "apply", "-k", base+"/broker"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	get := guarded(t, home)
	for role, want := range map[string]string{"fleetbroker-viewer": "all=true authenticated=true", "fleetbroker-member": "all=false authenticated=true"} {
		if status, body := get(token(t, home, role, role), "/ui/"); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: answered %d %s; want %s", role, status, body, want)
		}
	}
}

// guarded serves an operators' port whose reviewer is install/broker's
// ServiceAccount.
func guarded(t *testing.T, home *env.Cluster) func(token, path string) (int, string) {
	t.Helper()
	kubeconfig, err := home.KubeconfigForServiceAccount(t.Context(), "fleetbroker", "fleetbroker")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "certs")
	if err := bundle.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	guard, err := server.NewGuard(config, new(server.Revocations), time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := server.Listen(t.Context(), log, server.Port{
		Name: "operators", Address: "127.0.0.1:0", TLS: server.GuardTLS(files, log),
		Handler: server.NewOperators(server.Operators{
			Metrics: server.NewMetrics(), Guard: guard,
			Dashboard: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := server.CallerOf(r)
				fmt.Fprintf(w, "%s all=%t authenticated=%t", c.Name, c.All, strings.Contains(strings.Join(c.Groups, " "), "system:authenticated"))
			}),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, time.Second) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return func(token, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+servers.Address("operators")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body[:min(len(body), 200)])
	}
}
