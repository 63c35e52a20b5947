package ui_test

import (
	"bufio"
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

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// guarded is the dashboard on an operators' port that takes certificates alone.
type guarded struct {
	*daemon

	ca *pki.Authority
	at string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	g := &guarded{}
	g.daemon = newDaemonWith(t, func(o *ui.Options) {
		o.Viewer = func(r *http.Request) view.Viewer {
			c := server.CallerOf(r)
			return view.Viewer{Name: c.Name, Identity: c.Identity, SignedIn: c.SignedIn, All: c.All, Groups: c.Groups}
		}
		o.Stopping = server.Stopping
	})
	var err error
	if g.ca, err = pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now); err != nil {
		t.Fatal(err)
	}
	own, err := g.ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "broker")
	if err := own.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := server.NewGuard(nil, new(server.Revocations), time.Now, quiet)
	if err != nil {
		t.Fatal(err)
	}
	guard.Show = func(w http.ResponseWriter, r *http.Request, p login.Page) { g.ui.Say(w, r, ui.Message(p)) }
	servers, err := server.Listen(t.Context(), quiet, server.Port{
		Name: "operators", Address: "127.0.0.1:0", TLS: server.GuardTLS(files, quiet), Handler: server.NewOperators(server.Operators{Metrics: server.NewMetrics(), Dashboard: g.ui, Guard: guard}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, 5*time.Second) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	g.at = "https://" + servers.Address("operators")
	return g
}

// person has a certificate of a role.
func (g *guarded) person(t *testing.T, name string, role pki.Role) *http.Client {
	t.Helper()
	bundle, err := g.ca.Issue(pki.Request{Name: name, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	config.RootCAs.AppendCertsFromPEM(g.ca.CA())
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask is the answer to a request; of a stream, what it says until its first event.
func (g *guarded) ask(t *testing.T, who *http.Client, method, path string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, g.at+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := who.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	head := fmt.Sprint(answer.Header)
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			if head += "\n" + lines.Text(); strings.HasPrefix(lines.Text(), "data: ") {
				return answer.StatusCode, head
			}
		}
		t.Errorf("%s: the stream ended at its beginning: %v", path, lines.Err())
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, head + string(body)
}

// TestTurnedAway: a person without a certificate of the right kind gets a page, with the
// dashboard's headers and style, that says what to do; a program gets JSON.
func TestTurnedAway(t *testing.T) {
	g := newGuarded(t)
	g.show(small())
	nobody := &http.Client{Transport: g.person(t, "x", pki.Operator).Transport.(*http.Transport).Clone()}
	nobody.Transport.(*http.Transport).TLSClientConfig.Certificates = nil
	t.Cleanup(nobody.CloseIdleConnections)
	agent := g.person(t, "paris", pki.Agent)
	ask := func(who *http.Client, path, accept string) (int, http.Header, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := who.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, answer.Header, string(body)
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for name, c := range map[string]struct {
		who    *http.Client
		path   string
		status int
		want   string
	}{
		"nobody":             {nobody, "/ui/", http.StatusUnauthorized, "as PKCS #12"},
		"nobody, the root":   {nobody, "/", http.StatusUnauthorized, "as PKCS #12"},
		"an agent's machine": {agent, "/ui/contracts", http.StatusForbidden, "the certificate of paris (agent) is not an operator&#39;s or reader&#39;s"},
	} {
		status, head, body := ask(c.who, c.path, browser)
		if status != c.status || !strings.Contains(body, "<main") || !strings.Contains(body, c.want) || !strings.HasPrefix(head.Get("Content-Type"), "text/html") || !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: got %d %v\n%s\nwant a page with %d and %q", name, status, head, body, c.status, c.want)
		}
		if status, head, body := ask(c.who, c.path, "*/*"); status != c.status || head.Get("Content-Type") != "application/json" {
			t.Errorf("%s, a program: got %d %v %s, want JSON with %d", name, status, head, body, c.status)
		}
	}
	if status, head, body := ask(nobody, "/metrics", browser); status != http.StatusUnauthorized || head.Get("Content-Type") != "application/json" || head.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("/metrics: got %d %v %s", status, head, body)
	}
	if status, _, _ := ask(nobody, "/ui/assets/style.css", browser); status != http.StatusOK {
		t.Errorf("the page's style: got %d, want 200", status)
	}
}

// TestReader_SeesTotalsAlone: of every route that the dashboard registers, page, JSON,
// export and stream, and of each tenant, intent and contract in it, a reader's certificate
// is shown nothing that names a tenant, its work, who asked for it or what it costs; an
// operator's is shown all of it. A route that is new has to be listed here.
func TestReader_SeesTotalsAlone(t *testing.T) {
	g, b := newGuarded(t), small()
	g.history(b)
	g.show(b, view.Notice{Level: "warning", Text: "intents/vision/train.yaml:3:1: has a secret notice"})
	reader, operator := g.person(t, "rita", pki.Reader), g.person(t, "olga", pki.Operator)
	secrets := map[string]bool{"Mallory": false, "secret notice": false, "team-vision": true, "research": true} // true: shown to nobody
	var tenants, intents, contracts, pairs []string
	for name := range b.W.Tenants {
		tenants = append(tenants, name)
		secrets[name] = false
	}
	for _, in := range b.W.Intents {
		intents = append(intents, in.Metadata.Namespace+"/"+in.Metadata.Name)
		secrets[in.Metadata.Namespace+"/"+in.Metadata.Name] = false
	}
	for c := range b.W.Ledger.Contracts() {
		contracts = append(contracts, c.Metadata.Name)
		pairs = append(pairs, c.Spec.Consumer+"/"+c.Spec.Provider)
		secrets[c.Metadata.Name] = false
	}
	// Of each route: its addresses, and what a reader is answered.
	type route struct {
		values []string
		status int
	}
	open, hidden := route{[]string{""}, http.StatusOK}, http.StatusNotFound
	pages := map[string]route{
		"/{$}": open, "/intents": open, "/queue": open, "/contracts": {[]string{"", "?state=all&q=train", "?tenant=vision", "?tenant=nlp"}, http.StatusOK}, "/flavors": open, "/providers": open, "/tenants": open, "/peerings": open, "/calendar": open,
		"/cost": {[]string{"", "?by=intent", "?by=contract&month=all", "?by=label:team", "?tenant=vision", "?tenant=nlp"}, http.StatusOK}, "/commits": {[]string{"", "?q=train", "?q=vision"}, http.StatusOK}, "/audit": open,
		"/intents/{tenant}/{name}": {intents, hidden}, "/intents/{tenant}/{name}/offers": {intents, hidden}, "/contracts/{name}": {contracts, hidden}, "/tenants/{name}": {tenants, hidden}, "/peerings/{consumer}/{provider}": {pairs, hidden},
		"/flavors/{provider}/{name}": {[]string{"paris/h100-pool", "berlin/a100-pool", "milan/l4-pool", "milan/cpu"}, http.StatusOK}, "/providers/{name}": {[]string{"paris", "berlin", "milan", "rome"}, http.StatusOK},
		"/capacity": {[]string{""}, http.StatusForbidden}, "/capacity/{id}": {[]string{aJob}, http.StatusForbidden},
	}
	routes := map[string]route{
		"GET /ui": {[]string{""}, http.StatusSeeOther}, "GET /{$}": {[]string{""}, http.StatusSeeOther}, "GET /ui/assets/{name}": {[]string{"style.css", "ui.js", "icon.svg"}, http.StatusOK}, "GET /ui/events": open, "GET /api/ui/openapi.json": open,
		"GET /api/ui/cost.csv":  {[]string{"", "?by=contract&month=all", "?by=intent"}, http.StatusOK},
		"POST /ui/capacity":     {[]string{""}, http.StatusForbidden},
		"POST /api/ui/capacity": {[]string{""}, http.StatusForbidden}, "POST /ui/capacity/{id}/cancel": {[]string{aJob}, http.StatusForbidden}, "DELETE /api/ui/capacity/{id}": {[]string{aJob}, http.StatusForbidden},
	}
	for path, r := range pages {
		routes["GET /ui"+path] = r
		api := path
		if path == "/{$}" {
			api = "/fleet"
		}
		routes["GET /api/ui"+api] = r
	}
	shown := map[string]bool{}
	for _, pattern := range g.ui.Patterns() {
		r, listed := routes[pattern]
		if !listed {
			t.Errorf("%s is not listed here: is a reader shown what it may see?", pattern)
			continue
		}
		delete(routes, pattern)
		method, path, _ := strings.Cut(pattern, " ")
		for _, value := range r.values {
			at := filled(path, value)
			status, text := g.ask(t, reader, method, at)
			if status != r.status {
				t.Errorf("%s %s: a reader is answered %d, want %d", method, at, status, r.status)
			}
			for secret := range secrets {
				// What the asker wrote into the address comes back to the asker.
				if i := strings.Index(text, secret); i >= 0 && !strings.Contains(at, secret) {
					t.Errorf("%s %s: a reader is shown %q: …%.160s…", method, at, secret, text[max(i-80, 0):])
				}
			}
			if method != http.MethodGet {
				continue
			}
			status, text = g.ask(t, operator, method, at)
			if status >= http.StatusBadRequest {
				t.Errorf("%s %s: an operator is answered %d", method, at, status)
			}
			for secret := range secrets {
				shown[secret] = shown[secret] || strings.Contains(text, secret) && !strings.Contains(at, secret)
			}
		}
	}
	for pattern := range routes {
		t.Errorf("%s is listed and not registered", pattern)
	}
	for secret, nobody := range secrets {
		if !shown[secret] && !nobody {
			t.Errorf("%q is shown to no operator either: what is looked for?", secret)
		}
	}
	if status, text := g.ask(t, g.person(t, "paris", pki.Agent), http.MethodGet, "/ui/"); status != http.StatusForbidden || strings.Contains(text, "acme") {
		t.Errorf("an agent is answered %d %s", status, text)
	}
}

// filled is a pattern's path with values in place of its wildcards, and a query after it.
func filled(path, value string) string {
	path = strings.TrimSuffix(path, "{$}")
	if !strings.Contains(path, "{") {
		return path + value
	}
	for _, v := range strings.Split(value, "/") {
		before, after, _ := strings.Cut(path, "{")
		_, after, _ = strings.Cut(after, "}")
		path = before + v + after
	}
	return path
}
