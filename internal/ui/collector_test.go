package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/plantest"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/test/hostile"
)

// scraped is what Prometheus gets of a registry.
func scraped(r *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestCollector(t *testing.T) {
	d := newDaemon(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ui.Collector(d.ui))
	if got := scraped(r); got != "" {
		t.Errorf("before the first round:\n%s", got)
	}
	d.show(small())
	text := scraped(r)
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("%v, %v", problems, err)
	}
	for _, want := range []string{
		`fleetbroker_deaf 0`,
		`fleetbroker_gpus{kind="capacity",model="nvidia-a100"} 32`,
		`fleetbroker_gpus{kind="free",model="nvidia-a100"} 28`,
		`fleetbroker_gpus{kind="held",model="nvidia-h100"} 8`,
		`fleetbroker_gpus{kind="used",model="nvidia-l4"} 0`,
		`fleetbroker_queue_oldest_seconds 7200`,
		`fleetbroker_providers{state="Ready"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, want := range []string{`fleetbroker_intents{reason="",state="Placed"}`, `fleetbroker_spend_per_hour{currency="EUR"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Who does not report is named, with for how long.
func TestCollector_NamesWhoDoesNotReport(t *testing.T) {
	d := newDaemon(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ui.Collector(d.ui))
	b := small()
	d.show(b)
	if text := scraped(r); strings.Contains(text, "fleetbroker_provider_unreported_seconds{") {
		t.Errorf("all report:\n%s", text)
	}
	b.Offer("paris/h100-pool", plantest.Heard(model.Lost)).Tick(time.Hour)
	d.show(b)
	if text := scraped(r); !regexp.MustCompile(`fleetbroker_provider_unreported_seconds\{provider="paris",state="Lost"\} \d+\n`).MatchString(text) || strings.Contains(text, `unreported_seconds{provider="milan"`) {
		t.Errorf("paris is not named, or others are:\n%s", text)
	}
}

// Budgets are counted to now, as pages count them, also while nothing is decided: an alert
// about 90 per cent must not wait for the next plan.
func TestCollector_BudgetsAreCountedToNow(t *testing.T) {
	d := newDaemon(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ui.Collector(d.ui))
	d.show(small())
	for _, used := range []string{"78.3", "104.4"} { // 26.10 an hour
		text := scraped(r)
		for _, want := range []string{"used{currency=\"EUR\",tenant=\"vision\"} " + used, "forecast{currency=\"EUR\",tenant=\"vision\"} 6577.2", "limit{currency=\"EUR\",tenant=\"vision\"} 20000"} {
			if !strings.Contains(text, "fleetbroker_budget_"+want+"\n") {
				t.Errorf("no fleetbroker_budget_%s in\n%s", want, text)
			}
		}
		if strings.Contains(text, `limit{currency="EUR",tenant="nlp"}`) {
			t.Error("a tenant without a budget has one")
		}
		d.mu.Lock()
		d.now = d.now.Add(time.Hour)
		d.mu.Unlock()
	}
}

// TestCollector_HostileLabels: whatever agents call their GPUs, metrics are scraped whole, and
// no label has a character that a terminal, or what draws it, takes for more than text.
func TestCollector_HostileLabels(t *testing.T) {
	for texts := range slices.Chunk(append(hostile.Texts(), "\xff", "?", "\xfe"), 50) { // the last are alike once they are text
		d, b := newDaemon(t), plantest.New()
		b.Provider("paris")
		for i, text := range texts {
			b.Offer(fmt.Sprintf("paris/pool-%d", i), plantest.Cards(text, 16, "80Gi"))
		}
		d.show(b)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(ui.Collector(d.ui))
		out := scraped(r)
		if !strings.Contains(out, `kind="capacity"`) || !strings.Contains(out, "fleetbroker_deaf 0\n") {
			t.Errorf("the scrape lacks its figures: %.300q", out)
		}
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "fleetbroker_") {
				t.Errorf("a line of its own: %.100q", line)
			}
			for _, c := range strings.TrimSuffix(line, "\n") {
				if !unicode.IsPrint(c) {
					t.Errorf("the character %U in %.200q", c, line)
					break
				}
			}
		}
	}
}
