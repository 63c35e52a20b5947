//go:build e2e

package ui_test

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
	"github.com/fleetbroker/fleetbroker/internal/server/login/testidp"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestBrowser_SignsIn: a person comes with nothing, signs in at the provider, is where they
// wanted to be, follows the fleet live, and signs out.
func TestBrowser_SignsIn(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b)
	idp := testidp.New(t)
	name := `<script>alert(1)</script>`
	idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"team-vision"}, "email": name}})
	guard, err := server.NewGuard(nil, new(server.Revocations), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(server.NewOperators(server.Operators{Metrics: server.NewMetrics(), Dashboard: d.ui, Guard: guard}))
	t.Cleanup(func() {
		close(d.stop)
		s.Close()
	})
	o := login.Options{
		Issuer: idp.URL, ClientID: testidp.ClientID, Secret: func() (string, error) { return testidp.Secret, nil }, RedirectURL: s.URL + login.CallbackPath,
		NameClaim: "email", GroupsClaim: "groups", Roots: x509.NewCertPool(), Life: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Show: func(w http.ResponseWriter, r *http.Request, p login.Page) { d.ui.Say(w, r, ui.Message(p)) },
	}
	o.Roots.AppendCertsFromPEM(idp.PEM)
	if guard.Login, err = login.New(o); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.asks = func(r *http.Request) view.Viewer {
		c := server.CallerOf(r)
		return view.Viewer{Name: c.Name, Identity: c.Identity, SignedIn: c.SignedIn, All: c.All, Groups: c.Groups}
	}
	d.mu.Unlock()
	tab := openAt(t, s.URL)
	tab.show("/ui/contracts?q=train", 1280, false)
	tab.axe("to sign in")
	tab.picture("signin.desk")
	tab.look(360, true)
	tab.fits("to sign in")
	tab.picture("signin.phone-dark")
	tab.errors = nil // the browser reports the status itself, and below the way by the provider
	tab.run(chromedp.Click("main a.button"), chromedp.WaitVisible("table"))
	if at := eval[string](tab, `location.pathname + location.search`); at != "/ui/contracts?q=train" {
		t.Errorf("signed in at %s", at)
	}
	for _, text := range tab.errors {
		if !strings.HasPrefix(text, "request elsewhere: "+idp.URL+"/authorize") {
			t.Error(text)
		}
	}
	tab.errors = nil
	tab.look(1280, false)
	tab.run(chromedp.WaitVisible(`#live[data-state=on]`))
	words := eval[string](tab, `document.body.innerText`)
	if strings.Contains(words, "nlp") || !strings.Contains(words, "vision") || !strings.Contains(words, "Sign out") {
		t.Errorf("a member of vision sees %s", words)
	}
	if eval[string](tab, `document.cookie`) != "" {
		t.Error("scripts can read a cookie")
	}
	if eval[int](tab, `document.scripts.length`) != 1 {
		t.Error("the name of the account is a script")
	}
	tab.axe("signed in")
	tab.picture("signedin.desk")
	for _, look := range looks {
		tab.look(look.width, look.dark)
		tab.fits("signed in " + look.name)
	}
	tab.look(1280, false)
	tab.calm("signed in")
	tab.run(chromedp.Click(`form[action="/ui/logout"] button`), chromedp.WaitVisible("main a.button"))
	if got := eval[string](tab, `document.querySelector('h1').textContent`); got != "Signed out" {
		t.Errorf("signing out shows %q", got)
	}
	tab.axe("signed out")
	tab.calm("signed out")
	tab.show("/ui/contracts", 1280, false)
	if got := eval[string](tab, `document.querySelector('h1').textContent`); got != "Sign in" {
		t.Errorf("after it, the page shows %q", got)
	}
}
