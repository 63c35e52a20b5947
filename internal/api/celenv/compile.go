package celenv

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// MaxSource bounds an expression, in bytes.
const MaxSource = 4096

// Error is a mistake in an expression. Line and Column count from 1 within the
// expression; Column counts characters.
type Error struct {
	Line, Column int
	Message      string
}

// Error is the message alone: whoever knows the file adds the place.
func (e *Error) Error() string { return e.Message }

// Program is a compiled expression. What it is evaluated by is kept apart (kept.go), and made
// again where it was let go.
type Program struct {
	source string
	live   atomic.Pointer[evaluator]
	cost   uint64
	most   uint64 // of what an evaluation may cost
	// facts are the facts of offers that it looks at (Facts).
	facts      []string
	factsKnown bool
	// comparisons are all that it is, nil where it is more.
	comparisons []comparison
}

// Source is the expression as written.
func (p *Program) Source() string { return p.source }

// Cost is the worst case of one evaluation, in CEL's units.
func (p *Program) Cost() int64 { return int64(p.cost) }

// perByte is what a byte of an expression costs to compile, some 4 µs, in units of 0.1 µs.
const perByte = 40

// Made is what it takes to make what it is evaluated by, in CEL's units; nothing where it
// is compared without.
func (p *Program) Made() int64 {
	if p.comparisons != nil {
		return 0
	}
	return perByte * int64(len(p.source))
}

// environment is built once: it is the same for every expression.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	reg, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("make CEL type registry: %w", err)
	}
	return cel.NewEnv(
		cel.CustomTypeProvider(provider{reg}),
		cel.CustomTypeAdapter(reg),
		cel.Variable("intent", intentType.cel),
		cel.Variable("flavor", flavorType.cel),
		cel.Variable("cluster", clusterType.cel),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		ext.Strings(ext.StringsVersion(2)),
		library.Quantity(),
		library.Regex(),
		library.Lists(),
	)
})

// Compile parses and type-checks a placement.where. A mistake in it, or a worst
// case over MaxCost, is an *Error.
func Compile(source string) (*Program, error) { return compile(source, MaxCost) }

// CompilePolicy is Compile for what a policy of the fleet requires, bounded by
// MaxPolicyCost.
func CompilePolicy(source string) (*Program, error) { return compile(source, MaxPolicyCost) }

func compile(source string, most uint64) (*Program, error) {
	if len(source) > MaxSource {
		return nil, &Error{1, 1, fmt.Sprintf("the expression is longer than %d bytes", MaxSource)}
	}
	if strings.TrimSpace(source) == "" {
		return nil, &Error{1, 1, "the expression is empty"}
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		line, column := first.Location.Line(), first.Location.Column()
		return nil, &Error{line, column + 1, explain(first.Message, upTo(source, line, column))}
	}
	if ast.OutputType() != cel.BoolType {
		return nil, &Error{1, 1, fmt.Sprintf("the expression is of type %s and must be true or false", ast.OutputType())}
	}
	if err := checkPatterns(ast); err != nil {
		return nil, err
	}
	cost, err := costOf(env, ast, most)
	if err != nil {
		return nil, err
	}
	prog, err := evaluatorOf(env, ast, most)
	if err != nil {
		return nil, &Error{1, 1, err.Error()}
	}
	facts, known := factsOf(ast.NativeRep().Expr())
	out := &Program{source: source, cost: cost, most: most, facts: facts, factsKnown: known, comparisons: comparisonsOf(ast.NativeRep().Expr())}
	keep(out, prog)
	return out, nil
}

// evaluatorOf plans an expression. The same number stands behind the estimate of its cost:
// what that supposed to be smaller fails its flavor, and takes no more than any other.
func evaluatorOf(env *cel.Env, ast *cel.Ast, most uint64) (cel.Program, error) {
	return env.Program(ast, cel.CostLimit(most), cel.CostTracking(&library.CostEstimator{}), cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(inZones))
}

// upTo is a line of a source, from 1, up to a column, from 0 and in characters.
func upTo(source string, line, column int) string {
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text := []rune(lines[line-1])
	return string(text[:max(0, min(column, len(text)))])
}

// explain adds the remedy to CEL's own words where there is an obvious one. before is what
// stands in the line before the place of the mistake.
func explain(message, before string) string {
	const undefined = "undefined field '"
	if name, ok := strings.CutPrefix(message, undefined); ok {
		name = strings.TrimSuffix(name, "'")
		if near := suggestion(before, name); near != "" {
			return fmt.Sprintf("unknown field %q (did you mean %s?)", name, near)
		}
		return fmt.Sprintf("unknown field %q", name)
	}
	if strings.HasPrefix(message, "undeclared reference to '") {
		return strings.TrimSuffix(message, " (in container '')") + "; expressions see intent, flavor and cluster"
	}
	if at, _, ok := strings.Cut(strings.TrimPrefix(message, "Syntax error: "), " expecting "); ok { // the parser's whole alphabet
		if strings.Contains(at, "'<EOF>'") {
			return "syntax error: the expression ends too early"
		}
		return "syntax error: " + strings.TrimPrefix(strings.TrimPrefix(at, "extraneous input "), "mismatched input ") + " is not expected here"
	}
	if i := strings.Index(message, "\n"); i >= 0 {
		message = message[:i]
	}
	if m := overload.FindStringSubmatch(message); m != nil {
		name, kinds := m[1], strings.ReplaceAll(m[2], "kubernetes.Quantity", "quantity")
		if symbol, is := operators.FindReverse(name); is && symbol != "" {
			name = symbol
		}
		message = fmt.Sprintf("%q cannot be used with (%s)", strings.Trim(name, "_"), kinds)
		if strings.Contains(kinds, "quantity") {
			message += "; compare quantities by isGreaterThan, isLessThan or compareTo, such as flavor.gpu.memory.isGreaterThan(quantity(\"40Gi\"))"
		}
	}
	return message
}

// overload is what CEL says of an operator or function that does not exist for
// what it is given.
var overload = regexp.MustCompile(`^found no matching overload for '(.+?)' applied to '(?:.*\.)?\((.*)\)'$`)

// Facts are what one evaluation looks at.
type Facts struct {
	Intent  *v1alpha1.ResourceIntent
	Flavor  *v1alpha1.Flavor
	Cluster *v1alpha1.Cluster
	// Price that holds for the flavor, when it is not the flavor's own.
	Price *v1alpha1.Price
	// Location of the flavor over its cluster's, when it is not the flavor's own.
	Location v1alpha1.Location
}

// Eval answers for an intent on a flavor of a cluster, any of which may be nil; an intent that
// was asked about must not change.
// An error means that the question cannot be answered for this flavor; the
// caller treats the flavor as failing it.
func (p *Program) Eval(intent *v1alpha1.ResourceIntent, flavor *v1alpha1.Flavor, cluster *v1alpha1.Cluster) (bool, error) {
	return p.EvalFacts(Facts{Intent: intent, Flavor: flavor, Cluster: cluster})
}

// EvalFacts is Eval with the price and location that hold for the flavor.
func (p *Program) EvalFacts(f Facts) (bool, error) {
	v := views.Get().(*view)
	defer views.Put(v)
	v.facts = f
	if holds, known := p.compare(v); known {
		return holds, nil
	}
	prog, err := p.evaluator()
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", p.source, err)
	}
	out, _, err := prog.Eval(v)
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", p.source, err)
	}
	b, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("evaluate: the result is neither true nor false")
	}
	return b, nil
}
