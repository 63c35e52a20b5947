package planning

import (
	"fmt"
	"reflect"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// difference names the first part in which two plans differ, with both values:
// it is for a log, and as short as that allows.
func difference(made, want *planner.Plan) string {
	path, a, b := differs("plan", reflect.ValueOf(made), reflect.ValueOf(want))
	return fmt.Sprintf("%s: %.200q, from nothing %.200q", path, fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b))
}

// differs is the path of the first difference and the values there; the path is
// "" when there is none. Both values are of one type.
func differs(path string, a, b reflect.Value) (at string, x, y reflect.Value) {
	if same(a, b) {
		return "", a, b
	}
	down := func(path string, a, b reflect.Value) bool {
		at, x, y = differs(path, a, b)
		return at != ""
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() && down(path, a.Elem(), b.Elem()) {
			return at, x, y
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() && down(path+"."+f.Name, a.Field(i), b.Field(i)) {
				return at, x, y
			}
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if down(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)) {
				return at, x, y
			}
		}
		if a.Len() != b.Len() {
			return path, reflect.ValueOf(fmt.Sprint(a.Len(), " of them")), reflect.ValueOf(fmt.Sprint(b.Len(), " of them"))
		}
	}
	return path, a, b
}

// same reports whether two values of plans are equal all the way down; those
// that cannot be looked into from here are compared as they are printed.
func same(a, b reflect.Value) bool {
	if a.CanInterface() && b.CanInterface() {
		return reflect.DeepEqual(a.Interface(), b.Interface())
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}
