//go:build e2e

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
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
	api, err := kubernetes.NewForConfig(home.Config)
	if err != nil {
		t.Fatal(err)
	}
	token := func(name, role string) string {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "fleetbroker"}}
		if _, err := api.CoreV1().ServiceAccounts("fleetbroker").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if role != "" {
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "fleetbroker"}},
			}
			if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		made, err := api.CoreV1().ServiceAccounts("fleetbroker").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made.Status.Token
	}
	get := guarded(t, home)
	prometheus, ada, nobody := token("prometheus", "fleetbroker-metrics"), token("ada", "fleetbroker-viewer"), token("nobody", "")
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
		Handler: server.NewOperators(server.Operators{Metrics: server.NewMetrics(), Guard: guard}),
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
