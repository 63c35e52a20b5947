package ui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
	"github.com/fleetbroker/fleetbroker/internal/ui"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// served is the document as the dashboard gives it.
func served(t *testing.T, d *daemon) map[string]any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.get(t, "/api/ui/openapi.json").Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any)
}

// schemasOf compiles the schema at a JSON pointer of the document.
func schemaAt(t *testing.T, c *jsonschema.Compiler, pointer ...string) *jsonschema.Schema {
	t.Helper()
	at := "openapi.json#"
	for _, p := range pointer {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	s, err := c.Compile(at)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return s
}

func compiler(t *testing.T, doc any) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOpenAPI: each answer of each page is as the description has it, to who sees all
// and to who sees totals, and each described path is one of them.
func TestOpenAPI(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b, view.Notice{Level: "warning", Text: "a notice"})
	doc := served(t, d)
	c := compiler(t, doc)
	schemas, used := map[string]*jsonschema.Schema{}, map[string]bool{}
	param := regexp.MustCompile(`\{\w+\}`)
	for path, item := range doc["paths"].(map[string]any) {
		get, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok || !strings.HasPrefix(path, "/api/ui/") || path == "/api/ui/openapi.json" || strings.HasSuffix(path, ".csv") {
			continue
		}
		if get["operationId"] == "" {
			t.Errorf("%s has no name", path)
		}
		schemas[path] = schemaAt(t, c, "paths", path, "get", "responses", "200", "content", "application/json", "schema")
		if schemas[path].Validate(map[string]any{"fleet": 1}) == nil {
			t.Errorf("%s: anything passes", path)
		}
	}
	for _, viewer := range []view.Viewer{{All: true}, {}} {
		d.look(viewer)
		for _, path := range paths(t, b) {
			api := "/api/ui" + path
			if path == "/" {
				api = "/api/ui/fleet"
			}
			bare, _, _ := strings.Cut(api, "?")
			schema := schemas[bare]
			for p, s := range schemas {
				if pattern := regexp.MustCompile("^" + param.ReplaceAllString(p, "[^/]+") + "$"); schema == nil && pattern.MatchString(bare) {
					schema, bare = s, p
				}
			}
			if schema == nil {
				t.Errorf("%s is not described", api)
				continue
			}
			used[bare] = true
			w := d.get(t, api)
			if w.Code != 200 {
				continue // not shown to this viewer
			}
			var got any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(got); err != nil {
				t.Errorf("%s: %v", api, err)
			}
		}
	}
	for path := range schemas {
		if !used[path] {
			t.Errorf("%s is described, and no page was tried there", path)
		}
	}
	if len(schemas) != 21 {
		t.Errorf("%d paths are described", len(schemas))
	}
}

// TestOpenAPI_Routes: what the dashboard registers is described, and nothing else is.
func TestOpenAPI_Routes(t *testing.T) {
	var described []string
	for _, r := range ui.Routes() {
		path := r.Path
		if path == "/" || path == "/ui/" {
			path += "{$}"
		}
		described = append(described, r.Method+" "+path)
	}
	slices.Sort(described)
	if got := newDaemon(t).ui.Patterns(); !slices.Equal(got, described) {
		t.Errorf("registered %q, described %q", got, described)
	}
}

