package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// What is seen and not written yet shows at once in the metrics.
func TestContractsAreShownAsSeen(t *testing.T) {
	list := []wire.ContractState{
		{Name: "a", Phase: v1alpha1.PhaseDegraded, Reason: "FlavorShrunk", Message: "paris/h100 has less than it sold", Committed: v1alpha1.PhaseActive},
		{Name: "b", Phase: v1alpha1.PhaseActive}, {Name: "c", Phase: v1alpha1.PhaseActive},
	}
	states := func() []wire.ContractState { return list }
	metrics := NewMetrics()
	if err := metrics.Register(ContractsCollector{States: states}); err != nil {
		t.Fatal(err)
	}
	handler := NewOperators(Operators{Metrics: metrics})
	get := func(path string) string {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	for _, want := range []string{`fleetbroker_contracts{phase="Degraded",reason="FlavorShrunk"} 1`, `fleetbroker_contracts{phase="Active",reason=""} 2`} {
		if text := get("/metrics"); !strings.Contains(text, want) {
			t.Errorf("metrics have no %s:\n%s", want, text)
		}
	}
}
