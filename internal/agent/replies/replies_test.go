package replies_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/internal/agent/replies"
)

func client(t *testing.T, serve http.HandlerFunc) *kubernetes.Clientset {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c, err := kubernetes.NewForConfig(replies.Bounded(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An answer without end is left where its bound is, and one that fits is whole.
func TestAnswersWithoutEnd(t *testing.T) {
	for path, most := range map[string]uint64{"/readyz": 64 << 10, "/apis/metrics.k8s.io/v1beta1/pods": 64 << 20} {
		t.Run(path, func(t *testing.T) {
			var endless atomic.Bool
			c := client(t, func(w http.ResponseWriter, _ *http.Request) {
				if !endless.Load() {
					_, _ = w.Write([]byte("ok"))
					return
				}
				for piece := make([]byte, 1<<16); ; {
					if _, err := w.Write(piece); err != nil {
						return
					}
				}
			})
			ask := func() ([]byte, error) { return c.RESTClient().Get().AbsPath(path).DoRaw(t.Context()) }
			if text, err := ask(); err != nil || string(text) != "ok" {
				t.Fatalf("one that fits: %q, %v", text, err)
			}
			endless.Store(true)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ask()
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "bytes: look at what serves it") {
				t.Errorf("got %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*most+16<<20 {
				t.Errorf("it took %d MiB of memory", took>>20)
			}
		})
	}
}

// A server that asks to be left alone for years is asked again.
func TestRetryAfterOfYears(t *testing.T) {
	for _, wait := range []string{"1000000000", "18446744073709551616", "-1", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		t.Run(wait, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := client(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 1 {
					w.Header().Set("Retry-After", wait)
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				_, _ = w.Write([]byte("ok"))
			})
			done := make(chan error, 1)
			go func() {
				_, err := c.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(25 * time.Second):
				t.Error("it was not asked again within 25 s")
			}
		})
	}
}

// What is served below the API server, and a proxy before it, may send the agent elsewhere:
// its token goes to nobody but its own server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		var asked atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			_, _ = w.Write([]byte(r.Header.Get("Authorization")))
		}))
		own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
		}))
		c, err := kubernetes.NewForConfig(replies.Bounded(&rest.Config{Host: own.URL, BearerToken: "secret"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/readyz", "/apis/metrics.k8s.io/v1beta1/pods", "/api/v1/nodes"} {
			text, err := c.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
			if err == nil || asked.Load() > 0 {
				t.Errorf("%d %s: %q, %v", code, path, text, err)
			}
		}
		elsewhere.Close()
		own.Close()
	}
}
