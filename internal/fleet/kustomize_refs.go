package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/kustomize"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet/references"
)

// kustomizationFile is a kustomization as far as its references go. It is kept from read
// to read: what it names is looked up again when one of the directories changes in which
// that may be, and its text is read again when it changes itself.
type kustomizationFile struct {
	path   string
	within places
	hash   tree.Hash        // of its content
	read   *references.File // nil where it cannot be read
	kind   string
	// dirs are the directories it refers to.
	dirs  []string
	diags []Diagnostic
}

// places are the directories that a tenant's kustomizations may read, by content.
type places struct{ tenant, bases tree.Hash }

// What a kustomization takes of the ration when it is read, for each byte, and for each
// reference that is looked up.
const (
	perKustomized = 2
	perReference  = 20
)

// errRation: the rest is for the next read.
var errRation = errors.New("the ration of this read is used up")

// open reads the kustomization of a directory, or is errRation.
func (k *kustomizer) open(dirPath string) (*kustomizationFile, error) {
	if kf, ok := k.known[dirPath]; ok {
		return kf, nil
	}
	was := k.kept[dirPath]
	if was != nil && was.within == k.within {
		k.known[dirPath] = was
		return was, nil
	}
	if k.left <= 0 {
		return nil, errRation
	}
	k.left -= perFile
	sub, err := k.tree.Sub(dirPath)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dirPath, err)
	}
	entries, err := sub.Entries()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dirPath, err)
	}
	name := kustomization(entries)
	kf := &kustomizationFile{path: path.Join(dirPath, name), within: k.within}
	k.known[dirPath] = kf
	if name == "" {
		kf.fail(1, 1, "the directory has no kustomization.yaml")
		return kf, nil
	}
	e, err := sub.Find(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", kf.path, err)
	}
	if kf.hash = e.Hash; was != nil && was.hash == e.Hash && was.read != nil {
		kf.read = was.read
		return kf, k.resolve(kf, dirPath)
	}
	content, err := sub.ReadFile(name, strictyaml.MaxSize)
	if errors.Is(err, tree.ErrTooLarge) {
		kf.fail(1, 1, "the file is too large")
		return kf, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kf.path, err)
	}
	k.left -= perKustomized * int64(len(content))
	kf.read = references.Read(content)
	return kf, k.resolve(kf, dirPath)
}

func (kf *kustomizationFile) fail(line, column int, text string) {
	kf.diags = append(kf.diags, Diagnostic{File: kf.path, Line: line, Column: column, Message: text, Severity: Error, Code: "Kustomize"})
}

// resolve looks up what a kustomization refers to and refuses what it may not.
func (k *kustomizer) resolve(kf *kustomizationFile, dirPath string) error {
	problems := slices.Clone(kf.read.Problems)
	for _, ref := range kf.read.Refs {
		k.left -= perReference
		if err := k.reference(kf, &problems, dirPath, ref); err != nil {
			return err
		}
	}
	for _, name := range kf.read.Guessed {
		k.left -= perReference
		p := path.Join(dirPath, name)
		if sub, err := k.tree.Sub(p); k.may(p) && p != dirPath && err == nil {
			if entries, err := sub.Entries(); err == nil && kustomization(entries) != "" {
				kf.dirs = append(kf.dirs, p)
			}
		}
	}
	slices.Sort(kf.dirs)
	kf.kind, kf.dirs = kf.read.Kind, slices.Compact(kf.dirs)
	for _, p := range problems {
		kf.fail(p.Line, p.Column, p.Message)
	}
	return nil
}

// reference resolves one entry of a kustomization.
func (k *kustomizer) reference(kf *kustomizationFile, problems *references.Problems, dirPath string, ref references.Ref) error {
	if kustomize.LooksRemote(ref.Name) {
		problems.Add(ref.Line, ref.Column, "%q is not a path within the fleet repo; remote bases are not fetched, copy them under %s/", ref.Name, basesDir)
		return nil
	}
	p := path.Join(dirPath, ref.Name)
	if !k.may(p) {
		problems.Add(ref.Line, ref.Column, "%q leads out of the tenant's directory; only that and %s/ can be read", ref.Name, basesDir)
		return nil
	}
	e, err := k.tree.Find(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		problems.Add(ref.Line, ref.Column, "%q: there is no file or directory %s", ref.Name, p)
	case err != nil:
		return fmt.Errorf("resolve %s: %w", p, err)
	case e.Kind == tree.Dir:
		kf.dirs = append(kf.dirs, p)
	case e.Kind == tree.Symlink || e.Kind == tree.Submodule:
		problems.Add(ref.Line, ref.Column, "%q: symbolic links and submodules are not followed", ref.Name)
	}
	return nil
}

func (k *kustomizer) may(p string) bool {
	for _, a := range k.allowed {
		if p == a || strings.HasPrefix(p, a+"/") {
			return true
		}
	}
	return false
}
