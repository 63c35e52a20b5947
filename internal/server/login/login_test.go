package login

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/server/login/testidp"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// site is a dashboard that people sign in to, and a browser.
type site struct {
	t       *testing.T
	idp     *testidp.IDP
	login   *Login
	url     string
	browser *http.Client

	mu  sync.Mutex
	now time.Time
	log bytes.Buffer
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// pass lets time go by.
func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Write implements io.Writer for the log.
func (s *site) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *site) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// newSite serves who a session is of at every address that is not the login's.
func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, idp: testidp.New(t), now: time.Now()}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.login.Serves(r.URL.Path) {
			s.login.ServeHTTP(w, r)
			return
		}
		who := s.login.Session(r)
		if who == nil {
			s.login.Invite(w, r)
			return
		}
		who.ID = ""
		_ = json.NewEncoder(w).Encode(who)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	o := Options{
		Issuer: s.idp.URL, ClientID: testidp.ClientID, Secret: func() (string, error) { return testidp.Secret, nil }, RedirectURL: s.url + CallbackPath,
		NameClaim: "email", GroupsClaim: "groups", Everything: []string{"operators"}, Roots: x509.NewCertPool(), Life: time.Hour,
		Show: func(w http.ResponseWriter, _ *http.Request, p Page) {
			w.WriteHeader(p.Status)
			fmt.Fprintf(w, "%s|%s|%s", p.Title, p.Text, p.Link)
		},
		Now: s.clock, Log: slog.New(slog.NewTextHandler(s, nil)),
	}
	o.Roots.AppendCertsFromPEM(s.idp.PEM)
	for _, c := range change {
		c(&o)
	}
	var err error
	if s.login, err = New(o); err != nil {
		t.Fatal(err)
	}
	s.browser = s.newBrowser(server)
	return s
}

func (s *site) newBrowser(server *httptest.Server) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := server.Client()
	c.Jar = jar
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs.AppendCertsFromPEM(s.idp.PEM)
	return c
}

// get is the end of an address's redirects: status, text, path.
func (s *site) get(path string) (status int, text, at string) {
	s.t.Helper()
	resp, err := s.browser.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b := bytes.Buffer{}
	if _, err := b.ReadFrom(resp.Body); err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, b.String(), resp.Request.URL.RequestURI()
}

// who is the session of the browser; nil for none.
func (s *site) who() *Session {
	s.t.Helper()
	status, text, _ := s.get("/ui/")
	if status == http.StatusUnauthorized {
		return nil
	}
	who := &Session{}
	if err := json.Unmarshal([]byte(text), who); err != nil {
		s.t.Fatalf("%d %s: %v", status, text, err)
	}
	return who
}

// TestLogin: the whole flow, with what the provider is asked and what the browser keeps.
func TestLogin(t *testing.T) {
	s := newSite(t)
	s.idp.Lie(testidp.Lies{Claims: map[string]any{"groups": []string{"team-vision", "system:masters", "team-vision", ""}}})
	if status, text, _ := s.get("/ui/contracts?q=a%20b&page=2"); status != http.StatusUnauthorized || !strings.HasSuffix(text, "|/ui/login?to=%2Fui%2Fcontracts%3Fq%3Da%2520b%26page%3D2") {
		t.Fatalf("without a session: %d %s", status, text)
	}
	status, text, at := s.get("/ui/login?to=" + url.QueryEscape("/ui/contracts?q=a%20b&page=2"))
	if status != http.StatusOK || at != "/ui/contracts?q=a%20b&page=2" {
		t.Fatalf("signing in leads to %d %s: %s\n%s", status, at, text, s.logged())
	}
	who := s.who()
	if who == nil || who.Subject != "1234" || who.Name != "ada@example.org" || !slices.Equal(who.Groups, []string{"team-vision"}) || who.Until.Sub(s.clock()) > time.Hour || s.login.Everything(who) {
		t.Errorf("the session is %+v", who)
	}
	q := s.idp.Asked()[0]
	for name, want := range map[string]string{"client_id": testidp.ClientID, "response_type": "code", "scope": "openid", "code_challenge_method": "S256", "redirect_uri": s.url + "/ui/callback"} {
		if q.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) < 20 || len(q.Get("nonce")) < 20 || len(q.Get("code_challenge")) < 40 || q.Get("state") == q.Get("nonce") {
		t.Errorf("asked with %v", q)
	}
	if s.get("/ui/login"); s.idp.Asked()[1].Get("state") == q.Get("state") || s.idp.Asked()[1].Get("nonce") == q.Get("nonce") || s.idp.Asked()[1].Get("code_challenge") == q.Get("code_challenge") {
		t.Error("two logins share a state, a nonce or a verifier")
	}
	for _, secret := range []string{testidp.Secret, "access", "eyJ"} {
		if strings.Contains(s.logged(), secret) {
			t.Errorf("the log has %q:\n%s", secret, s.logged())
		}
	}
}

