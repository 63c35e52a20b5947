package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/server/login/testidp"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// initFleet is what `init` creates, with a remote: the directory of both, and git in it.
func initFleet(t *testing.T) (dir, work, bare string, git func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	work, bare = filepath.Join(dir, "fleet"), filepath.Join(dir, "fleet.git")
	if code, out := command(t, "init", work); code != 0 {
		t.Fatal(out)
	}
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "A fleet")
	git("clone", "-q", "--bare", ".", bare)
	git("remote", "add", "origin", bare)
	return dir, work, bare, git
}

// TestRun_SignsPeopleIn: a daemon on its TLS port sends a person to the OpenID Connect
// provider and back, and shows what their groups allow.
func TestRun_SignsPeopleIn(t *testing.T) {
	dir, work, bare, git := initFleet(t)
	file := filepath.Join(work, "tenants", "vision.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(file, string(text)+"  members: [oidc:team-vision]\n")
	git("commit", "-q", "-a", "-m", "Members of vision")
	git("push", "-q", "origin", "main")
	certs := filepath.Join(dir, "certs")
	for _, args := range [][]string{{"pki", "init", filepath.Join(dir, "pki"), "--name", "acme"}, {"pki", "issue", filepath.Join(dir, "pki"), "broker", "--role", "server", "--host", "127.0.0.1", "--out", certs}} {
		if code, out := command(t, args...); code != 0 {
			t.Fatal(out)
		}
	}
	idp := testidp.New(t)
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"team-vision"}}})
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	at := "https://127.0.0.1:" + port
	d := startRun(t, "--state-dir", filepath.Join(dir, "state"), "--repo", "file://"+bare, "--poll-interval", "200ms", "--operators-address", "0.0.0.0:"+port, "--cert-path", certs,
		"--oidc-issuer", idp.URL, "--oidc-client-id", testidp.ClientID, "--oidc-client-secret-file", write(filepath.Join(dir, "secret"), testidp.Secret+"\n"), "--oidc-redirect-url", at+"/ui/callback",
		"--oidc-ca-file", write(filepath.Join(dir, "idp.pem"), string(idp.PEM)), "--oidc-groups-prefix", "oidc:", "--oidc-operator-groups", "oidc:operators", "--oidc-session-key-file", write(filepath.Join(dir, "key"), strings.Repeat("k", 44)))
	defer d.end()
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(ca)
	roots.AppendCertsFromPEM(idp.PEM)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer browser.CloseIdleConnections()
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		resp, err := browser.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	until := time.Now().Add(time.Minute)
	status, body := get("/ui/")
	for ; status != http.StatusUnauthorized && time.Now().Before(until); status, body = get("/ui/") {
		wait(t.Context(), 50*time.Millisecond)
	}
	if !strings.Contains(body, `href="/ui/login?to=%2Fui%2F"`) || !strings.Contains(body, "/ui/assets/style.css") || strings.Contains(body, "vision") {
		t.Fatalf("without a session: %d %s\n%s", status, body, d.logged())
	}
	for ; time.Now().Before(until); wait(t.Context(), 50*time.Millisecond) {
		if status, body = get("/ui/login?to=/ui/tenants/vision"); status == http.StatusOK {
			break
		}
	}
	if !strings.Contains(body, "ada@example.org") || !strings.Contains(body, "Sign out") || !strings.Contains(body, "<h1>vision") {
		t.Fatalf("signed in: %d %s\n%s", status, body, d.logged())
	}
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"others"}}})
	if status, body = get("/ui/login"); status != http.StatusOK || !strings.Contains(body, "Totals only") {
		t.Errorf("of no tenant's groups: %d %s", status, body)
	}
	if status, _ = get("/ui/tenants/vision"); status != http.StatusNotFound {
		t.Errorf("of no tenant's groups, vision's page: %d", status)
	}
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"operators"}}})
	if status, body = get("/ui/login?to=/ui/tenants/vision"); status != http.StatusOK || !strings.Contains(body, "<h1>vision") {
		t.Errorf("of the operators: %d %s", status, body)
	}
	if status, _ = get("/metrics"); status != http.StatusUnauthorized {
		t.Errorf("a session opens the metrics: %d", status)
	}
	if strings.Contains(d.logged(), testidp.Secret) {
		t.Error("the log has the client's secret")
	}
	code, out := command(t, "run", "--unsigned", "--repo", "file://"+bare, "--agents-address", "", "--operators-address", freeAddress(t), "--oidc-issuer", idp.URL, "--oidc-client-id", "x", "--oidc-redirect-url", at+"/ui/callback")
	if code != 1 || !strings.Contains(out, "loopback") {
		t.Errorf("on the loopback interface: %d %s", code, out)
	}
}

