package gen

import (
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
)

// writer writes types out.
type writer struct {
	sources *sources
	names   *openapi.Schemas
	aliased map[string]bool // packages
	used    map[string]bool // names of aliased packages' types that are used
	done    map[reflect.Type]bool
	out     strings.Builder
}

// of is how a type is written, and has what it names written.
func (w *writer) of(t reflect.Type) (string, error) {
	if t == reflect.TypeFor[time.Time]() {
		return "time.Time", nil
	}
	switch {
	case t.Kind() == reflect.Pointer:
		elem, err := w.of(t.Elem())
		return "*" + elem, err
	case t.Name() != "" && t.PkgPath() != "":
		return w.named(t)
	case t.Name() != "":
		return t.Name(), nil
	}
	switch t.Kind() {
	case reflect.Slice:
		elem, err := w.of(t.Elem())
		return "[]" + elem, err
	case reflect.Map:
		key, err := w.of(t.Key())
		if err != nil {
			return "", err
		}
		elem, err := w.of(t.Elem())
		return "map[" + key + "]" + elem, err
	case reflect.Interface:
		return "any", nil
	}
	return "", fmt.Errorf("%s cannot be written", t)
}

// named is a named type's name.
func (w *writer) named(t reflect.Type) (string, error) {
	if w.aliased[t.PkgPath()] {
		w.used[path.Base(t.PkgPath())+"."+t.Name()] = true
		return t.Name(), w.reach(t)
	}
	name := w.names.Name(t)
	if w.done[t] {
		return name, nil
	}
	w.done[t] = true
	if openapi.OwnForm(t) {
		return "", fmt.Errorf("%s writes its JSON itself: alias its package, or give it fields", t)
	}
	source, err := w.sources.of(t.PkgPath())
	if err != nil {
		return "", err
	}
	bare, _, generic := strings.Cut(t.Name(), "[")
	text := source.types[bare]
	var b strings.Builder
	doc := text.doc
	if generic {
		doc = name + " is a list of such rows.\n\n" + doc
	}
	comment(&b, "", strings.Replace(doc, bare+" ", name+" ", 1))
	if t.Kind() != reflect.Struct {
		fmt.Fprintf(&b, "type %s %s\n\n", name, t.Kind())
		w.out.WriteString(b.String())
		return name, nil
	}
	fmt.Fprintf(&b, "type %s struct {\n", name)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if !f.IsExported() || tag == "-" {
			continue
		}
		of, err := w.of(f.Type)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if tag != "" {
			tag = " `json:\"" + tag + "\"`"
		}
		if f.Anonymous {
			fmt.Fprintf(&b, "\t%s%s\n\n", of, tag)
			continue
		}
		comment(&b, "\t", text.fields[f.Name])
		fmt.Fprintf(&b, "\t%s %s%s\n", f.Name, of, tag)
	}
	b.WriteString("}\n\n")
	w.out.WriteString(b.String())
	return name, nil
}

// reach marks what the fields of an aliased type are of.
func (w *writer) reach(t reflect.Type) error {
	if w.done[t] || t.Kind() != reflect.Struct || openapi.OwnForm(t) {
		return nil
	}
	w.done[t] = true
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
			if _, err := w.of(f.Type); err != nil {
				return fmt.Errorf("%s.%s: %w", t, f.Name, err)
			}
		}
	}
	return nil
}
