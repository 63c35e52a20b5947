package forge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge/jsonbound"
)

// Limits bound what the transport does. Zero values are those of production.
type Limits struct {
	// Wait is the longest pause that is waited for before a request is tried
	// again; longer ones are *Limited. Default 10 s.
	Wait time.Duration
	// Tries is how often a request is sent when the forge does not answer.
	// Default 3. Backoff is the pause before the second, doubled each time.
	// Default 500 ms.
	Tries   int
	Backoff time.Duration
	// Timeout bounds each request. Default 30 s.
	Timeout time.Duration
	// Bytes bounds each answer. Default 32 MiB. Objects and Values bound what it decodes to:
	// its objects, and the values of its lists and objects. Defaults 40,000 and 1,000,000.
	Bytes           int64
	Objects, Values int
	// Now and Sleep are the clock; defaults the real one.
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

func (l *Limits) setDefaults() {
	if l.Wait <= 0 {
		l.Wait = 10 * time.Second
	}
	if l.Tries <= 0 {
		l.Tries = 3
	}
	if l.Backoff <= 0 {
		l.Backoff = 500 * time.Millisecond
	}
	if l.Timeout <= 0 {
		l.Timeout = 30 * time.Second
	}
	if l.Bytes <= 0 {
		l.Bytes = 32 << 20
	}
	if l.Objects <= 0 {
		l.Objects = 40_000
	}
	if l.Values <= 0 {
		l.Values = 1_000_000
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Sleep == nil {
		l.Sleep = func(ctx context.Context, d time.Duration) error {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-t.C:
				return nil
			}
		}
	}
}

// Client is the HTTP client under an SDK: authorize puts the token into a
// request's header.
func (c Config) Client(authorize func(h http.Header, token string)) (*http.Client, error) {
	c.Limits.setDefaults()
	home, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("open the forge: %w", err)
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("open the forge: the default transport was replaced")
	}
	base = base.Clone()
	if c.Guard != nil {
		base.Proxy = nil
		base.DialContext = (&net.Dialer{Timeout: c.Limits.Timeout, KeepAlive: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", address, err)
			}
			return c.Guard(at.Addr())
		}}).DialContext
	}
	if c.CAFile != "" {
		pem, err := c.read(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the forge's certificate authorities: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the forge's certificate authorities: no certificate in %s", c.CAFile)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport: &transport{config: c, home: home, base: base, authorize: authorize},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != home.Host || r.URL.Scheme != home.Scheme || len(via) > 3 {
				return fmt.Errorf("the forge redirects to %s, where its token may not go", r.URL.Host)
			}
			return nil
		},
	}, nil
}

// transport authorizes, obeys limits, asks again and bounds answers.
type transport struct {
	config    Config
	home      *url.URL
	base      http.RoundTripper
	authorize func(http.Header, string)

	mu    sync.Mutex
	until time.Time // nothing is sent before
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.home.Host || r.URL.Scheme != t.home.Scheme {
		return nil, fmt.Errorf("send to %s: the token belongs to %s", r.URL.Host, t.home.Host)
	}
	r = r.Clone(r.Context()) // its body is replaced when it is sent again
	for try := 1; ; try++ {
		if err := t.hold(r.Context()); err != nil {
			return nil, err
		}
		resp, err := t.send(r)
		again, pause := t.judge(r, resp, err, try)
		if !again {
			return resp, err
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		if err := t.config.Limits.Sleep(r.Context(), pause); err != nil {
			return nil, err
		}
		if err := rewind(r); err != nil {
			return nil, err
		}
	}
}

// hold waits while the forge wants to be left alone, or says until when.
func (t *transport) hold(ctx context.Context) error {
	t.mu.Lock()
	until := t.until
	t.mu.Unlock()
	pause := until.Sub(t.config.Limits.Now())
	if pause > longestLimit { // the clock was set back since
		until, pause = t.cut(until)
	}
	switch {
	case pause <= 0:
		return nil
	case pause > t.config.Limits.Wait:
		return &Limited{Until: until}
	}
	return t.config.Limits.Sleep(ctx, pause)
}

// cut brings a limit that lies further off than any is taken for down to that.
func (t *transport) cut(until time.Time) (time.Time, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until.Equal(until) {
		t.until = t.config.Limits.Now().Add(longestLimit)
	}
	return t.until, t.until.Sub(t.config.Limits.Now())
}

// send sends once.
func (t *transport) send(r *http.Request) (*http.Response, error) {
	token, err := t.config.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.config.Limits.Timeout)
	out := r.Clone(ctx)
	t.authorize(out.Header, token)
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l := &t.config.Limits
	resp.Body = &bounded{body: resp.Body, text: jsonbound.New(resp.Body, l.Objects, l.Values, errTooMuch), left: l.Bytes, most: l.Bytes, done: cancel}
	listen(r.Context(), resp)
	if t.config.Answer != nil {
		t.config.Answer(resp)
	}
	return resp, nil
}

