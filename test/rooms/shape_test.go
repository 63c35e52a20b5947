package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Bounds on the planner's types: what has more does more than one thing.
const (
	maxFields  = 25
	maxMethods = 60
)

// TestPlannerTypes: no struct of the planner declares more than 25 fields, and no type
// more than 60 methods. An embedded struct is one field here, and its methods are
// counted where they are declared, not where they are promoted: this bounds what one
// package adds to a type, not what one can reach from a value of it (package planner,
// The layers). What people write, api/v1alpha1, is not counted.
func TestPlannerTypes(t *testing.T) {
	methods := map[string]int{}
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath+"/", module+"internal/planner/") {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv != nil {
						methods[p.ImportPath+" "+receiver(n.Recv.List[0].Type)]++
					}
				case *ast.TypeSpec:
					if s, ok := n.Type.(*ast.StructType); ok && s.Fields.NumFields() > maxFields {
						t.Errorf("%s: %s has %d fields, at most %d are allowed: split it by subject", p.ImportPath, n.Name.Name, s.Fields.NumFields(), maxFields)
					}
				}
				return true
			})
		}
	}
	if len(methods) < 50 {
		t.Errorf("only %d types have methods", len(methods))
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, at most %d are allowed: split it by subject", name, n, maxMethods)
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