// TestCookies: they are for this host over TLS, out of scripts' reach, and of bounded life.
func TestCookies(t *testing.T) {
	s := newSite(t)
	var all []*http.Cookie
	s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		all = append(all, r.Response.Cookies()...)
		return nil
	}
	if s.get("/ui/login"); s.who() == nil {
		t.Fatal("not signed in")
	}
	kept := 0
	for _, c := range all {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || len(c.String()) > 4096 {
			t.Errorf("%s", c)
		}
		if c.MaxAge > 0 {
			kept++
		}
		if c.Name == sessionCookie && c.MaxAge != 3600 {
			t.Errorf("a session of an hour is kept for %d seconds", c.MaxAge)
		}
		if raw, err := base64.RawURLEncoding.DecodeString(c.Value); err != nil || bytes.Contains(raw, []byte("ada")) || bytes.Contains(raw, []byte("1234")) {
			t.Errorf("%s can be read: %v", c.Name, err)
		}
	}
	if len(all) != 3 || kept != 2 {
		t.Errorf("the login set %d cookies, of which %d are kept: %v", len(all), kept, all)
	}
	s.pass(59 * time.Minute)
	if s.who() == nil {
		t.Error("the session has ended early")
	}
	s.pass(2 * time.Minute)
	if s.who() != nil {
		t.Error("the session outlives its hour, though the browser still shows it")
	}
}

// forge is a request with a cookie of its own making.
func forge(name, value string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/ui/", nil)
	r.AddCookie(&http.Cookie{Name: name, Value: value})
	return r
}

