package strictyaml

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// form is the way in which a type may be written.
type form uint8

const (
	fObject       form = iota // fields, all of them known
	fMap                      // any keys, values of one shape; some keys may have their own
	fList                     // values of one shape
	fListOrOne                // a list, or one element without it
	fText                     // a string
	fBool                     // true or false
	fInt                      // a whole number
	fFloat                    // a number
	fScalar                   // a string that the type itself reads
	fQuantity                 // a string that the type itself reads, or a whole number
	fDecimal                  // a string that the type itself reads, or a number, read from its text
	fObjectOrText             // an object, or a scalar that the type itself reads
	fAny                      // anything
)

// shape is how values of a Go type are written. Shapes are made once a type
// and only read afterwards.
type shape struct {
	form     form
	fields   map[string]*shape
	names    []string
	required []string
	elem     *shape
	// parse reads a JSON scalar as the type does, for its error message.
	parse func([]byte) error
}

// special are the types whose JSON form is not what their Go fields say. The
// table repeats what their UnmarshalJSON accepts, only coarser: the method
// itself has the last word.
var special map[reflect.Type]func() *shape

func init() { // an initialiser would refer to itself through shapeOf
	special = map[reflect.Type]func() *shape{
		reflect.TypeFor[v1alpha1.Decimal]():      func() *shape { return scalar[v1alpha1.Decimal](fDecimal) },
		reflect.TypeFor[v1alpha1.Duration]():     func() *shape { return scalar[v1alpha1.Duration](fScalar) },
		reflect.TypeFor[v1alpha1.Time]():         func() *shape { return scalar[v1alpha1.Time](fScalar) },
		reflect.TypeFor[v1alpha1.Date]():         func() *shape { return scalar[v1alpha1.Date](fScalar) },
		reflect.TypeFor[v1alpha1.MemoryRange]():  func() *shape { return scalar[v1alpha1.MemoryRange](fScalar) },
		reflect.TypeFor[v1alpha1.MemorySize]():   func() *shape { return scalar[v1alpha1.MemorySize](fScalar) },
		reflect.TypeFor[v1alpha1.Quantity]():     func() *shape { return scalar[v1alpha1.Quantity](fQuantity) },
		reflect.TypeFor[v1alpha1.Resources]():    resourcesShape,
		reflect.TypeFor[v1alpha1.SpreadList]():   func() *shape { return &shape{form: fListOrOne, elem: shapeOf(reflect.TypeFor[v1alpha1.Spread]())} },
		reflect.TypeFor[v1alpha1.PriceClasses](): func() *shape { return &shape{form: fListOrOne, elem: &shape{form: fText}} },
		reflect.TypeFor[v1alpha1.Replicas](): func() *shape {
			s := scalar[v1alpha1.Replicas](fObjectOrText)
			number := &shape{form: fInt}
			s.fields, s.names, s.required = map[string]*shape{"min": number, "max": number}, []string{"min", "max"}, []string{"min", "max"}
			return s
		},
		reflect.TypeFor[v1alpha1.GPURequest](): func() *shape {
			s := structShape(reflect.TypeFor[v1alpha1.GPURequest]())
			s.form, s.parse = fObjectOrText, scalar[v1alpha1.GPURequest](fScalar).parse
			return s
		},
		reflect.TypeFor[v1alpha1.ResourceRequest](): func() *shape {
			s := resourcesShape()
			s.fields = map[string]*shape{v1alpha1.GPU: shapeOf(reflect.TypeFor[v1alpha1.GPURequest]()), "perPod": shapeOf(reflect.TypeFor[v1alpha1.PodRequest]())}
			s.names = []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.Pods, v1alpha1.EphemeralStorage, v1alpha1.GPU}
			s.parse = scalar[v1alpha1.ResourceRequest](fMap).parse
			return s
		},
		reflect.TypeFor[v1alpha1.PodRequest](): func() *shape {
			s := resourcesShape()
			s.names = []string{v1alpha1.CPU, v1alpha1.Memory, v1alpha1.EphemeralStorage, v1alpha1.GPU}
			s.parse = scalar[v1alpha1.PodRequest](fMap).parse
			return s
		},
		reflect.TypeFor[v1alpha1.ReservedPrice](): func() *shape {
			return &shape{form: fMap, elem: scalar[v1alpha1.Decimal](fDecimal), fields: map[string]*shape{"term": scalar[v1alpha1.Duration](fScalar)}}
		},
		reflect.TypeFor[json.RawMessage](): func() *shape { return &shape{form: fAny} },
	}
}

func scalar[T any](f form) *shape {
	return &shape{form: f, parse: func(b []byte) error { return json.Unmarshal(b, new(T)) }}
}

// resourcesShape is a map of quantities; the check by name is the map's own.
func resourcesShape() *shape {
	return &shape{form: fMap, elem: &shape{form: fQuantity}}
}

var shapes sync.Map // reflect.Type → *shape

// shapeOf is the shape of a Go type. Recursive types are not supported: no
// kind has one.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := makeShape(t)
	shapes.Store(t, s)
	return s
}

func makeShape(t reflect.Type) *shape {
	if mk, ok := special[t]; ok {
		return mk()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Struct:
		return structShape(t)
	case reflect.Map:
		return &shape{form: fMap, elem: shapeOf(t.Elem())}
	case reflect.Slice:
		return &shape{form: fList, elem: shapeOf(t.Elem())}
	case reflect.String:
		return &shape{form: fText}
	case reflect.Bool:
		return &shape{form: fBool}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &shape{form: fInt, parse: func(b []byte) error { return json.Unmarshal(b, reflect.New(t).Interface()) }}
	case reflect.Float64:
		return &shape{form: fFloat}
	}
	panic(fmt.Sprintf("strictyaml: no way to write %s", t))
}

func structShape(t reflect.Type) *shape {
	s := &shape{form: fObject, fields: map[string]*shape{}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		s.fields[name] = shapeOf(f.Type)
		if !strings.Contains(options, "omit") {
			s.required = append(s.required, name)
		}
	}
	s.names = slices.Sorted(maps.Keys(s.fields))
	return s
}
