package packs

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// File is an open file of a pack or of its index.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Name() string
}

// local is what packs that nobody has taken in have in common. Nil: they were taken in.
type local struct {
	mu    sync.Mutex
	made  int64
	found map[baseKey]int64 // what each object was counted with
}

// beyond bounds what objects stand on out of proportion to their size, together, as intake
// does for each pack: here it is found when they are read. Each object counts once, however
// often it is read: who watches a clone reads the same ones for days.
func (l *local) beyond(at baseKey, made, size int64) error {
	if l == nil {
		return nil
	}
	n := made - inProportion*max(size, smallObject)
	if n <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if more := n - l.found[at]; more > 0 { // less was made where a base was still in memory
		l.found[at] = n
		l.made += more
	}
	if l.made > maxBeyond {
		return fmt.Errorf("%w: small objects stand on deltas that make more than %d bytes each time they are read", gitobj.ErrPackTooLarge, int64(maxBeyond))
	}
	return nil
}

// Local are packs of a repository that others fill, by their names without a suffix, to be
// read only: nothing of them was looked at before. open opens one of their files.
func Local(names []string, open func(name string) (File, error)) (*Dir, error) {
	d := &Dir{}
	l := &local{found: map[baseKey]int64{}}
	for _, name := range names {
		p, err := openLocal(name, open)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open pack %s: %w", name, err), d.Close())
		}
		p.local, p.bases, p.window, p.big = l, &d.bases, &d.window, &d.big
		d.packs = append(d.packs, p)
	}
	return d, nil
}

func openLocal(name string, open func(name string) (File, error)) (*pack, error) {
	idx, err := open(name + idxSuffix)
	if err != nil {
		return nil, err
	}
	defer idx.Close()
	f, err := open(name + packSuffix)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size < trailerSize {
		err = errors.New("it is too short for a pack")
	}
	var x *index
	if err == nil {
		x, err = decodeIndex(idx, idx.Name(), size-trailerSize)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &pack{name: name, file: f, index: x}, nil
}
