package ui_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/fleetbroker/fleetbroker/internal/ui"
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