// TestRun_ServesTheDashboard: a daemon shows what it decided at /ui/ and as JSON, with
// the ledger's commits, and streams a new version after a commit of the inputs.
func TestRun_ServesTheDashboard(t *testing.T) {
	dir, work, bare, git := initFleet(t)
	d := startRun(t, "--state-dir", filepath.Join(dir, "state"), "--repo", "file://"+bare, "--poll-interval", "200ms")
	d.await("/readyz", http.StatusOK)
	get := func(path string, into any) string {
		t.Helper()
		answer, err := http.Get("http://" + d.operators + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %s", path, answer.Status)
		}
		if into != nil {
			if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		return answer.Request.URL.Path
	}
	if at := get("/", nil); at != "/ui/" {
		t.Errorf("/ leads to %s", at)
	}
	var fleet struct {
		view.Head

		Data ui.FleetAnswer
	}
	for until := time.Now().Add(time.Minute); len(fleet.Data.Contracts) == 0 && time.Now().Before(until); { // the first decision is pushed after the port opened
		get("/api/ui/fleet", &fleet)
		wait(t.Context(), 50*time.Millisecond)
	}
	if len(fleet.Data.Commits) == 0 || fleet.Data.Commits[0].Hash != fleet.Ledger || len(fleet.Data.Contracts) == 0 || fleet.Data.GPUs.Held == 0 {
		t.Errorf("the fleet is shown as %+v, its commits as %+v", fleet.Data.FleetPage, fleet.Data.Commits)
	}
	var contracts struct{ Data view.List[view.ContractRow] }
	get("/api/ui/contracts", &contracts)
	if len(contracts.Data.Items) == 0 {
		t.Fatal("no contract is shown")
	}
	get("/ui/contracts/"+contracts.Data.Items[0].Name, nil)

	var audited struct{ Data ui.AuditAnswer }
	for until := time.Now().Add(time.Minute); (audited.Data.Summary == nil || audited.Data.Summary.Commits == 0) && time.Now().Before(until); {
		get("/api/ui/audit", &audited)
		wait(t.Context(), 50*time.Millisecond)
	}
	if s := audited.Data.Summary; s == nil || s.Violating != 0 || s.Trouble != "" || audited.Data.Rows.Items[len(audited.Data.Rows.Items)-1].State != "Verified" {
		t.Errorf("the audit says %+v of %+v", s, audited.Data.Rows)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.operators+"/ui/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	intent := "apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\nmetadata: {name: never, namespace: " + contracts.Data.Items[0].Tenant + "}\nspec:\n  resources: {cpu: \"1\", memory: 1Gi, gpu: {count: 2, models: [nvidia-h200]}}\n"
	if err := os.WriteFile(filepath.Join(work, "intents", contracts.Data.Items[0].Tenant, "never.yaml"), []byte(intent), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "never")
	git("push", "-q", "origin", "main")
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if version, ok := strings.CutPrefix(lines.Text(), "data: "); ok && version != fleet.Version {
			var queue struct{ Data view.List[view.QueueRow] }
			if get("/api/ui/queue", &queue); queue.Data.Total == 1 && queue.Data.Items[0].Name == "never" {
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the new intent is not shown: %v\n%s", err, d.logged())
	}
	cancel()
	d.end()
}