// TestForgedCookies: nothing but what this daemon sealed for this purpose is a session.
func TestForgedCookies(t *testing.T) {
	s := newSite(t)
	good := &Session{ID: "1", Subject: "1", Groups: []string{"operators"}, Until: s.clock().Add(time.Hour)}
	text, err := s.login.seal.seal(sessionCookie, good)
	if err != nil || s.login.Session(forge(sessionCookie, text)) == nil {
		t.Fatalf("a sealed session is none: %v", err)
	}
	seal := func(by *sealer, name string, v any) string {
		text, err := by.seal(name, v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	other := func(key []byte, issuer, client string) *sealer {
		by, err := newSealer(key, issuer, client)
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	key := bytes.Repeat([]byte("k"), 32)
	with := newSite(t, func(o *Options) { o.Key = key })
	if with.login.Session(forge(sessionCookie, seal(other(key, with.idp.URL, testidp.ClientID), sessionCookie, good))) == nil {
		t.Error("two replicas with one key do not share sessions")
	}
	plain, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*http.Request{
		"plain":          forge(sessionCookie, base64.RawURLEncoding.EncodeToString(plain)),
		"cut":            forge(sessionCookie, text[:len(text)-4]),
		"one bit":        forge(sessionCookie, text[:10]+map[bool]string{true: "A", false: "B"}[text[10] != 'A']+text[11:]),
		"another key":    forge(sessionCookie, seal(other(nil, s.idp.URL, testidp.ClientID), sessionCookie, good)),
		"another issuer": with.forged(seal(other(key, "https://evil.example.org", testidp.ClientID), sessionCookie, good)),
		"another client": with.forged(seal(other(key, with.idp.URL, "other"), sessionCookie, good)),
		"an attempt":     forge(sessionCookie, seal(s.login.seal, attemptCookie, good)),
		"of the past":    forge(sessionCookie, seal(s.login.seal, sessionCookie, &Session{ID: "2", Until: s.clock()})),
		"without end":    forge(sessionCookie, seal(s.login.seal, sessionCookie, &Session{ID: "2", Until: s.clock().Add(25 * time.Hour)})),
		"empty":          forge(sessionCookie, ""),
		"huge":           forge(sessionCookie, strings.Repeat("A", 100_000)),
		"none":           httptest.NewRequest(http.MethodGet, "/ui/", nil),
	} {
		if l := s.login; l.Session(r) != nil || with.login.Session(r) != nil {
			t.Errorf("%s: it is a session", name)
		}
	}
	if (*Login)(nil).Session(forge(sessionCookie, text)) != nil || (*Login)(nil).Serves(LoginPath) {
		t.Error("without a login there are sessions")
	}
}

func (s *site) forged(text string) *http.Request { return forge(sessionCookie, text) }

// TestLyingProviders: what the provider says is believed only with its signature, for this
// client, this browser and this moment.
func TestLyingProviders(t *testing.T) {
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	token := func(p *testidp.IDP, alg string) string {
		part := func(v any) string {
			b, _ := json.Marshal(v)
			return base64.RawURLEncoding.EncodeToString(b)
		}
		return part(map[string]string{"alg": alg}) + "." + part(map[string]any{"iss": p.URL, "aud": testidp.ClientID, "sub": "1", "exp": time.Now().Add(time.Hour).Unix()}) + "."
	}
	many := make([]string, 3000)
	for name, c := range map[string]struct {
		lies func(*testidp.IDP) testidp.Lies
		says string
	}{
		"nonce":    {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"nonce": "of another"}} }, "nonce"},
		"no nonce": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"nonce": nil}} }, "nonce"},
		"audience": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"aud": "other"}} }, "audience"},
		"two audiences": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"aud": []string{testidp.ClientID, "other"}}}
		}, "another client"},
		"party": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"azp": "other"}} }, "another client"},
		"issuer": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"iss": "https://evil.example.org"}}
		}, "different provider"},
		"expired": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}}
		}, "expired"},
		"not yet": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}}
		}, "not before"},
		"no account": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"sub": nil}} }, "no account"},
		"access token": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}
		}, "access token"},
		"foreign key": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Key: &jose.SigningKey{Algorithm: jose.ES256, Key: foreign}}
		}, "verify"},
		"its own id": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Key: &jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: foreign, KeyID: "1"}}}
		}, "verify"},
		"shared secret": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Key: &jose.SigningKey{Algorithm: jose.HS256, Key: []byte(testidp.Secret + "                                ")}}
		}, "malformed"},
		"none":     {func(p *testidp.IDP) testidp.Lies { return testidp.Lies{Token: token(p, "none")} }, "malformed"},
		"no token": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Token: " "} }, "malformed"},
		"groups a map": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Claims: map[string]any{"groups": map[string]int{"a": 1}}}
		}, "not a list"},
		"3000 groups": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Claims: map[string]any{"groups": many}} }, "3000 groups"},
		"other account": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{UserInfo: map[string]any{"sub": "other", "groups": []string{"operators"}}}
		}, "another account"},
		"refuses":        {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Refuse: "access_denied"} }, "access_denied"},
		"refuses boldly": {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Refuse: "\x1b[31m" + strings.Repeat("x", 5000)} }, `\\u001b`},
		"endless":        {func(*testidp.IDP) testidp.Lies { return testidp.Lies{Answer: endless} }, "more than"},
		"sends away": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://evil.example.org/", http.StatusFound)
			}}
		}, "302"},
		"plain": {func(p *testidp.IDP) testidp.Lies {
			return testidp.Lies{Answer: func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "authorization_endpoint": "http://evil.example.org/", "token_endpoint": p.URL, "jwks_uri": p.URL})
			}}
		}, "not https"},
		"is another": {func(*testidp.IDP) testidp.Lies {
			return testidp.Lies{Answer: func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "https://evil.example.org"})
			}}
		}, "issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.idp.Lie(c.lies(s.idp))
			status, text, _ := s.get("/ui/login")
			if status < 400 || !strings.HasPrefix(text, "Not signed in|") || s.who() != nil {
				t.Errorf("answered %d %.200s", status, text)
			}
			if !strings.Contains(s.logged(), c.says) {
				t.Errorf("the log does not say %q:\n%.600s", c.says, s.logged())
			}
			if strings.Contains(text, "\x1b") || len(text) > 2000 || len(s.logged()) > 5000 {
				t.Errorf("shown are %d bytes, logged %d: %.300q", len(text), len(s.logged()), text)
			}
			s.idp.Lie(testidp.Lies{UserInfo: map[string]any{"sub": "1234"}})
			if s.get("/ui/login"); s.who() == nil {
				t.Errorf("an honest login fails after it:\n%s", s.logged())
			}
		})
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for range 64 {
		if _, err := w.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
			return
		}
	}
}

