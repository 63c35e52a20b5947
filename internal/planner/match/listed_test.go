package match

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Requirements lists every requirement that has a name here.
func TestRequirementsAreAllOfThem(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "requirements.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, d := range file.Decls {
		g, is := d.(*ast.GenDecl)
		if !is || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Req") {
					named++
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range Requirements() {
		if r == "" || seen[r] {
			t.Errorf("%q is listed twice, or empty", r)
		}
		seen[r] = true
	}
	if len(seen) != named || named < 40 {
		t.Errorf("%d of %d requirements are listed", len(seen), named)
	}
}
