package ui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

func (d *daemon) send(t testing.TB, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	d.ui.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

// follow opens a stream, and reads the next version from it.
func follow(t *testing.T, ctx context.Context, at string) (status int, next func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/ui/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return resp.StatusCode, func() string {
		for lines.Scan() {
			if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return v
			}
		}
		return ""
	}
}

// TestEvents: a stream reports the version at its start and after each change, and ends
// when the port closes.
func TestEvents(t *testing.T) {
	d, b := newDaemon(t), small()
	d.show(b)
	s := httptest.NewServer(d.ui)
	defer s.Close()
	d.get(t, "/ui/") // who follows has a page
	_, next := follow(t, t.Context(), s.URL)
	if got := next(); got != "1" {
		t.Fatalf("the first version is %q", got)
	}
	d.ui.Changed() // a round that changed nothing
	d.show(b)
	if got := next(); got != "2" {
		t.Fatalf("after a change the version is %q", got)
	}
	close(d.stop)
	if got := next(); got != "" {
		t.Fatalf("after the port closed there came %q", got)
	}
}

// TestEvents_PerViewer: one viewer's open pages are bounded, and take no place from
// another's.
func TestEvents_PerViewer(t *testing.T) {
	d := newDaemon(t)
	d.show(small())
	d.get(t, "/ui/")
	s := httptest.NewServer(d.ui)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.look(view.Viewer{Name: "ada", Identity: "ada", All: true})
	for i := range 16 {
		if status, next := follow(t, ctx, s.URL); status != http.StatusOK || next() == "" {
			t.Fatalf("stream %d is answered %d", i, status)
		}
	}
	if status, _ := follow(t, ctx, s.URL); status != http.StatusTooManyRequests {
		t.Errorf("one more is answered %d", status)
	}
	d.look(view.Viewer{Name: "ada", Identity: "bob", All: true})
	if status, _ := follow(t, ctx, s.URL); status != http.StatusOK {
		t.Errorf("another viewer's is answered %d", status)
	}
}
