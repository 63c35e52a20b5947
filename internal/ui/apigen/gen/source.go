package gen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// module is the prefix of the project's import paths.
const module = "github.com/fleetbroker/fleetbroker/"

// source is what a package declares.
type source struct {
	types  map[string]typeText
	names  []string // of types that are no generics, in order of the alphabet
	consts []string // exported ones, in order of the files
}

// typeText is a type's comment, and its fields'.
type typeText struct {
	doc    string
	fields map[string]string
}

// sources reads packages below a root, each once.
type sources struct {
	root string
	read map[string]*source
}

func (s *sources) of(pkg string) (*source, error) {
	if out := s.read[pkg]; out != nil {
		return out, nil
	}
	path, ours := strings.CutPrefix(pkg, module)
	if !ours {
		return nil, fmt.Errorf("package %s is not of this module", pkg)
	}
	names, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(path), "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the sources: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("read the sources of %s below %s: %w", pkg, s.root, fs.ErrNotExist)
	}
	out := &source{types: map[string]typeText{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				out.add(d)
			}
		}
	}
	slices.Sort(out.names)
	s.read[pkg] = out
	return out, nil
}

func (s *source) add(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if d.Tok == token.CONST && name.IsExported() {
					s.consts = append(s.consts, name.Name)
				}
			}
		case *ast.TypeSpec:
			text := typeText{doc: spec.Doc.Text(), fields: map[string]string{}}
			if text.doc == "" {
				text.doc = d.Doc.Text()
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					for _, name := range f.Names {
						text.fields[name.Name] = f.Doc.Text() + f.Comment.Text()
					}
				}
			}
			s.types[spec.Name.Name] = text
			if spec.Name.IsExported() && spec.TypeParams == nil {
				s.names = append(s.names, spec.Name.Name)
			}
		}
	}
}

// comment writes a comment before what is indented so far.
func comment(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(indent+"// "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
}
