package usage

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// pods is what metrics-server answers for two pods, of which one has just
// started.
const pods = `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[
{"metadata":{"name":"a","namespace":"vision"},"timestamp":"2026-11-20T12:00:00Z","window":"15s","containers":[
 {"name":"main","usage":{"cpu":"1499999999n","memory":"1048576Ki"}},{"name":"side","usage":{"cpu":"250m","memory":"1Mi"}}]},
{"metadata":{"name":"b","namespace":"nlp"},"containers":[{"name":"main","usage":{}}]}]}`

// Trouble is said once, and no figure is made of it.
func TestMeter(t *testing.T) {
	answer := func(w http.ResponseWriter) { http.NotFound(w, nil) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/pods" || r.URL.Query().Get("labelSelector") != "offloaded" {
			t.Errorf("asked for %s", r.URL)
		}
		answer(w)
	}))
	defer server.Close()
	var log strings.Builder
	m, err := NewMeter(&rest.Config{Host: server.URL}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	says := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		}
	}
	for _, step := range []struct {
		what   string
		answer func(http.ResponseWriter)
		known  bool
		log    string
	}{
		{"no metrics API", answer, false, "cannot be read"},
		{"still none", answer, false, ""},
		{"one", says(pods), true, "is measured"},
		{"the next minute", says(pods), true, ""},
		{"nonsense", says("{"), false, "cannot be read"},
	} {
		log.Reset()
		answer = step.answer
		got := m.Read(t.Context(), "offloaded")
		if (got != nil) != step.known || !strings.Contains(log.String(), step.log) || (step.log == "") != (log.Len() == 0) {
			t.Errorf("%s: read %v, said %q", step.what, got, log.String())
		}
		if !step.known {
			continue
		}
		a := got[types.NamespacedName{Namespace: "vision", Name: "a"}]
		if a["cpu"].Int64() != 1750 || a["memory"].Int64() != 1<<30+1<<20 {
			t.Errorf("%s: pod a uses %v", step.what, a.Canonical())
		}
		if b, listed := got[types.NamespacedName{Namespace: "nlp", Name: "b"}]; !listed || len(b) != 0 {
			t.Errorf("%s: pod b uses %v", step.what, b)
		}
	}
	if m.say(errors.New("x")); m.told == "" {
		t.Error("trouble is not remembered")
	}
}
