package celenv

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// objectValue is a struct as CEL sees it. Fields are converted when they are
// looked at: an expression looks at few.
type objectValue struct {
	o *object
	v reflect.Value
}

var (
	_ traits.Indexer     = objectValue{}
	_ traits.FieldTester = objectValue{}
)

// ConvertToNative implements ref.Val.
func (v objectValue) ConvertToNative(t reflect.Type) (any, error) {
	if v.v.Type().AssignableTo(t) {
		return v.v.Interface(), nil
	}
	return nil, fmt.Errorf("%s cannot become %s", v.o.name, t)
}

// ConvertToType implements ref.Val.
func (v objectValue) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return v.o.cel
	}
	return types.NewErr("%s cannot become %s", v.o.name, t)
}

// Equal implements ref.Val.
func (v objectValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(objectValue)
	return types.Bool(ok && o.o == v.o && reflect.DeepEqual(v.v.Interface(), o.v.Interface()))
}

// Type implements ref.Val.
func (v objectValue) Type() ref.Type { return v.o.cel }

// Value implements ref.Val.
func (v objectValue) Value() any { return v.v.Interface() }

// Get implements traits.Indexer.
func (v objectValue) Get(index ref.Val) ref.Val {
	f, ok := v.field(index)
	if !ok {
		return types.NewErr("no such field '%v' in %s", index.Value(), v.o.name)
	}
	return f.conv.value(v.v.FieldByIndex(f.index))
}

// IsSet implements traits.FieldTester.
func (v objectValue) IsSet(index ref.Val) ref.Val {
	f, ok := v.field(index)
	if !ok {
		return types.NewErr("no such field '%v' in %s", index.Value(), v.o.name)
	}
	return types.Bool(!v.v.FieldByIndex(f.index).IsZero())
}

func (v objectValue) field(index ref.Val) (field, bool) {
	name, ok := index.(types.String)
	if !ok {
		return field{}, false
	}
	f, ok := v.o.fields[string(name)]
	return f, ok
}

// resources is a map of quantities in which a missing name is 0.
type resources struct {
	traits.Mapper
}

func newResources(r v1alpha1.Resources) ref.Val {
	m := make(map[ref.Val]ref.Val, len(r))
	for name, a := range r {
		m[types.String(name)] = quantityOf(name, a)
	}
	return resources{types.NewRefValMap(types.DefaultTypeAdapter, m)}
}

// Find implements traits.Mapper.
func (r resources) Find(key ref.Val) (ref.Val, bool) {
	if v, ok := r.Mapper.Find(key); ok {
		return v, true
	}
	return quantityOf("", v1alpha1.Amount{}), true
}

// Get implements traits.Indexer.
func (r resources) Get(key ref.Val) ref.Val {
	v, _ := r.Find(key)
	return v
}

// provider tells the type checker the object types, beside CEL's own.
type provider struct {
	types.Provider
}

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if o, ok := objects[name]; ok {
		return types.NewTypeTypeWithParam(o.cel), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	o, ok := objects[name]
	if !ok {
		return p.Provider.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(o.fields))
	for n := range o.fields {
		names = append(names, n)
	}
	return names, true
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	o, ok := objects[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, fieldName)
	}
	f, ok := o.fields[fieldName]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: f.conv.cel}, true
}
