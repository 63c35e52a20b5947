package ui

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
	"github.com/fleetbroker/fleetbroker/internal/server/routes"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// parameters of a query, with what they mean.
var parameters = []openapi.Param{
	{Name: "q", Text: "text that a row contains, whatever the case", Kind: openapi.String},
	{Name: "state", Text: "state, phase or failed requirement; all for everything", Kind: openapi.String},
	{Name: "tenant", Text: "rows of one tenant", Kind: openapi.String},
	{Name: "provider", Text: "rows of one provider", Kind: openapi.String},
	{Name: "consumer", Text: "rows of one consumer", Kind: openapi.String},
	{Name: "by", Text: "what costs are added up by: tenant, intent, provider, month, contract or label:KEY of the intents", Kind: openapi.String},
	{Name: "month", Text: "month of the costs, such as 2026-11, or all", Kind: openapi.String},
	{Name: "days", Text: "days of the calendar, 1 to 366", Kind: openapi.Integer},
	{Name: "page", Text: "page of the list, from 1", Kind: openapi.Integer},
	{Name: "size", Text: "rows of a page, at most 1000", Kind: openapi.Integer},
}

// known is an error unless each parameter of a query is one of parameters, or the o of a page.
func known(v url.Values) error {
	var names []string
	for i := range parameters {
		names = append(names, parameters[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name == "o" || slices.Contains(names, name) {
			continue
		}
		hint := ""
		if near := nearest.Of(name, names); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return fmt.Errorf("unknown parameter %.40q%s; the known ones are %s", name, hint, strings.Join(names, ", "))
	}
	return nil
}

// Routes of the dashboard: of each page its HTML and its JSON, and the rest.
func Routes() []openapi.Route {
	params := slices.Clone(parameters)
	for i := range params {
		params[i].In = openapi.InQuery
	}
	ports, head := []string{openapi.Operators}, reflect.TypeOf(answer{}.Head)
	var out []openapi.Route
	for i := range pages {
		p := &pages[i]
		id, shown := strings.ToUpper(p.template[:1])+p.template[1:], Root+strings.TrimSuffix(p.path, "{$}")
		out = append(
			out,
			openapi.Route{Method: http.MethodGet, Path: APIRoot + p.api(), ID: "get" + id, Summary: "The page " + shown, Ports: ports, Params: params, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "the page's data", Type: reflect.TypeOf(p.answer), Head: head}}},
			openapi.Route{Method: http.MethodGet, Path: shown, ID: "show" + id, Summary: "The page for people; with o=json it sends to its JSON", Ports: ports, Params: params, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "the page", Others: []string{openapi.HTML}}}},
		)
	}
	token := openapi.Param{Name: tokenHeader, In: openapi.InHeader, Required: true, Text: "csrfToken of GET " + APIRoot + capacityPath, Kind: openapi.String}
	change := openapi.As[scenario.Change]()
	to := openapi.Done(http.StatusSeeOther, "Location has the page that goes on")
	return append(
		out,
		openapi.Route{Method: http.MethodPost, Path: APIRoot + capacityPath, ID: "startSimulation", Summary: "Simulate the last days with a change, next to as they were", Ports: ports, Params: []openapi.Param{token}, Body: &openapi.Body{Type: change}, Answers: []openapi.Answer{{Status: http.StatusAccepted, Text: "begun; Location is where it is followed", Type: openapi.As[CapacityJobAnswer](), Head: head}}},
		openapi.Route{Method: http.MethodDelete, Path: APIRoot + capacityPath + "/{id}", ID: "cancelSimulation", Summary: "End a simulation of one's own, if it runs", Ports: ports, Params: []openapi.Param{token}, Answers: openapi.Done(http.StatusNoContent, "it ends")},
		openapi.Route{Method: http.MethodPost, Path: Root + capacityPath, ID: "submitSimulation", Summary: "The form of the page " + Root + capacityPath, Ports: ports, Body: &openapi.Body{Media: "application/x-www-form-urlencoded"}, Answers: to},
		openapi.Route{Method: http.MethodPost, Path: Root + capacityPath + "/{id}/cancel", ID: "submitCancel", Summary: "The form that ends a simulation", Ports: ports, Body: &openapi.Body{Media: "application/x-www-form-urlencoded"}, Answers: to},
		openapi.Route{Method: http.MethodGet, Path: APIRoot + "/cost.csv", ID: "exportCost", Summary: "The costs of the page " + Root + "/cost as CSV", Ports: ports, Params: params, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "a header and a line for each row", Others: []string{openapi.CSV}}}},
		openapi.Route{Method: http.MethodGet, Path: APIRoot + "/openapi.json", ID: "getOpenAPI", Summary: "This document", Ports: ports, Answers: openapi.OK[map[string]any]("OpenAPI 3.1")},
		openapi.Route{Method: http.MethodGet, Path: Root + "/events", ID: "followChanges", Summary: "Server-sent events: the version of what pages show, whenever it is another", Ports: ports, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "events named version", Others: []string{openapi.Events}}}},
		openapi.Route{Method: http.MethodGet, Path: Root + "/assets/{name}", ID: "getAsset", Summary: "A file of the pages", Ports: ports, Open: true, Answers: []openapi.Answer{{Status: http.StatusOK, Text: "the file", Others: []string{openapi.Any}}}},
		openapi.Route{Method: http.MethodGet, Path: Root, ID: "openPages", Summary: "Sends to the first page", Ports: ports, Answers: to},
		openapi.Route{Method: http.MethodGet, Path: "/", ID: "openRoot", Summary: "Sends to the first page", Ports: ports, Answers: to},
	)
}

// Document describes all that a daemon serves.
var Document = sync.OnceValue(func() openapi.Object { return openapi.Document(append(Routes(), routes.All()...)) })

// describe serves the description.
func (u *UI) describe(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Document())
}
