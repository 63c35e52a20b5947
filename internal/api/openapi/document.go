package openapi

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Object is a part of a document, ready for encoding/json.
type Object = map[string]any

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// PathParams are the names of a path's wildcards, in order.
func PathParams(path string) []string {
	var out []string
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		out = append(out, m[1])
	}
	return out
}

// Document describes routes.
func Document(routes []Route) Object {
	d := NewSchemas()
	paths := Object{}
	for i := range routes {
		r := &routes[i]
		at, known := paths[r.Path].(Object)
		if !known {
			at = Object{}
			paths[r.Path] = at
		}
		at[strings.ToLower(r.Method)] = d.operation(r)
	}
	failed := Object{"description": "refused, with the reason", "content": Object{JSON: Object{"schema": d.Of(As[wire.Error]())}}}
	return Object{
		"openapi": "3.1.0",
		"info": Object{
			"title": "fleetbroker", "version": v1alpha1.APIVersion,
			"description": "What a daemon serves: to agents and clients of reservations on the agents' port, to people on the operators' port, to forges on the webhooks' port. The tag of an operation is the port.",
		},
		"tags": []Object{
			{"name": Agents, "description": "mutual TLS 1.3; a certificate speaks for its own cluster"},
			{"name": Operators, "description": "reads, and simulations that change nothing of the fleet"},
			{"name": Webhooks, "description": "a secret or signature; asks for a fetch, nothing else"},
		},
		"paths": paths,
		"components": Object{
			"schemas":    d.Done,
			"parameters": d.params,
			"responses":  Object{"Refused": failed},
			"securitySchemes": Object{
				"certificate": Object{"type": "mutualTLS", "description": "of an agent, operator, reader or server"},
				"token":       Object{"type": "http", "scheme": "bearer", "description": "of the daemon's cluster"},
				"session":     Object{"type": "apiKey", "in": "cookie", "name": "__Host-fleetbroker", "description": "of who signed in at /ui/login"},
			},
		},
	}
}

// operation is one method of one path.
func (d *Schemas) operation(r *Route) Object {
	params := []Object{}
	for _, name := range PathParams(r.Path) {
		params = append(params, Object{"name": name, "in": "path", "required": true, "schema": Object{"type": String}})
	}
	for i := range r.Params {
		params = append(params, d.param(&r.Params[i]))
	}
	refused := Object{"$ref": "#/components/responses/Refused"}
	responses := Object{"4XX": refused, "5XX": refused}
	for i := range r.Answers {
		responses[strconv.Itoa(r.Answers[i].Status)] = d.response(&r.Answers[i])
	}
	out := Object{"operationId": r.ID, "summary": r.Summary, "tags": r.Ports, "parameters": params, "responses": responses, "security": security(r)}
	if b := r.Body; b != nil {
		media, schema := b.Media, Object{}
		if media == "" {
			media = JSON
		}
		if b.Type != nil {
			schema = d.Of(b.Type)
		}
		out["requestBody"] = Object{"required": !b.Optional, "content": Object{media: Object{"schema": schema}}}
	}
	return out
}

// param is a parameter, under its name where no other has it.
func (d *Schemas) param(p *Param) Object {
	name, of := p.In+"."+p.Name, Object{"name": p.Name, "in": p.In, "required": p.Required, "description": p.Text, "schema": Object{"type": p.Kind}}
	switch known := d.params[name]; {
	case known == nil:
		d.params[name] = of
	case !reflect.DeepEqual(known, of):
		return of
	}
	return Object{"$ref": "#/components/parameters/" + name}
}

// response is one answer.
func (d *Schemas) response(a *Answer) Object {
	out, content := Object{"description": a.Text}, Object{}
	if a.Type != nil {
		schema := d.Of(a.Type)
		if a.Head != nil {
			schema = Object{"allOf": []Object{d.Of(a.Head), {"type": "object", "required": []string{"data"}, "properties": Object{"data": schema}}}}
		}
		content[JSON] = Object{"schema": schema}
	}
	for _, media := range a.Others {
		content[media] = Object{"schema": Object{"type": String}}
	}
	if len(content) > 0 {
		out["content"] = content
	}
	return out
}

// security is what a route asks for: one of the schemes.
func security(r *Route) []Object {
	out := []Object{}
	for _, port := range r.Ports {
		switch {
		case r.Open || port == Webhooks:
			out = append(out, Object{})
		case port == Agents:
			out = append(out, Object{"certificate": []string{}})
		default: // none on the loopback interface
			out = append(out, Object{"certificate": []string{}}, Object{"token": []string{}}, Object{"session": []string{}}, Object{})
		}
	}
	return out
}
