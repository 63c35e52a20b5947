package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// rig is a Server on a port, with an API server that knows namespace "n" alone.
type rig struct {
	t     *testing.T
	at    string
	roots *x509.CertPool
	mu    sync.Mutex
	asked []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, roots: x509.NewCertPool()}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.Method+" "+q.URL.EscapedPath())
		r.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if q.URL.Path != "/api/v1/namespaces/n" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		ns := tenants()
		ns.APIVersion, ns.Kind = "v1", "Namespace"
		_ = json.NewEncoder(w).Encode(ns)
	}))
	t.Cleanup(api.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	dir, shown := issued(t, "agent", pki.Server)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !r.roots.AppendCertsFromPEM(ca) {
		t.Fatal(err)
	}
	s := &Server{Client: client, Log: slog.New(slog.DiscardHandler), Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &shown, nil }}
	line, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.at = line.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, line) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("served until %v", err)
		}
	})
	return r
}

func (r *rig) dialer(from string) *tls.Dialer {
	return &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}, Config: &tls.Config{RootCAs: r.roots, NextProtos: []string{"http/1.1"}}}
}

// dial opens a connection from an address of this machine, by TLS.
func (r *rig) dial(from string) *tls.Conn {
	r.t.Helper()
	c, err := r.dialer(from).DialContext(r.t.Context(), "tcp", r.at)
	if err != nil {
		r.t.Fatalf("connect from %s: %v", from, err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c.(*tls.Conn)
}

// orderly asks as an API server does, from an address of its own.
func (r *rig) orderly() (status int, body string, err error) {
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.roots}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.1")}}).DialContext,
	}}
	answer, err := c.Post("https://"+r.at+PathPods, "application/json", strings.NewReader(reviewOf("pods", `{"spec":{"containers":[]}}`)))
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

func (r *rig) wantsOrderly(when string) {
	r.t.Helper()
	began := time.Now()
	if status, body, err := r.orderly(); err != nil || status != http.StatusOK || !strings.Contains(body, `"patch"`) {
		r.t.Errorf("%s the API server is answered after %s: %d %.200s, %v", when, time.Since(began).Round(time.Millisecond), status, body, err)
	}
}

// Connections that one stranger has used once and leaves open keep no API server out.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	r := newRig(t)
	for range maxConnections + 8 {
		c := r.dial("127.0.0.2")
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 1 {
			t.Fatalf("not answered: %v", err)
		}
	}
	r.wantsOrderly("next to idle connections")
}

// Bodies that strangers send slowly, new ones all the time and more than there are places
// for, hold no review up: neither those of one address nor those of one address each.
func TestSlowBodiesHoldNobodyUp(t *testing.T) {
	for _, addresses := range []int{1, 2, 3 * maxBodies} {
		t.Run(fmt.Sprint(addresses), func(t *testing.T) {
			r := newRig(t)
			r.slowBodies(addresses)
			for range 3 {
				r.wantsOrderly("next to slow bodies")
			}
		})
	}
}

// slowBodies sends them from so many addresses until the test ends, and returns once all are
// under way.
func (r *rig) slowBodies(addresses int) {
	r.t.Helper()
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(r.t.Context())
	r.t.Cleanup(func() { cancel(); all.Wait() })
	open := make(chan struct{}, 4*maxBodies)
	for i := range 4 * maxBodies {
		from := fmt.Sprintf("127.0.0.%d", 2+i%addresses)
		all.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				c, err := r.dialer(from).DialContext(ctx, "tcp", r.at)
				if err != nil {
					continue // the port is full of its like
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", PathPods, maxReview)
				if first {
					open <- struct{}{}
				}
				_, _ = c.Read(make([]byte, 1)) // until it is refused
				stop()
				_ = c.Close()
			}
		})
	}
	for range cap(open) {
		<-open
	}
}