// TestCallbacks: a code counts with the state and the cookie of the browser that began, once.
func TestCallbacks(t *testing.T) {
	s := newSite(t)
	var back string
	s.browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == CallbackPath {
			back = r.URL.RequestURI()
			return http.ErrUseLastResponse
		}
		return nil
	}
	begin := func() string { s.get("/ui/login"); return back }
	refused := func(what, path string) {
		t.Helper()
		if status, text, _ := s.get(path); status != http.StatusBadRequest || s.who() != nil {
			t.Errorf("%s: answered %d %s", what, status, text)
		}
	}
	jar := s.browser.Jar
	empty, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	code := begin()
	s.browser.Jar = empty
	refused("another browser", code) // login CSRF: a code of the attacker's in the victim's browser
	s.browser.Jar = jar
	u, err := url.Parse(begin())
	if err != nil {
		t.Fatal(err)
	}
	refused("another state", CallbackPath+"?code="+u.Query().Get("code")+"&state=x")
	refused("after a refusal", u.RequestURI()) // its cookie is gone
	code = begin()
	s.pass(11 * time.Minute)
	refused("too late", code)
	s.pass(-11 * time.Minute)
	code = begin()
	if status, _, _ := s.get(code); status != http.StatusOK || s.who() == nil {
		t.Fatalf("the right one: %d\n%s", status, s.logged())
	}
	refusedAgain, _, _ := s.get(code)
	if refusedAgain != http.StatusBadRequest {
		t.Errorf("a second time: %d", refusedAgain)
	}
}

