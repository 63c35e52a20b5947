package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/bytesize"
	"github.com/fleetbroker/fleetbroker/internal/api/child"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/references"
)

// maxBuildRoots bounds the kustomizations that one refers to, directly or not;
// the other bounds are those of a build.
const maxBuildRoots = 200

// maxDeaths is how often the process that builds a kustomization may end before
// it is not tried again.
const maxDeaths = 2

// What a build takes of its tenant's ration of a read, measured as files are
// (limits.go): so much for itself, for each file and byte that it reads, and for
// each object and byte that it makes. One that ended its process takes all.
const (
	perBuild  = 30_000
	perObject = 4_000
)

// build is the result of one kustomization, good while the hashes of all
// directories that it reads are what they were.
type build struct {
	key    string
	result *file
}

// again: it was not built the last time, and is tried again.
func (b *build) again() bool { return b.result.aside != nil && b.result.aside.Again }

// kustomize builds the kustomizations of a tenant's directory. One that
// another refers to is a base and makes nothing by itself. Together they make at
// most so many bytes: past them nothing more is built. Where the ration does not do
// for all, the rest is left to the next read, which finds what was read and built.
func (r *Reader) kustomize(k *kustomizer, root *dir, dirs []*dir, old map[string]*build, most int64) (map[string]*build, exceeded, error) {
	out := map[string]*build{}
	over, err := r.kustomizeAll(k, dirs, old, out, most)
	if errors.Is(err, errRation) {
		k.known = withOthers(k.known, k.kept)
		return withOthers(out, old), rationed(root), nil
	}
	return out, over, err
}

func (r *Reader) kustomizeAll(k *kustomizer, dirs []*dir, old, out map[string]*build, most int64) (exceeded, error) {
	referred := map[string]bool{}
	for _, d := range dirs {
		kf, err := k.open(d.path)
		if err != nil {
			return exceeded{}, err
		}
		for _, ref := range kf.dirs {
			referred[ref] = true
		}
	}
	reached, made := map[string]bool{}, int64(0)
	var again []buildable
	for _, d := range dirs {
		if made > most {
			break
		}
		kf := k.known[d.path]
		if referred[d.path] || kf.kind == "Component" {
			continue
		}
		roots, err := k.closure(d.path)
		if err != nil {
			return exceeded{}, err
		}
		for _, p := range roots {
			reached[p] = true
		}
		key, err := k.key(roots)
		if err != nil {
			return exceeded{}, err
		}
		piece := r.aside.of(d.path+"/", asideHash(key))
		was := old[d.path]
		switch {
		case was == nil || was.key != key || piece != nil:
		case was.again():
			out[d.path] = was
			again = append(again, buildable{d, roots, key})
			continue
		case was.result.aside == nil:
			out[d.path] = was
			made += was.result.size
			continue
		}
		if piece == nil && k.left <= 0 {
			return exceeded{}, errRation
		}
		b, err := r.fresh(k, buildable{d, roots, key}, piece)
		if err != nil {
			return exceeded{}, err
		}
		out[d.path] = b
		made += b.result.size
	}
	for _, a := range again { // last: they may never be built
		if k.left <= 0 || made > most {
			break
		}
		b, err := r.fresh(k, a, nil)
		if err != nil {
			return exceeded{}, err
		}
		out[a.dir.path] = b
		made += b.result.size
	}
	if made > most {
		return overLimit("the tenant's kustomizations make more than %s together, and no more is read (limits.bytes of the fleet)", bytesize.Text(most)), nil
	}
	k.hold(dirs, out)
	for _, d := range dirs { // bases of nothing that is built: a circle, which must not look like an empty directory
		if kf := k.known[d.path]; !reached[d.path] && kf.kind != "Component" {
			f := &file{path: kf.path, sec: secIntents, made: d.path}
			f.fails("Kustomize", "the kustomization leads back to itself (over %s); remove one of the references", strings.Join(kf.dirs, ", "))
			out[d.path] = &build{result: f}
		}
	}
	return exceeded{}, nil
}

// hold keeps what bases had made by themselves where all that names them cannot be built:
// nobody has asked that it ends, or that it begins.
func (k *kustomizer) hold(dirs []*dir, out map[string]*build) {
	by := map[string]string{} // "": something that is built
	if !slices.ContainsFunc(dirs, func(d *dir) bool { return out[d.path] != nil && out[d.path].result.broken }) {
		return // nearly always
	}
	for _, d := range dirs {
		if b := out[d.path]; b != nil {
			roots, _ := k.closure(d.path) // all are open
			for _, p := range roots {
				if _, said := by[p]; !b.result.broken {
					by[p] = ""
				} else if !said {
					by[p] = b.result.path
				}
			}
		}
	}
	for _, d := range dirs {
		if kf := k.known[d.path]; by[d.path] != "" && out[d.path] == nil && kf.kind != "Component" {
			f := &file{path: kf.path, sec: secIntents, made: d.path}
			f.fails("Kustomize", "%s names it and cannot be built, so that nothing is made of it; what it had made by itself stays", by[d.path])
			out[d.path] = &build{result: f}
		}
	}
}

// buildable is a kustomization that is to be built.
type buildable struct {
	dir   *dir
	roots []string
	key   string
}

