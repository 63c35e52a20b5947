package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Pods on contracts are shown with when they were reported: to operators all of them, to
// an agent its own cluster's, to a reader nothing.
func TestPodsByRole(t *testing.T) {
	now := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	m := market.New(market.Options{Now: func() time.Time { return now }})
	for _, cluster := range []string{"rome", "milan"} {
		offered(t, m, 1, cluster)
		if err := m.SetDemand(cluster, &v1alpha1.Demand{Nodes: map[string]int64{"vision-" + cluster: 3, "idle-" + cluster: 0}}); err != nil {
			t.Fatal(err)
		}
	}
	offered(t, m, 1, "oslo") // has no contracts
	now = now.Add(time.Hour) // since when nobody was heard
	for who, c := range map[string]struct {
		id    pki.Identity
		code  int
		shown []string
	}{
		"an operator":        {pki.Identity{Name: "ada", Role: pki.Operator}, http.StatusOK, []string{"milan", "rome"}},
		"this machine":       {pki.Identity{}, http.StatusOK, []string{"milan", "rome"}},
		"a cluster's agent":  {pki.Identity{Name: "rome", Role: pki.Agent}, http.StatusOK, []string{"rome"}},
		"one without any":    {pki.Identity{Name: "oslo", Role: pki.Agent}, http.StatusOK, nil},
		"a reader of prices": {pki.Identity{Name: "bo", Role: pki.Reader}, http.StatusForbidden, nil},
	} {
		r := httptest.NewRequest(http.MethodGet, wire.PodsPath, nil)
		w := httptest.NewRecorder()
		podsHandler(m)(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, c.id)))
		var got []wire.PodsReport
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v: %s", who, err, w.Body)
			}
		}
		if w.Code != c.code || len(got) != len(c.shown) {
			t.Errorf("%s: %d with %+v, want %d with %q", who, w.Code, got, c.code, c.shown)
			continue
		}
		for i, name := range c.shown {
			p := got[i]
			if p.Cluster != name || !p.At.Equal(now.Add(-time.Hour)) || p.Contracts["vision-"+name] != 3 || len(p.Contracts) != 2 {
				t.Errorf("%s: %+v", who, p)
			}
		}
	}
}
