package strictyaml

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Every type that decodes itself has a form here: without one, a document would
// be held against its Go fields.
func TestEveryOwnDecodingHasAForm(t *testing.T) {
	decoder := reflect.TypeFor[json.Unmarshaler]()
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type, string)
	visit = func(typ reflect.Type, path string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if _, ok := special[typ]; ok {
			return
		}
		if reflect.PointerTo(typ).Implements(decoder) {
			t.Errorf("%s: %s decodes itself, but has no form in special", path, typ)
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(typ.Elem(), path)
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(typ) {
				visit(f.Type, path+"."+f.Name)
			}
		}
	}
	for _, kind := range []any{
		v1alpha1.ResourceIntent{}, v1alpha1.Flavor{}, v1alpha1.PriceTable{}, v1alpha1.Cluster{}, v1alpha1.Tenant{}, v1alpha1.Fleet{},
		v1alpha1.Contract{}, v1alpha1.IntentState{}, v1alpha1.Spend{},
	} {
		visit(reflect.TypeOf(kind), reflect.TypeOf(kind).Name())
	}
}
