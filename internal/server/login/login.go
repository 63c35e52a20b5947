package login

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// Paths of this package.
const (
	LoginPath    = "/ui/login"
	CallbackPath = "/ui/callback"
	LogoutPath   = "/ui/logout"
)

// Options of logins.
type Options struct {
	// Issuer is the provider's URL as its tokens name it; ClientID this program there.
	Issuer, ClientID string
	// Secret of the client, read for each login; nil for a client without one.
	Secret func() (string, error)
	// RedirectURL is where the provider sends browsers back to: CallbackPath of this port
	// as people reach it.
	RedirectURL string
	// Scopes to ask for; "openid" is always among them.
	Scopes []string
	// NameClaim and GroupsClaim are the claims with an account's name and groups.
	NameClaim, GroupsClaim string
	// GroupsPrefix is put before each group, so that none is taken for a cluster's.
	GroupsPrefix string
	// Everything are the groups, with their prefix, whose members see all tenants.
	Everything []string
	// Allowed are the groups, with their prefix, whose members may sign in, besides those of
	// Everything; none lets every account of the provider in.
	Allowed []string
	// Roots that the provider's certificate is held to; nil for the system's.
	Roots *x509.CertPool
	// Life of a session.
	Life time.Duration
	// Key that sessions are sealed with, the same for all replicas; nil makes one that ends
	// with the process.
	Key []byte

	// Show writes a page.
	Show func(http.ResponseWriter, *http.Request, Page)
	// Listed reports whether any tenant lists a group: of an account with more groups than a
	// cookie holds, the others are left out. May be nil.
	Listed func(group string) bool
	Now    func() time.Time
	Log    *slog.Logger
}

// Page is what people are told.
type Page struct {
	Status      int
	Title, Text string
	// Link that goes on, with its words; "" for none.
	Link, Words string
}

// Bounds of logins: who asks for one is nobody yet.
const (
	attemptLife = 10 * time.Minute
	atOnce      = 8
	maxLife     = 24 * time.Hour
)

// Login is the sign-in to the dashboard. A nil Login lets nobody in.
type Login struct {
	opts     Options
	provider provider
	seal     *sealer
	ended    ended
	pace     *pace
	places   chan struct{}
	origin   *http.CrossOriginProtection
}

// New makes the sign-in. It asks the provider nothing yet. Errors are of the options.
func New(o Options) (*Login, error) {
	if _, err := secureURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("the issuer %w", err)
	}
	to, err := url.Parse(o.RedirectURL)
	if err != nil || to.Scheme != "https" || to.Host == "" || to.Path != CallbackPath || to.RawQuery != "" {
		return nil, fmt.Errorf("the redirect URL %.200q is not of the form https://HOST%s", o.RedirectURL, CallbackPath)
	}
	if o.ClientID == "" {
		return nil, errors.New("the client id is missing")
	}
	if o.Life <= 0 || o.Life > maxLife {
		return nil, fmt.Errorf("a session's life of %s is not between 1s and %s", o.Life, maxLife)
	}
	if !slices.Contains(o.Scopes, "openid") {
		o.Scopes = append([]string{"openid"}, o.Scopes...)
	}
	l := &Login{opts: o, pace: newPace(), places: make(chan struct{}, atOnce), origin: http.NewCrossOriginProtection(), ended: ended{at: map[string]time.Time{}}}
	if l.seal, err = newSealer(o.Key, o.Issuer, o.ClientID); err != nil {
		return nil, err
	}
	l.provider = provider{opts: &l.opts, client: newClient(o.Roots)}
	return l, nil
}

// Derived is a key for another purpose, the same for all replicas that have the same
// Options.Key; nil where there is none, or no Login.
func (l *Login) Derived(purpose string) []byte {
	if l == nil || len(l.opts.Key) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, l.opts.Key)
	mac.Write([]byte("fleetbroker " + purpose))
	return mac.Sum(nil)
}

// Session is who a request's cookie names; nil for nobody.
func (l *Login) Session(r *http.Request) *Session {
	if l == nil {
		return nil
	}
	s := &Session{}
	if !l.seal.open(r, sessionCookie, s) || !s.Until.After(l.opts.Now()) || s.Until.After(l.opts.Now().Add(maxLife)) || l.ended.has(s.ID) || !l.allowed(s) {
		return nil
	}
	return s
}

