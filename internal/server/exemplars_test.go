package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fleetbroker/fleetbroker/internal/tracing"
)

func scrapeOpen(m *Metrics) (kind, text string) {
	q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	q.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, q)
	return w.Header().Get("Content-Type"), w.Body.String()
}

// With traces on histograms name the trace of the round, or the contract's; with traces
// off a scrape is what it was, and an observation allocates nothing.
func TestMetrics_Exemplars(t *testing.T) {
	const contract = "4bf92f3577b34da6a3ce929d0e0e4736"
	m := NewMetrics()
	observe := func() {
		m.Decision(time.Millisecond)
		m.Commit(time.Second)
		m.PlannerStep("serve", time.Millisecond)
		m.TimeToReserve(2*time.Second, "")
		m.TimeToActive(time.Minute, "")
	}
	observe()
	if kind, text := scrapeOpen(m); strings.Contains(kind, "openmetrics") || strings.Contains(text, "trace_id") || !strings.Contains(text, `le="1"`) {
		t.Errorf("off: %s\n%s", kind, text)
	}
	if n := testing.AllocsPerRun(1000, observe); n != 0 {
		t.Errorf("off: %v allocations, want 0", n)
	}
	tracer := tracing.New(sdk.NewTracerProvider())
	m.Traced(tracer)
	ctx, _ := tracer.Begin(t.Context(), "round", time.Time{}, tracing.Origin{}, nil)
	round := tracing.Of(ctx)
	tracer.InRound(round)
	observe()
	m.TimeToActive(time.Hour, contract)
	tracer.InRound(tracing.Origin{})
	m.Decision(3 * time.Second) // of no round
	kind, text := scrapeOpen(m)
	if !strings.Contains(kind, "openmetrics") {
		t.Errorf("on: %s", kind)
	}
	for _, want := range []string{
		`fleetbroker_decision_seconds_bucket{le="0.001"} 1003 # {trace_id="` + round.Trace() + `"} 0.001`,
		`fleetbroker_commit_seconds_bucket{le="1.0"} 1003 # {trace_id="` + round.Trace() + `"} 1.0`,
		`fleetbroker_planner_step_seconds_bucket{step="serve",le="0.001"} 1003 # {trace_id="` + round.Trace() + `"} 0.001`,
		`# {trace_id="` + contract + `"} 3600.0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `fleetbroker_decision_seconds_bucket{le="5.0"}`) && strings.Contains(line, "trace_id") {
			t.Errorf("an observation of no round has an exemplar: %s", line)
		}
	}
}
