package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// apart is who decides of a replica that may be unable to read the fleet repo.
type apart struct {
	listener
	err error
}

func (b *apart) Vouches() error { return b.err }

func (*apart) Instructions(string) (wire.Instructions, <-chan struct{}) {
	return wire.Instructions{}, nil
}

// TestWhoKnowsNoFleet_SendsAgentsElsewhere: a replica that has read nothing yet refuses every
// cluster for now, and closes the connection: by one that stays open an agent would come back
// to it, and be silent for all others.
func TestWhoKnowsNoFleet_SendsAgentsElsewhere(t *testing.T) {
	for status, want := range map[int]string{http.StatusServiceUnavailable: "close", http.StatusForbidden: ""} {
		a := newAgents(Agents{
			Reports: &recorder{}, Market: &recorder{}, Broker: &listener{}, Log: quiet, Enrolled: func(string) bool { return false },
			NotEnrolled: func(string, string) *wire.Refusal {
				return &wire.Refusal{Status: status, Body: wire.Error{Error: "not now", Reason: wire.ReasonUnavailable}}
			},
		})
		in := &inside{handler: a.routes()}
		answer := in.send(http.MethodPut, wire.FlavorsPath("paris"), []byte(h100), wire.HeaderGeneration, "1.1")
		if got := answer.Header().Get("Connection"); answer.Code != status || got != want {
			t.Errorf("answered %d, Connection %q; want %d, %q", answer.Code, got, status, want)
		}
	}
}

// TestOldManifestsAreNotVouchedFor: who asks for manifests of a replica that cannot read the
// fleet repo is not told that nothing has changed, but sent to another one.
func TestOldManifestsAreNotVouchedFor(t *testing.T) {
	for name, c := range map[string]struct {
		broker Broker
		want   int
	}{"it reads the fleet repo": {&apart{}, http.StatusNotModified}, "it does not": {&apart{err: errors.New("the fleet repo has not answered for 31s")}, http.StatusServiceUnavailable}} {
		in := newInside()
		a := newAgents(Agents{Reports: &store.Memory{Market: in.market}, Market: in.market, Broker: c.broker, Delivery: &unchanging{}, Metrics: in.metrics, Log: slog.New(slog.DiscardHandler)})
		in.handler = a.routes()
		answer := in.send(http.MethodGet, wire.ManifestsPath("paris")+"?since=v&wait=1s", nil)
		if answer.Code != c.want || (answer.Header().Get("Connection") == "close") != (c.want != http.StatusNotModified) {
			t.Errorf("%s: answered %d %s, Connection %q", name, answer.Code, answer.Body, answer.Header().Get("Connection"))
		}
	}
}

// unchanging has manifests of version v, and no others to come.
type unchanging struct{ handed }

func (*unchanging) Manifests(string) (wire.Manifests, <-chan struct{}, error) {
	return wire.Manifests{Version: "v"}, make(chan struct{}), nil
}

func (*unchanging) Root(context.Context, string) (string, error) { return "", nil }
