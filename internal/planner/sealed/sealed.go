// Package sealed is for tests: it notices who writes into a World in place.
//
// A World's rule is that nothing in it is modified and that a value at the same
// address is the same value. Seal copies all that a World holds, to the last map
// and slice; what it returns compares. The ledger is copied as its contracts and
// states, compiled predicates are not looked into, and times and decimals have no
// parts that anybody can change.
//
// A copy costs as much as the world is big: no daemon calls it.
//
// It is called by the tests of planner and reconciler and by the simulation, and
// is safe for concurrent use.
package sealed

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// World seals a world. What it returns names the first part that was changed
// since, "" when none was.
func World(w planner.World) (changed func() string) {
	before := copied(reflect.ValueOf(w))
	contracts := contractsOf(w)
	observed := observedOf(w, contracts)
	kept, seen := copied(reflect.ValueOf(contracts)), copied(reflect.ValueOf(observed))
	return func() string {
		return cmp.Or(
			differs("World", before, reflect.ValueOf(w)),
			differs("Ledger", kept, reflect.ValueOf(contracts)),
			differs("Observed", seen, reflect.ValueOf(observed)),
		)
	}
}

// contractsOf are the ledger's own values, not copies.
func contractsOf(w planner.World) (out []*v1alpha1.Contract) {
	if w.Ledger != nil {
		for c := range w.Ledger.Contracts() {
			out = append(out, c)
		}
	}
	return out
}

// observedOf is what is observed of contracts, in their order: its maps are the
// world's own.
func observedOf(w planner.World, contracts []*v1alpha1.Contract) []v1alpha1.Observation {
	out := make([]v1alpha1.Observation, len(contracts))
	for i, c := range contracts {
		out[i] = w.Observed.Of(c.Metadata.Name)
	}
	return out
}

// open reports whether a type is looked into: plain data of this repository, whose
// fields can all be set.
func open(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				return false
			}
		}
		return true
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}

// copied is a value that shares no map and no slice with another.
func copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	if !open(v.Type()) {
		return out
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && open(v.Type().Elem()) {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(copied(v.Elem()))
			out.Set(p)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(copied(v.Field(i)))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(copied(v.Index(i)))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for it := v.MapRange(); it.Next(); {
				out.SetMapIndex(it.Key(), copied(it.Value()))
			}
		}
	}
	return out
}

// differs is where a value is not as it was, "" when it is.
func differs(path string, was, is reflect.Value) string {
	if !open(is.Type()) {
		if is.Comparable() && was.Comparable() && !was.Equal(is) {
			return path
		}
		return ""
	}
	switch is.Kind() {
	case reflect.Pointer:
		switch {
		case was.IsNil() != is.IsNil():
			return path
		case is.IsNil() || !open(is.Type().Elem()):
			return ""
		}
		return differs(path, was.Elem(), is.Elem())
	case reflect.Struct:
		for i := range is.NumField() {
			if at := differs(path+"."+is.Type().Field(i).Name, was.Field(i), is.Field(i)); at != "" {
				return at
			}
		}
	case reflect.Slice, reflect.Array:
		if was.Len() != is.Len() {
			return path
		}
		for i := range is.Len() {
			if at := differs(fmt.Sprintf("%s[%d]", path, i), was.Index(i), is.Index(i)); at != "" {
				return at
			}
		}
	case reflect.Map:
		for it := is.MapRange(); it.Next(); {
			at := fmt.Sprintf("%s[%v]", path, it.Key())
			old := was.MapIndex(it.Key())
			if !old.IsValid() {
				return at
			}
			if at := differs(at, old, it.Value()); at != "" {
				return at
			}
		}
		if was.Len() != is.Len() {
			return path
		}
	default:
		if !was.Equal(is) {
			return path
		}
	}
	return ""
}
