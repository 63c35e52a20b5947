package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/tracing"
	"github.com/fleetbroker/fleetbroker/test/tools"
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

// read has Prometheus's own parser read a scrape in OpenMetrics, which wants a time beside
// each sample here.
func read(ctx context.Context, dir, promtool, text string) error {
	sample := regexp.MustCompile(`(?m)^([^#\n][^\n]*?)( # \{trace_id=[^\n]*)?$`)
	file := filepath.Join(dir, "scrape.txt")
	if err := os.WriteFile(file, []byte(sample.ReplaceAllString(text, "$1 1700000000$2")), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "blocks")).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// What a scrape in OpenMetrics says, with exemplars and without, Prometheus reads; each
// exemplar is of a bucket that holds it, and short enough to be kept.
func TestMetrics_PrometheusReadsOpenMetrics(t *testing.T) {
	promtool, err := tools.Find(t.Context(), "promtool", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMetrics()
	tracer := tracing.New(sdk.NewTracerProvider())
	m.Traced(tracer)
	m.Reservation(v1alpha1.PhaseActive, "rome")
	m.SetSpend([]Sum{{"vi\"sion\\ # {a=\"b\"}\n", "EUR", v1alpha1.MustDecimal("2")}})
	m.PlannerStep("serve", time.Millisecond) // of no round
	ctx, _ := tracer.Begin(t.Context(), "round", time.Time{}, tracing.Origin{}, nil)
	tracer.InRound(tracing.Of(ctx))
	m.Decision(time.Millisecond)
	m.Commit(time.Hour) // beyond the last bucket
	m.PlannerStep("serve", time.Second)
	m.TimeToReserve(2*time.Second, "")
	m.TimeToActive(time.Minute, "4bf92f3577b34da6a3ce929d0e0e4736")
	kind, text := scrapeOpen(m)
	if !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(text, "\n# EOF\n") {
		t.Errorf("%s, ends with %q", kind, text[max(0, len(text)-20):])
	}
	if err := read(t.Context(), t.TempDir(), promtool, text); err != nil {
		t.Errorf("Prometheus does not read it: %v\n%s", err, text)
	}
	exemplars := 0
	form := regexp.MustCompile(`^\w+_bucket\{.*le="([^"]+)"\} \d+ # \{trace_id="[0-9a-f]{32}"\} (\S+) \S+\n$`)
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "trace_id") {
			continue
		}
		exemplars++
		var le, value float64
		if f := form.FindStringSubmatch(line); f == nil {
			t.Errorf("no exemplar of a bucket: %s", line)
		} else if _, err := fmt.Sscan(f[1]+" "+f[2], &le, &value); err != nil || value > le {
			t.Errorf("not in its bucket: %v, %s", err, line)
		}
	}
	if exemplars != 5 {
		t.Errorf("%d exemplars, want 5:\n%s", exemplars, text)
	}
	for name, broken := range map[string]string{
		"an exemplar": strings.Replace(text, `# {trace_id="`, `# {trace_id=`, 1),
		"the end":     strings.TrimSuffix(text, "# EOF\n"),
	} {
		if err := read(t.Context(), t.TempDir(), promtool, broken); err == nil {
			t.Errorf("with %s broken it is read too: this test finds nothing", name)
		}
	}
}
