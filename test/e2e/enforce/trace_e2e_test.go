//go:build e2e

package enforce

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// spans is a collector of OTLP over HTTP: what programs say they are, and the names of
// their spans, by trace.
type spans struct {
	mu sync.Mutex
	of map[string][]string // "<service>: <span>"
}

// ServeHTTP implements http.Handler.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q collector.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(body, &q)); err != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range q.ResourceSpans {
		service := ""
		for _, kv := range of.Resource.Attributes {
			if kv.Key == "service.name" {
				service = kv.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				id := hex.EncodeToString(span.TraceId)
				s.of[id] = append(s.of[id], service+": "+span.Name)
			}
		}
	}
}

// has is an error unless a trace has spans.
func (s *spans) has(trace string, want ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range want {
		if !slices.Contains(s.of[trace], one) {
			return fmt.Errorf("trace %s has %q, and not %s", trace, s.of[trace], one)
		}
	}
	return nil
}

// traceOf is the trace of the commit that placed a contract, "" before it is there.
func (f *fleet) traceOf(contract string) string {
	f.t.Helper()
	out, err := f.Platform.Git(f.ctx, "-C", f.Git.RepoDir(rig.Repo), "log", "--format=%(trailers:key=Trace,valueonly)", "--grep", "^Contract: "+contract+" - -> ", rig.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	return id
}

// One trace leads from the round that places a contract, by its push, the apply in the
// consumer and the answer of the provider's agent, to the contract being Active, though
// the daemon was started anew in between.
func TestTrace(t *testing.T) {
	got := &spans{of: map[string][]string{}}
	srv := httptest.NewServer(got)
	t.Cleanup(srv.Close)
	f := start(t, func(o *rig.Options) {
		o.Env = append(o.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+srv.URL, "OTEL_BSP_SCHEDULE_DELAY=200")
	})
	if err := f.agents["paris"].Pause(); err != nil { // nobody grants
		t.Fatal(err)
	}
	f.Put("vision", "train", intent("train", 4))
	name := f.Contract("vision", "train", "Reserved", "Peering")
	trace := f.traceOf(name)
	if len(trace) != 32 {
		t.Fatalf("the commit that placed %s has the trace %q", name, trace)
	}
	placing := []string{"fleetbroker: round", "fleetbroker: plan", "fleetbroker: commit", "fleetbroker: push"}
	f.Eventually("the round and the apply are in it", func() error { return got.has(trace, append(placing, "fleetbroker: apply")...) })
	if err := f.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := f.daemon.Restart(f.ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.agents["paris"].Resume(); err != nil {
		t.Fatal(err)
	}
	f.ready()
	f.Contract("vision", "train", "Active")
	f.Eventually("the provider's agent and the other life of the daemon go on in it", func() error {
		return got.has(trace, "fleet-agent: answer slice", "fleetbroker: contract active")
	})

	t.Run("a webhook begins one", func(t *testing.T) {
		for i := range 5 { // a poll may come before the webhook
			other := fmt.Sprintf("other-%d", i)
			f.Put("vision", other, intent(other, 1))
			trace := f.traceOf(f.Contract("vision", other, "Reserved", "Peering", "Active"))
			f.Eventually("its round is sent", func() error { return got.has(trace, placing...) })
			if got.has(trace, "fleetbroker: webhook") == nil {
				return
			}
		}
		t.Errorf("no trace begins with a webhook: %v", got.of)
	})
	t.Run("log and metrics name traces", func(t *testing.T) {
		log, err := os.ReadFile(f.daemon.LogFile())
		if err != nil || !strings.Contains(string(log), "msg=committed") || !strings.Contains(string(log), "trace=") {
			t.Errorf("the log names no trace (%v)", err)
		}
		q, err := http.NewRequestWithContext(f.ctx, http.MethodGet, "http://"+f.daemon.Operators+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`fleetbroker_time_to_active_seconds_bucket`, `# {trace_id="` + trace + `"}`, `fleetbroker_trace_spans_total{result="sent"}`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("metrics have no %s", want)
			}
		}
	})
	f.Sound()
}
