package githubapp

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

const (
	app, installation = 1234, 5678
	remote            = "https://github.com/acme/fleet.git"
)

// github is as much of GitHub's API as gives tokens: it checks the app's signature, and
// gives a new token to each request.
type github struct {
	*httptest.Server
	mu     sync.Mutex
	key    *rsa.PublicKey
	life   time.Duration
	status int // of the answer; 0: a token
	given  int
	name   string // of the tokens; "": ghs_1, ghs_2, …
	body   string // in place of a token
	asked  int
	hold   chan struct{} // when set, an answer waits until it is closed
	held   chan struct{} // has one for each answer that waits
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	g := &github{life: time.Hour, held: make(chan struct{}, 9)}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked++
		if hold := g.hold; hold != nil {
			g.mu.Unlock()
			g.held <- struct{}{}
			<-hold
			g.mu.Lock()
		}
		if r.Method != http.MethodPost || r.URL.Path != fmt.Sprintf("/app/installations/%d/access_tokens", installation) {
			http.NotFound(w, r)
			return
		}
		if err := g.signed(r.Header.Get("Authorization")); err != nil || g.status != 0 {
			if g.status == 0 {
				t.Logf("refused: %v", err)
				g.status = http.StatusUnauthorized
			}
			w.WriteHeader(g.status)
			fmt.Fprint(w, `{"message":"a secret of the server"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		if g.body != "" {
			fmt.Fprint(w, g.body)
			return
		}
		g.given++
		name := g.name
		if name == "" {
			name = fmt.Sprintf("ghs_%d", g.given)
		}
		fmt.Fprintf(w, `{"token":%q,"expires_at":%q}`, name, time.Now().Add(g.life).Format(time.RFC3339))
	}))
	t.Cleanup(g.Close)
	return g
}

// signed checks a JWT by hand: RS256 of the app's key, issued by the app, for at most ten
// minutes.
func (g *github) signed(header string) error {
	parts := strings.Split(strings.TrimPrefix(header, "Bearer "), ".")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(g.key, crypto.SHA256, digest[:], signature); err != nil {
		return err
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Iss      any
		Iat, Exp float64
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return err
	}
	if fmt.Sprint(claims.Iss) != fmt.Sprint(app) || claims.Exp-claims.Iat > 600 {
		return fmt.Errorf("claims %s", payload)
	}
	return nil
}

// newKey writes a key of an app, and returns its public half.
func newKey(t *testing.T, file string) *rsa.PublicKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

func open(t *testing.T, g *github) (*Tokens, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "app.pem")
	g.key = newKey(t, file)
	tokens, err := Flags{App: app, Installation: installation, KeyFile: file}.Open(forge.Config{URL: g.URL}, remote)
	if err != nil {
		t.Fatal(err)
	}
	return tokens, file
}

func token(t *testing.T, tokens *Tokens) string {
	t.Helper()
	b, err := tokens.Read(File)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A token serves until its last minute; then there is a new one, by whatever key the file
// has by then. Other files are read as they are.
func TestTokens(t *testing.T) {
	g := newGitHub(t)
	tokens, file := open(t, g)
	if g.given != 0 {
		t.Error("opening asked for a token")
	}
	if a, b := token(t, tokens), token(t, tokens); a != "ghs_1" || b != "ghs_1" {
		t.Errorf("got %s and %s, want the same twice", a, b)
	}
	other := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(other, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := tokens.Read(other); err != nil || string(b) != "text" {
		t.Errorf("another file: %q, %v", b, err)
	}
	g.mu.Lock()
	g.key, g.life = newKey(t, file), 30*time.Second
	g.mu.Unlock()
	if a, b := token(t, tokens), token(t, tokens); a != "ghs_2" || b != "ghs_3" {
		t.Errorf("with a new key, and less than a minute to go: %s and %s", a, b)
	}
}

func TestTokens_AtOnce(t *testing.T) {
	g := newGitHub(t)
	tokens, _ := open(t, g)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { _, _ = tokens.Read(File) })
	}
	wait.Wait()
	if g.given != 1 {
		t.Errorf("%d tokens were asked for, want 1", g.given)
	}
}

// A refusal says what to do, and shows nothing of what the server or the key said.
func TestTokens_Refused(t *testing.T) {
	for status, want := range map[int]string{401: "clock must be the app's", 404: "no such installation", 403: "suspended"} {
		g := newGitHub(t)
		tokens, _ := open(t, g)
		g.status = status
		_, err := tokens.Read(File)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: got %v, want %q", status, err, want)
		}
		g.mu.Lock()
		g.status = 0
		g.mu.Unlock()
		if _, again := tokens.Read(File); again == nil || again.Error() != err.Error() || g.asked != 1 {
			t.Errorf("%d: at once again: %v after %d requests, want the same after 1", status, again, g.asked)
		}
		later(tokens, pause)
		if got := token(t, tokens); got != "ghs_1" {
			t.Errorf("%d: afterwards %s", status, got)
		}
	}
}

// later sets the clock of tokens forward.
func later(tokens *Tokens, by time.Duration) {
	tokens.mu.Lock()
	defer tokens.mu.Unlock()
	was := tokens.now
	tokens.now = func() time.Time { return was().Add(by) }
}

// What is no token, or one for longer than an app's, is refused; the daemon goes on.
func TestTokens_Answers(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct{ body, want string }{
		"null":        {"null", "is no JSON object"},
		"a list":      {"[]", "is no JSON object"},
		"text":        {"<html>s3cret</html>", "is no JSON object"},
		"no token":    {`{"expires_at":"` + at(time.Hour) + `"}`, "is no JSON object"},
		"no expiry":   {`{"token":"s3cret"}`, "expires at 0001"},
		"a bad one":   {`{"token":"s3cret","expires_at":"s3cret"}`, "is no JSON object"},
		"a past one":  {`{"token":"s3cret","expires_at":"` + at(-time.Minute) + `"}`, "want within an hour"},
		"a far one":   {`{"token":"s3cret","expires_at":"9999-01-01T00:00:00Z"}`, "want within an hour"},
		"two hours":   {`{"token":"s3cret","expires_at":"` + at(2*time.Hour) + `"}`, "want within an hour"},
		"no end":      {`{"token":"s3cret","more":"` + strings.Repeat("x", 1<<20), "longer than 65536 bytes"},
		"other kinds": {`{"token":"ghs_x","expires_at":"` + at(time.Hour+5*time.Minute) + `","permissions":[],"repositories":7}`, ""},
	} {
		g := newGitHub(t)
		tokens, _ := open(t, g)
		g.body = c.body
		got, err := tokens.Read(File)
		if c.want == "" {
			if err != nil || string(got) != "ghs_x" {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %q and %v, want %q", name, got, err, c.want)
		}
		g.mu.Lock()
		g.body = ""
		g.mu.Unlock()
		later(tokens, pause)
		if got := token(t, tokens); got != "ghs_1" {
			t.Errorf("%s: afterwards %s", name, got)
		}
	}
}

// While a token is asked for, and where that fails, the last one serves until it expires;
// a failure stands for a while, but not for another key.
func TestTokens_LastOneServes(t *testing.T) {
	g := newGitHub(t)
	tokens, file := open(t, g)
	g.life = 90 * time.Second
	if got := token(t, tokens); got != "ghs_1" {
		t.Fatal(got)
	}
	later(tokens, 45*time.Second) // less than a minute to go
	hold := make(chan struct{})
	g.mu.Lock()
	g.hold, g.status = hold, http.StatusBadGateway
	g.mu.Unlock()
	first := make(chan string)
	go func() {
		b, err := tokens.Read(File)
		first <- fmt.Sprint(string(b), err)
	}()
	<-g.held
	if got := token(t, tokens); got != "ghs_1" { // and does not wait
		t.Errorf("meanwhile %s", got)
	}
	close(hold)
	if got := <-first; got != "ghs_1<nil>" {
		t.Errorf("who asked has %s", got)
	}
	later(tokens, 5*time.Second)
	if got := token(t, tokens); got != "ghs_1" || g.asked != 2 {
		t.Errorf("after the failure %s and %d requests, want ghs_1 and 2", got, g.asked)
	}
	later(tokens, time.Minute) // it has expired
	if _, err := tokens.Read(File); err == nil || g.asked != 3 {
		t.Errorf("expired: %v after %d requests, want an error after 3", err, g.asked)
	}
	if _, err := tokens.Read(File); err == nil || g.asked != 3 {
		t.Errorf("at once again: %v after %d requests, want the same after 3", err, g.asked)
	}
	g.mu.Lock()
	g.key, g.status, g.hold, g.life = newKey(t, file), 0, nil, time.Hour
	g.mu.Unlock()
	if got := token(t, tokens); got != "ghs_2" {
		t.Errorf("by another key %s", got)
	}
}

// A token that is refused is forgotten, and a new one as long as it is new is not.
func TestTokens_RefusedOnesAreForgotten(t *testing.T) {
	g := newGitHub(t)
	tokens, _ := open(t, g)
	token(t, tokens)
	later(tokens, time.Minute)
	tokens.Answer(&http.Response{StatusCode: http.StatusForbidden})
	if got := token(t, tokens); got != "ghs_1" {
		t.Errorf("after 403 %s", got)
	}
	for range 3 {
		tokens.Answer(&http.Response{StatusCode: http.StatusUnauthorized})
		if got := token(t, tokens); got != "ghs_2" {
			t.Errorf("after 401 %s", got)
		}
	}
	// The app itself is refused: its last token is none any more.
	later(tokens, time.Hour-90*time.Second)
	g.status = http.StatusUnauthorized
	if _, err := tokens.Read(File); err == nil {
		t.Error("the token of an app that is not known serves")
	}
}

func TestFlags(t *testing.T) {
	key := filepath.Join(t.TempDir(), "app.pem")
	newKey(t, key)
	bad := filepath.Join(t.TempDir(), "bad.pem")
	if err := os.WriteFile(bad, []byte("-----BEGIN nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags  Flags
		remote string
		want   string
	}{
		"no id":           {Flags{Installation: 1, KeyFile: key}, remote, "--github-app-id is missing"},
		"no installation": {Flags{App: 1, KeyFile: key}, remote, "--github-app-installation is missing"},
		"no key":          {Flags{App: 1, Installation: 1}, remote, "--github-app-key-file is missing"},
		"ssh":             {Flags{App: 1, Installation: 1, KeyFile: key}, "git@github.com:acme/fleet.git", "over https alone"},
		"a bad key":       {Flags{App: 1, Installation: 1, KeyFile: bad}, remote, "is no RSA private key"},
		"no such file":    {Flags{App: 1, Installation: 1, KeyFile: bad + "x"}, remote, "no such file"},
	} {
		if tokens, err := c.flags.Open(forge.Config{}, c.remote); err == nil || tokens != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if tokens, err := (Flags{}).Open(forge.Config{}, "git@github.com:a/b"); tokens != nil || err != nil {
		t.Errorf("without flags: %v, %v", tokens, err)
	}
	for remote, want := range map[string]string{remote: "https://api.github.com", "https://git.acme.example/acme/fleet.git": "https://git.acme.example/api/v3"} {
		tokens, err := Flags{App: 1, Installation: 1, KeyFile: key}.Open(forge.Config{}, remote)
		if err != nil || tokens.api != want {
			t.Errorf("%s: %+v, %v; want %s", remote, tokens, err, want)
		}
	}
}

// The same token opens git over https, as x-access-token, and the forge's API.
func TestTokens_OpenGitAndForge(t *testing.T) {
	g := newGitHub(t)
	g.name = forgetest.Token
	tokens, _ := open(t, g)

	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main", "work")
	gitIn(t, dir, "-C", "work", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x")
	gitIn(t, dir, "clone", "-q", "--bare", "work", "fleet.git")
	server := gitServer(t, dir, User, forgetest.Token)
	for name, want := range map[string]bool{"the app": true, "nobody": false} {
		auth := gitrepo.Auth{}
		if want {
			auth = gitrepo.Auth{User: User, PasswordFile: File, Read: tokens.Read}
		}
		dialed, err := gitrepo.Dial(server+"/fleet.git", auth)
		if err != nil {
			t.Fatal(err)
		}
		if refs, err := dialed.Refs(t.Context()); (err == nil) != want || want && refs["refs/heads/main"].IsZero() {
			t.Errorf("%s: refs %v, %v", name, refs, err)
		}
	}

	fake := forgetest.GitHub(t)
	n := fake.Add(forgetest.Pull{Title: "Add a", Base: "main", Head: "h"})
	answers := 0
	f, err := forges.Open(forge.Config{Kind: forge.GitHub, URL: fake.URL, Repo: "acme/fleet", TokenFile: File, Read: tokens.Read, Answer: func(a *http.Response) { answers++; tokens.Answer(a) }}, "")
	if err != nil {
		t.Fatal(err)
	}
	if pr, err := f.Get(t.Context(), n); err != nil || pr.Title != "Add a" {
		t.Errorf("the forge: %+v, %v", pr, err)
	}
	if g.given != 1 || answers == 0 {
		t.Errorf("%d tokens were asked for, want 1; %d answers were told", g.given, answers)
	}
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// gitServer is git's own http backend behind basic authentication.
func gitServer(t *testing.T, dir, user, password string) string {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
