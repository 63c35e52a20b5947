package server

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
	"github.com/fleetbroker/fleetbroker/internal/server/login/testidp"
)

// TestSessionsOpenTheDashboardAlone: who signs in by OpenID Connect sees the dashboard as
// what their groups make of them, and no other page of the port.
func TestSessionsOpenTheDashboardAlone(t *testing.T) {
	f := &fleet{t: t, revocations: new(Revocations), now: time.Now()}
	files := f.certify()
	guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
	if err != nil {
		t.Fatal(err)
	}
	idp := testidp.New(t)
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"team-vision"}}})
	f.address = "https://" + run(t, Port{Name: "operators", Address: "127.0.0.1:0", TLS: GuardTLS(files, quiet), Handler: NewOperators(Operators{
		Metrics: NewMetrics(), Market: &recorder{}, Guard: guard,
		Dashboard: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%+v", CallerOf(r)) }),
	})})
	o := login.Options{
		Issuer: idp.URL, ClientID: testidp.ClientID, Secret: func() (string, error) { return testidp.Secret, nil }, RedirectURL: f.address + login.CallbackPath,
		NameClaim: "email", GroupsClaim: "groups", Everything: []string{"operators"}, Roots: x509.NewCertPool(), Life: time.Hour, Now: f.clock, Log: quiet,
		Show: func(w http.ResponseWriter, _ *http.Request, p login.Page) {
			w.WriteHeader(p.Status)
			_, _ = io.WriteString(w, p.Title)
		},
	}
	o.Roots.AppendCertsFromPEM(idp.PEM)
	if guard.Login, err = login.New(o); err != nil {
		t.Fatal(err)
	}
	browser := f.client(nil, nil)
	if browser.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	browser.Transport.(*http.Transport).TLSClientConfig.RootCAs.AppendCertsFromPEM(idp.PEM)
	html := []string{"Accept", "text/html,*/*;q=0.8"}
	guarded := []string{"/metrics", "/market", "/pods", "/readyz/nothing"}
	check := func(when, path string, want int, says string, headers ...string) {
		t.Helper()
		if status, _, body := f.call(browser, "GET", path, nil, headers...); status != want || !strings.Contains(string(body), says) {
			t.Errorf("%s, %s: answered %d %.200s; want %d %q", when, path, status, body, want, says)
		}
	}
	for _, path := range append([]string{"/", "/ui/", "/api/ui/fleet", "/ui/events"}, guarded...) {
		check("before", path, 401, "Unauthorized")
	}
	check("before, a browser", "/ui/", 401, "Sign in", html...)
	check("before, a browser", "/metrics", 401, "Unauthorized", html...)
	check("before", "/ui/assets/style.css", 200, "All:true") // of the program: nothing in it is the fleet's
	if status, _, _ := f.call(browser, "POST", "/ui/assets/style.css", nil); status == 200 {
		t.Error("assets are open to more than reading")
	}
	check("signing in", "/ui/login?to=/ui/queue", 200, "{Name:ada@example.org Identity:oidc:1234 Groups:[team-vision] SignedIn:true All:false}", html...)
	for _, path := range []string{"/", "/ui/", "/api/ui/fleet", "/ui/events"} {
		check("signed in", path, 200, "oidc:1234")
	}
	for _, path := range guarded {
		check("signed in", path, 401, "Unauthorized")
	}
	check("signed in, with a token that nobody knows", "/ui/", 401, "Unauthorized", "Authorization", "Bearer x")
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if status, _, body := f.call(browser, method, "/ui/intents", nil); status < 400 {
			t.Errorf("%s: answered %d %s", method, status, body)
		}
	}
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"operators"}}})
	check("an operator", "/ui/login", 200, "All:true}", html...)
	ada := f.client(&pki.Request{Name: "bo", Role: pki.Reader}, nil)
	ada.Jar = browser.Jar
	if status, _, body := f.call(ada, "GET", "/ui/", nil); status != 200 || !strings.Contains(string(body), "Identity:certificate:bo") || !strings.Contains(string(body), "All:false") {
		t.Errorf("a certificate and a session: answered %d %s; the certificate counts", status, body)
	}
	if status, _, body := f.call(browser, "POST", "/ui/logout", nil, "Sec-Fetch-Site", "same-origin"); status != 200 || string(body) != "Signed out" {
		t.Errorf("logout: answered %d %s", status, body)
	}
	check("after", "/api/ui/fleet", 401, "Unauthorized")
}
