package routes

import (
	"net/http"

	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Status of a process that answers.
type Status struct {
	Status string `json:"status"`
}

// All of them.
func All() []openapi.Route {
	var out []openapi.Route
	for _, part := range [][]openapi.Route{reports(), reservations(), deliveries(), both(), replicas(), operators(), webhooks()} {
		out = append(out, part...)
	}
	return out
}

var (
	agentsPort    = []string{openapi.Agents}
	operatorsPort = []string{openapi.Operators}
	bothPorts     = []string{openapi.Agents, openapi.Operators}
	webhooksPort  = []string{openapi.Webhooks}
)

// poll are the parameters of a request that waits for news.
func poll(since string) []openapi.Param {
	return []openapi.Param{
		{Name: "since", In: openapi.InQuery, Text: since, Kind: openapi.String},
		{Name: "wait", In: openapi.InQuery, Text: "how long to wait for something newer, such as 30s, at most a minute", Kind: openapi.String},
	}
}

// news is what a request that waits is answered.
func news[T any](text string) []openapi.Answer {
	return append(openapi.OK[T](text), openapi.Answer{Status: http.StatusNotModified, Text: "nothing newer in that time"})
}

// reports are what agents send of their cluster.
func reports() []openapi.Route {
	return []openapi.Route{
		{
			Method: http.MethodPut, Path: "/api/v2/clusters/{id}/flavors", ID: "reportFlavors", Summary: "Report all flavors of a cluster, or, without a body, that the reported ones still hold", Ports: agentsPort,
			Params: []openapi.Param{
				{Name: wire.HeaderGeneration, In: openapi.InHeader, Required: true, Text: "<epoch>.<n>: the epoch grows with each start of the agent, n with each change", Kind: openapi.String},
				{Name: wire.HeaderHonoured, In: openapi.InHeader, Text: "number of the newest ledger commit whose endings were carried out", Kind: openapi.Integer},
			},
			Body: &openapi.Body{Type: openapi.As[wire.FlavorReport](), Optional: true}, Answers: openapi.Done(http.StatusNoContent, "taken"),
		},
		{Method: http.MethodPost, Path: "/api/v1/advertisements", ID: "advertise", Summary: "Report a cluster as one sum, as Liqo's resource agents do", Ports: agentsPort, Body: &openapi.Body{Type: openapi.As[wire.Advertisement]()}, Answers: openapi.OK[wire.AdvertisementAnswer]("taken; what the cluster owes")},
		{Method: http.MethodGet, Path: "/api/v1/advertisements/{id}", ID: "getAdvertisement", Summary: "The last such report of a cluster", Ports: agentsPort, Answers: openapi.OK[wire.Advertisement]("the report")},
	}
}

// reservations are what clusters ask for, and what they are told.
func reservations() []openapi.Route {
	return []openapi.Route{
		{
			Method: http.MethodPost, Path: wire.ReservationsPath, ID: "reserve", Summary: "Ask for capacity; answered once it is on the ledger", Ports: agentsPort,
			Params: []openapi.Param{{Name: wire.HeaderIdempotencyKey, In: openapi.InHeader, Text: "the same key asks for the same reservation, however often it is sent", Kind: openapi.String}},
			Body:   &openapi.Body{Type: openapi.As[wire.ReservationRequest]()},
			Answers: []openapi.Answer{
				{Status: http.StatusCreated, Text: "reserved", Type: openapi.As[wire.Reservation]()},
				{Status: http.StatusAccepted, Text: "it waits in the queue (phase Pending)", Type: openapi.As[wire.Reservation]()},
			},
		},
		{Method: http.MethodDelete, Path: "/api/v2/reservations/{id}", ID: "release", Summary: "End a reservation; answered once that is on the ledger", Ports: agentsPort, Answers: openapi.Done(http.StatusNoContent, "it ends")},
		{Method: http.MethodGet, Path: wire.InstructionsV1Path, ID: "getInstructionsV1", Summary: "What the cluster owes, for v1 agents", Ports: agentsPort, Answers: openapi.OK[[]wire.Reservation]("its reservations as a provider")},
		{
			Method: http.MethodGet, Path: "/api/v2/clusters/{id}/instructions", ID: "getInstructions", Summary: "What the ledger says of a cluster", Ports: agentsPort,
			Params:  append(poll("version at hand"), openapi.Param{Name: "after", In: openapi.InQuery, Text: "number of the ledger commit that this has to have read (seq)", Kind: openapi.Integer}),
			Answers: news[wire.Instructions]("all of it"),
		},
	}
}

// deliveries are for clusters whose agents apply their manifests.
func deliveries() []openapi.Route {
	return []openapi.Route{
		{Method: http.MethodGet, Path: "/api/v2/clusters/{id}/manifests", ID: "getManifests", Summary: "What a cluster's agent applies (delivery: agent)", Ports: agentsPort, Params: poll("version at hand"), Answers: news[wire.Manifests]("all of it")},
		{Method: http.MethodGet, Path: "/api/v2/clusters/{id}/manifests/root", ID: "getManifestsRoot", Summary: "The hash of those manifests in the repository now", Ports: agentsPort, Answers: openapi.OK[wire.ManifestsRoot]("the hash")},
		{Method: http.MethodPut, Path: "/api/v2/clusters/{id}/observations", ID: "reportObservations", Summary: "Report what the agent sees of what it applied", Ports: agentsPort, Body: &openapi.Body{Type: openapi.As[wire.Observed]()}, Answers: openapi.Done(http.StatusNoContent, "taken")},
	}
}

// both are served on two ports.
func both() []openapi.Route {
	market := news[wire.MarketAnswer]("the flavors; JSON where it is all that is accepted")
	market[0].Others = []string{openapi.YAML}
	return []openapi.Route{
		{
			Method: http.MethodGet, Path: "/market", ID: "getMarket", Summary: "What is offered now: to an agent its own, to a reader without who holds what", Ports: bothPorts,
			Params: append(
				[]openapi.Param{
					{Name: "provider", In: openapi.InQuery, Text: "flavors of one provider", Kind: openapi.String},
					{Name: "class", In: openapi.InQuery, Text: "a model of GPU, or cpu", Kind: openapi.String},
					{Name: "region", In: openapi.InQuery, Text: "flavors of one region", Kind: openapi.String},
				}, poll("tree at hand (header "+wire.HeaderMarket+")")...,
			),
			Answers: market,
		},
		{Method: http.MethodGet, Path: wire.PodsPath, ID: "getPods", Summary: "Pods on contracts' virtual nodes, by consumer: to an agent its own, to a reader nothing", Ports: bothPorts, Answers: openapi.OK[[]wire.PodsReport]("by consumer")},
		{Method: http.MethodGet, Path: "/healthz", ID: "getHealth", Summary: "Alive", Ports: bothPorts, Open: true, Answers: openapi.OK[Status]("alive")},
	}
}

// replicas are for the other replicas of the daemon alone, of the same version.
func replicas() []openapi.Route {
	return []openapi.Route{
		{Method: http.MethodPost, Path: wire.HandedReservationsPath, ID: "handReservation", Summary: "Hand on a request that another replica of the daemon took", Ports: agentsPort, Body: &openapi.Body{Type: openapi.As[wire.HandedReservation]()}, Answers: openapi.OK[wire.Reservation]("as reserve answers")},
		{Method: http.MethodPost, Path: wire.HandedReleasesPath, ID: "handRelease", Summary: "Hand on a release", Ports: agentsPort, Body: &openapi.Body{Type: openapi.As[wire.HandedRelease]()}, Answers: openapi.Done(http.StatusNoContent, "it ends")},
		{Method: http.MethodPost, Path: wire.ToldPath, ID: "told", Summary: "Say whether a client was answered", Ports: agentsPort, Body: &openapi.Body{Type: openapi.As[wire.Told]()}, Answers: openapi.Done(http.StatusNoContent, "noted")},
		{Method: http.MethodPost, Path: wire.HandedSimulationsPath, ID: "askSimulations", Summary: "Ask for the simulations that run on this replica", Ports: agentsPort, Body: &openapi.Body{}, Answers: openapi.OK[map[string]any]("what was asked for")},
	}
}

// operators are those of the operators' port that are no pages.
func operators() []openapi.Route {
	ready := func(path, id, of string) openapi.Route {
		return openapi.Route{Method: http.MethodGet, Path: path, ID: id, Summary: of, Ports: operatorsPort, Open: true, Answers: []openapi.Answer{
			{Status: http.StatusOK, Text: "all checks pass", Type: openapi.As[wire.Readiness]()},
			{Status: http.StatusServiceUnavailable, Text: "one fails", Type: openapi.As[wire.Readiness]()},
		}}
	}
	to := openapi.Done(http.StatusSeeOther, "Location has where to go")
	return []openapi.Route{
		{Method: http.MethodGet, Path: "/metrics", ID: "getMetrics", Summary: "Metrics of Prometheus", Ports: operatorsPort, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "in Prometheus' text form, or OpenMetrics", Others: []string{openapi.Text}}}},
		ready("/readyz", "getReadiness", "Whether the daemon is ready, check by check; reasons for who may see them"),
		ready("/readyz/agents", "getAgentsReadiness", "Whether a balancer may send agents here"),
		{Method: http.MethodGet, Path: "/ui/login", ID: "login", Summary: "Sign in by OpenID Connect", Ports: operatorsPort, Open: true, Params: []openapi.Param{{Name: "to", In: openapi.InQuery, Text: "path of the page to go to then", Kind: openapi.String}}, Answers: to},
		{Method: http.MethodGet, Path: "/ui/callback", ID: "endLogin", Summary: "Where the identity provider sends people back to", Ports: operatorsPort, Open: true, Params: []openapi.Param{{Name: "code", In: openapi.InQuery, Text: "the provider's", Kind: openapi.String}, {Name: "state", In: openapi.InQuery, Text: "of the login", Kind: openapi.String}}, Answers: to},
		{Method: http.MethodPost, Path: "/ui/logout", ID: "logout", Summary: "Sign out", Ports: operatorsPort, Open: true, Answers: to},
	}
}