// judge decides whether a request is sent again, and after which pause. What
// the forge limits was not done; what fails otherwise may have been, and is
// sent again only where that does no harm.
func (t *transport) judge(r *http.Request, resp *http.Response, err error, try int) (again bool, pause time.Duration) {
	l := t.config.Limits
	if resp != nil {
		if until := limitedUntil(resp, l.Now()); !until.IsZero() {
			t.mu.Lock()
			if until.After(t.until) {
				t.until = until
			}
			t.mu.Unlock()
			if refusal(resp) {
				// hold waits, or gives up with *Limited.
				return try < 2*l.Tries, 0
			}
		}
	}
	idempotent := r.Method != http.MethodPost
	trouble := err != nil || resp.StatusCode >= http.StatusBadGateway || resp.StatusCode == http.StatusInternalServerError
	if !trouble || !idempotent || try >= l.Tries || r.Context().Err() != nil {
		return false, 0
	}
	return true, l.Backoff << (try - 1)
}

// refusal reports whether an answer says that a limit was hit, as opposed to
// being the last one before it. Both carry headers with the limit.
func refusal(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusServiceUnavailable
}

// longestLimit is the longest time that a forge is left alone. Forges count by the
// hour; a proxy that answers "in 68 years" must not end reviews for good.
const longestLimit = time.Hour

// limitedUntil reads when requests may be sent again, within longestLimit; zero
// when they may now.
func limitedUntil(resp *http.Response, now time.Time) time.Time {
	until := statedUntil(resp, now)
	if latest := now.Add(longestLimit); until.After(latest) {
		return latest
	}
	return until
}

// statedUntil is when requests may be sent again by the forge's own words.
// GitHub answers 403 or 429 with Retry-After, or X-RateLimit-Remaining 0 and
// X-RateLimit-Reset; GitLab 429 with Retry-After and RateLimit-Reset.
func statedUntil(resp *http.Response, now time.Time) time.Time {
	h := resp.Header
	if s := h.Get("Retry-After"); s != "" && refusal(resp) {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && n < 1<<31 {
			return now.Add(max(time.Duration(n)*time.Second, time.Millisecond))
		}
		if when, err := http.ParseTime(s); err == nil {
			return when
		}
	}
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		if n, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64); err == nil && n > now.Unix() && n < now.Unix()+24*3600 {
			return time.Unix(n, 0)
		}
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		return now.Add(time.Minute)
	}
	return time.Time{}
}

// rewind makes a request's body readable again.
func rewind(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.GetBody == nil {
		return fmt.Errorf("%w: a request cannot be sent again", ErrUnavailable)
	}
	body, err := r.GetBody()
	r.Body = body
	return err
}

// ErrTooLarge is of an answer that is larger than is read; it is an ErrUnavailable.
var ErrTooLarge = fmt.Errorf("%w: its answer is too large", ErrUnavailable)

// errTooMuch is of an answer of which each few bytes would become a struct.
var errTooMuch = fmt.Errorf("%w: it has too many values", ErrTooLarge)

// bounded is an answer that ends with an error where it is too long, or is of too many
// values.
type bounded struct {
	body io.ReadCloser
	text io.Reader // of body
	left int64
	most int64
	done func()
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, err := b.text.Read(p[:min(1, len(p))]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, b.most)
	}
	n, err := b.text.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Close() error {
	defer b.done()
	return b.body.Close()
}
