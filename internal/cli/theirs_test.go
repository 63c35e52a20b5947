package cli

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// signed is the signature of a payload, as forges make it.
func signed(secret, payload string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(payload))
	return hex.EncodeToString(mac.Sum(nil))
}

// TestRun_LooksAfterASourcesPullRequests: of the real program. A daemon without a forge of
// its own plans a pull request of a source with that source's token, takes the source's
// webhooks by that source's secret, and shows its state in metrics, to status and on the
// dashboard; what freezes is shown as that.
func TestRun_LooksAfterASourcesPullRequests(t *testing.T) {
	t.Parallel()
	fake := forgetest.GitHub(t)
	at, err := url.Parse(fake.URL)
	if err != nil {
		t.Fatal(err)
	}
	gate := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(at))
	t.Cleanup(gate.Close)
	o := newOwner(t, ", forge: {type: github, url: \""+gate.URL+"\", repository: acme/fleet}", strings.TrimPrefix(gate.URL, "https://"))
	if err := errors.Join(os.WriteFile(filepath.Join(o.creds, "forge-token"), []byte(forgetest.Token), 0o600), os.WriteFile(filepath.Join(o.creds, "webhook-secret"), []byte("s3cret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	o.ask("first")
	operators, hooks := freeAddress(t), freeAddress(t)
	daemon := exec.CommandContext(t.Context(), o.program, append([]string{"run", "--unsigned", "--repo", "file://" + o.remote, "--state-dir", filepath.Join(filepath.Dir(o.remote), "daemon"),
		"--agents-address", "", "--operators-address", operators, "--webhooks-address", hooks, "--webhooks-tls=false", "--notify=false", "--poll-interval", "1s", "--review-refresh", "1s"}, o.flags...)...)
	said := &strings.Builder{}
	daemon.Stderr = said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		if t.Failed() {
			t.Log(said)
		}
	}()
	get := func(path string) string {
		answer, err := http.Get("http://" + operators + path)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	await := func(what string, look func() string, want string) {
		t.Helper()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
			got := look()
			if strings.Contains(got, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: no %q in\n%s", what, want, got)
			}
		}
	}
	metrics := func() string { return get("/metrics") }
	await("metrics", metrics, `fleetbroker_source_read_timestamp_seconds{source="own"}`)
	await("metrics", metrics, `fleetbroker_source_behind{source="own"} 0`)

	// A pull request.
	n := fake.Add(forgetest.Pull{Title: "Ask", Author: "ada", Branch: "ask", Base: "main", Head: strings.Repeat("0", 40)})
	o.run(o.own, "git", "checkout", "-q", "-b", "ask")
	file := filepath.Join(o.own, "intents", "vision", "proposed.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(askPlain, "NAME", "proposed")), 0o600); err != nil {
		t.Fatal(err)
	}
	o.run(o.own, "git", "add", ".")
	o.run(o.own, "git", "commit", "-q", "-m", "Propose")
	o.run(o.own, "git", "push", "-q", "origin", "HEAD:refs/pull/1/head")
	head := o.run(o.own, "git", "rev-parse", "HEAD")
	o.run(o.own, "git", "checkout", "-q", "main")
	fake.Change(n, func(p *forgetest.Pull) { p.Head = head })
	// Webhooks come through a proxy that ends TLS, as the forge would send them.
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: hooks}))
	t.Cleanup(proxy.Close)
	hook := func(path, token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Hub-Signature-256", "sha256="+token)
		answer, err := proxy.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		return answer.StatusCode
	}
	if got := hook("/hooks/sources/own", strings.Repeat("0", 64)); got != http.StatusUnauthorized {
		t.Errorf("a webhook without the secret: %d", got)
	}
	if got := hook("/hooks/sources/other", strings.Repeat("0", 64)); got != http.StatusUnauthorized {
		t.Errorf("a webhook of another source: %d", got)
	}
	if got := hook("/hooks/sources/own", signed("s3cret", "{}")); got != http.StatusAccepted {
		t.Errorf("a webhook with the secret: %d", got)
	}
	comments := func() string {
		text := ""
		for _, c := range fake.Comments(n, false) {
			text += c.Body
		}
		return text
	}
	await("the pull request", comments, report.Marker)
	await("the pull request", comments, "vision/proposed")

	// It freezes, and that is shown.
	o.ask("second", "--amend")
	await("metrics", metrics, `fleetbroker_source_frozen{source="own"} 1`)
	await("the dashboard", func() string { return get("/api/ui/fleet") }, "its history was rewritten")
	var page struct {
		Sources []struct{ State, Frozen, Copied string }
	}
	out := o.run(o.work, o.program, "status", "-o", "json", "--market", "http://"+operators+"/market")
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &page); err != nil || len(page.Sources) != 1 || page.Sources[0].State != "Frozen" || !strings.Contains(page.Sources[0].Frozen, "its history was rewritten") {
		t.Errorf("status: %+v, %v\n%s", page, err, out)
	}
	if got := comments(); strings.Contains(got, forgetest.Token) || strings.Contains(said.String(), forgetest.Token) || strings.Contains(said.String(), "s3cret") {
		t.Error("a secret is shown")
	}
}
