// Package gen makes the JSON Schemas (draft 2020-12) of the kinds and their
// reference pages. The structure comes from the Go types, the descriptions from
// their comments; this package adds what neither says: the written forms of the
// types that decode themselves, and the known values of enumerated fields.
//
// Pure but for reading the Go sources under the given root; its callers are
// schemagen and the test that compares.
package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	module   = "github.com/fleetbroker/fleetbroker"
	types    = "internal/api/v1alpha1"
	baseID   = "https://fleetbroker.io/schemas/v1alpha1/"
	combined = "fleetbroker.json"
)

// kind is one kind with its schema.
type kind struct {
	name       string
	value      any
	where      string // where its files lie
	namespaced bool
	schema     *jsonschema.Schema
}

func kinds() []*kind {
	return []*kind{
		{name: v1alpha1.KindResourceIntent, value: &v1alpha1.ResourceIntent{}, where: "intents/<tenant>/**/*.yaml", namespaced: true},
		{name: v1alpha1.KindTenant, value: &v1alpha1.Tenant{}, where: "tenants/<tenant>.yaml"},
		{name: v1alpha1.KindCluster, value: &v1alpha1.Cluster{}, where: "clusters/<id>.yaml"},
		{name: v1alpha1.KindFlavor, value: &v1alpha1.Flavor{}, where: "flavors/<provider>/*.yaml", namespaced: true},
		{name: v1alpha1.KindPriceTable, value: &v1alpha1.PriceTable{}, where: "prices/*.yaml"},
		{name: v1alpha1.KindFleet, value: &v1alpha1.Fleet{}, where: "fleet.yaml"},
		{name: v1alpha1.KindTrustRoot, value: &v1alpha1.TrustRoot{}, where: "a file beside the daemon, never in the fleet repo (`--trust-root`)"},
		{name: v1alpha1.KindContract, value: &v1alpha1.Contract{}, where: "contracts/<tenant>/<xx>/<intent>/<contract>.yaml (generated)"},
		{name: v1alpha1.KindIntentState, value: &v1alpha1.IntentState{}, where: "contracts/<tenant>/<xx>/<intent>/_intent.yaml (generated)"},
		{name: v1alpha1.KindSpend, value: &v1alpha1.Spend{}, where: "contracts/<tenant>/spend-<yyyy-mm>.yaml (generated)"},
		{name: v1alpha1.KindSetAside, value: &v1alpha1.SetAside{}, where: "contracts/_set-aside.yaml (generated)"},
		{name: v1alpha1.KindSourceCopy, value: &v1alpha1.SourceCopy{}, where: "sources/<name>/source.yaml (generated)"},
	}
}

func (k *kind) file() string { return strings.ToLower(k.name) + ".json" }

// Files are all generated files by slash-separated path; root is the
// repository's.
func Files(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	all := kinds()
	// Comments are found by a path relative to the working directory.
	dir, err := relative(root)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		r := &jsonschema.Reflector{Mapper: mapper, ExpandedStruct: true, Anonymous: true, CommentMap: map[string]string{}}
		if err := comments(r, dir); err != nil {
			return nil, err
		}
		descriptions = r.CommentMap
		k.schema = r.Reflect(k.value)
		k.finish()
		lowerNames(k.schema)
		if out[k.file()], err = encode(k.schema); err != nil {
			return nil, err
		}
		out["docs/"+strings.ToLower(k.name)+".md"] = page(k)
	}
	if out[combined], err = encode(anyKind(all)); err != nil {
		return nil, err
	}
	out["docs/README.md"], out["docs/cel.md"] = index(all), celPage()
	return out, nil
}

func relative(root string) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	rel, err := filepath.Rel(wd, abs)
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	return rel, nil
}

