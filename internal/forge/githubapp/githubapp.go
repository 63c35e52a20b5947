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

// timeout bounds each request for a token.
const timeout = 30 * time.Second

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

	mu  sync.Mutex
	key []byte // of the transport
	via *ghinstallation.Transport
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
	t := &Tokens{flags: f, api: strings.TrimSuffix(forge.GitHubAPI(c.URL, remote), "/"), client: transport}
	if _, err := t.transport(); err != nil {
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

// transport is the library's for the key as the file has it now. The caller holds the lock,
// or is alone.
func (t *Tokens) transport() (*ghinstallation.Transport, error) {
	key, err := os.ReadFile(t.flags.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the GitHub App's key: %w", err)
	}
	if t.via != nil && bytes.Equal(key, t.key) {
		return t.via, nil
	}
	via, err := ghinstallation.New(t.client, t.flags.App, t.flags.Installation, key)
	if err != nil {
		return nil, fmt.Errorf("read the GitHub App's key: %s is no RSA private key in PEM", t.flags.KeyFile)
	}
	via.BaseURL = t.api
	via.Client = &http.Client{Transport: t.client, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") }}
	t.key, t.via = key, via
	return via, nil
}

// Read is the installation's token under the name File, and any other file as it is.
func (t *Tokens) Read(file string) ([]byte, error) {
	if file != File {
		return os.ReadFile(file) //nolint:gosec // the operator named the file
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	via, err := t.transport()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	token, err := via.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the GitHub App's token: %w", t.api, reason(err))
	}
	return []byte(token), nil
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
	return fmt.Errorf("it answers %s%s", refused.Response.Status, remedy)
}
