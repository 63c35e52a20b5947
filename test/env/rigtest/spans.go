package rigtest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Spans is a collector of OTLP over HTTP: the names of spans, and the processes that they are
// of, by trace. It is safe for concurrent use.
type Spans struct {
	url string

	mu        sync.Mutex
	of        map[string][]string // "<service>: <span>"
	instances map[string][]string
}

// NewSpans listens until the test ends.
func NewSpans(t testing.TB) *Spans {
	s := &Spans{of: map[string][]string{}, instances: map[string][]string{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// Env has programs send their spans here, soon.
func (s *Spans) Env() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.url, "OTEL_BSP_SCHEDULE_DELAY=200"}
}

// ServeHTTP implements http.Handler.
func (s *Spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q collector.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(body, &q)); err != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range q.ResourceSpans {
		said := map[string]string{}
		for _, kv := range of.Resource.Attributes {
			said[kv.Key] = kv.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				id := hex.EncodeToString(span.TraceId)
				s.of[id] = append(s.of[id], said["service.name"]+": "+span.Name)
				if process := said["service.instance.id"]; !slices.Contains(s.instances[id], process) {
					s.instances[id] = append(s.instances[id], process)
				}
			}
		}
	}
}

// Has is an error unless a trace has spans, each as "<service>: <span>".
func (s *Spans) Has(trace string, want ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range want {
		if !slices.Contains(s.of[trace], one) {
			return fmt.Errorf("trace %s has %q, and not %s", trace, s.of[trace], one)
		}
	}
	return nil
}

// Processes are the instances that a trace has spans of, in order.
func (s *Spans) Processes(trace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.instances[trace]))
}

// String is all of it.
func (s *Spans) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.of)
}