// webhooks are the forges'.
func webhooks() []openapi.Route {
	fetching := []openapi.Answer{{Status: http.StatusAccepted, Text: "a fetch begins; the payload is not used", Type: openapi.As[Status]()}}
	var out []openapi.Route
	for _, forge := range []struct{ path, id, header string }{
		{"github", "GitHub", "X-Hub-Signature-256"}, {"gitlab", "GitLab", "X-Gitlab-Token"}, {"gitea", "Gitea", "X-Gitea-Signature"}, {"generic", "Generic", "X-Signature"},
	} {
		out = append(out, openapi.Route{
			Method: http.MethodPost, Path: "/hooks/" + forge.path, ID: "hook" + forge.id, Summary: "Something was pushed: fetch now", Ports: webhooksPort,
			Params: []openapi.Param{{Name: forge.header, In: openapi.InHeader, Required: forge.path != "generic", Text: "shows knowledge of the secret (generic: or the secret as a bearer token)", Kind: openapi.String}},
			Body:   &openapi.Body{Media: openapi.Any, Optional: true}, Answers: fetching,
		})
	}
	return append(out, openapi.Route{
		Method: http.MethodPost, Path: "/hooks/sources/{name}", ID: "hookSource", Summary: "Something was pushed to a tenant's own repository: fetch it now; shown as its forge does", Ports: webhooksPort,
		Body: &openapi.Body{Media: openapi.Any, Optional: true}, Answers: fetching,
	})
}
