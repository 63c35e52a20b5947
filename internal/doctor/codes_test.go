package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// parsed reads Go files.
func parsed(t *testing.T, pattern string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	var out []*ast.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// codes are the constants of codes.go, by their names.
func codes(t *testing.T) map[string]Code {
	t.Helper()
	out := map[string]Code{}
	for _, f := range parsed(t, "codes.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out[v.Names[0].Name] = Code(value)
			}
			return true
		})
	}
	return out
}

// Each diagnosis is made by the suite on real Liqo, which names its code, and has
// a picture in this package's tests.
func TestEachDiagnosisIsMade(t *testing.T) {
	made, pictured, values := map[string]bool{}, map[string]bool{}, map[Code]bool{}
	for _, f := range parsed(t, "../../test/e2e/liqo/*_test.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "doctor" {
					made[s.Sel.Name] = true
				}
			}
			return true
		})
	}
	for _, f := range parsed(t, "doctor_test.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.Ident); ok {
				pictured[x.Name] = true
			}
			return true
		})
	}
	all := codes(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !made[name] {
			t.Errorf("no test of test/e2e/liqo makes %s (%s)", name, all[name])
		}
		if !pictured[name] {
			t.Errorf("no picture of this package's tests shows %s (%s)", name, all[name])
		}
		values[all[name]] = true
	}
	if len(values) != len(all) || len(all) == 0 {
		t.Errorf("%d codes have %d values", len(all), len(values))
	}
	t.Logf("%d diagnoses", len(all))
}
