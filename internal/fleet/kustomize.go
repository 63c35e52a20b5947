package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Bounds on what one kustomization sees and makes.
const (
	maxBuildFiles = 5_000
	maxBuildBytes = 16 << 20
	maxBuildMade  = 5_000
	maxBuildRoots = 200 // kustomizations that one refers to, directly or not
)

// build is the result of one kustomization, good while the hashes of all
// directories that it reads are what they were.
type build struct {
	key    string
	result *file
}

// kustomize builds the kustomizations of a tenant's directory. One that
// another refers to is a base and makes nothing by itself.
func (r *Reader) kustomize(t tree.Tree, root *dir, dirs []*dir, old map[string]*build) (map[string]*build, error) {
	k := &kustomizer{tree: t, allowed: []string{root.path, basesDir}, known: map[string]*kustomizationFile{}}
	referred := map[string]bool{}
	for _, d := range dirs {
		kf, err := k.open(d.path)
		if err != nil {
			return nil, err
		}
		for _, ref := range kf.dirs {
			referred[ref] = true
		}
	}
	out := map[string]*build{}
	reached := map[string]bool{}
	for _, d := range dirs {
		kf := k.known[d.path]
		if referred[d.path] || kf.kind == "Component" {
			continue
		}
		roots, err := k.closure(d.path)
		if err != nil {
			return nil, err
		}
		for _, p := range roots {
			reached[p] = true
		}
		key, err := k.key(roots)
		if err != nil {
			return nil, err
		}
		if b := old[d.path]; b != nil && b.key == key {
			out[d.path] = b
			continue
		}
		f := &file{path: path.Join(d.path, d.kust), sec: secIntents, made: d.path}
		if err := k.build(f, d.path, roots, r.programs); err != nil {
			return nil, err
		}
		out[d.path] = &build{key, f}
	}
	for _, d := range dirs { // bases of nothing that is built: a circle, which must not look like an empty directory
		if kf := k.known[d.path]; !reached[d.path] && kf.kind != "Component" {
			f := &file{path: kf.path, sec: secIntents, made: d.path}
			f.fails("Kustomize", "the kustomization leads back to itself (over %s); remove one of the references", strings.Join(kf.dirs, ", "))
			out[d.path] = &build{"", f}
		}
	}
	return out, nil
}

// kustomizer builds from one tree.
type kustomizer struct {
	tree    tree.Tree
	allowed []string // directories that kustomizations may read
	known   map[string]*kustomizationFile
}

// closure is every directory with a kustomization that one leads to, itself
// included, in order.
func (k *kustomizer) closure(root string) ([]string, error) {
	seen := map[string]bool{root: true}
	queue := []string{root}
	for i := 0; i < len(queue) && len(queue) <= maxBuildRoots; i++ {
		kf, err := k.open(queue[i])
		if err != nil {
			return nil, err
		}
		for _, d := range kf.dirs {
			if !seen[d] {
				seen[d] = true
				queue = append(queue, d)
			}
		}
	}
	slices.Sort(queue)
	return queue, nil
}

// key names the content of all directories that a build reads.
func (k *kustomizer) key(roots []string) (string, error) {
	var b strings.Builder
	for _, p := range roots {
		e, err := k.tree.Find(p)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", p, err)
		}
		b.WriteString(p + " " + e.Hash.String() + "\n")
	}
	return b.String(), nil
}

// build runs kustomize and reads what it makes into the file.
func (k *kustomizer) build(f *file, root string, roots []string, programs *programs) error {
	if len(roots) > maxBuildRoots {
		f.fails("Kustomize", "the kustomization leads to more than %d others", maxBuildRoots)
		return nil
	}
	for _, p := range roots {
		if kf := k.known[p]; len(kf.diags) > 0 {
			f.broken = true
			f.diags = append(f.diags, kf.diags...)
		}
	}
	if f.broken {
		return nil
	}
	files, err := k.lay(f, roots)
	if err != nil || f.broken {
		return err
	}
	stream, err := kustomize.Build(files, root)
	if err != nil {
		f.fails("Kustomize", "the kustomization cannot be built: %s", firstLine(strings.TrimPrefix(err.Error(), "build "+root+": ")))
		return nil
	}
	sources := objects(stream)
	if len(sources) > maxBuildMade {
		f.fails("Kustomize", "the kustomization makes more than %d objects", maxBuildMade)
		return nil
	}
	f.made = root
	f.decodeAll(sources, programs)
	for i := range f.diags {
		d := &f.diags[i]
		d.Line, d.Column, d.Message = 1, 1, "in what the kustomization makes: "+d.Message
	}
	return nil
}

// fails breaks a file as a whole.
func (f *file) fails(code, format string, args ...any) {
	f.broken = true
	f.diags = append(f.diags, Diagnostic{File: f.path, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...), Severity: Error, Code: code})
}

// lay gathers the files of the directories.
func (k *kustomizer) lay(f *file, roots []string) (map[string][]byte, error) {
	files, size := map[string][]byte{}, 0
	var others []string // directories with kustomizations of their own that this one does not refer to
	for _, root := range roots {
		sub, err := k.tree.Sub(root)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", root, err)
		}
		err = sub.Walk(func(name string, e tree.Entry) error {
			p := path.Join(root, name)
			if kustomizations[path.Base(p)] && !slices.Contains(roots, path.Dir(p)) {
				others = append(others, path.Dir(p)+"/")
			}
			if _, known := files[p]; known || f.broken || e.Kind != tree.File && e.Kind != tree.Executable {
				return nil
			}
			content, err := k.tree.Store.File(e.Hash, strictyaml.MaxSize)
			if errors.Is(err, tree.ErrTooLarge) {
				f.fails("Kustomize", "%s is too large for a kustomization", p)
				return nil
			}
			if err != nil {
				return err
			}
			files[p] = content
			if size += len(content); len(files) > maxBuildFiles || size > maxBuildBytes {
				f.fails("Kustomize", "the kustomization reads more than %d files or %d MiB", maxBuildFiles, maxBuildBytes>>20)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", root, err)
		}
	}
	maps.DeleteFunc(files, func(p string, _ []byte) bool {
		return slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(p, o) })
	})
	return files, nil
}

// objects cuts what kustomize made into documents. (What people write is cut
// by strictyaml.Split, with its bounds.)
func objects(stream []byte) []strictyaml.Source {
	var out []strictyaml.Source
	for _, text := range bytes.Split(stream, []byte("\n---\n")) {
		if len(bytes.TrimSpace(text)) > 0 {
			out = append(out, strictyaml.Source{Text: text})
		}
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
