package gitobj

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Type is the kind of an object.
type Type = plumbing.ObjectType

// The kinds of object that a repository holds.
const (
	Commit Type = plumbing.CommitObject
	Tree   Type = plumbing.TreeObject
	Blob   Type = plumbing.BlobObject
	Tag    Type = plumbing.TagObject
)

// Object is one object, its body uncompressed and without git's header. Data
// must not be modified.
type Object struct {
	Type Type
	Data []byte
}

// Hash is the object's name.
func (o Object) Hash() tree.Hash { return tree.Hash(plumbing.ComputeHash(o.Type, o.Data)) }

// Set is objects by name.
type Set map[tree.Hash]Object

// Add stores an object and returns its name.
func (s Set) Add(t Type, data []byte) tree.Hash {
	o := Object{t, data}
	h := o.Hash()
	s[h] = o
	return h
}

// Bytes is the uncompressed size of all bodies.
func (s Set) Bytes() int {
	n := 0
	for _, o := range s {
		n += len(o.Data)
	}
	return n
}

// ErrPackTooLarge is returned by ReadPack for a pack whose objects together
// exceed the caller's limit.
var ErrPackTooLarge = errors.New("pack is too large")

// ReadPack decodes a packfile of at most limit uncompressed bytes (0: no
// limit). The sizes are checked as declared, before anything is inflated into
// memory. An empty pack is an empty set.
func ReadPack(r io.Reader, limit int64) (Set, error) {
	mem := memory.NewStorage()
	p, err := packfile.NewParserWithStorage(packfile.NewScanner(r), mem, &sizeGuard{left: limit, on: limit > 0})
	if err != nil {
		return nil, fmt.Errorf("read pack: %w", err)
	}
	if _, err := p.Parse(); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return nil, fmt.Errorf("read pack: %w", err)
	}
	set := make(Set, len(mem.Objects))
	for h, o := range mem.Objects {
		data, err := ReadObject(o)
		if err != nil {
			return nil, fmt.Errorf("read pack: object %s: %w", h, err)
		}
		set[tree.Hash(h)] = Object{o.Type(), data}
	}
	return set, nil
}

// ReadObject reads an encoded object whole.
func ReadObject(o plumbing.EncodedObject) ([]byte, error) {
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return data, err
}

// sizeGuard is a packfile observer that stops the parser before it has
// inflated more than allowed.
type sizeGuard struct {
	left int64
	on   bool
}

func (g *sizeGuard) OnHeader(uint32) error { return nil }

func (g *sizeGuard) OnInflatedObjectHeader(_ plumbing.ObjectType, size, _ int64) error {
	g.left -= size
	if g.on && g.left < 0 {
		return ErrPackTooLarge
	}
	return nil
}

func (g *sizeGuard) OnInflatedObjectContent(plumbing.Hash, int64, uint32, []byte) error { return nil }

func (g *sizeGuard) OnFooter(plumbing.Hash) error { return nil }
