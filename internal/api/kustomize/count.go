package kustomize

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
)

// Bounds on one build. kustomize compares each object with each other in every
// kustomization that it passes through: 2,000 take two seconds in one.
const (
	// MaxFiles and MaxBytes that a build may read.
	MaxFiles = 5_000
	MaxBytes = 8 << 20
	// MaxObjects that it may make, and MaxMade how many bytes.
	MaxObjects = 2_000
	MaxMade    = 16 << 20
	// MaxLoads is how many times kustomizations may be loaded: one that is named
	// by two others is loaded twice, and so is all below it.
	MaxLoads = 1_000
	// maxWork is the sum, over all that is loaded, of objects times objects and
	// operations.
	maxWork = 6_000_000
	// maxCopies is how many operations of JSON patches may copy, over all that is
	// loaded: each may make an object twice as large.
	maxCopies = 10
	// maxListed is how deep lists of objects may lie in lists.
	maxListed = 4
)

// set is the files of a build as they are handed over.
type set struct {
	files  map[string][]byte // as JSON
	dirs   map[string]bool
	unread map[string]*Refusal // files that are no YAML, and not called as such
	loads  map[string]load     // by directory
	counts map[string]int      // objects by file
}

// load is a kustomization as far as it is counted.
type load struct {
	refs       []string
	made       int
	operations int
	copies     int
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// read reads all files strictly.
func read(files map[string][]byte) (*set, error) {
	s := &set{files: map[string][]byte{}, dirs: map[string]bool{}, unread: map[string]*Refusal{}, loads: map[string]load{}, counts: map[string]int{}}
	size := 0
	for _, name := range sorted(files) {
		for d := path.Dir(name); !s.dirs[d]; d = path.Dir(d) {
			s.dirs[d] = true
		}
		if size += len(files[name]); size > MaxBytes || len(files) > MaxFiles {
			return nil, refusal("", "the kustomization reads more than %d files or %d MiB; split it", MaxFiles, MaxBytes>>20)
		}
		text, objects, refused := canonical(name, files[name])
		switch {
		case refused == nil:
			s.files[name], s.counts[name] = text, objects
		case IsKustomization(name) || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
			return nil, refused
		default:
			s.unread[name] = refused
		}
	}
	return s, nil
}

// Plain is a file as a stream of JSON documents, or a *Refusal of what cannot be
// read strictly.
func Plain(name string, text []byte) ([]byte, error) {
	out, _, refused := canonical(name, text)
	if refused != nil {
		return nil, refused
	}
	return out, nil
}

// canonical is a file as a stream of JSON documents, and how many objects are in
// it.
func canonical(name string, text []byte) (out []byte, objects int, refused *Refusal) {
	fail := func(problems []strictyaml.Problem) *Refusal {
		return &Refusal{File: name, Line: problems[0].Line, Column: problems[0].Column, Message: problems[0].Message}
	}
	sources, problems := strictyaml.Split(text)
	if len(problems) > 0 {
		return nil, 0, fail(problems)
	}
	for i, source := range sources {
		doc, problems := strictyaml.Parse(source)
		if len(problems) > 0 {
			return nil, 0, fail(problems)
		}
		one, problems := doc.JSON()
		if len(problems) > 0 {
			return nil, 0, fail(problems)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(append(out, one...), '\n')
		objects += objectsIn(one, 0)
	}
	return out, objects, nil
}

// objectsIn is how many objects kustomize makes of a document: it takes lists
// apart.
func objectsIn(doc []byte, depth int) int {
	var list struct {
		Kind  any               `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	kind := ""
	if json.Unmarshal(doc, &list) == nil {
		kind, _ = list.Kind.(string)
	}
	if !strings.HasSuffix(kind, "List") || depth == maxListed {
		return 1
	}
	n := 0
	for _, item := range list.Items {
		n += objectsIn(item, depth+1)
	}
	return max(n, 1)
}

// copiesIn is how many operations of a JSON patch copy; none where it is no list
// of operations.
func copiesIn(patch []byte) int {
	var operations []struct {
		Op string `json:"op"`
	}
	if err := yaml.Unmarshal(patch, &operations); err != nil {
		return 0 // a strategic merge, or what kustomize refuses
	}
	n := 0
	for _, o := range operations {
		if o.Op == "copy" {
			n++
		}
	}
	return n
}

// total is what a directory's kustomization makes, with all below it.
type total struct{ loads, objects, work, copies int }

// bounded refuses what makes too much, before anything is made.
func (s *set) bounded(dir string) error {
	const open = -1
	known := map[string]total{}
	var count func(d string) (total, error)
	count = func(d string) (total, error) {
		if t, ok := known[d]; ok {
			if t.loads == open {
				return t, refusal("", "the kustomization leads back to itself (over %s); remove one of the references", d)
			}
			return t, nil
		}
		known[d] = total{loads: open}
		l := s.loads[d]
		t := total{loads: 1, objects: l.made, copies: l.copies}
		for _, ref := range l.refs {
			target := path.Join(d, ref)
			if _, ok := s.files[target]; ok {
				t.objects += s.counts[target]
			} else {
				below, err := count(target)
				if err != nil {
					return t, err
				}
				t.loads, t.objects, t.work, t.copies = t.loads+below.loads, t.objects+below.objects, t.work+below.work, t.copies+below.copies
			}
			if err := t.refused(); err != nil { // here already: sums must not grow without end
				return t, err
			}
		}
		t.work += t.objects * (t.objects + l.operations)
		known[d] = t
		return t, t.refused()
	}
	_, err := count(path.Clean(cmp.Or(dir, ".")))
	return err
}

func (t total) refused() error {
	switch {
	case t.loads > MaxLoads:
		return refusal("", "the kustomization loads more than %d others, those counted twice that two name; name each once", MaxLoads)
	case t.objects > MaxObjects:
		return refusal("", "the kustomization makes more than %d objects; split it", MaxObjects)
	case t.copies > maxCopies:
		return refusal("", "the kustomization copies in more than %d operations of its patches, and each may make an object twice as large; write out what they copy", maxCopies)
	case t.work > maxWork:
		return refusal("", "the kustomization passes %d objects through too many layers and patches; split it", t.objects)
	}
	return nil
}
