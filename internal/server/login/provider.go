package login

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// Bounds of what is asked of the provider.
const (
	providerTimeout = 10 * time.Second
	maxAnswer       = 1 << 20
	// discoveryAge is how long what the provider says of itself is used.
	discoveryAge = time.Hour
	maxGroups    = 2000
	maxName      = 256
)

// provider is the OpenID Connect provider as it was discovered.
type provider struct {
	opts   *Options
	client *http.Client

	mu    sync.Mutex
	known *oidc.Provider
	at    time.Time
}

// secureURL is an address that is asked over TLS, or on this machine.
func secureURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, fmt.Errorf("%.200q is not a URL such as https://login.example.org", text)
	}
	ip := net.ParseIP(u.Hostname())
	if local := ip != nil && ip.IsLoopback() || u.Hostname() == "localhost"; u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, fmt.Errorf("%.200q is not https", text)
	}
	return u, nil
}

// newClient asks the provider and nobody that it names: redirects are not followed.
func newClient(roots *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return &http.Client{
		Transport: bounded{t}, Timeout: providerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded is a transport whose answers end.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it with the deed
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&limited{resp.Body, maxAnswer}, resp.Body}
	return resp, nil
}

// limited fails where an answer is too long, rather than to cut it.
type limited struct {
	of   io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := l.of.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err //nolint:wrapcheck // io.EOF must stay as it is
}

// discover is the provider by its own description.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opts.Now()
	if p.known != nil && now.Sub(p.at) < discoveryAge {
		return p.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.opts.Issuer)
	if err == nil {
		err = p.vet(found)
	}
	if err != nil {
		if p.known != nil {
			p.at = now // the former is used for another while
			return p.known, nil
		}
		return nil, fmt.Errorf("discover the provider %s: %w", p.opts.Issuer, err)
	}
	p.known, p.at = found, now
	return found, nil
}

// vet refuses a description that sends people or secrets over plain connections.
func (p *provider) vet(found *oidc.Provider) error {
	var more struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&more); err != nil {
		return fmt.Errorf("read its description: %w", err)
	}
	at := found.Endpoint()
	for _, text := range []string{at.AuthURL, at.TokenURL, more.Keys} {
		if _, err := secureURL(text); err != nil {
			return fmt.Errorf("its description: %w", err)
		}
	}
	if text := found.UserInfoEndpoint(); text != "" {
		if _, err := secureURL(text); err != nil {
			return fmt.Errorf("its description: %w", err)
		}
	}
	return nil
}

// config of the flow.
func (p *provider) config(found *oidc.Provider) (*oauth2.Config, error) {
	c := &oauth2.Config{ClientID: p.opts.ClientID, Endpoint: found.Endpoint(), RedirectURL: p.opts.RedirectURL, Scopes: p.opts.Scopes}
	var more struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, fmt.Errorf("read the provider's description: %w", err)
	}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // the standard's default
	if p.opts.Secret == nil || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return c, nil
}

// begin is where a browser goes to sign in.
func (p *provider) begin(ctx context.Context, a *attempt) (string, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	c, err := p.config(found)
	if err != nil {
		return "", err
	}
	return c.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// claims are what an ID token, or the provider's answer about an account, says.
type claims map[string]json.RawMessage

// finish turns a code into who signed in.
func (p *provider) finish(ctx context.Context, a *attempt, code string) (*Session, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.config(found)
	if err != nil {
		return nil, err
	}
	if p.opts.Secret != nil {
		if c.ClientSecret, err = p.opts.Secret(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*providerTimeout)
	defer cancel()
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) { // its text has the provider's whole answer
			return nil, fmt.Errorf("the provider refused the code: %s %.100s", refused.Response.Status, escape.Line(refused.ErrorCode))
		}
		return nil, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, errors.New("the provider answered without an ID token")
	}
	id, err := found.Verifier(&oidc.Config{ClientID: p.opts.ClientID, Now: p.opts.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("the ID token is not accepted: %w", err)
	}
	said := claims{}
	if err := id.Claims(&said); err != nil {
		return nil, fmt.Errorf("read the ID token: %w", err)
	}
	switch party := said.text("azp"); {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1:
		return nil, errors.New("the ID token is not accepted: it has the nonce of another login")
	case party != "" && party != p.opts.ClientID, party == "" && len(id.Audience) > 1:
		return nil, errors.New("the ID token is not accepted: it was issued to another client")
	case id.Subject == "" || len(id.Subject) > maxName:
		return nil, errors.New("the ID token is not accepted: it names no account")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, fmt.Errorf("the ID token is not accepted: %w", err)
		}
	}
	if _, known := said[p.opts.GroupsClaim]; !known && found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return nil, fmt.Errorf("ask the provider for the groups of the account: %w", err)
		}
		more := claims{}
		if err := info.Claims(&more); err != nil {
			return nil, fmt.Errorf("read what the provider says of the account: %w", err)
		}
		if info.Subject != id.Subject {
			return nil, errors.New("the provider answered for another account than the ID token's")
		}
		said[p.opts.GroupsClaim] = more[p.opts.GroupsClaim]
	}
	return p.session(id.Subject, said)
}

// session is an account by its claims.
func (p *provider) session(subject string, said claims) (*Session, error) {
	s := &Session{ID: random(), Subject: subject, Name: said.text(p.opts.NameClaim), Until: p.opts.Now().Add(p.opts.Life)}
	if s.Name == "" || len(s.Name) > maxName {
		s.Name = subject
	}
	groups, err := said.list(p.opts.GroupsClaim)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g = p.opts.GroupsPrefix + g; g != "" && len(g) <= maxName && !strings.HasPrefix(g, "system:") && !slices.Contains(s.Groups, g) {
			s.Groups = append(s.Groups, g)
		}
	}
	return s, nil
}

// text is a claim that is one; "" for none.
func (c claims) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// list is a claim of one text or several; nil for none.
func (c claims) list(name string) ([]string, error) {
	raw := c[name]
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		var one string
		if json.Unmarshal(raw, &one) != nil {
			return nil, fmt.Errorf("the claim %.60q is not a list of groups' names", name)
		}
		list = []string{one}
	}
	if len(list) > maxGroups {
		return nil, fmt.Errorf("the claim %.60q has %d groups; at most %d are taken", name, len(list), maxGroups)
	}
	return list, nil
}
