package celenv

import (
	"fmt"
	"math"
	"regexp/syntax"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/library"
)

// What a pattern of matches(), find() or findAll() may stand for once its repetitions are
// written out: a program is kept for as long as its intent is, and CEL counts the length of a
// pattern, in which (a{100}){10} has twelve characters. `\pL` alone is 650 ranges of
// characters.
const (
	maxStates = 1_000
	maxRanges = 10_000
)

// patternOf is the pattern of a call, and what it is looked for in; nil of any other call.
func patternOf(function string, target ast.Expr, args []ast.Expr) (pattern, in ast.Expr) {
	switch function {
	case "matches", "find", "findAll":
	default:
		return nil, nil
	}
	if target == nil && len(args) > 0 {
		target, args = args[0], args[1:]
	}
	if target == nil || len(args) == 0 {
		return nil, nil
	}
	return args[0], target
}

// checkPatterns refuses patterns that are not written out, whose size nobody knows before
// they are used, and those that stand for too much.
func checkPatterns(a *cel.Ast) error {
	var found *Error
	native := a.NativeRep()
	ast.PostOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != nil || e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		var target ast.Expr
		if call.IsMemberFunction() {
			target = call.Target()
		}
		pattern, _ := patternOf(call.FunctionName(), target, call.Args())
		if pattern == nil {
			return
		}
		at := native.SourceInfo().GetStartLocation(pattern.ID())
		text, written := written(pattern)
		if !written {
			found = &Error{at.Line(), at.Column() + 1, fmt.Sprintf("the pattern of %s() is computed, and must be a text in quotes; compare with == or in, or use startsWith() or contains(), where it is not known before", call.FunctionName())}
			return
		}
		re, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			found = &Error{at.Line(), at.Column() + 1, err.Error()}
			return
		}
		if states, ranges := weigh(re); states > maxStates || ranges > maxRanges {
			found = &Error{at.Line(), at.Column() + 1, fmt.Sprintf("the pattern stands for %d states and %d ranges of characters, and at most %d and %d are allowed: repeat less", states, ranges, maxStates, maxRanges)}
		}
	}))
	if found != nil {
		return found
	}
	return nil
}

// written is the text of a literal.
func written(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// weigh is how many states a pattern has, and how many ranges of characters, with its
// repetitions written out.
func weigh(re *syntax.Regexp) (states, ranges int64) {
	const most = math.MaxInt32
	switch re.Op {
	case syntax.OpLiteral:
		states = int64(len(re.Rune))
	case syntax.OpCharClass:
		states, ranges = 1, int64(len(re.Rune)/2)
	default:
		for _, sub := range re.Sub {
			s, r := weigh(sub)
			states, ranges = states+s, ranges+r
		}
		if re.Op == syntax.OpRepeat {
			times := int64(max(re.Max, re.Min, 1))
			states, ranges = states*times, ranges*times
		}
		states++
	}
	return min(states, most), min(ranges, most)
}

// costs are CEL's, in which a pattern counts for what it stands for where that is more than
// its length.
type costs struct{ library.CostEstimator }

// EstimateCallCost implements checker.CostEstimator.
func (c *costs) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	usual := c.CostEstimator.EstimateCallCost(function, overload, target, args)
	var of ast.Expr
	nodes := args
	if target != nil {
		of, nodes = (*target).Expr(), append([]checker.AstNode{*target}, args...)
	}
	exprs := make([]ast.Expr, len(args))
	for i, a := range args {
		exprs[i] = a.Expr()
	}
	pattern, _ := patternOf(function, of, exprs)
	if pattern == nil {
		return usual
	}
	text, _ := written(pattern)
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return usual // checkPatterns tells
	}
	states, _ := weigh(re)
	if states <= int64(len(text)) {
		return usual
	}
	size := checker.SizeEstimate{Max: sizeLong}
	if known := nodes[0].ComputedSize(); known != nil {
		size = *known
	} else if known := (bounds{}).EstimateSize(nodes[0]); known != nil {
		size = *known
	}
	each := size.Add(checker.SizeEstimate{Min: 1, Max: 1}).MultiplyByCostFactor(common.StringTraversalCostFactor)
	all := checker.SizeEstimate{Min: uint64(states), Max: uint64(states)}.MultiplyByCostFactor(common.RegexStringLengthCostFactor) //nolint:gosec // weigh bounds it
	out := &checker.CallEstimate{CostEstimate: each.Multiply(all)}
	if usual != nil {
		out.ResultSize = usual.ResultSize
	}
	return out
}
