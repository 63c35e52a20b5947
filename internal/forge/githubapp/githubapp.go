package githubapp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/forge"
)

// File is the name under which Read has the token, and User who it belongs to in git over
// https.
const (
	File = "the GitHub App's token"
	User = "x-access-token"
)

const (
	// timeout bounds each request for a token.
	timeout = 30 * time.Second
	// spare is how long before its end a token is replaced.
	spare = time.Minute
	// pause is for how long a failure stands before GitHub is asked again, and a new token
	// that is refused.
	pause = 10 * time.Second
)

// Flags say which app the daemon is.
type Flags struct {
	App, Installation int64
	KeyFile           string
}

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	fs.Int64Var(&f.App, "github-app-id", 0, "id of the GitHub App as which the daemon reaches --repo over https and the forge")
	fs.Int64Var(&f.Installation, "github-app-installation", 0, "id of the app's installation on the repository's owner")
	fs.StringVar(&f.KeyFile, "github-app-key-file", "", "file with the app's private key (PEM)")
}

// Tokens gives the app's installation tokens.
type Tokens struct {
	flags  Flags
	api    string
	client http.RoundTripper
	now    func() time.Time

	mu      sync.Mutex // not held while GitHub is asked
	key     []byte     // by which the rest is
	last    given      // the last token
	failed  error      // why the last request gave none; nil: it gave one
	since   time.Time  // of failed
	request *request   // under way
}

// given is a token, from when it was given until it expires. The zero value is none.
type given struct {
	token     string
	at, until time.Time
}

// request is one for a token; its outcome may be read when done is closed.
type request struct {
	done chan struct{}
	given
	err error
}

// Open is the app of the flags at the forge of a git remote; nil where no flag is set. It
// sends nothing. An error says which flag is missing or wrong.
func (f Flags) Open(c forge.Config, remote string) (*Tokens, error) {
	if f == (Flags{}) {
		return nil, nil //nolint:nilnil // no app
	}
	switch {
	case f.App <= 0:
		return nil, errors.New("--github-app-id is missing: it is on the app's page")
	case f.Installation <= 0:
		return nil, errors.New("--github-app-installation is missing: it is the number at the end of the installation's URL, https://github.com/organizations/<owner>/settings/installations/<number>")
	case f.KeyFile == "":
		return nil, errors.New("--github-app-key-file is missing: the private key that the app's page generates")
	case !strings.HasPrefix(remote, "https://"):
		return nil, errors.New("a GitHub App reaches git over https alone: name --repo as https://github.com/<owner>/<name>.git")
	}
	transport, err := transportOf(c.CAFile)
	if err != nil {
		return nil, err
	}
	t := &Tokens{flags: f, api: strings.TrimSuffix(forge.GitHubAPI(c.URL, remote), "/"), now: time.Now}
	t.client = checked{transport, func() time.Time { return t.now() }}
	if t.key, err = t.readKey(); err != nil {
		return nil, err
	}
	if _, err := t.by(t.key); err != nil {
		return nil, err
	}
	return t, nil
}

// transportOf trusts further authorities.
func transportOf(caFile string) (http.RoundTripper, error) {
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	tr.ResponseHeaderTimeout = timeout
	if caFile == "" {
		return tr, nil
	}
	pem, err := os.ReadFile(caFile) //nolint:gosec // the operator named the file
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificate authorities: %s holds no PEM certificate", caFile)
	}
	tr.TLSClientConfig.RootCAs = pool
	return tr, nil
}

func (t *Tokens) readKey() ([]byte, error) {
	key, err := os.ReadFile(t.flags.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the GitHub App's key: %w", err)
	}
	return key, nil
}

// by is the library's transport for a key. It sends nothing.
func (t *Tokens) by(key []byte) (*ghinstallation.Transport, error) {
	via, err := ghinstallation.New(t.client, t.flags.App, t.flags.Installation, key)
	if err != nil {
		return nil, fmt.Errorf("read the GitHub App's key: %s is no RSA private key in PEM", t.flags.KeyFile)
	}
	via.BaseURL = t.api
	return via, nil
}

// Read is the installation's token under the name File, and any other file as it is. It
// waits up to timeout for a token, and not at all while the last one has not expired and
// another caller asks for the next.
func (t *Tokens) Read(file string) ([]byte, error) {
	if file != File {
		return os.ReadFile(file) //nolint:gosec // the operator named the file
	}
	key, err := t.readKey()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	if !bytes.Equal(key, t.key) {
		t.key, t.last, t.failed, t.request = key, given{}, nil, nil
	}
	left, r, failed := t.last.until.Sub(t.now()), t.request, t.failed
	if failed != nil && t.now().Sub(t.since) >= pause {
		failed = nil
	}
	old := t.last.token
	mine := r == nil && failed == nil && left <= spare
	if mine {
		r = &request{done: make(chan struct{})}
		t.request = r
	}
	t.mu.Unlock()
	switch {
	case mine:
		t.ask(key, r)
	case left > 0:
		return []byte(old), nil
	case r == nil:
		return nil, failed
	}
	<-r.done
	if r.err != nil {
		return nil, r.err
	}
	return []byte(r.token), nil
}

// ask asks for a token, and notes what came of it unless the key is another by then. Where
// it fails, the last token serves until it expires or GitHub says that the app is not known.
func (t *Tokens) ask(key []byte, r *request) {
	r.given, r.err = t.fresh(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(r.done)
	if t.request != r {
		return
	}
	t.request, t.failed, t.since = nil, r.err, t.now()
	switch {
	case r.err == nil:
		t.last = r.given
	case unauthorized(r.err):
		t.last = given{}
	case t.last.until.After(t.now()):
		r.given, r.err = t.last, nil
	}
}

// fresh is a new token of GitHub's.
func (t *Tokens) fresh(key []byte) (given, error) {
	via, err := t.by(key)
	if err != nil {
		return given{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out := given{at: t.now()}
	if out.token, err = via.Token(ctx); err == nil {
		out.until, _, err = via.Expiry()
	}
	if err != nil {
		return given{}, fmt.Errorf("ask %s for the GitHub App's token: %w", t.api, reason(err))
	}
	return out, nil
}

// Answer is to be told each answer to a request that carried a token: one that is refused
// is forgotten, unless it was given within the last moments.
func (t *Tokens) Answer(a *http.Response) {
	if a.StatusCode != http.StatusUnauthorized {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now().Sub(t.last.at) >= pause {
		t.last = given{}
	}
}

// refusedError is an answer that is no token. What else the server said is not in it.
type refusedError struct {
	text   string
	status int
}

// Error implements error.
func (e *refusedError) Error() string { return e.text }

// unauthorized reports whether GitHub does not take the app for who it says it is.
func unauthorized(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.status == http.StatusUnauthorized
}

// reason says what to do about a refusal.
func reason(err error) error {
	var refused *ghinstallation.HTTPError
	if !errors.As(err, &refused) || refused.Response == nil {
		return err
	}
	remedy := ""
	switch refused.Response.StatusCode {
	case http.StatusUnauthorized:
		remedy = ": key, app id and this machine's clock must be the app's"
	case http.StatusNotFound:
		remedy = ": the app has no such installation; see --github-app-installation"
	case http.StatusForbidden:
		remedy = ": the installation is suspended, or its requests are limited"
	}
	return &refusedError{fmt.Sprintf("it answers %s%s", refused.Response.Status, remedy), refused.Response.StatusCode}
}