// TestLogout: a session ends everywhere on this replica, and no other site ends it.
func TestLogout(t *testing.T) {
	s := newSite(t)
	s.get("/ui/login")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	post := func(headers ...string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, s.url+LogoutPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := s.browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if got := post("Sec-Fetch-Site", "cross-site"); got != http.StatusForbidden || s.who() == nil {
		t.Errorf("from another site: %d", got)
	}
	if got := post("Origin", "https://evil.example.org"); got != http.StatusForbidden || s.who() == nil {
		t.Errorf("from another origin: %d", got)
	}
	if status, _, _ := s.get(LogoutPath); status != http.StatusMethodNotAllowed || s.who() == nil {
		t.Errorf("by a GET, as an image makes: %d", status)
	}
	kept := s.browser.Jar.Cookies(u)
	if got := post("Sec-Fetch-Site", "same-origin"); got != http.StatusOK || s.who() != nil {
		t.Errorf("from the page: %d", got)
	}
	s.browser.Jar.SetCookies(u, kept)
	if s.who() != nil {
		t.Error("a cookie that was kept aside outlives the logout")
	}
	e := ended{at: map[string]time.Time{}}
	for i := range maxEnded + 5000 {
		e.add(fmt.Sprint(i), s.clock().Add(time.Duration(i)*time.Second), s.clock())
	}
	if len(e.at) > maxEnded || !e.has(fmt.Sprint(maxEnded+4999)) || e.has("0") {
		t.Errorf("%d logouts are kept", len(e.at))
	}
}

// TestGroups: they come from the token or the provider's answer, with the prefix, and those
// that tenants list are kept where not all fit.
func TestGroups(t *testing.T) {
	many := []string{"team-vision", "operators"}
	for i := range 400 {
		many = append(many, fmt.Sprintf("%08x-5b3f-4e7a-9b1c-%012x", i*7919, i*104729))
	}
	for name, c := range map[string]struct {
		lies   testidp.Lies
		prefix string
		want   []string
		all    bool
	}{
		"none":         {testidp.Lies{}, "", nil, false},
		"one":          {testidp.Lies{Claims: map[string]any{"groups": "operators"}}, "", []string{"operators"}, true},
		"prefix":       {testidp.Lies{Claims: map[string]any{"groups": []string{"operators"}}}, "oidc:", []string{"oidc:operators"}, false},
		"system":       {testidp.Lies{Claims: map[string]any{"groups": []string{"masters"}}}, "system:", nil, false},
		"user info":    {testidp.Lies{UserInfo: map[string]any{"sub": "1234", "groups": []string{"team-nlp"}}}, "", []string{"team-nlp"}, false},
		"token first":  {testidp.Lies{Claims: map[string]any{"groups": []string{"a"}}, UserInfo: map[string]any{"sub": "1234", "groups": []string{"operators"}}}, "", []string{"a"}, false},
		"402 of them":  {testidp.Lies{Claims: map[string]any{"groups": many}}, "", []string{"team-vision", "operators"}, true},
		"long":         {testidp.Lies{Claims: map[string]any{"groups": []string{strings.Repeat("x", 257), "b"}}}, "", []string{"b"}, false},
		"hostile":      {testidp.Lies{Claims: map[string]any{"groups": []string{"<script>", "a\nb"}, "email": hostile.Texts()[0]}}, "", []string{"<script>", "a\nb"}, false},
		"name no text": {testidp.Lies{Claims: map[string]any{"email": 7}}, "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(o *Options) {
				o.GroupsPrefix = c.prefix
				o.Listed = func(g string) bool { return g == "team-vision" }
			})
			s.idp.Lie(c.lies)
			s.get("/ui/login")
			who := s.who()
			if who == nil || !slices.Equal(who.Groups, c.want) || s.login.Everything(who) != c.all || who.Name == "" {
				t.Errorf("got %+v, want %q\n%s", who, c.want, s.logged())
			}
		})
	}
	s := newSite(t) // nothing says which tenants list
	s.idp.Lie(testidp.Lies{Claims: map[string]any{"groups": many}})
	if _, _, at := s.get("/ui/login"); at != "/ui/" || len(s.who().Groups) != 1 {
		t.Errorf("led to %s", at)
	}
}

// TestLocal: after a login one is on this dashboard, wherever the address came from.
func TestLocal(t *testing.T) {
	for to, want := range map[string]string{
		"": "/ui/", "/ui/": "/ui/", "/ui/intents/a/b%2Fc?q=1": "/ui/intents/a/b%2Fc?q=1", "/ui/contracts/": "/ui/contracts/",
		"https://evil.example.org/ui/": "/ui/", "//evil.example.org/ui/": "/ui/", "/\\evil.example.org": "/ui/", "/ui/\\..\\": "/ui/", "\\\\evil": "/ui/",
		"/ui/../metrics": "/ui/", "/ui//evil.example.org": "/ui/", "/metrics": "/ui/", "javascript:alert(1)": "/ui/", "/ui/a\nSet-Cookie: x": "/ui/", "/ui/login": "/ui/", "/ui/logout?x": "/ui/", "/uix": "/ui/",
		"/ui/" + strings.Repeat("a", 2000): "/ui/", "%zz": "/ui/",
	} {
		if got := local(to); got != want {
			t.Errorf("%.60q: got %q, want %q", to, got, want)
		}
	}
}

// TestBusy: who asks for logins without end is sent away, and sessions go on.
func TestBusy(t *testing.T) {
	s := newSite(t)
	s.get("/ui/login")
	refused := 0
	for range 60 {
		w := httptest.NewRecorder()
		s.login.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, LoginPath, nil))
		if w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || s.who() == nil {
		t.Errorf("%d of 60 were refused", refused)
	}
}

