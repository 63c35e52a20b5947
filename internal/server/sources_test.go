package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

type emptyMarket struct{ Market }

func (emptyMarket) Pods() []wire.PodsReport { return nil }
func (emptyMarket) Offers(market.Query) (tree.Tree, []v1alpha1.Flavor, <-chan struct{}) {
	return tree.NewMemory().Build(nil), nil, nil
}

// Sources are in the metrics, in a form that Prometheus' linter takes, as many as a fleet
// may have; those that are frozen go with the operators' market, in a header that any
// server and proxy takes.
func TestSourcesAreShown(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	list := []wire.SourceStatus{
		{Name: "ml", Copied: "a1", Head: "a1", ReadAt: at},
		{Name: "vision", Copied: "b1", Head: "b2", Frozen: "its history was rewritten… \"é\"\n" + strings.Repeat("long ", 200), Since: at, ReadAt: at, Ignored: []string{"intents/ml"}},
		{Name: "never", Frozen: "cannot read it", Since: at},
	}
	sources := func() []wire.SourceStatus { return list }
	m := NewMetrics()
	if err := m.Register(SourceCollector(sources)); err != nil {
		t.Fatal(err)
	}
	h := NewOperators(Operators{Metrics: m, Sources: sources, Market: emptyMarket{}})
	scrape := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	text := scrape()
	for _, want := range []string{
		`fleetbroker_source_behind{source="vision"} 1`, `fleetbroker_source_behind{source="ml"} 0`, `fleetbroker_source_frozen{source="vision"} 1`, `fleetbroker_source_frozen{source="ml"} 0`,
		`fleetbroker_source_read_timestamp_seconds{source="ml"} 1.795176e+09`, `fleetbroker_source_ignored_paths{source="vision"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "b2") || strings.Contains(text, "source_info") {
		t.Errorf("a series for every commit: %s", text)
	}
	if strings.Contains(text, `read_timestamp_seconds{source="never"}`) {
		t.Error("a source that never answered was read")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "fleetbroker_source_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/market", nil))
	var got wire.FrozenSources
	if err := json.Unmarshal([]byte(w.Header().Get(wire.HeaderSources)), &got); err != nil {
		t.Fatalf("%v: %q", err, w.Header().Get(wire.HeaderSources))
	}
	if got.Sources != 3 || len(got.Frozen) != 2 || got.Frozen[0].Name != "vision" || !got.Frozen[0].Since.Equal(at) || !strings.HasPrefix(got.Frozen[0].Frozen, "its history was rewritten… \"é\"") {
		t.Errorf("got %+v", got)
	}
	w = httptest.NewRecorder()
	reader := httptest.NewRequest("GET", "/market", nil)
	h.ServeHTTP(w, reader.WithContext(context.WithValue(reader.Context(), identityKey{}, pki.Identity{Name: "ada", Role: pki.Reader})))
	if got := w.Header().Get(wire.HeaderSources); got != "" || w.Code != 200 {
		t.Errorf("a reader, who sees no tenants, is told of their sources: %q", got)
	}
	list = nil
	for i := range 300 {
		list = append(list, wire.SourceStatus{Name: fmt.Sprintf("s%d", i), Frozen: strings.Repeat("ü", 500), Since: at})
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/market", nil))
	header := w.Header().Get(wire.HeaderSources)
	if err := json.Unmarshal([]byte(header), &got); err != nil || got.More != 285 {
		t.Errorf("%d left out, %v", got.More, err)
	}
	if len(header) > 15<<10 || strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("a header of %d bytes, or one that not every server takes", len(header))
	}
	if n := strings.Count(scrape(), "fleetbroker_source_frozen{"); n != v1alpha1.MaxSources {
		t.Errorf("%d series, want at most %d", n, v1alpha1.MaxSources)
	}
}
