package packs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// ErrNotFound is returned for an object that no pack holds.
var ErrNotFound = errors.New("object not found")

// ErrClosed is returned by a Dir that has been closed.
var ErrClosed = errors.New("the packs are closed")

const (
	packSuffix = ".pack"
	idxSuffix  = ".idx"
	tmpPrefix  = "tmp-"
)

// trailerSize is what stands behind a pack's last object.
const trailerSize = int64(hashSize)

// Dir is an open directory of packs.
type Dir struct {
	path   string
	bases  baseCache
	window window
	big    sync.Mutex

	// mu is held for reading while objects are read, so that no file is closed
	// under a reader.
	mu     sync.RWMutex
	packs  []*pack // the newest first
	closed bool
}

// Open opens a directory, makes it when it is not there, and removes what an
// interrupted intake left. A pack that cannot be opened is an error: what it
// held would be missing.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	d := &Dir{path: path}
	for _, e := range list {
		switch name := e.Name(); {
		case strings.HasPrefix(name, tmpPrefix):
			err = os.Remove(filepath.Join(path, name))
		case strings.HasSuffix(name, idxSuffix):
			var p *pack
			if p, err = d.open(strings.TrimSuffix(name, idxSuffix)); err == nil {
				d.packs = append(d.packs, p)
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open packs: %w", err), d.Close())
		}
	}
	return d, nil
}

func (d *Dir) open(name string) (*pack, error) {
	f, err := os.Open(filepath.Join(d.path, name+packSuffix)) //nolint:gosec // our own state directory
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < trailerSize {
		err = fmt.Errorf("%s is too short for a pack", f.Name())
	}
	var x *index
	if err == nil {
		x, err = readIndex(filepath.Join(d.path, name+idxSuffix), info.Size()-trailerSize)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &pack{name: name, file: f, index: x, bases: &d.bases, window: &d.window, big: &d.big}, nil
}

// Len is the number of packs.
func (d *Dir) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.packs)
}

// Bytes is what the packs take on disk with their indices.
func (d *Dir) Bytes() (sum int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, p := range d.packs {
		sum += p.index.packSize() + p.index.size()
	}
	return sum
}

// Present fails when the directory or a pack's file is not there any more:
// open files would hide that until the next start.
func (d *Dir) Present() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if _, err := os.Stat(d.path); err != nil {
		return err
	}
	for _, p := range d.packs {
		for _, suffix := range [...]string{packSuffix, idxSuffix} {
			if _, err := os.Stat(filepath.Join(d.path, p.name+suffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// find is the pack that holds an object, and where.
func (d *Dir) find(h tree.Hash) (*pack, int64, bool) {
	for _, p := range d.packs {
		if offset, ok := p.index.find(h); ok {
			return p, offset, true
		}
	}
	return nil, 0, false
}

// Has reports whether an object is here.
func (d *Dir) Has(h tree.Hash) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, _, ok := d.find(h)
	return ok && !d.closed
}

// Read reads an object of at most limit bytes (0: MaxInMemory). ErrNotFound,
// ErrClosed and tree.ErrTooLarge are as they say; any other error is damage.
func (d *Dir) Read(h tree.Hash, limit int64) (gitobj.Object, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return gitobj.Object{}, ErrClosed
	}
	p, offset, ok := d.find(h)
	if !ok {
		return gitobj.Object{}, ErrNotFound
	}
	o, err := p.read(offset, limit)
	if err != nil {
		return gitobj.Object{}, err
	}
	if hashOf(o) != h {
		return gitobj.Object{}, errors.New("its content does not match its name")
	}
	return o, nil
}

// Close closes the files once nobody reads them. Reading again is ErrClosed.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, p := range d.packs {
		err = errors.Join(err, p.file.Close())
	}
	d.packs, d.closed = nil, true
	d.window.forget()
	return err
}

// publish makes a pack that lies under a temporary name known. A pack of that
// name is the same pack.
func (d *Dir) publish(tmp string, list []located, end int64, checksum tree.Hash) error {
	name := "pack-" + checksum.String()
	final := filepath.Join(d.path, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errors.Join(ErrClosed, os.Remove(tmp))
	}
	if _, err := os.Stat(final + idxSuffix); err == nil {
		return os.Remove(tmp)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeIndex(tmp+idxSuffix, list, checksum); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	err := os.Rename(tmp, final+packSuffix)
	if err == nil {
		err = os.Rename(tmp+idxSuffix, final+idxSuffix)
	}
	if err != nil {
		return err
	}
	f, err := os.Open(final + packSuffix) //nolint:gosec // our own state directory
	if err != nil {
		return err
	}
	d.packs = append([]*pack{{name: name, file: f, index: newIndex(list, end), bases: &d.bases, window: &d.window, big: &d.big}}, d.packs...)
	return nil
}
