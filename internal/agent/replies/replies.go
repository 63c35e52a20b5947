// Package replies bounds what one answer can make the agent hold or wait for: its API server
// hands on what others serve (the metrics API), and a proxy before it may answer what it
// likes.
//
// Invariants: an answer that is read whole has at most the bytes that its path may have; no
// answer has a request wait for longer than retryafter.Most, which the library would for years;
// no redirect is followed, and no object of Liqo's keeps others from being read (decodable).
// Lists and watches of objects are not bounded here: what a cluster has, its own agent keeps,
// and the memory of its pod is the bound.
//
// Caller: package agent, for all its clients. Safe for concurrent use.
package replies

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/agent/decodable"
	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
	"github.com/fleetbroker/fleetbroker/internal/api/retryafter"
)

// What answers that are read whole may have, in bytes.
const (
	maxReady   = 64 << 10
	maxMetrics = 64 << 20
)

// Bounded is a config whose answers are bounded.
func Bounded(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(redirects.Refuse)
	out.Wrap(decodable.Repair)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounds{next} })
	return out
}

type bounds struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounds) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	retryafter.Bound(answer.Header)
	if most := bound(r.URL.Path); most > 0 && answer.Body != nil {
		answer.Body = &body{ReadCloser: answer.Body, path: r.URL.Path, most: most, left: most}
	}
	return answer, nil
}

// bound is how many bytes an answer at a path may have; 0: any.
func bound(path string) int64 {
	switch {
	case strings.HasSuffix(path, "/readyz"):
		return maxReady
	case strings.Contains(path, "/apis/metrics.k8s.io/"):
		return maxMetrics
	}
	return 0
}

// WrappedRoundTripper lets the library see through.
func (b bounds) WrappedRoundTripper() http.RoundTripper { return b.next }

type body struct {
	io.ReadCloser
	path       string
	most, left int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer to %s has more than %d bytes: look at what serves it", b.path, b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("the answer to %s has more than %d bytes: look at what serves it", b.path, b.most)
	}
	return n, err
}
