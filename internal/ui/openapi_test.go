package ui_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestOpenAPI: each answer of each page is as the description has it, to who sees all
// and to who sees totals, and each described path is one of them.
func TestOpenAPI(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b, view.Notice{Level: "warning", Text: "a notice"})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.get(t, "/api/ui/openapi.json").Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	described := doc.(map[string]any)["paths"].(map[string]any)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	schemas, used := map[string]*jsonschema.Schema{}, map[string]bool{}
	param := regexp.MustCompile(`\{\w+\}`)
	for path := range described {
		at := "openapi.json#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/get/responses/200/content/application~1json/schema"
		if schemas[path], err = compiler.Compile(at); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
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
	for path := range described {
		if !used[path] {
			t.Errorf("%s is described, and no page was tried there", path)
		}
	}
	if len(described) != 21 {
		t.Errorf("%d paths are described", len(described))
	}
	for path, method := range map[string]string{"/api/ui/capacity": "post", "/api/ui/capacity/{id}": "delete"} {
		if _, ok := described[path].(map[string]any)[method]; !ok {
			t.Errorf("%s %s is not described", method, path)
		}
	}
}
