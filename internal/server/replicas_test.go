package server

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// deciding is a replica that decides on nothing.
type deciding struct{ Replicas }

// An agent may not hand on requests as a replica does: they say whose they are.
func TestOnlyReplicasHandOn(t *testing.T) {
	for _, path := range []string{wire.HandedReservationsPath, wire.HandedReleasesPath, wire.ToldPath, wire.HandedSimulationsPath} {
		in := newInside()
		reached := map[string]http.Handler{wire.HandedSimulationsPath: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an agent asks for simulations") })}
		in.handler = newAgents(Agents{Reports: &store.Memory{Market: in.market}, Market: in.market, Replicas: deciding{}, Handed: reached, Metrics: in.metrics, Log: slog.New(slog.DiscardHandler)}).routes()
		answer := in.send(http.MethodPost, path, []byte(`{"cluster":"rome","id":"body-0123456789abcdef"}`))
		if reason := reasonOf(t, answer.Body.Bytes()); answer.Code != http.StatusForbidden || reason != "NotAReplica" {
			t.Errorf("%s by an agent: %d %s, want it forbidden", path, answer.Code, reason)
		}
	}
}
