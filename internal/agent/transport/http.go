package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// HTTP is a Transport of single requests over mutual TLS 1.3.
type HTTP struct {
	verbs
	broker string
	files  *pki.Files

	mu       sync.Mutex
	material *pki.Material
	client   *http.Client
}

// NewHTTP checks a broker's address; nothing is dialled before the first call.
func NewHTTP(broker, cluster string, files *pki.Files) (*HTTP, error) {
	u, err := parseBroker(broker)
	if err != nil {
		return nil, err
	}
	t := &HTTP{broker: strings.TrimSuffix(u.String(), "/"), files: files}
	t.verbs = verbs{cluster: cluster, call: t.call}
	return t, nil
}

func parseBroker(broker string) (*url.URL, error) {
	u, err := url.Parse(broker)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("broker address %q: write https://host:port", broker)
	}
	return u, nil
}

// Close implements Transport.
func (t *HTTP) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil {
		t.client.CloseIdleConnections()
	}
}

func (t *HTTP) call(ctx context.Context, method, path string, header http.Header, body []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.broker+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		r.Header = header
	}
	res, err := t.current().Do(r)
	if err != nil {
		return nil, err // says method and URL already
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", r.URL, err)
	}
	if len(data) > maxAnswer {
		return nil, fmt.Errorf("read the answer of %s: it is larger than %d bytes", r.URL, maxAnswer)
	}
	return &answer{url: r.URL.String(), status: res.StatusCode, header: res.Header, body: data}, nil
}

// current is a client with the newest certificates; connections made with
// older ones are given up.
func (t *HTTP) current() *http.Client {
	m, err := t.files.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil && (err != nil || m == t.material) {
		return t.client
	}
	if t.client != nil {
		t.client.CloseIdleConnections()
	}
	t.material, t.client = m, newClient(m)
	return t.client
}

// clientTLS is mutual TLS 1.3 with a broker, which must hold the role server.
func clientTLS(m *pki.Material) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.Pair}, RootCAs: m.Authorities,
		VerifyConnection: pki.VerifyServer,
	}
}

// newClient speaks HTTP/1.1: one connection that a request's timeout closes,
// where a hanging HTTP/2 connection would be used again.
func newClient(m *pki.Material) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			IdleConnTimeout:     5 * time.Minute,
			MaxIdleConnsPerHost: 4, // a report, a long poll, and a few requests
			TLSClientConfig:     clientTLS(m),
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the broker answered with a redirect: give its own address")
		},
	}
}
