package ui

import (
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// object is a part of an OpenAPI document.
type object = map[string]any

// parameters of a query, with what they mean.
var parameters = []struct{ name, text, kind string }{
	{"q", "text that a row contains, whatever the case", "string"},
	{"state", "state, phase or failed requirement; all for everything", "string"},
	{"tenant", "rows of one tenant", "string"},
	{"provider", "rows of one provider", "string"},
	{"consumer", "rows of one consumer", "string"},
	{"by", "what costs are added up by: tenant, intent, provider, month, contract or label:KEY of the intents", "string"},
	{"month", "month of the costs, such as 2026-11, or all", "string"},
	{"days", "days of the calendar, 1 to 366", "integer"},
	{"page", "page of the list, from 1", "integer"},
	{"size", "rows of a page, at most 1000", "integer"},
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// openAPI describes the JSON of all pages, from the Go types that are written.
func openAPI() object {
	d := definitions{done: object{}, types: map[string]reflect.Type{}}
	failed := object{"description": "refused, with the reason", "content": object{"application/json": object{"schema": d.of(reflect.TypeFor[wire.Error]())}}}
	paths := object{}
	for i := range pages {
		p := &pages[i]
		data, head := d.of(reflect.TypeOf(p.answer)), d.of(reflect.TypeOf(answer{}.Head))
		var params []object
		for _, m := range inPath.FindAllStringSubmatch(p.api(), -1) {
			params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
		for _, q := range parameters {
			params = append(params, object{"name": q.name, "in": "query", "description": q.text, "schema": object{"type": q.kind}})
		}
		schema := object{"allOf": []object{head, {"type": "object", "required": []string{"data"}, "properties": object{"data": data}}}}
		paths[APIRoot+p.api()] = object{"get": object{
			"operationId": "get" + strings.ToUpper(p.template[:1]) + p.template[1:], "summary": "The page " + Root + strings.TrimSuffix(p.path, "{$}"), "parameters": params,
			"responses": object{"200": object{"description": "the page's data", "content": object{"application/json": object{"schema": schema}}}, "4XX": failed, "5XX": failed},
		}}
	}
	d.writes(paths, d.of(reflect.TypeOf(answer{}.Head)), failed)
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "fleetbroker dashboard", "version": v1alpha1.APIVersion, "description": "What the dashboard shows, as JSON. All of it is read-only but simulations, which change nothing of the fleet."},
		"paths":   paths,
		"components": object{"schemas": d.done, "securitySchemes": object{
			"certificate": object{"type": "mutualTLS", "description": "of an operator or reader"},
			"token":       object{"type": "http", "scheme": "bearer", "description": "of the daemon's cluster"},
			"session":     object{"type": "apiKey", "in": "cookie", "name": "__Host-fleetbroker", "description": "of who signed in at /ui/login"},
		}},
		"security": []object{{"certificate": []string{}}, {"token": []string{}}, {"session": []string{}}, {}}, // none on the loopback interface
	}
}

// definitions are the schemas of the named types, each once.
type definitions struct {
	done  object
	types map[string]reflect.Type
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// of is a type's schema.
func (d *definitions) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[v1alpha1.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[v1alpha1.Decimal]():
		return object{"type": "string", "pattern": `^-?[0-9]+(\.[0-9]+)?$`}
	case reflect.TypeFor[v1alpha1.Resources]():
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return d.of(t.Elem())
	case t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler):
		return object{} // a form of its own
	case t.PkgPath() == reflect.TypeFor[v1alpha1.Contract]().PkgPath() && t.Kind() == reflect.Struct:
		return object{"type": "object", "description": t.Name() + " of " + v1alpha1.APIVersion + ", as under schemas/"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": d.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		return d.structOf(t)
	}
	return object{}
}

// structOf is a struct's schema, under its name.
func (d *definitions) structOf(t reflect.Type) object {
	name := regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(regexp.MustCompile(`[\w./-]*/`).ReplaceAllString(t.Name(), ""), "_")
	name = strings.Trim(name, "_")
	if of, taken := d.types[name]; taken && of != t { // another package's
		pkg := path.Base(t.PkgPath())
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	d.types[name] = t
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, known := d.done[name]; known {
		return ref
	}
	schema := object{"type": "object"}
	d.done[name] = schema
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || tag == "" || len(f.Index) > 1 && !promoted(t, f) {
			continue
		}
		properties[tag] = d.of(f.Type)
		if !strings.Contains(f.Tag.Get("json"), ",omit") {
			required = append(required, tag)
		}
	}
	schema["properties"], schema["required"] = properties, required
	return ref
}

// promoted reports whether JSON writes a field of an embedded struct as the outer one's.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := range len(f.Index) - 1 {
		outer := t.FieldByIndex(f.Index[:i+1])
		if !outer.Anonymous || outer.Tag.Get("json") != "" {
			return false
		}
	}
	return true
}

// describe serves the description.
func (u *UI) describe(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, openAPI())
}