// TestOpenAPI_Valid: the document keeps to what OpenAPI 3.1 asks of the parts that it has.
func TestOpenAPI_Valid(t *testing.T) {
	doc := served(t, newDaemon(t))
	c := compiler(t, doc)
	if doc["openapi"] != "3.1.0" || doc["info"].(map[string]any)["title"] == "" || doc["info"].(map[string]any)["version"] == "" {
		t.Errorf("head: %v, %v", doc["openapi"], doc["info"])
	}
	components := doc["components"].(map[string]any)
	schemes, tags := components["securitySchemes"].(map[string]any), map[any]bool{}
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(map[string]any)["name"]] = true
	}
	for name := range components["schemas"].(map[string]any) {
		if !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
			t.Errorf("schema %q: a name that is not allowed", name)
		}
		schemaAt(t, c, "components", "schemas", name)
	}
	ids, ports := map[any]string{}, map[any]int{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, at := op.(map[string]any), method+" "+path
			if ids[o["operationId"]] != "" {
				t.Errorf("%s and %s are both %v", ids[o["operationId"]], at, o["operationId"])
			}
			ids[o["operationId"]] = at
			for _, tag := range o["tags"].([]any) {
				if ports[tag]++; !tags[tag] {
					t.Errorf("%s: tag %v is not described", at, tag)
				}
			}
			for _, need := range o["security"].([]any) {
				for scheme := range need.(map[string]any) {
					if schemes[scheme] == nil {
						t.Errorf("%s: there is no scheme %s", at, scheme)
					}
				}
			}
			checkParams(t, at, path, o["parameters"].([]any), components["parameters"].(map[string]any))
			checkBodies(t, c, at, []string{"paths", path, method}, o)
		}
	}
	if ports[openapi.Agents] < 15 || ports[openapi.Operators] < 40 || ports[openapi.Webhooks] != 5 {
		t.Errorf("operations by port: %v", ports)
	}
}

func checkParams(t *testing.T, at, path string, params []any, shared map[string]any) {
	t.Helper()
	seen, inPath := map[string]bool{}, []string{}
	for _, p := range params {
		p := p.(map[string]any)
		if ref, is := p["$ref"].(string); is {
			if p, is = shared[strings.TrimPrefix(ref, "#/components/parameters/")].(map[string]any); !is {
				t.Errorf("%s: there is no %s", at, ref)
				continue
			}
		}
		key := fmt.Sprint(p["in"], " ", p["name"])
		if seen[key] {
			t.Errorf("%s: %s twice", at, key)
		}
		seen[key] = true
		switch p["in"] {
		case "path":
			if inPath = append(inPath, p["name"].(string)); p["required"] != true {
				t.Errorf("%s: %s is not required", at, key)
			}
		case "query", "header":
			if p["description"] == "" {
				t.Errorf("%s: %s says nothing", at, key)
			}
		default:
			t.Errorf("%s: %s", at, key)
		}
		if p["schema"].(map[string]any)["type"] == nil {
			t.Errorf("%s: %s has no schema", at, key)
		}
	}
	if want := openapi.PathParams(path); !slices.Equal(inPath, want) && len(inPath)+len(want) > 0 {
		t.Errorf("%s: parameters %q", at, inPath)
	}
}

func checkBodies(t *testing.T, c *jsonschema.Compiler, at string, pointer []string, o map[string]any) {
	t.Helper()
	content := func(of any, pointer ...string) {
		for media, m := range of.(map[string]any) {
			if !strings.Contains(media, "/") || m.(map[string]any)["schema"] == nil {
				t.Errorf("%s: %s", at, media)
			}
			schemaAt(t, c, append(slices.Clone(pointer), media, "schema")...)
		}
	}
	if b, ok := o["requestBody"].(map[string]any); ok {
		content(b["content"], append(slices.Clone(pointer), "requestBody", "content")...)
	}
	responses := o["responses"].(map[string]any)
	if len(responses) < 3 {
		t.Errorf("%s has only %q", at, slices.Sorted(maps.Keys(responses)))
	}
	for status, r := range responses {
		r := r.(map[string]any)
		if !regexp.MustCompile(`^[1-5](\d\d|XX)$`).MatchString(status) {
			t.Errorf("%s: status %q", at, status)
		}
		if ref, is := r["$ref"]; is {
			if ref != "#/components/responses/Refused" {
				t.Errorf("%s: %v", at, ref)
			}
			continue
		}
		if r["description"] == "" {
			t.Errorf("%s: %s says nothing", at, status)
		}
		if r["content"] != nil {
			content(r["content"], append(slices.Clone(pointer), "responses", status, "content")...)
		}
	}
}
