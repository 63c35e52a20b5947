package celenv

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	apicel "k8s.io/apiserver/pkg/cel"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// object describes one Go struct as a CEL object type.
type object struct {
	name   string
	cel    *types.Type
	fields map[string]field
}

type field struct {
	index []int
	conv  conversion
}

// conversion is how values of one Go type appear in expressions.
type conversion struct {
	cel   *types.Type
	value func(reflect.Value) ref.Val
}

// ErrAbsent is of a number that nobody stated: whatever compares it has no answer.
var ErrAbsent = errors.New("is not stated")

// objects are all object types by CEL name; filled while the package
// initialises and only read afterwards.
var objects = map[string]*object{}

// objectOf makes the object type of a Go struct: its JSON fields, those of
// embedded structs included, the outermost of a name first. The name must not
// read like an expression's path (hence the fleetbroker. prefix): CEL would take
// intent.placement for the type of that name.
func objectOf(t reflect.Type, name string) *object {
	if o, ok := objects[name]; ok {
		return o
	}
	o := &object{name: name, cel: cel.ObjectType(name), fields: map[string]field{}}
	objects[name] = o
	depth := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" || key == "-" || !f.IsExported() {
			continue
		}
		if key == "" {
			key = strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
		if d, ok := depth[key]; ok && d <= len(f.Index) {
			continue
		}
		depth[key] = len(f.Index)
		o.fields[key] = field{f.Index, conversionOf(f.Type, name+"."+key)}
	}
	return o
}

func (o *object) value(v reflect.Value) ref.Val { return objectValue{o, v} }

// scalar conversions of the kinds' own types.
var scalars = map[reflect.Type]conversion{
	reflect.TypeFor[v1alpha1.Decimal](): {types.DoubleType, func(v reflect.Value) ref.Val {
		return types.Double(v.Interface().(v1alpha1.Decimal).Float())
	}},
	reflect.TypeFor[v1alpha1.Duration](): {types.DurationType, func(v reflect.Value) ref.Val {
		return types.Duration{Duration: v.Interface().(v1alpha1.Duration).Duration}
	}},
	reflect.TypeFor[v1alpha1.Time](): {types.TimestampType, func(v reflect.Value) ref.Val {
		return types.Timestamp{Time: v.Interface().(v1alpha1.Time).Time}
	}},
	reflect.TypeFor[v1alpha1.Amount](): {apicel.QuantityType, func(v reflect.Value) ref.Val {
		return quantityOf(v1alpha1.Memory, v.Interface().(v1alpha1.Amount))
	}},
	reflect.TypeFor[v1alpha1.MemorySize](): {apicel.QuantityType, func(v reflect.Value) ref.Val {
		return quantityOf(v1alpha1.Memory, v.Interface().(v1alpha1.MemorySize).Amount)
	}},
	reflect.TypeFor[v1alpha1.Resources](): {types.NewMapType(types.StringType, apicel.QuantityType), func(v reflect.Value) ref.Val {
		return newResources(v.Interface().(v1alpha1.Resources))
	}},
}

func conversionOf(t reflect.Type, path string) conversion {
	if c, ok := scalars[t]; ok {
		return c
	}
	if t == reflect.TypeFor[v1alpha1.ResourceRequest]() {
		o := objectOf(reflect.TypeFor[request](), "fleetbroker.resources")
		return conversion{o.cel, func(v reflect.Value) ref.Val {
			return o.value(reflect.ValueOf(requestView(v.Interface().(v1alpha1.ResourceRequest))))
		}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerTo(t, path)
	case reflect.String:
		return conversion{types.StringType, func(v reflect.Value) ref.Val { return types.String(v.String()) }}
	case reflect.Bool:
		return conversion{types.BoolType, func(v reflect.Value) ref.Val { return types.Bool(v.Bool()) }}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return conversion{types.IntType, func(v reflect.Value) ref.Val { return types.Int(v.Int()) }}
	case reflect.Float64:
		return conversion{types.DoubleType, func(v reflect.Value) ref.Val { return types.Double(v.Float()) }}
	case reflect.Slice:
		elem := conversionOf(t.Elem(), path)
		return conversion{types.NewListType(elem.cel), func(v reflect.Value) ref.Val {
			list := make([]ref.Val, v.Len())
			for i := range list {
				list[i] = elem.value(v.Index(i))
			}
			return types.NewRefValList(types.DefaultTypeAdapter, list)
		}}
	case reflect.Map:
		elem := conversionOf(t.Elem(), path)
		return conversion{types.NewMapType(types.StringType, elem.cel), func(v reflect.Value) ref.Val {
			m := make(map[ref.Val]ref.Val, v.Len())
			for it := v.MapRange(); it.Next(); {
				m[types.String(it.Key().String())] = elem.value(it.Value())
			}
			return types.NewRefValMap(types.DefaultTypeAdapter, m)
		}}
	case reflect.Struct:
		o := objectOf(t, path)
		return conversion{o.cel, o.value}
	}
	panic(fmt.Sprintf("celenv: %s has a type that expressions do not know: %s", path, t))
}

// pointerTo shows an absent value as its type's empty one, but for numbers: one that
// nobody stated is neither small nor large, and what compares it has no answer.
func pointerTo(t reflect.Type, path string) conversion {
	elem := conversionOf(t.Elem(), path)
	zero := reflect.Zero(t.Elem())
	number := elem.cel == types.IntType || elem.cel == types.DoubleType
	named := strings.TrimPrefix(path, "fleetbroker.")
	return conversion{elem.cel, func(v reflect.Value) ref.Val {
		if v.IsNil() && number {
			return types.WrapErr(fmt.Errorf("%s %w", named, ErrAbsent))
		}
		if v.IsNil() {
			return elem.value(zero)
		}
		return elem.value(v.Elem())
	}}
}

func quantityOf(name string, a v1alpha1.Amount) ref.Val {
	switch name {
	case v1alpha1.CPU:
		return apicel.Quantity{Quantity: resource.NewMilliQuantity(a.Int64(), resource.DecimalSI)}
	case v1alpha1.Memory, v1alpha1.EphemeralStorage:
		return apicel.Quantity{Quantity: resource.NewQuantity(a.Int64(), resource.BinarySI)}
	}
	return apicel.Quantity{Quantity: resource.NewQuantity(a.Int64(), resource.DecimalSI)}
}

// request is a resource request with its best known quantities as fields (cpu
// in cores); all of them, extended ones too, are in named.
type request struct {
	GPU    *v1alpha1.GPURequest `json:"gpu,omitempty"`
	Named  v1alpha1.Resources   `json:"named,omitempty"`
	CPU    float64              `json:"cpu"`
	Memory v1alpha1.Amount      `json:"memory"`
}

func requestView(r v1alpha1.ResourceRequest) request {
	return request{GPU: r.GPU, Named: r.Named, CPU: float64(r.Named[v1alpha1.CPU].Int64()) / 1000, Memory: r.Named[v1alpha1.Memory]}
}
