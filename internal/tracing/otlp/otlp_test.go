package otlp

import (
	"bytes"
	"context"
	"encoding/pem"
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

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spf13/pflag"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// sink is a collector.
type sink struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	names []string
	attrs map[string]string // of the resource
}

func (s *sink) take(q *collector.ExportTraceServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attrs = map[string]string{}
	for _, r := range q.ResourceSpans {
		for _, kv := range r.Resource.Attributes {
			s.attrs[kv.Key] = kv.Value.GetStringValue()
		}
		for _, sc := range r.ScopeSpans {
			for _, span := range sc.Spans {
				s.names = append(s.names, span.Name)
			}
		}
	}
}

func (s *sink) Export(_ context.Context, q *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.take(q)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &q) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.take(&q)
}

func clean(t *testing.T) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

func open(t *testing.T, log *slog.Logger, args ...string) (*Tracing, error) {
	t.Helper()
	var f Flags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Open(t.Context(), "fleetbroker", "host-1", log)
}

func span(tr *Tracing, ctx context.Context, name string) {
	_, s := tr.Tracer().Begin(ctx, name, time.Time{}, tracing.Origin{}, nil)
	s.End(nil)
}

// A collector that sends on to another server has nobody ask that one.
func TestCollectorSendsOn(t *testing.T) {
	clean(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the server that was sent on to is asked")
		http.Error(w, "what it keeps to itself", http.StatusNotFound)
	}))
	defer other.Close()
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, code) }))
		defer srv.Close()
		var log bytes.Buffer
		tr, err := open(t, slog.New(slog.NewTextHandler(&log, nil)), "--tracing-endpoint", srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		span(tr, t.Context(), "round")
		tr.Close()
		if text := log.String(); !strings.Contains(text, "is not followed") || strings.Contains(text, "to itself") {
			t.Errorf("%d: the log says %s", code, text)
		}
	}
}

// Each protocol brings spans to a real server of it, by flags and by the environment.
func TestOpen_Sends(t *testing.T) {
	serve := map[string]func(t *testing.T, s *sink) (url string, args []string){
		"http": func(t *testing.T, s *sink) (string, []string) {
			srv := httptest.NewServer(s)
			t.Cleanup(srv.Close)
			return srv.URL, nil
		},
		"https": func(t *testing.T, s *sink) (string, []string) {
			srv := httptest.NewTLSServer(s)
			t.Cleanup(srv.Close)
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			return srv.URL, []string{"--tracing-ca-file", ca}
		},
		"grpc": func(t *testing.T, s *sink) (string, []string) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := grpc.NewServer()
			collector.RegisterTraceServiceServer(srv, s)
			go func() { _ = srv.Serve(l) }()
			t.Cleanup(srv.Stop)
			return "http://" + l.Addr().String(), []string{"--tracing-protocol", "grpc"}
		},
	}
	for name, start := range serve {
		t.Run(name, func(t *testing.T) {
			clean(t)
			var s sink
			url, args := start(t, &s)
			tr, err := open(t, slog.New(slog.DiscardHandler), append(args, "--tracing-endpoint", url)...)
			if err != nil {
				t.Fatal(err)
			}
			span(tr, t.Context(), "round")
			tr.Close()
			if len(s.names) != 1 || s.names[0] != "round" || s.attrs["service.name"] != "fleetbroker" || s.attrs["service.instance.id"] != "host-1" {
				t.Errorf("got %v of %v", s.names, s.attrs)
			}
			if err := testutil.CollectAndCompare(tr.Collectors("spans_total")[0], strings.NewReader(`
# HELP spans_total Spans of traces by result: sent, failed (the collector did not take them), dropped (too many waited).
# TYPE spans_total counter
spans_total{result="dropped"} 0
spans_total{result="failed"} 0
spans_total{result="sent"} 1
`)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("environment", func(t *testing.T) {
		clean(t)
		var s sink
		url, _ := serve["http"](t, &s)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
		t.Setenv("OTEL_SERVICE_NAME", "ours")
		tr, err := open(t, slog.New(slog.DiscardHandler))
		if err != nil || tr == nil {
			t.Fatal(tr, err)
		}
		span(tr, t.Context(), "round")
		tr.Close()
		if len(s.names) != 1 || s.attrs["service.name"] != "ours" {
			t.Errorf("got %v of %v", s.names, s.attrs)
		}
		t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
		if tr, err = open(t, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		span(tr, t.Context(), "round")
		tr.Close()
		if len(s.names) != 1 {
			t.Errorf("OTEL_TRACES_SAMPLER=always_off, and %v were sent", s.names)
		}
	})
}

func TestOpen_Off(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"nothing":  {},
		"disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"none":     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			for k, v := range set {
				t.Setenv(k, v)
			}
			tr, err := open(t, slog.New(slog.DiscardHandler))
			if tr != nil || err != nil || tr.Tracer() != nil || tr.Collectors("x") != nil {
				t.Errorf("got %v, %v", tr, err)
			}
			tr.Close()
		})
	}
}

func TestOpen_Mistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"need --tracing-endpoint":         {"--tracing-ratio", "0.1"},
		"it is no http or https URL":      {"--tracing-endpoint", "collector:4318"},
		"OTEL_EXPORTER_OTLP_HEADERS":      {"--tracing-endpoint", "http://me:secret@collector:4318"},
		"no number from 0 to 1":           {"--tracing-endpoint", "http://127.0.0.1:1", "--tracing-ratio", "2"},
		"use http/protobuf or grpc":       {"--tracing-endpoint", "http://127.0.0.1:1", "--tracing-protocol", "udp"},
		"has no certificate in PEM":       {"--tracing-endpoint", "http://127.0.0.1:1", "--tracing-ca-file", "otlp_test.go"},
		"--tracing-ca-file: open missing": {"--tracing-endpoint", "http://127.0.0.1:1", "--tracing-ca-file", "missing"},
	} {
		clean(t)
		if _, err := open(t, slog.New(slog.DiscardHandler), args...); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}

// A collector that takes connections and never answers delays nobody: spans beyond the
// queue are counted, and Close ends within its time.
func TestCollectorHangs(t *testing.T) {
	clean(t)
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(gone)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
	tr, err := open(t, slog.New(slog.DiscardHandler), "--tracing-endpoint", srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	const made = 10_000
	watch := bounded.StartStopwatch()
	for range made {
		span(tr, t.Context(), "round")
	}
	if err := watch.Late(5*time.Second, time.Minute); err != nil {
		t.Errorf("%d spans: %v", made, err)
	}
	if n := tr.queue.dropped.Load(); n < made-64-16-16 || n > made {
		t.Errorf("%d are counted as dropped of %d", n, made)
	}
	watch = bounded.StartStopwatch()
	tr.Close()
	if err := watch.Late(2*closing+2*time.Second, time.Minute); err != nil {
		t.Errorf("closing: %v", err)
	}
	span(tr, t.Context(), "late") // nobody waits for it either
}

// A collector that is not there is one warning, and a count.
func TestCollectorIsAway(t *testing.T) {
	clean(t)
	var out bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "300")
	tr, err := open(t, slog.New(slog.NewTextHandler(&out, nil)), "--tracing-endpoint", "http://"+l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	span(tr, t.Context(), "round")
	tr.Close()
	if n := tr.queue.failed.Load(); n != 1 || !strings.Contains(out.String(), "traces cannot be sent to the collector") {
		t.Errorf("%d failed; log: %s", n, out.String())
	}
}
