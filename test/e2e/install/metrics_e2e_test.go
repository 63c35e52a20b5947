//go:build e2e

package install

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// TestTheAgentsPorts: with the rights of install/agent the agent's probes answer
// whoever asks, and its metrics, which every interface serves, only who shows a
// token that the API server lets read them.
func TestTheAgentsPorts(t *testing.T) {
	paris := envtest.Cluster(t, env.ClusterOptions{Name: "paris"})
	if out, err := paris.Kubectl(t.Context(), ".", "apply", "-k", base+"/agent"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := env.CreateGPUNode(t.Context(), paris.Config, env.GPUNode{Name: "n1", GPUs: 8, Labels: map[string]string{"fleetbroker.io/pool": "h100"}}); err != nil {
		t.Fatal(err)
	}
	metrics, probes := runAgent(t, paris)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its certificate is made at its start
	t.Cleanup(client.CloseIdleConnections)
	get := func(url, token string) (status int, body string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return 0, "", err
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	scraper, nobody := token(t, paris, "prometheus", "fleet-agent-metrics"), token(t, paris, "nobody", "")
	for name, c := range map[string]struct {
		url, token string
		status     int
		text       string
	}{
		"alive":                  {"http://" + probes + "/healthz", "", 200, "ok"},
		"not ready, no broker":   {"http://" + probes + "/readyz", "", 500, "reported failed"},
		"metrics, no token":      {"https://" + metrics + "/metrics", "", 401, ""},
		"metrics, a made-up one": {"https://" + metrics + "/metrics", "made.up.token", 500, "Authentication failed"},
		"metrics, no right":      {"https://" + metrics + "/metrics", nobody, 403, ""},
		"metrics, a scraper":     {"https://" + metrics + "/metrics", scraper, 200, `fleetbroker_agent_flavors{cluster="paris"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			last := ""
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the last answer: %s", last)
				}
			})
			envtest.Eventually(t, "the answer", func(context.Context) bool {
				status, body, err := get(c.url, c.token)
				last = fmt.Sprintf("%d %.300s %v", status, body, err)
				return err == nil && status == c.status && strings.Contains(body, c.text)
			})
		})
	}
}

// runAgent runs the program as install/agent's ServiceAccount, with nobody to
// report to, and returns where its metrics and probes are.
func runAgent(t *testing.T, c *env.Cluster) (metrics, probes string) {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.InitCA(filepath.Join(dir, "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := ca.Issue(pki.Request{Name: "paris"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.WriteDir(filepath.Join(dir, "certs")); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.KubeconfigForServiceAccount(t.Context(), "fleetbroker", "fleet-agent")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []*string{&metrics, &probes} {
		a, release, err := env.ReserveAddress()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		*address = a
	}
	_, port, err := net.SplitHostPort(metrics)
	if err != nil {
		t.Fatal(err)
	}
	p, err := env.StartProgram("agent", dir, filepath.Join(bin, "fleet-agent"), "--cluster-id", "paris", "--broker-url", "https://127.0.0.1:1",
		"--kubeconfig", filepath.Join(dir, "kubeconfig"), "--broker-cert-path", filepath.Join(dir, "certs"),
		"--metrics-bind-address", ":"+port, "--health-probe-bind-address", probes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			text, err := os.ReadFile(p.LogFile())
			t.Logf("%v\n%s", err, text)
		}
	})
	return metrics, probes
}

// token is one of a new ServiceAccount, bound to a ClusterRole or to none.
func token(t *testing.T, c *env.Cluster, name, role string) string {
	t.Helper()
	api, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "fleetbroker"}}
	if _, err := api.CoreV1().ServiceAccounts(account.Namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: account.Namespace}},
		}
		if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	made, err := api.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}