// allowed reports whether an account may sign in.
func (l *Login) allowed(s *Session) bool {
	return len(l.opts.Allowed) == 0 || l.Everything(s) || slices.ContainsFunc(s.Groups, func(g string) bool { return slices.Contains(l.opts.Allowed, g) })
}

// Everything reports whether a session sees all tenants.
func (l *Login) Everything(s *Session) bool {
	return slices.ContainsFunc(s.Groups, func(g string) bool { return slices.Contains(l.opts.Everything, g) })
}

// Serves reports whether a path is this package's.
func (l *Login) Serves(path string) bool {
	return l != nil && (path == LoginPath || path == CallbackPath || path == LogoutPath)
}

// OnDashboard reports whether a path is the dashboard's, which sessions open.
func OnDashboard(path string) bool {
	return path == "/" || path == "/ui" || strings.HasPrefix(path, "/ui/") || strings.HasPrefix(path, "/api/ui/")
}

// TurnAway answers a person who opens a page of the dashboard and is not let in, by a page
// of show's: to sign in where there are logins, else with why and what to do. It reports
// whether it did: a program is answered nothing. l and show may be nil.
func (l *Login) TurnAway(show func(http.ResponseWriter, *http.Request, Page), w http.ResponseWriter, r *http.Request, status int, why string) bool {
	if r.Method != http.MethodGet || !OnDashboard(r.URL.Path) || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	if l != nil && status == http.StatusUnauthorized {
		l.Invite(w, r)
		return true
	}
	if show == nil {
		return false
	}
	p := Page{Status: status, Title: "Not let in", Text: "The daemon answers: " + escape.Reason(why) + "."}
	if status == http.StatusUnauthorized {
		p.Title = "A certificate is needed"
		p.Text += " In a browser, import an operator's or reader's certificate (as PKCS #12: docs/dashboard.md of the fleet repo shows how), and open this page again."
	}
	show(w, r, p)
	return true
}

// Invite asks a person to sign in, and remembers where they wanted to go.
func (l *Login) Invite(w http.ResponseWriter, r *http.Request) {
	l.opts.Show(w, r, Page{http.StatusUnauthorized, "Sign in", "Sign in with your organisation's account to see the fleet. What you see depends on your groups.", LoginPath + "?to=" + url.QueryEscape(r.URL.RequestURI()), "Sign in"})
}

// ServeHTTP answers for the paths that it Serves.
func (l *Login) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	began := l.began(r)
	switch {
	case r.URL.Path == LogoutPath && r.Method == http.MethodPost:
		l.logout(w, r)
	case r.URL.Path == LogoutPath || r.Method != http.MethodGet:
		l.opts.Show(w, r, Page{http.StatusMethodNotAllowed, "Not possible", "This address cannot be asked in this way.", "/ui/", "To the fleet"})
	case !l.pace.allow(r, began.State, l.opts.Now()):
		w.Header().Set("Retry-After", "5")
		l.opts.Show(w, r, Page{http.StatusTooManyRequests, "Too many logins", "Too many logins are under way; try again in a moment.", LoginPath, "Try again"})
	case r.URL.Path == LoginPath:
		l.begin(w, r)
	default:
		l.finish(w, r, began)
	}
}

