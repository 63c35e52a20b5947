package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/schemas/v1alpha1"
)

// Defaults of Options.
const (
	// DefaultMaxAnswer bounds an answer: a page of 1000 rows has some hundred KiB.
	DefaultMaxAnswer = 64 << 20
	// DefaultTimeout of a request whose context has no deadline; a reservation may wait 25 s
	// for its commit.
	DefaultTimeout = 45 * time.Second
)

// Options of a client.
type Options struct {
	// URL of the daemon's port, such as https://fleetbroker.example.org:8443, without a path:
	// the operators' port for pages, the agents' for reservations and reports.
	URL string
	// TLS has the authorities to trust (RootCAs) and the client's certificate
	// (Certificates, GetClientCertificate); nil takes the system's authorities and shows none.
	TLS *tls.Config
	// Token is sent as a bearer token with each request, for the operators' port; nil for none.
	// It is asked before each request, so that it may renew.
	Token func(context.Context) (string, error)
	// MaxAnswer is how many bytes an answer may have; 0 is DefaultMaxAnswer.
	MaxAnswer int64
	// Transport in place of one that is made with TLS; nil makes one.
	Transport http.RoundTripper
}

// Client asks one port of a daemon.
type Client struct {
	base *url.URL
	http *http.Client
	opts Options
}

// New makes a client. It connects with the first request.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("read the daemon's URL: %w", err)
	}
	if base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.User != nil {
		return nil, fmt.Errorf("daemon's URL %q: write scheme, host and port alone, such as https://fleetbroker.example.org:8443", base.Redacted())
	}
	if o.Token != nil && base.Scheme == "http" && !loopback(base.Hostname()) {
		return nil, fmt.Errorf("daemon's URL %q: a token is sent over https alone", base.Redacted())
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	transport := o.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
		if o.TLS != nil {
			t.TLSClientConfig = o.TLS.Clone()
		}
		transport = t
	}
	return &Client{
		base: base, opts: o,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// Error is an answer that is not a success.
type Error struct {
	// Status of HTTP.
	Status int
	// Body has the text for people and the reason for programs; of an answer that is not the
	// daemon's, such as a balancer's, the text is the status.
	Body v1alpha1.Error
	// RetryAfter is after how long to ask again; 0 where the daemon does not say.
	RetryAfter time.Duration
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Body.Error
	if e.Body.Reason != "" {
		text += " (" + e.Body.Reason + ")"
	}
	return fmt.Sprintf("the daemon answered %d: %s", e.Status, text)
}

// Is reports whether an error is the daemon's refusal with a reason, such as
// v1alpha1.ReasonKeyReused.
func Is(err error, reason string) bool {
	var e *Error
	return errors.As(err, &e) && e.Body.Reason == reason
}

// request is one of the daemon's routes, asked once.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	in           any  // nil for no body
	unready      bool // 503 has a body that is read as one of 200
}

// answer of the daemon.
type answer struct {
	status int
	header http.Header
}

// do asks; out is read from an answer with a body, and may be nil.
func (c *Client) do(ctx context.Context, r request, out any) (answer, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	req, err := c.prepare(ctx, r)
	if err != nil {
		return answer{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("ask the daemon: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, c.opts.MaxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the daemon's answer to %s %s: %w", r.method, r.path, err)
	}
	if int64(len(body)) > c.opts.MaxAnswer {
		return answer{}, fmt.Errorf("the daemon's answer to %s %s has more than %d bytes", r.method, r.path, c.opts.MaxAnswer)
	}
	a := answer{res.StatusCode, res.Header}
	if res.StatusCode == http.StatusNotModified {
		return a, nil
	}
	if ok := res.StatusCode >= 200 && res.StatusCode <= 299; !ok && (!r.unready || res.StatusCode != http.StatusServiceUnavailable) {
		return a, refusal(res, body)
	}
	if out == nil || res.StatusCode == http.StatusNoContent {
		return a, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return a, fmt.Errorf("read the daemon's answer to %s %s: %w", r.method, r.path, err)
	}
	return a, nil
}

// prepare makes the request of HTTP.
func (c *Client) prepare(ctx context.Context, r request) (*http.Request, error) {
	at, err := c.base.Parse(r.path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", r.path, err)
	}
	at.RawQuery = r.query.Encode()
	var body io.Reader
	if r.in != nil {
		text, err := json.Marshal(r.in)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at.String(), body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.opts.Token != nil {
		token, err := c.opts.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("get a token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// refusal is the error of an answer.
func refusal(res *http.Response, body []byte) error {
	e := &Error{Status: res.StatusCode}
	if json.Unmarshal(body, &e.Body) != nil || e.Body.Error == "" {
		e.Body = v1alpha1.Error{Error: http.StatusText(res.StatusCode)}
	}
	if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && after > 0 {
		e.RetryAfter = time.Duration(after) * time.Second
	}
	return e
}
