package openapi

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Schemas are those of the named types, each once.
type Schemas struct {
	// Done are the schemas by name.
	Done   Object
	params Object
	types  map[string]reflect.Type
	names  map[reflect.Type]string
}

// NewSchemas has none yet.
func NewSchemas() *Schemas {
	return &Schemas{Done: Object{}, params: Object{}, types: map[string]reflect.Type{}, names: map[reflect.Type]string{}}
}

var (
	jsonForm = reflect.TypeFor[json.Marshaler]()
	textForm = reflect.TypeFor[encoding.TextMarshaler]()
)

// OwnForm reports whether a type writes its JSON itself.
func OwnForm(t reflect.Type) bool {
	for _, form := range []reflect.Type{jsonForm, textForm} {
		if t.Implements(form) || reflect.PointerTo(t).Implements(form) {
			return true
		}
	}
	return false
}

// Of is a type's schema.
func (d *Schemas) Of(t reflect.Type) Object {
	switch t {
	case reflect.TypeFor[v1alpha1.Time](), reflect.TypeFor[time.Time]():
		return Object{"type": String, "format": "date-time"}
	case reflect.TypeFor[v1alpha1.Decimal]():
		return Object{"type": String, "pattern": `^-?[0-9]+(\.[0-9]+)?$`}
	case reflect.TypeFor[v1alpha1.Resources]():
		return Object{"type": []string{"object", "null"}, "additionalProperties": Object{"type": String}}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(d.Of(t.Elem()))
	case OwnForm(t):
		return Object{} // a form of its own
	}
	switch t.Kind() {
	case reflect.String:
		return Object{"type": String}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Object{"type": Integer}
	case reflect.Float32, reflect.Float64:
		return Object{"type": "number"}
	case reflect.Slice:
		return Object{"type": []string{"array", "null"}, "items": d.Of(t.Elem())}
	case reflect.Map:
		return Object{"type": []string{"object", "null"}, "additionalProperties": d.Of(t.Elem())}
	case reflect.Struct:
		return d.structOf(t)
	}
	return Object{}
}

// nullable is a schema that null passes too, as a pointer to nothing is written.
func nullable(schema Object) Object {
	switch of := schema["type"].(type) {
	case string:
		schema["type"] = []string{of, "null"}
	case nil:
		if ref, named := schema["$ref"]; named {
			return Object{"anyOf": []Object{{"$ref": ref}, {"type": "null"}}}
		}
	}
	return schema
}

// Name is that of a named type among all that it was asked for: of a list such as
// List[view.IntentRow] it is IntentRowList, of a name that is taken it begins with the package.
func (d *Schemas) Name(t reflect.Type) string {
	if name, known := d.names[t]; known {
		return name
	}
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		name = of[strings.LastIndexAny(of, "./")+1:len(of)-1] + name
	}
	if _, taken := d.types[name]; taken { // another package's
		pkg := path.Base(t.PkgPath())
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	d.types[name], d.names[t] = t, name
	return name
}

// Reserve keeps names from types that Name is asked for.
func (d *Schemas) Reserve(names ...string) {
	for _, name := range names {
		d.types[name] = nil
	}
}

// structOf is a struct's schema, under its name.
func (d *Schemas) structOf(t reflect.Type) Object {
	schema, ref := Object{"type": "object"}, Object{}
	if t.Name() != "" {
		name := d.Name(t)
		ref = Object{"$ref": "#/components/schemas/" + name}
		if _, known := d.Done[name]; known {
			return ref
		}
		d.Done[name] = schema
	}
	properties, required := Object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" || len(f.Index) > 1 && !promoted(t, f) {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		properties[tag] = d.Of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, tag)
		}
	}
	schema["properties"], schema["required"] = properties, required
	if len(ref) == 0 {
		return schema
	}
	return ref
}

// promoted reports whether JSON writes a field of an embedded struct as the outer one's.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := range len(f.Index) - 1 {
		outer := t.FieldByIndex(f.Index[:i+1])
		if name, _, _ := strings.Cut(outer.Tag.Get("json"), ","); !outer.Anonymous || name != "" {
			return false
		}
	}
	return true
}
