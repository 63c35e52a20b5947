package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goFile is a file of code as prose names it, with the package it is in or without.
var goFile = regexp.MustCompile(`\b(?:[a-z]+/)*[a-z0-9_]+\.go\b`)

// TestNamedFilesExist: a file that the planner's package comments and README name is
// where they say: in their own package, or below internal/planner where the name has a
// package before it. A comment that lists the files of its package lists all of them.
func TestNamedFilesExist(t *testing.T) {
	read := 0
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"internal/")
		if room(p.ImportPath) != "planner" || len(p.GoFiles) == 0 {
			continue
		}
		text := ""
		for _, name := range []string{"doc.go", "README.md"} {
			if b, err := os.ReadFile(filepath.Join(p.Dir, name)); err == nil {
				text += string(b)
			}
		}
		own := 0
		for _, name := range goFile.FindAllString(text, -1) {
			at := filepath.Join(p.Dir, name)
			if strings.Contains(name, "/") {
				at = filepath.Join("../../internal/planner", strings.TrimPrefix(name, "planner/"))
			} else {
				own++
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s: its comment names %s, which does not exist there", path, name)
			}
			read++
		}
		if own < 2 {
			continue // it does not list its files
		}
		for _, name := range p.GoFiles {
			if name != "doc.go" && !slices.ContainsFunc(goFile.FindAllString(text, -1), func(named string) bool { return named == name }) {
				t.Errorf("%s: its comment lists files, and not %s", path, name)
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d names of files were found", read)
	}
}

// TestReadmesListPackages: each package of internal and of its planner is in the
// contributors' page, each directory of test in that of the tests.
func TestReadmesListPackages(t *testing.T) {
	listed := 0
	for page, dirs := range map[string][]string{"../../internal/README.md": {"../../internal", "../../internal/planner"}, "../README.md": {".."}} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !e.IsDir() || e.Name() == "testdata" {
					continue
				}
				listed++
				if !regexp.MustCompile(`\b` + e.Name() + `\b`).Match(b) {
					t.Errorf("%s does not list %s", page, filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	if listed < 70 {
		t.Errorf("only %d directories were found", listed)
	}
}

// TestPhases: who asks for a contract's phase by its name is listed where it is told how
// a phase is added.
func TestPhases(t *testing.T) {
	doc, err := os.ReadFile("../../internal/planner/lifecycle/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string // those of other packages than lifecycle, whose own are named without it
	for _, name := range goFile.FindAllString(string(doc), -1) {
		if strings.Contains(name, "/") {
			listed = append(listed, strings.TrimPrefix(name, "planner/"))
		}
	}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"internal/planner")
		if room(p.ImportPath) != "planner" || path == "/plantest" {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if asksForPhase(file) {
				seen[strings.TrimPrefix(path+"/"+name, "/")] = true
			}
		}
	}
	for name := range seen {
		if !slices.Contains(listed, name) {
			t.Errorf("%s asks for a phase by its name: list it in internal/planner/lifecycle/doc.go, under Adding a phase", name)
		}
	}
	for _, name := range listed {
		if !seen[name] {
			t.Errorf("internal/planner/lifecycle/doc.go lists %s, which asks for no phase by its name", name)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d files were found", len(seen))
	}
}

// asksForPhase reports whether a file compares anything with a phase.
func asksForPhase(file *ast.File) bool {
	found := false
	isPhase := func(e ast.Expr) bool {
		s, is := e.(*ast.SelectorExpr)
		return is && strings.HasPrefix(s.Sel.Name, "Phase") && len(s.Sel.Name) > len("Phase")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			found = found || (n.Op == token.EQL || n.Op == token.NEQ) && (isPhase(n.X) || isPhase(n.Y))
		case *ast.CaseClause:
			found = found || slices.ContainsFunc(n.List, isPhase)
		}
		return true
	})
	return found
}
