package celenv

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Facts are the facts of flavors and clusters that an expression looks at, as paths such
// as flavor.gpu.model, each once and in order. known is false where it may look at more.
// Flavors that have all of them in common have the answer for an intent in common.
func (p *Program) Facts() (facts []string, known bool) { return p.facts, p.factsKnown }

// reads finds the facts that an expression looks at.
type reads struct {
	facts   map[string]bool
	unknown bool
}

// factsOf are the facts that a checked expression looks at.
func factsOf(e ast.Expr) (facts []string, known bool) {
	r := reads{facts: map[string]bool{}}
	r.expr(e)
	return slices.Sorted(maps.Keys(r.facts)), !r.unknown
}

func (r *reads) expr(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
	case ast.IdentKind:
		// A flavor as a whole may be compared, or handed on.
		r.unknown = r.unknown || e.AsIdent() == "flavor" || e.AsIdent() == "cluster"
	case ast.SelectKind:
		r.choose(e)
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			r.expr(c.Target())
		}
		for _, a := range c.Args() {
			r.expr(a)
		}
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			r.expr(x)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			r.expr(x.AsMapEntry().Key())
			r.expr(x.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, x := range [...]ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			r.expr(x)
		}
	default:
		r.unknown = true
	}
}

// choose notes the fact that a chain of fields leads to: the first that is no object.
func (r *reads) choose(e ast.Expr) {
	var names []string
	root := e
	for root.Kind() == ast.SelectKind {
		names = append(names, root.AsSelect().FieldName())
		root = root.AsSelect().Operand()
	}
	if root.Kind() != ast.IdentKind {
		r.expr(root)
		return
	}
	var o *object
	switch root.AsIdent() {
	case "flavor":
		o = flavorType
	case "cluster":
		o = clusterType
	default:
		return
	}
	path := root.AsIdent()
	for i := len(names) - 1; i >= 0 && o != nil; i-- {
		f, is := o.fields[names[i]]
		if !is {
			r.unknown = true
			return
		}
		path += "." + names[i]
		o = objects[f.conv.cel.TypeName()]
	}
	r.facts[path] = true
}

// ValueOf appends the value of a fact of a flavor and its cluster: equal bytes are equal
// values for any expression. ok is false for what cannot be written.
func ValueOf(b []byte, fact string, flavor *v1alpha1.Flavor, cluster *v1alpha1.Cluster) (out []byte, ok bool) {
	if fact == "flavor.price" || strings.HasPrefix(fact, "flavor.price.") {
		// What it costs an hour depends on the intent, by the price and on what of.
		if b, ok = appendValue(b, reflect.ValueOf(flavor.Spec.Price)); ok {
			b = binary.AppendVarint(b, flavor.Spec.Capacity[v1alpha1.GPU].Int64())
			b = binary.AppendVarint(b, flavor.Spec.Capacity[v1alpha1.CPU].Int64())
		}
		return b, ok
	}
	o, v := clusterType, viewCluster(cluster)
	root, path, _ := strings.Cut(fact, ".")
	if root == "flavor" {
		o, v = flavorType, (&view{facts: Facts{Flavor: flavor, Cluster: cluster}}).viewFlavor()
	}
	for name := range strings.SplitSeq(path, ".") {
		f := o.fields[name]
		for _, i := range f.index {
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			v = v.Field(i)
		}
		if o = objects[f.conv.cel.TypeName()]; v.Kind() == reflect.Pointer && o != nil {
			if v.IsNil() {
				return append(b, "absent"...), true
			}
			v = v.Elem()
		}
	}
	if o != nil {
		return o.append(b, v)
	}
	return appendValue(b, v)
}

// append appends all fields of an object.
func (o *object) append(b []byte, v reflect.Value) (out []byte, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		f := o.fields[name]
		if b, ok = appendValue(append(b, name...), v.FieldByIndex(f.index)); !ok {
			return b, false
		}
	}
	return b, true
}

// appendValue appends what is no object: instants to the nanosecond, the rest as files
// have it, with its length.
func appendValue(b []byte, v reflect.Value) (out []byte, ok bool) {
	switch x := v.Interface().(type) {
	case v1alpha1.Time:
		return binary.AppendVarint(append(b, 't'), x.UnixNano()), true
	case v1alpha1.Duration:
		return binary.AppendVarint(append(b, 'd'), int64(x.Duration)), true
	case v1alpha1.Amount:
		return binary.AppendVarint(append(b, 'a'), x.Int64()), true
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return b, false
	}
	return append(binary.AppendUvarint(b, uint64(len(text))), text...), true
}
