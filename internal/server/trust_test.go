package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// What signatures are held to is shown by /readyz and by the metrics.
func TestTrustIsShown(t *testing.T) {
	trust := func() wire.Trust {
		return wire.Trust{Unsigned: true, Fleet: "f3k9q2abu7", Keys: "sha256:00", Sequence: 12, Alarms: []string{"a ref"}}
	}
	m := NewMetrics()
	if err := m.Register(TrustCollector(trust)); err != nil {
		t.Fatal(err)
	}
	h := NewOperators(Operators{Metrics: m, Trust: trust})
	for path, wants := range map[string][]string{
		"/readyz":  {`"unsigned":true`, `"sequence":12`, `"alarms":["a ref"]`},
		"/metrics": {`fleetbroker_unsigned{root="sha256:00"} 1`, "fleetbroker_ledger_sequence 12", "fleetbroker_trust_alarms 1"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		for _, want := range wants {
			if !strings.Contains(strings.ReplaceAll(w.Body.String(), ": ", ":"), want) {
				t.Errorf("%s has no %s: %s", path, want, w.Body)
			}
		}
	}
}
