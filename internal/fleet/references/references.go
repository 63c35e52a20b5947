// Package references reads which files and directories a kustomization names, and
// refuses what it may not have in a fleet repo.
//
// What one costs is bounded: its bytes are read once, at most MaxRefs names are taken of
// it, and at most MaxProblems mistakes are listed.
//
// Package fleet calls Read and looks the names up. A File is immutable and shared; the
// functions are pure.
package references

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
)

const (
	// MaxRefs is how many files and directories a kustomization may name: no build
	// reads more files.
	MaxRefs = kustomize.MaxFiles
	// MaxProblems is how many mistakes of one kustomization are listed.
	MaxProblems = 50
)

// File is a kustomization as far as its references go.
type File struct {
	Kind     string
	Refs     []Ref
	Problems Problems
	// Guessed are entries of lists in a text that cannot be parsed: it may name them. Some
	// of them are no paths.
	Guessed []string
}

// Ref is an entry of resources, bases or components.
type Ref struct {
	Name         string
	Line, Column int
}

// Problems are the mistakes of one kustomization, and one entry more where there are
// more than MaxProblems.
type Problems []strictyaml.Problem

// Full reports whether there are as many as are listed: what is added then is not.
func (p Problems) Full() bool { return len(p) > MaxProblems }

// Add lists a mistake.
func (p *Problems) Add(line, column int, format string, args ...any) {
	switch text := fmt.Sprintf(format, args...); {
	case len(*p) < MaxProblems:
		*p = append(*p, strictyaml.Problem{Line: line, Column: column, Message: escape.Reason(text)})
	case len(*p) == MaxProblems:
		*p = append(*p, strictyaml.Problem{Line: line, Column: column, Message: fmt.Sprintf("the kustomization has more than %d mistakes, and the others are not listed: correct these first", MaxProblems)})
	}
}

// fields are those that are read. What is missing here runs programs, fetches from the
// network, or makes things that are no intents.
var fields = []string{
	"apiVersion", "kind", "metadata", "resources", "bases", "components", "patches", "patchesStrategicMerge", "patchesJson6902",
	"namePrefix", "nameSuffix", "namespace", "commonLabels", "labels", "commonAnnotations", "replacements", "vars", "configurations", "sortOptions",
}

// Read reads a kustomization. Where it has too many references, none is in the File.
func Read(content []byte) *File {
	f := &File{}
	has := map[string]json.RawMessage{}
	doc, problems := parse(content)
	if len(problems) == 0 {
		problems = doc.Decode(&has)
	}
	for _, p := range problems {
		f.Problems.Add(p.Line, p.Column, "%s", p.Message)
	}
	if len(problems) > 0 {
		f.Guessed = guess(content)
		return f
	}
	f.Kind = doc.Text("kind")
	names := slices.Sorted(maps.Keys(has))
	f.unknown(doc, names)
	for _, name := range names {
		if !f.Problems.Full() && name != "commonAnnotations" && name != "metadata" && kustomize.Fetches(has[name]) {
			line, column := doc.At(name)
			f.Problems.Add(line, column, "%s names an address on the network; nothing is fetched, copy the file into the fleet repo", name)
		}
	}
	f.references(doc, has)
	return f
}

func parse(content []byte) (*strictyaml.Document, []strictyaml.Problem) {
	sources, problems := strictyaml.Split(content)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(sources) != 1 {
		return nil, []strictyaml.Problem{{Line: 1, Column: 1, Message: "one document is due"}}
	}
	return strictyaml.Parse(sources[0])
}

// unknown refuses fields that are not read.
func (f *File) unknown(doc *strictyaml.Document, names []string) {
	for _, name := range names {
		if f.Problems.Full() {
			return
		}
		if slices.Contains(fields, name) {
			continue
		}
		line, column := doc.KeyAt(name)
		if near := nearest.Of(name, fields); near != "" {
			f.Problems.Add(line, column, "the field %s is not supported in a fleet repo (did you mean %q?)", name, near)
			continue
		}
		f.Problems.Add(line, column, "the field %s is not supported in a fleet repo: kustomizations here may not run programs, fetch anything, use charts or change schemas", name)
	}
}

// references takes the entries with their places.
func (f *File) references(doc *strictyaml.Document, has map[string]json.RawMessage) {
	for _, name := range []string{"resources", "bases", "components"} {
		var list []string
		if raw, ok := has[name]; ok && json.Unmarshal(raw, &list) != nil {
			line, column := doc.At(name)
			f.Problems.Add(line, column, "%s is not a list of paths", name)
		}
		if n := len(f.Refs) + len(list); n > MaxRefs {
			f.Refs = nil
			line, column := doc.At(name)
			f.Problems.Add(line, column, "%s: the kustomization names %d files and directories, and at most %d are read: split it", name, n, MaxRefs)
			return
		}
		for i, entry := range list {
			line, column := doc.At(name, i)
			f.Refs = append(f.Refs, Ref{entry, line, column})
		}
	}
}
