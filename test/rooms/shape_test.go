package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Bounds on the planner's types: what has more does more than one thing.
const (
	maxFields  = 25
	maxMethods = 60
)

// TestPlannerTypes: no struct of the planner has more than 25 fields, and no type more
// than 60 methods of its own. (What people write, api/v1alpha1, is not counted.)
func TestPlannerTypes(t *testing.T) {
	methods := map[string]int{}
	err := filepath.WalkDir("../../internal/planner", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[filepath.Dir(path)+" "+receiver(n.Recv.List[0].Type)]++
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && fields(s) > maxFields {
					t.Errorf("%s: %s has %d fields, at most %d are allowed: split it by subject", path, n.Name.Name, fields(s), maxFields)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
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

// fields of a struct; what is embedded is one.
func fields(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
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
