package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/server/login"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
)

// TestRoutesAreDescribed: what each port registers is in the list of the OpenAPI document,
// and nothing else is.
func TestRoutesAreDescribed(t *testing.T) {
	agents, operators, webhooks := routes.NewMux(), routes.NewMux(), routes.NewMux()
	newAgents(Agents{
		Broker: struct{ Broker }{}, Replicas: struct{ Replicas }{}, Delivery: struct{ Delivery }{}, Market: &market.Market{}, // none of them is asked
		Handed: map[string]http.Handler{wire.HandedSimulationsPath: http.NotFoundHandler()},
	}).register(agents)
	(&Operators{Metrics: NewMetrics(), Market: &market.Market{}}).register(operators)
	(&Webhooks{Source: func(string) (string, []byte) { return "", nil }}).register(webhooks)

	described := map[string][]string{}
	for _, r := range routes.All() {
		if r.Path == login.LoginPath || r.Path == login.CallbackPath || r.Path == login.LogoutPath {
			continue // no mux has them: a login serves its paths itself
		}
		for _, port := range r.Ports {
			described[port] = append(described[port], r.Method+" "+r.Path)
		}
	}
	for port, mux := range map[string]*routes.Mux{openapi.Agents: agents, openapi.Operators: operators, openapi.Webhooks: webhooks} {
		registered := slices.DeleteFunc(mux.Patterns(), func(p string) bool { return strings.HasSuffix(p, streamPath) }) // only says that it is gone
		slices.Sort(described[port])
		if !slices.Equal(registered, described[port]) {
			t.Errorf("%s: registered %q, described %q", port, registered, described[port])
		}
		if len(registered) < 5 {
			t.Errorf("%s: %d routes", port, len(registered))
		}
	}
}
