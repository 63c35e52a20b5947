package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
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

// The market's header has alarms for operators, ten at most; a reader, who sees no tenants,
// learns how many there are: refs and paths that alarms quote may name tenants.
func TestTrustOfTheMarketNamesNothingToReaders(t *testing.T) {
	for _, tt := range []struct {
		role          pki.Role
		raised, shown int
	}{
		{pki.Operator, 0, 0}, {pki.Operator, 10, 10}, {pki.Operator, 12, 10}, {pki.Reader, 0, 0}, {pki.Reader, 1, 0}, {pki.Reader, 12, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.role, tt.raised), func(t *testing.T) {
			given := wire.Trust{Fleet: "f3k9q2abu7", Root: "acme", Sequence: 12}
			for i := range tt.raised {
				given.Alarms = append(given.Alarms, fmt.Sprintf("refs/fleetbroker/market/vision-é/%d is in the way", i))
			}
			h := NewOperators(Operators{Metrics: NewMetrics(), Market: emptyMarket{}, Trust: func() wire.Trust { return given }})
			r, w := httptest.NewRequest("GET", "/market", nil), httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, pki.Identity{Name: "ada", Role: tt.role})))
			header := w.Header().Get(wire.HeaderTrust)
			var got wire.Trust
			if err := json.Unmarshal([]byte(header), &got); err != nil || w.Code != 200 {
				t.Fatalf("%d, %v: %q", w.Code, err, header)
			}
			if len(got.Alarms) != tt.shown || got.Raised() != tt.raised || got.Sequence != 12 || got.Root != "acme" {
				t.Errorf("got %d alarms of %d, %+v; want %d of %d", len(got.Alarms), got.Raised(), got, tt.shown, tt.raised)
			}
			if tt.role == pki.Reader && strings.Contains(header, "vision") {
				t.Errorf("a reader is told of a tenant: %q", header)
			}
			if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("a header that not every server takes: %q", header)
			}
			if len(given.Alarms) != tt.raised {
				t.Errorf("the daemon has %d alarms left", len(given.Alarms))
			}
		})
	}
}
