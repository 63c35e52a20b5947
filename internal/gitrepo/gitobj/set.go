package gitobj

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"
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

// ReadPack decodes a packfile of at most limit bytes (0: 2 GiB), counted as what
// its objects have when they are read and its deltas have made what they make.
// The sizes are added up as declared, before anything is kept of what is
// inflated. An empty pack is an empty set.
func ReadPack(r io.Reader, limit int64) (Set, error) {
	pack, limit, err := readBytes(r, limit)
	if err != nil {
		return nil, err
	}
	if set, ok := readPlain(pack, limit); ok {
		return set, nil
	}
	mem := memory.NewStorage()
	if err := storePack(pack, limit, mem); err != nil {
		return nil, err
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

// StorePack is ReadPack into a storage of objects.
func StorePack(r io.Reader, limit int64, to storer.EncodedObjectStorer) error {
	pack, limit, err := readBytes(r, limit)
	if err != nil {
		return err
	}
	return storePack(pack, limit, to)
}

// readBytes reads a pack whose objects may have limit bytes together, and returns
// the limit in force. What is no pack is refused by its first bytes, however much
// would follow.
func readBytes(r io.Reader, limit int64) ([]byte, int64, error) {
	if limit <= 0 {
		limit = mostInMemory
	}
	received := min(limit, mostReceived)
	buf := bufio.NewReader(r)
	if head, err := buf.Peek(8); err == nil && !IsPack(head) {
		return nil, 0, fmt.Errorf("read pack: %w", ErrNoPack)
	}
	pack, err := io.ReadAll(io.LimitReader(buf, received+1))
	if err != nil {
		return nil, 0, fmt.Errorf("read pack: %w", err)
	}
	if int64(len(pack)) > received {
		return nil, 0, fmt.Errorf("read pack: %w", ErrPackTooLarge)
	}
	return pack, limit, nil
}

// ErrNoPack is returned for what does not begin as a pack does.
var ErrNoPack = errors.New("this is not a pack of version 2 or 3")

// IsPack reports whether eight bytes begin a pack that can be read.
func IsPack(head []byte) bool {
	version := binary.BigEndian.Uint32(head[4:])
	return string(head[:4]) == "PACK" && (version == 2 || version == 3)
}

func storePack(pack []byte, limit int64, to storer.EncodedObjectStorer) error {
	if err := weigh(pack, limit); err != nil {
		return fmt.Errorf("read pack: %w", err)
	}
	p, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(pack)), to)
	if err != nil {
		return fmt.Errorf("read pack: %w", err)
	}
	if _, err := p.Parse(); err != nil && !errors.Is(err, packfile.ErrEmptyPackfile) {
		return fmt.Errorf("read pack: %w", err)
	}
	return nil
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
