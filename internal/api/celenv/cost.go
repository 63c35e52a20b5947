package celenv

import (
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/library"
)

// Costs are in CEL's units; one is about a field access, some 0.2 µs. A
// condition is asked of every flavor of the market, so both bounds are far below
// what Kubernetes allows an admission rule (10,000,000).
const (
	// MaxCost bounds an evaluation of placement.where, which anybody who has a
	// directory writes.
	MaxCost = 2_000
	// MaxPolicyCost bounds one of a policy of the fleet, which the platform's
	// people write.
	MaxPolicyCost = 20_000
)

// What the worst case supposes of values, in characters and entries. Where what
// is read has a maximum it is that one (package fleet: names.go, labels and lists
// of check_intent.go); where it has none, more than anybody writes. A value that
// is larger still meets the limit while it is evaluated.
const (
	sizeName  = 63  // names, and values of labels
	sizeKey   = 317 // a key of a label: a domain of 253, a slash and a name
	sizeLong  = 4096
	sizeText  = 253
	sizeList  = 64 // schedule.windows has this maximum; maps have none
	sizeNames = 256
	sizeShort = 8
)

// sizes are those of fields that differ from what their type supposes.
var sizes = map[string]uint64{
	"name": sizeName, "tenant": sizeName, "provider": sizeName, "where": MaxSource,
	"alternatives": 32, "spread": sizeShort, "purchase": sizeShort, "roles": sizeShort,
	"together": sizeNames, "apart": sizeNames,
}

// bounds tells CEL's estimate of costs how large what we show may be.
type bounds struct{}

// EstimateSize implements checker.CostEstimator.
func (bounds) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return nil
	}
	if root := path[0]; root != "intent" && root != "flavor" && root != "cluster" {
		return nil
	}
	last := path[len(path)-1]
	most, known := sizes[last]
	switch n.Type().Kind() {
	case types.StringKind:
		switch {
		case known:
		case last == "@keys":
			most = sizeKey
		case len(path) > 1 && path[1] == "annotations":
			most = sizeLong
		case len(path) > 1 && path[len(path)-2] == "labels":
			most = sizeName
		default:
			most = sizeText
		}
	case types.ListKind, types.MapKind:
		if !known {
			most = sizeList
		}
	default:
		return nil
	}
	return &checker.SizeEstimate{Max: most}
}

// EstimateCallCost implements checker.CostEstimator.
func (bounds) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// costOf is the worst case of one evaluation; over the bound it is an *Error.
func costOf(env *cel.Env, ast *cel.Ast, most uint64) (uint64, error) {
	cost, err := env.EstimateCost(ast, &costs{library.CostEstimator{SizeEstimator: bounds{}}})
	if err != nil {
		return 0, &Error{1, 1, err.Error()}
	}
	if cost.Max <= most {
		return cost.Max, nil
	}
	text := fmt.Sprintf("costs up to %d units", cost.Max)
	if cost.Max >= math.MaxInt64/16 {
		text = "costs without a bound"
	}
	return 0, &Error{1, 1, fmt.Sprintf("an evaluation %s, and at most %d are allowed, because it is asked of every flavor: do not put exists(), all(), filter() and map() into each other, go through shorter lists, and compare with == or in where a text is searched", text, most)}
}
