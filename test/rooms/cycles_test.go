package rooms

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tangled is how many files of a package of the planner may need each other in a circle,
// by the functions that they call. These figures may only fall; what is not listed has no
// circle. A circle is one subject that takes several files, or several subjects that
// nobody can read alone.
var tangled = map[string]int{
	"planner/contend": 4, // who gives way, when, and what is kept meanwhile are found by trying each other
	"planner/match":   4, // a class is made, priced and listed lazily
	"planner/place":   3, // a job is filled task by task, in a domain, or with its unit
}

func TestFilesDoNotNeedEachOther(t *testing.T) {
	exports := exported(t)
	looked := 0
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"internal/")
		if room(p.ImportPath) != "planner" || len(p.GoFiles) < 2 {
			continue
		}
		looked++
		circle := largestCircle(calls(t, p, exports))
		switch most := tangled[path]; {
		case len(circle) > most:
			t.Errorf("%s: %d files need each other, at most %d may: %s: move what two of them need into a file below both", path, len(circle), most, strings.Join(circle, ", "))
		case len(circle) < most:
			t.Errorf("%s: %d files need each other: write that into `tangled`, in place of %d", path, len(circle), most)
		}
	}
	if looked < 10 {
		t.Errorf("only %d packages were looked at", looked)
	}
}

func TestLargestCircle(t *testing.T) {
	got := largestCircle(map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"b": true, "d": true}, "d": {"c": true}, "e": {"a": true}})
	if !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("got %v", got)
	}
}

// exported are the files with the export data of every package that the planner knows.
func exported(t *testing.T) map[string]string {
	t.Helper()
	out, err := command(t, "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./internal/planner/...")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
}

// calls are, for each file of a package, the others whose functions and methods its own
// name.
func calls(t *testing.T, p pkg, exports map[string]string) map[string]map[string]bool {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	own, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	of := func(at token.Pos) string { return filepath.Base(fset.Position(at).Filename) }
	out := map[string]map[string]bool{}
	for id, object := range info.Uses {
		f, is := object.(*types.Func)
		if from := of(id.Pos()); is && f.Pkg() == own && of(f.Pos()) != from {
			if out[from] == nil {
				out[from] = map[string]bool{}
			}
			out[from][of(f.Pos())] = true
		}
	}
	return out
}

// largestCircle is the largest set of nodes each of which leads to all others, in order;
// one node alone is none.
func largestCircle(edges map[string]map[string]bool) (largest []string) {
	reach := map[string]map[string]bool{}
	for from := range edges {
		seen := map[string]bool{}
		for queue := slices.Collect(maps.Keys(edges[from])); len(queue) > 0; {
			next := queue[0]
			if queue = queue[1:]; seen[next] {
				continue
			}
			seen[next] = true
			queue = slices.AppendSeq(queue, maps.Keys(edges[next]))
		}
		reach[from] = seen
	}
	for _, from := range slices.Sorted(maps.Keys(reach)) {
		var circle []string
		for to := range reach[from] {
			if reach[to][from] {
				circle = append(circle, to)
			}
		}
		if len(circle) > len(largest) {
			largest = circle
		}
	}
	slices.Sort(largest)
	return largest
}