// withOthers are builds or kustomizations with those of an earlier read that were not
// looked at.
func withOthers[T any](out, old map[string]*T) map[string]*T {
	for p, b := range old {
		if out[p] == nil {
			out[p] = b
		}
	}
	return out
}

// rationed says that the next read goes on.
func rationed(root *dir) exceeded {
	code, text := restOf(root).text()
	return exceeded{code: code, why: text, rest: true}
}

// fresh builds a kustomization, or says why its piece is not.
func (r *Reader) fresh(k *kustomizer, a buildable, piece *Unread) (*build, error) {
	f := &file{path: path.Join(a.dir.path, a.dir.kust), sec: secIntents, made: a.dir.path}
	if piece != nil {
		f.isAside(*piece)
		return &build{a.key, f}, nil
	}
	return &build{a.key, f}, r.try(k, f, a.roots, a.key)
}

// try builds a kustomization. When its process ends for a reason that may be its
// own it is tried once more, and set aside after the second time.
func (r *Reader) try(k *kustomizer, f *file, roots []string, key string) error {
	hash := asideHash(key)
	for {
		piece := v1alpha1.SetAsidePiece{Path: f.made + "/", Hash: hash, Why: r.deaths.why[hash]}
		if r.deaths.count[hash] >= maxDeaths {
			f.isAside(Unread{SetAsidePiece: piece})
			return nil
		}
		err := k.build(f, f.made, roots, r.programs)
		var death *child.Death
		if !errors.As(err, &death) {
			return err
		}
		if k.left < math.MaxInt64/2 { // who reads everything goes on to the next
			k.left = 0
		}
		if !death.Convicts { // no verdict: what it last made stays, and it is tried again
			piece.Why = death.Why
			f.isAside(Unread{SetAsidePiece: piece, Again: true})
			return nil
		}
		r.deaths.add(hash, death.Why)
	}
}

// kustomizer builds from one tree.
type kustomizer struct {
	left    int64 // of the ration; near math.MaxInt64 where everything is read
	tree    tree.Tree
	allowed []string // directories that kustomizations may read
	within  places
	known   map[string]*kustomizationFile
	kept    map[string]*kustomizationFile // of the last read
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
		if kf := k.known[p]; len(kf.diags) > 0 && len(f.diags) <= references.MaxProblems { // many may have the same bases
			f.broken = true
			f.diags = append(f.diags, kf.diags...)
		}
	}
	if f.broken {
		return nil
	}
	k.left -= perBuild
	files, err := k.lay(f, roots)
	if err != nil || f.broken {
		return err
	}
	stream, err := kustomize.Build(files, root, kustomize.OfIntents)
	var refused *kustomize.Refusal
	switch {
	case errors.As(err, &refused):
		f.refused(refused)
		return nil
	case err != nil:
		return err
	}
	f.size = int64(len(stream))
	sources := objects(stream)
	k.left -= perObject*int64(len(sources)) + f.size
	for _, source := range sources {
		if len(source.Text) > strictyaml.MaxSize {
			f.fails("Kustomize", "the kustomization makes an object larger than %d KiB", strictyaml.MaxSize>>10)
			return nil
		}
	}
	if len(sources) > kustomize.MaxObjects {
		f.fails("Kustomize", "the kustomization makes more than %d objects; split it", kustomize.MaxObjects)
		return nil
	}
	f.decodeAll(sources, programs)
	for i := range f.diags {
		d := &f.diags[i]
		d.Line, d.Column, d.Message = 1, 1, escape.Reason("in what the kustomization makes: "+d.Message)
	}
	return nil
}

// fails breaks a file as a whole.
func (f *file) fails(code, format string, args ...any) {
	f.broken = true
	f.diags = append(f.diags, Diagnostic{File: f.path, Line: 1, Column: 1, Message: escape.Reason(fmt.Sprintf(format, args...)), Severity: Error, Code: code})
}

// refused breaks a file by what its build was refused for: where that is in one
// of the files it reads, the diagnostic is there.
func (f *file) refused(r *kustomize.Refusal) {
	if r.Line == 0 {
		f.fails("Kustomize", "the kustomization cannot be built: %s", strings.TrimSpace(r.Error()))
		return
	}
	f.broken = true
	f.diags = append(f.diags, Diagnostic{File: r.File, Line: r.Line, Column: r.Column, Message: r.Message, Severity: Error, Code: "Kustomize"})
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
			k.left -= perFile + int64(len(content))
			if size += len(content); len(files) > kustomize.MaxFiles || size > kustomize.MaxBytes {
				f.fails("Kustomize", "the kustomization reads more than %d files or %d MiB; split it", kustomize.MaxFiles, kustomize.MaxBytes>>20)
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

// deaths are the kustomizations whose build ended the process that built them,
// by hash.
type deaths struct {
	count map[string]int
	why   map[string]string
}

// maxRemembered bounds the deaths that are kept: forgetting one costs a build.
const maxRemembered = 1_000

func (d *deaths) add(hash, why string) {
	if d.count == nil || len(d.count) >= maxRemembered {
		d.count, d.why = map[string]int{}, map[string]string{}
	}
	d.count[hash]++
	d.why[hash] = why
}