// TestFlags: mistakes of the command line are named with their remedy, and the secret is
// read again for each login.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	parse := func(args ...string) (*Login, error) {
		t.Helper()
		f, fs := Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		return f.Open(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}
	if l, err := parse(); l != nil || err != nil {
		t.Errorf("without a provider: %v, %v", l, err)
	}
	base := []string{"--oidc-issuer", "https://login.example.org", "--oidc-client-id", "c", "--oidc-redirect-url", "https://broker.example.org/ui/callback"}
	for want, args := range map[string][]string{
		"--oidc-client-id": {"--oidc-client-id", ""}, "is not https": {"--oidc-issuer", "http://login.example.org"}, "is not a URL": {"--oidc-issuer", "login"},
		"https://HOST/ui/callback": {"--oidc-redirect-url", "http://broker.example.org/ui/callback"}, "of the form": {"--oidc-redirect-url", "https://broker.example.org/"},
		"between 1s and 24h": {"--oidc-session-life", "25h"}, "no such file": {"--oidc-client-secret-file", filepath.Join(dir, "none")}, "is empty": {"--oidc-client-secret-file", file("empty", "\n")},
		"openssl rand": {"--oidc-session-key-file", file("short", "abc")}, "no certificate": {"--oidc-ca-file", file("ca", "x")}, "at most": {"--oidc-session-key-file", file("big", strings.Repeat("x", 70_000))},
	} {
		if l, err := parse(append(slices.Clone(base), args...)...); l != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	path := file("secret", "one\n")
	l, err := parse(append(base, "--oidc-client-secret-file", path, "--oidc-session-key-file", file("key", strings.Repeat("k", 44)), "--oidc-operator-groups", "a,b", "--oidc-session-life", "1h")...)
	if err != nil {
		t.Fatal(err)
	}
	file("secret", "two\r\n")
	if got, err := l.opts.Secret(); got != "two" || err != nil || l.opts.Life != time.Hour || !slices.Equal(l.opts.Everything, []string{"a", "b"}) {
		t.Errorf("the secret is %q, %v; %+v", got, err, l.opts)
	}
}

// TestAllowedGroups: where groups are listed, their members and the operators sign in and
// nobody else; a session of who is in none of them any more opens nothing.
func TestAllowedGroups(t *testing.T) {
	many := []string{"staff"}
	for i := range 400 {
		many = append(many, fmt.Sprintf("%08x-5b3f-4e7a-9b1c-%012x", i*7919, i*104729))
	}
	for name, c := range map[string]struct {
		groups any
		in     bool
	}{
		"a member":        {[]string{"a", "staff"}, true},
		"an operator":     {[]string{"operators"}, true},
		"another":         {[]string{"guests"}, false},
		"of no group":     {nil, false},
		"401 groups":      {many, true},
		"only by letters": {[]string{"Staff"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(o *Options) { o.Allowed = []string{"staff"} })
			if c.groups != nil {
				s.idp.Lie(testidp.Lies{Claims: map[string]any{"groups": c.groups}})
			}
			s.get("/ui/login")
			if who := s.who(); (who != nil) != c.in {
				t.Errorf("signed in: %+v, want %t\n%s", who, c.in, s.logged())
			}
			if !c.in && !strings.Contains(s.logged(), "--oidc-allowed-groups") {
				t.Errorf("the log does not say why: %s", s.logged())
			}
			s.login.opts.Allowed, s.login.opts.Everything = []string{"others"}, nil
			if who := s.who(); who != nil {
				t.Errorf("a session of before goes on: %+v", who)
			}
		})
	}
}

// TestLogin_Derived: replicas with one key file have one key for another purpose, which is
// neither the file's nor that of a third purpose; without a file there is none.
func TestLogin_Derived(t *testing.T) {
	with := func(key string) *Login {
		l, err := New(Options{Issuer: "https://idp.example.org", ClientID: "broker", RedirectURL: "https://broker.example.org" + CallbackPath, Life: time.Hour, Key: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	key := strings.Repeat("k", 44)
	a, b := with(key).Derived("tokens"), with(key).Derived("tokens")
	if len(a) != 32 || !bytes.Equal(a, b) || bytes.Equal(a, with(key).Derived("else")) || bytes.Equal(a, with(strings.Repeat("l", 44)).Derived("tokens")) || bytes.Contains([]byte(key), a) {
		t.Errorf("%x, %x", a, b)
	}
	var none *Login
	if none.Derived("tokens") != nil {
		t.Error("a key without logins")
	}
}
