package planner_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

func TestNothingFits(t *testing.T) {
	for want, c := range map[string]struct {
		considered int
		rejected   map[string]int
	}{
		"nothing is offered": {0, nil},
		"the only offer does not fit: it has another GPU model":                                                   {1, map[string]int{match.ReqGPUModel: 1}},
		"none of 2 offers fits: 2 cost more than budget.maxHourly":                                                {2, map[string]int{match.ReqMaxHourly: 2}},
		"none of 3 offers fits: 2 have too little memory free, 1 is forbidden by the fleet's policy eu-only":      {3, map[string]int{match.ReqPolicy + "eu-only": 1, match.ReqCapacity + "memory": 2}},
		"none of 4 offers fits: 2 have no rdma/hca, 1 has room for too few pods, 1 would break placement.spread":  {4, map[string]int{match.ReqResource + "rdma/hca": 2, match.ReqCapacity + "pods": 1, match.ReqSpread: 1}},
		"none of 5 offers fits: 4 are on a provider that is not heard, 1 is on a provider that is lost":           {5, map[string]int{match.ReqSilent: 4, match.ReqLost: 1}},
		"none of 6 offers fits: 5 would exceed its tenant's quota of GPUs, 1 promises less than sla.availability": {6, map[string]int{account.QuotaGPU: 5, match.ReqAvailability: 1}},
		"none of 9 offers fits: 3 have no card with enough left, 3 have too few GPUs free, 3 lack a label of placement.labels": {9, map[string]int{
			match.ReqCard: 3, match.ReqCapacity + "gpu": 3, match.ReqLabels: 3}},
	} {
		if got := planner.NothingFits(c.considered, c.rejected); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// Every requirement there is has words of its own, and the verb of each is
// known for one and for several.
func TestEveryRequirementHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "match/requirements.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Req") {
			return true
		}
		lit, is := spec.Values[0].(*ast.BasicLit)
		if !is {
			return true // made of another one
		}
		req, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if strings.HasSuffix(req, ".") {
			req += "x"
		}
		one, many := planner.NothingFits(2, map[string]int{req: 1}), planner.NothingFits(2, map[string]int{req: 2})
		if strings.Contains(one, "1 fails ") || strings.TrimPrefix(one, "none of 2 offers fits: 1 ") == strings.TrimPrefix(many, "none of 2 offers fits: 2 ") && !strings.Contains(one, " would ") {
			t.Errorf("%s: %q, of several %q", spec.Names[0].Name, one, many)
		}
		return true
	})
	if seen < 40 {
		t.Fatalf("only %d requirements found", seen)
	}
}
