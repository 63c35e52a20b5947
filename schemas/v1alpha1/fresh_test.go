package v1alpha1_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/ui/apigen/gen"
)

var update = flag.Bool("update", false, "add what is new to api.txt")

// What is checked in is what `make generate` writes.
func TestFresh(t *testing.T) {
	files, err := gen.Files("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(name)))
		if err != nil {
			t.Errorf("%v: run make generate", err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make generate", name)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d files are generated", len(files))
	}
}

// TestCompatible: programs of others go on being compiled. Whoever takes something away
// deletes its line of api.txt by hand and writes it into the change log.
func TestCompatible(t *testing.T) {
	const name = "api.txt"
	got := append(declared(t, "../v1alpha1"), declared(t, "../client")...)
	for _, aliased := range []string{"v1alpha1", "wire"} {
		got = append(got, declared(t, "../../internal/api/"+aliased)...)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	recorded := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range recorded {
		if _, found := slices.BinarySearch(got, line); !found {
			t.Errorf("%q is gone or is another: programs of others use it. If it has to be so, delete its line of %s and say so in the change log", line, name)
		}
	}
	for _, line := range got {
		if !slices.Contains(recorded, line) {
			t.Errorf("%q is not in %s: go test ./schemas/v1alpha1 -run TestCompatible -update", line, name)
		}
	}
	if len(got) < 500 {
		t.Errorf("only %d declarations", len(got))
	}
}

// declared are the exported declarations of a package, one a line: types, their fields with
// types and names in JSON, constants, functions and methods.
func declared(t *testing.T, dir string) (out []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, err)
	}
	pkg := filepath.Base(dir)
	if strings.Contains(dir, "internal") {
		pkg = "aliased " + pkg
	}
	add := func(words ...string) {
		if strings.HasPrefix(pkg, "aliased ") && !slices.Contains([]string{"type", "field"}, words[0]) {
			return // constants are aliased by name, and functions are not
		}
		out = append(out, pkg+": "+strings.Join(words, " "))
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if !d.Name.IsExported() {
					continue
				}
				of := ""
				if d.Recv != nil {
					of = types.ExprString(d.Recv.List[0].Type) + " "
					if !ast.IsExported(strings.TrimLeft(of, "*")) {
						continue
					}
				}
				add("func", of+d.Name.Name+strings.TrimPrefix(types.ExprString(d.Type), "func"))
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(d.Tok, spec, add)
				}
			}
		}
	}
	return out
}

func addSpec(tok token.Token, spec ast.Spec, add func(...string)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if tok == token.CONST && name.IsExported() {
				add("const", name.Name)
			}
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			add("type", spec.Name.Name, types.ExprString(spec.Type))
			return
		}
		add("type", spec.Name.Name, "struct")
		for _, f := range of.Fields.List {
			tag := ""
			if f.Tag != nil {
				tag = f.Tag.Value
			}
			if len(f.Names) == 0 {
				add("field", spec.Name.Name, types.ExprString(f.Type), tag)
			}
			for _, n := range f.Names {
				if n.IsExported() {
					add("field", spec.Name.Name+"."+n.Name, types.ExprString(f.Type), tag)
				}
			}
		}
	}
}