// began is the login that the browser of a callback began, without a State for none:
// nobody can make one up.
func (l *Login) began(r *http.Request) *attempt {
	a := &attempt{}
	if r.URL.Path != CallbackPath || !l.seal.open(r, attemptCookie, a) || !a.Until.After(l.opts.Now()) ||
		subtle.ConstantTimeCompare([]byte(a.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return &attempt{}
	}
	return a
}

// begin sends a browser to the provider.
func (l *Login) begin(w http.ResponseWriter, r *http.Request) {
	a := &attempt{State: random(), Nonce: random(), Verifier: random() + random(), To: local(r.URL.Query().Get("to")), Until: l.opts.Now().Add(attemptLife)}
	to := ""
	err := l.place(r.Context(), func() (err error) {
		to, err = l.provider.begin(r.Context(), a)
		return err
	})
	text := ""
	if err == nil {
		text, err = l.seal.seal(attemptCookie, a)
	}
	if err != nil {
		l.failed(w, r, http.StatusBadGateway, "The identity provider cannot be reached; the daemon's log has the reason.", err)
		return
	}
	http.SetCookie(w, cookie(attemptCookie, text, attemptLife))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// place has what asks the provider wait its turn.
func (l *Login) place(ctx context.Context, do func() error) error {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for other logins: %w", ctx.Err())
	}
	defer func() { <-l.places }()
	return do()
}

// finish takes a browser back from the provider.
func (l *Login) finish(w http.ResponseWriter, r *http.Request, a *attempt) {
	q := r.URL.Query()
	http.SetCookie(w, cookie(attemptCookie, "", 0)) // each is for one callback
	if a.State == "" {
		l.failed(w, r, http.StatusBadRequest, "This browser began no such login, or more than ten minutes ago, or at another address than "+l.opts.RedirectURL+".", errors.New("state and cookie do not belong together"))
		return
	}
	if code := q.Get("error"); code != "" {
		l.failed(w, r, http.StatusForbidden, "The identity provider refused the login: "+short(code)+".", fmt.Errorf("the provider answered %s: %s", short(code), short(q.Get("error_description"))))
		return
	}
	var s *Session
	err := l.place(r.Context(), func() (err error) {
		s, err = l.provider.finish(r.Context(), a, q.Get("code"))
		return err
	})
	if err != nil {
		l.failed(w, r, http.StatusForbidden, "The identity provider's answer was not accepted; the daemon's log has the reason.", err)
		return
	}
	if !l.allowed(s) {
		l.failed(w, r, http.StatusForbidden, "Your account is in no group that may sign in here: ask the operators of this fleet which groups may.", fmt.Errorf("account %s is in none of the groups of --oidc-allowed-groups", short(s.Subject)))
		return
	}
	text, err := l.seal.seal(sessionCookie, s)
	if errors.Is(err, errTooLarge) {
		s.Groups = slices.DeleteFunc(s.Groups, func(g string) bool {
			return !slices.Contains(l.opts.Everything, g) && !slices.Contains(l.opts.Allowed, g) && (l.opts.Listed == nil || !l.opts.Listed(g))
		})
		text, err = l.seal.seal(sessionCookie, s)
	}
	if err != nil {
		l.failed(w, r, http.StatusForbidden, "Your account is in more groups than a session can hold; have the identity provider send only those that tenants list.", err)
		return
	}
	l.opts.Log.Info("signed in", "subject", s.Subject, "name", escape.Line(s.Name), "groups", len(s.Groups), "everything", l.Everything(s), "until", s.Until.UTC().Format(time.RFC3339))
	http.SetCookie(w, cookie(sessionCookie, text, l.opts.Life))
	http.Redirect(w, r, a.To, http.StatusSeeOther)
}

// logout ends a session. Another site cannot ask for it.
func (l *Login) logout(w http.ResponseWriter, r *http.Request) {
	if err := l.origin.Check(r); err != nil {
		l.failed(w, r, http.StatusForbidden, "The request came from another site.", err)
		return
	}
	if s := l.Session(r); s != nil {
		l.ended.add(s.ID, s.Until, l.opts.Now())
		l.opts.Log.Info("signed out", "subject", s.Subject, "name", escape.Line(s.Name))
	}
	http.SetCookie(w, cookie(sessionCookie, "", 0))
	l.opts.Show(w, r, Page{http.StatusOK, "Signed out", "Your session at this dashboard has ended. The one at your identity provider may go on.", LoginPath, "Sign in again"})
}

// failed tells a person and the log why a login came to nothing.
func (l *Login) failed(w http.ResponseWriter, r *http.Request, status int, text string, err error) {
	l.opts.Log.Warn("a login failed", "path", r.URL.Path, "peer", r.RemoteAddr, "error", escape.Line(err.Error()))
	l.opts.Show(w, r, Page{status, "Not signed in", text, LoginPath, "Try again"})
}

// short is a word of the provider's, as it can be shown.
func short(text string) string {
	if len(text) > maxName {
		text = text[:maxName] + "…"
	}
	return escape.Line(text)
}

// local is an address of the dashboard, and the fleet's page in place of any other.
func local(to string) string {
	const home = "/ui/"
	u, err := url.Parse(to)
	if err != nil || len(to) > 1000 || u.IsAbs() || u.Host != "" || u.User != nil || strings.ContainsAny(to, "\\\t\r\n") || !strings.HasPrefix(u.Path, home) || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != home {
		return home
	}
	if u.Path == LoginPath || u.Path == CallbackPath || u.Path == LogoutPath {
		return home
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}