// comments reads the kinds' comments. The library keys them by base joined
// with the path it was given, so that path is corrected afterwards.
func comments(r *jsonschema.Reflector, root string) error {
	dir := filepath.Join(root, filepath.FromSlash(types))
	if err := r.AddGoComments(module, dir, jsonschema.WithFullComment()); err != nil {
		return fmt.Errorf("read comments of %s: %w", dir, err)
	}
	fixed := map[string]string{}
	for key, text := range r.CommentMap {
		_, name, ok := strings.Cut(key, "v1alpha1.")
		if ok && text != "" {
			fixed[module+"/"+types+"."+name] = strings.Join(strings.Fields(text), " ")
		}
	}
	if len(fixed) == 0 {
		return fmt.Errorf("read comments of %s: there are none", dir)
	}
	r.CommentMap = fixed
	return nil
}

// finish fixes apiVersion and kind, demands a namespace where there is one,
// and adds the known values.
func (k *kind) finish() {
	s := k.schema
	s.ID = jsonschema.ID(baseID + k.file())
	s.Title = k.name
	if p, ok := s.Properties.Get("apiVersion"); ok {
		p.Const = v1alpha1.APIVersion
	}
	if p, ok := s.Properties.Get("kind"); ok {
		p.Const = k.name
	}
	if p, ok := s.Properties.Get("metadata"); ok && k.namespaced {
		s.Properties.Set("metadata", &jsonschema.Schema{
			Description: p.Description, AllOf: []*jsonschema.Schema{{Ref: p.Ref}, {Required: []string{"namespace"}}},
		})
	}
	if def, ok := s.Definitions["Metadata"]; ok {
		if p, ok := def.Properties.Get("name"); ok {
			p.Pattern, p.MaxLength = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, length(63)
			if k.name == v1alpha1.KindSpend {
				p.Pattern = ""
			}
		}
	}
	for name, def := range s.Definitions {
		if k.name == v1alpha1.KindResourceIntent {
			bound(def, v1alpha1.MaxItems[name])
		}
		for field, values := range enums[name] {
			p, ok := def.Properties.Get(field)
			if !ok {
				continue
			}
			if p.Type == "array" {
				p.Items.Enum = values
				continue
			}
			p.Enum = values
		}
	}
}

// bound writes the most entries of a definition's lists, in each of their forms.
func bound(def *jsonschema.Schema, most map[string]uint64) {
	for field, n := range most {
		p, ok := def.Properties.Get(field)
		if !ok {
			continue
		}
		for _, form := range append([]*jsonschema.Schema{p}, p.OneOf...) {
			if form.Type == "array" {
				form.MaxItems = &n
			}
		}
	}
}

// lowerNames lets descriptions name fields as they are written: Go comments
// begin with the Go name.
func lowerNames(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for _, def := range s.Definitions {
		lowerNames(def)
	}
	for _, sub := range s.OneOf {
		lowerNames(sub)
	}
	lowerNames(s.Items)
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if word, rest, ok := strings.Cut(p.Value.Description, " "); ok && word != p.Key && strings.EqualFold(word, p.Key) {
			p.Value.Description = p.Key + " " + rest
		}
		lowerNames(p.Value)
	}
}

func length(n uint64) *uint64 { return &n }

// anyKind is the schema of all files that people write, for editors that want
// one schema for a directory.
func anyKind(all []*kind) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Version: jsonschema.Version, ID: baseID + combined, Title: "Any kind of " + v1alpha1.APIVersion,
		Type: "object", Required: []string{"apiVersion", "kind"},
	}
	var names []any
	for _, k := range all {
		names = append(names, k.name)
		props := jsonschema.NewProperties()
		props.Set("kind", &jsonschema.Schema{Const: k.name})
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: &jsonschema.Schema{Properties: props}, Then: &jsonschema.Schema{Ref: k.file()}})
	}
	s.Properties = jsonschema.NewProperties()
	s.Properties.Set("kind", &jsonschema.Schema{Enum: names})
	return s
}

func encode(s *jsonschema.Schema) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encode schema %s: %w", s.ID, err)
	}
	return b.Bytes(), nil
}

func is[T any](t reflect.Type) bool { return t == reflect.TypeFor[T]() }
