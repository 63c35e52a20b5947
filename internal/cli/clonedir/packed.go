package clonedir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// packed is a repository whose packs are read here, and all else by go-git: that holds all
// deltas of a chain in memory, however many they are and whatever they make.
type packed struct {
	*filesystem.Storage
	packs *packs.Dir
}

// packDir is where packs lie, maxPacks how many are opened: git packs them together at 50.
const (
	packDir  = "objects/pack"
	maxPacks = 500
)

// openPacks opens the packs of a repository.
func openPacks(files billy.Filesystem) (*packs.Dir, error) {
	list, err := files.ReadDir(packDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	there := map[string]bool{}
	for _, e := range list {
		there[e.Name()] = true
	}
	var names []string
	for _, e := range list {
		name, is := strings.CutSuffix(e.Name(), ".idx")
		if is && strings.HasPrefix(name, "pack-") && there[name+".pack"] {
			names = append(names, name)
		}
	}
	if len(names) > maxPacks {
		return nil, fmt.Errorf("this clone has %d packs, and at most %d are opened: pack them together (git gc), or clone again", len(names), maxPacks)
	}
	dir, err := packs.Local(names, func(name string) (packs.File, error) { return files.Open(packDir + "/" + name) })
	if err != nil {
		return nil, fmt.Errorf("%w: this clone is damaged, or was changed by hand; clone again", err)
	}
	return dir, nil
}

// EncodedObject implements storer.EncodedObjectStorer.
func (s *packed) EncodedObject(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	kind, size, err := s.packs.Stat(tree.Hash(h))
	switch {
	case errors.Is(err, packs.ErrNotFound):
		return s.Storage.EncodedObject(t, h) //nolint:wrapcheck // go-git compares it
	case err != nil:
		return nil, fmt.Errorf("read a pack: %w: this clone is damaged, or was changed by hand; clone again", err)
	case t != plumbing.AnyObject && t != kind:
		return nil, plumbing.ErrObjectNotFound
	}
	o := &object{of: s.packs, name: h}
	o.SetType(kind)
	o.SetSize(size)
	return o, nil
}

// HasEncodedObject implements storer.EncodedObjectStorer.
func (s *packed) HasEncodedObject(h plumbing.Hash) error {
	if s.packs.Has(tree.Hash(h)) {
		return nil
	}
	return s.Storage.HasEncodedObject(h) //nolint:wrapcheck // go-git compares it
}

// EncodedObjectSize implements storer.EncodedObjectStorer.
func (s *packed) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	if _, size, err := s.packs.Stat(tree.Hash(h)); !errors.Is(err, packs.ErrNotFound) {
		return size, err //nolint:wrapcheck // go-git compares it
	}
	return s.Storage.EncodedObjectSize(h) //nolint:wrapcheck // go-git compares it
}

// object is one that is read when it is asked for.
type object struct {
	plumbing.MemoryObject
	of   *packs.Dir
	name plumbing.Hash
}

// Hash implements plumbing.EncodedObject.
func (o *object) Hash() plumbing.Hash { return o.name }

// Reader implements plumbing.EncodedObject.
func (o *object) Reader() (io.ReadCloser, error) {
	is, err := o.of.Read(tree.Hash(o.name), 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: this clone is damaged, or was changed by hand; clone again", o.name, err)
	}
	return io.NopCloser(bytes.NewReader(is.Data)), nil
}
