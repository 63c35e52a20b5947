package celenv

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Most conditions compare a few numbers of flavors with literals, all of which must hold.
// Such are answered without CEL, which takes a hundred times as long: a round asks thousands
// of conditions about hundreds of prices.

// figures are the numbers that are compared so, by their path; ok is false where CEL must
// be asked, because there is none.
var figures = map[string]func(*view) (n float64, ok bool){
	"flavor.price.hourly": func(v *view) (float64, bool) {
		p := v.priceOf()
		if p == nil {
			return 0, false
		}
		return hourly(p, v.facts.Flavor, v.wanted()), true
	},
	"flavor.gpu.memoryGi": func(v *view) (float64, bool) {
		if v.facts.Flavor == nil || v.facts.Flavor.Spec.GPU == nil {
			return 0, false
		}
		return exact(memoryGi(v.facts.Flavor.Spec.GPU))
	},
	"flavor.gpu.count": func(v *view) (float64, bool) {
		if v.facts.Flavor == nil || v.facts.Flavor.Spec.GPU == nil {
			return 0, false
		}
		return exact(countOf(v.facts.Flavor))
	},
}

// exact is a whole number as one with a point; ok is false where that would round it.
func exact(n int64) (f float64, ok bool) {
	const most = 1 << 53
	return float64(n), -most <= n && n <= most
}

// comparison is of a figure with a literal.
type comparison struct {
	figure func(*view) (float64, bool)
	holds  func(a, b float64) bool
	than   float64
}

// comparators are those of CEL, swapped where the literal comes first.
var (
	comparators = map[string]func(a, b float64) bool{
		operators.Less:          func(a, b float64) bool { return a < b },
		operators.LessEquals:    func(a, b float64) bool { return a <= b },
		operators.Greater:       func(a, b float64) bool { return a > b },
		operators.GreaterEquals: func(a, b float64) bool { return a >= b },
	}
	swapped = map[string]string{
		operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
		operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
	}
)

// comparisonsOf are those that together are an expression; nil where it is anything else.
func comparisonsOf(e ast.Expr) []comparison {
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 || e.AsCall().IsMemberFunction() {
		return nil
	}
	name, args := e.AsCall().FunctionName(), e.AsCall().Args()
	if name == operators.LogicalAnd {
		a, b := comparisonsOf(args[0]), comparisonsOf(args[1])
		if a == nil || b == nil {
			return nil
		}
		return slices.Concat(a, b)
	}
	fact, literal := args[0], args[1]
	if fact.Kind() == ast.LiteralKind {
		fact, literal, name = literal, fact, swapped[name]
	}
	holds, figure := comparators[name], figures[pathOf(fact)]
	if holds == nil || figure == nil || literal.Kind() != ast.LiteralKind {
		return nil
	}
	var than float64
	switch n := literal.AsLiteral().(type) {
	case types.Double:
		than = float64(n)
	case types.Int:
		var ok bool
		if than, ok = exact(int64(n)); !ok {
			return nil
		}
	default:
		return nil
	}
	return []comparison{{figure, holds, than}}
}

// pathOf is the path of a chain of fields, "" of anything else.
func pathOf(e ast.Expr) string {
	switch {
	case e.Kind() == ast.IdentKind:
		return e.AsIdent()
	case e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly():
		return ""
	}
	of := pathOf(e.AsSelect().Operand())
	if of == "" {
		return ""
	}
	return of + "." + e.AsSelect().FieldName()
}

// compare reports whether all comparisons hold; known is false where CEL must be asked.
func (p *Program) compare(v *view) (holds, known bool) {
	if p.comparisons == nil {
		return false, false
	}
	holds = true
	for i := range p.comparisons {
		c := &p.comparisons[i]
		n, ok := c.figure(v)
		if !ok {
			return false, false
		}
		holds = holds && c.holds(n, c.than)
	}
	return holds, true
}