// What a review names is looked up as a namespace, whatever it is called: no other path is
// asked for, nothing is changed, and an answer repeats nothing of the API server's.
func TestReviewsAskForNamespacesAlone(t *testing.T) {
	r := newRig(t)
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}}}
	t.Cleanup(c.CloseIdleConnections)
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for _, name := range []string{
		"", ".", "..", "../secrets", "n/../../../apis", "n/secrets/x", "%2e%2e/secrets", "..%2fsecrets", "n?watch=1", "n#", "n%00", "n\x00", "n\r\nX: y", "N", "\u202en",
		strings.Repeat("n", maxName), "kube-system",
	} {
		for _, path := range []string{PathPods, PathRequests} {
			body := strings.Replace(reviewOf(strings.TrimPrefix(path, "/"), `{"metadata":{"namespace":`+quoted(name)+`}}`), `"namespace":"n"`, `"namespace":`+quoted(name), 1)
			answer, err := c.Post("https://"+r.at+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			var got struct{ Response struct{ Allowed bool } }
			if err := json.Unmarshal(text, &got); answer.StatusCode != http.StatusOK || err != nil || got.Response.Allowed != (path == PathRequests) || len(text) > 2<<10 {
				t.Errorf("%s of %q: %d %.300s, %v", path, name, answer.StatusCode, text, err)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.asked {
		name, is := strings.CutPrefix(q, "GET /api/v1/namespaces/")
		if !is || strings.ContainsAny(name, "/?#") || name == ".." || name == "." {
			t.Errorf("the API server was asked %q", q)
		}
	}
}

// What is no review of one object is refused with a reason, over TLS as API servers ask, and
// the next one is answered.
func TestHostileReviewsOverTLS(t *testing.T) {
	r := newRig(t)
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, ForceAttemptHTTP2: true}}
	t.Cleanup(c.CloseIdleConnections)
	pod := reviewOf("pods", `{}`)
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"nothing":              {"POST", PathPods, "", 400, "no AdmissionReview"},
		"null":                 {"POST", PathPods, "null", 400, "no AdmissionReview"},
		"no request":           {"POST", PathPods, `{"apiVersion":"admission.k8s.io/v1","request":null}`, 400, "no AdmissionReview"},
		"another version":      {"POST", PathPods, strings.Replace(pod, "/v1", "/v1beta1", 1), 400, "no AdmissionReview"},
		"two of them":          {"POST", PathPods, pod + pod, 400, "no AdmissionReview"},
		"a list":               {"POST", PathPods, "[" + pod + "]", 400, "no AdmissionReview"},
		"too large":            {"POST", PathPods, strings.Repeat(" ", maxReview+1), 413, "too large"},
		"a number for a name":  {"POST", PathPods, strings.Replace(pod, `"namespace":"n"`, `"namespace":1e999`, 1), 400, "no AdmissionReview"},
		"no object":            {"POST", PathPods, strings.Replace(pod, `"object":{}`, `"object2":{}`, 1), 200, "cannot be read"},
		"an object of null":    {"POST", PathPods, reviewOf("pods", "null"), 200, `"patch"`},
		"an object of text":    {"POST", PathPods, reviewOf("pods", `"s3cret"`), 200, "not of the API's shape"},
		"labels of numbers":    {"POST", PathPods, reviewOf("pods", `{"metadata":{"labels":{"s3cret":1}}}`), 200, "not of the API's shape"},
		"a DaemonSet's":        {"POST", PathPods, reviewOf("pods", `{"metadata":{"ownerReferences":[{"kind":"DaemonSet"}]}}`), 200, `"allowed":true`},
		"a deletion":           {"POST", PathPods, strings.Replace(pod, "CREATE", "DELETE", 1), 200, `"allowed":true`},
		"a request at pods":    {"POST", PathPods, reviewOf("resourcerequests", `{}`), 200, `"allowed":true`},
		"a pod at requests":    {"POST", PathRequests, pod, 200, `"allowed":true`},
		"an owner of his own":  {"POST", PathRequests, reviewOf("resourcerequests", `{"metadata":{"annotations":{"fleetbroker.io/owner":"mallory"}}}`), 200, `"patch"`},
		"an update of no old":  {"POST", PathRequests, strings.Replace(reviewOf("resourcerequests", `{}`), "CREATE", "UPDATE", 1), 200, "cannot be read"},
		"another method":       {"GET", PathPods, "", 405, ""},
		"another path":         {"POST", "/pods/x", pod, 404, ""},
		"a path upwards":       {"POST", "/pods/../resourcerequests", pod, 307, ""},
		"a path with slashes":  {"POST", "//pods", pod, 307, ""},
		"a scheme in the path": {"POST", "/http://x/pods", pod, 307, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			q, err := http.NewRequestWithContext(t.Context(), tc.method, "https://"+r.at, bytes.NewReader([]byte(tc.body)))
			if err != nil {
				t.Fatal(err)
			}
			q.URL.Path = tc.path
			answer, err := c.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != tc.status || !bytes.Contains(text, []byte(tc.says)) || bytes.Contains(text, []byte("s3cret")) {
				t.Errorf("got %d %.300s, want %d %s", answer.StatusCode, text, tc.status, tc.says)
			}
		})
	}
	r.wantsOrderly("after them")
}
