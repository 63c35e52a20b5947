package kustomize

import (
	"cmp"
	"maps"
	"path"
	"slices"

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
	// maxCopies is how many operations of JSON patches may copy, over all that is
	// loaded: each may make an object twice as large.
	maxCopies = 10
	// maxListed is how deep lists of objects may lie in lists.
	maxListed = 4
)

// Work is what a build may cost by its count: about so many microseconds of processor
// time, whatever the machine.
type Work int64

const (
	// OfIntents is for a tenant's directory.
	OfIntents Work = 5_500_000
	// OfOverlay is for all manifests of a consumer.
	OfOverlay Work = 9_000_000
)

// set is the files of a build as they are handed over.
type set struct {
	files  map[string][]byte // as JSON
	dirs   map[string]bool
	unread map[string]*Refusal // files that are no YAML, and not called as such
	loads  map[string]load     // by directory
	counts map[string]objects  // by file
}

// load is a kustomization as far as it is counted.
type load struct {
	refs, components []string
	made             objects // by generators
	instructions     []instruction
	work, copies     int // work of its generators
	long             *Refusal
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// read reads all files strictly.
func read(files map[string][]byte) (*set, error) {
	s := &set{files: map[string][]byte{}, dirs: map[string]bool{}, unread: map[string]*Refusal{}, loads: map[string]load{}, counts: map[string]objects{}}
	size := 0
	for _, name := range sorted(files) {
		for d := path.Dir(name); !s.dirs[d]; d = path.Dir(d) {
			s.dirs[d] = true
		}
		if size += len(files[name]); size > MaxBytes || len(files) > MaxFiles {
			return nil, refusal("", "the kustomization reads more than %d files or %d MiB; split it", MaxFiles, MaxBytes>>20)
		}
		text, made, refused := canonical(name, files[name])
		switch {
		case refused == nil:
			s.files[name], s.counts[name] = text, made
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

// canonical is a file as a stream of JSON documents, and the objects in it.
func canonical(name string, text []byte) (out []byte, made objects, refused *Refusal) {
	fail := func(problems []strictyaml.Problem) *Refusal {
		return &Refusal{File: name, Line: problems[0].Line, Column: problems[0].Column, Message: problems[0].Message}
	}
	sources, problems := strictyaml.Split(text)
	if len(problems) > 0 {
		return nil, objects{}, fail(problems)
	}
	for i, source := range sources {
		doc, problems := strictyaml.Parse(source)
		if len(problems) > 0 {
			return nil, objects{}, fail(problems)
		}
		one, problems := doc.JSON()
		if len(problems) > 0 {
			return nil, objects{}, fail(problems)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(append(out, one...), '\n')
		if made.read(one, 0); made.long != nil && made.long.File == "" {
			made.long.File = name
			made.long.Line, made.long.Column = doc.At("metadata", "name")
		}
	}
	return out, made, nil
}

// total is what a directory's kustomization makes, with all below it.
type total struct {
	loads, work, copies int
	made                objects
	handed              []instruction // its own and its components': who names it as one has them, too
}

// bounded refuses what makes too much, before anything is made.
func (s *set) bounded(dir string, most Work) error {
	known := map[string]*total{}
	_, err := s.count(path.Clean(cmp.Or(dir, ".")), int(most), known)
	return err
}

// count is the total of one directory; known has those that were counted, and nil for
// those that are being.
func (s *set) count(d string, most int, known map[string]*total) (*total, error) {
	if t, ok := known[d]; ok {
		if t == nil {
			return nil, refusal("", "the kustomization leads back to itself (over %s); remove one of the references", d)
		}
		return t, nil
	}
	known[d] = nil
	l := s.loads[d]
	t := &total{loads: 1, work: l.work + l.made.bytes*perByte, copies: l.copies, handed: l.instructions}
	t.made.add(l.made)
	for i, ref := range slices.Concat(l.refs, l.components) {
		target := path.Join(d, ref)
		if _, ok := s.files[target]; ok {
			if long := s.counts[target].long; long != nil {
				return nil, long
			}
			t.made.add(s.counts[target])
			t.work += s.counts[target].bytes * perByte
		} else {
			below, err := s.count(target, most, known)
			if err != nil {
				return nil, err
			}
			t.loads, t.work, t.copies = t.loads+below.loads, t.work+below.work, t.copies+below.copies
			t.made.add(below.made)
			if i >= len(l.refs) {
				t.handed = slices.Concat(t.handed, below.handed)
			}
		}
		if err := t.refused(most); err != nil { // here already: sums must not grow without end
			return nil, err
		}
	}
	t.work += t.made.work(t.handed, most)
	known[d] = t
	return t, t.refused(most)
}

func (t *total) refused(most int) error {
	switch {
	case t.loads > MaxLoads:
		return refusal("", "the kustomization loads more than %d others, those counted twice that two name; name each once", MaxLoads)
	case len(t.handed) > maxInstructions:
		return refusal("", "the kustomization has more than %d patches and other instructions, with those of its components; split it", maxInstructions)
	case t.made.n > MaxObjects:
		return refusal("", "the kustomization makes more than %d objects; split it", MaxObjects)
	case t.copies > maxCopies:
		return refusal("", "the kustomization copies in more than %d operations of its patches, and each may make an object twice as large; write out what they copy", maxCopies)
	case t.work > most:
		return refusal("", "the kustomization passes %d objects through too many layers and patches; split it, or let patches name what they change", t.made.n)
	}
	return nil
}
