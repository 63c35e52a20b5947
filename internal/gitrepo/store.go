package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/generations"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// store holds the objects: those on disk, in packs, and the recent ones in
// memory. It implements tree.Store. The disk is read outside its lock, by many
// at once; nothing here waits for the network.
type store struct {
	maxBlob int64

	mu          sync.Mutex
	disk        *packs.Dir // nil: memory only
	recent      gitobj.Set
	recentBytes int
	dirs        generations.Cache[tree.Hash, []tree.Entry]
	commits     generations.Cache[tree.Hash, gitobj.CommitData]
	// doubt is set by a read that failed; the next Fetch clones again. hopeless
	// holds objects that a fresh clone did not have either, lest each fetch
	// clone again for them.
	doubt    *ErrLocal
	hopeless map[tree.Hash]bool
}

// Cached directories and commits of each generation: some 100 bytes an entry,
// so a few tens of MB at worst.
const (
	cachedDirs    = 20_000
	cachedCommits = 20_000
)

func newStore(disk *packs.Dir, maxBlob int64) *store {
	return &store{
		maxBlob: maxBlob, disk: disk, recent: gitobj.Set{}, hopeless: map[tree.Hash]bool{},
		dirs: generations.Cache[tree.Hash, []tree.Entry]{Most: cachedDirs}, commits: generations.Cache[tree.Hash, gitobj.CommitData]{Most: cachedCommits},
	}
}

// maxDir bounds one directory as it is stored, in bytes: a million intents in one
// have less.
const maxDir = 128 << 20

var emptyTree = tree.DirHash(nil)

// Dir implements tree.Store.
func (s *store) Dir(h tree.Hash) ([]tree.Entry, error) {
	if h == emptyTree {
		return nil, nil
	}
	s.mu.Lock()
	d, ok := s.dirs.Get(h)
	s.mu.Unlock()
	if ok {
		return d, nil
	}
	o, err := s.read(h, gitobj.Tree, 0)
	large := err == nil && len(o.Data) > maxDir
	if errors.Is(err, tree.ErrTooLarge) {
		if err = s.tooLarge(h, err); err == nil {
			large = true
		}
	}
	if wrong := new(wrongType); large || errors.As(err, &wrong) {
		return nil, &tree.BrokenError{Why: fmt.Sprintf("what stands as a directory is too large or none (%s)", h.Short())}
	}
	if err != nil {
		return nil, err
	}
	if d, err = gitobj.DecodeDir(o.Data); err != nil {
		return nil, fmt.Errorf("directory %s: %w", h.Short(), err) // its bytes are what was named: no copy is to blame
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs.Put(h, d)
	return d, nil
}

// File implements tree.Store.
func (s *store) File(h tree.Hash, limit int64) ([]byte, error) {
	if limit <= 0 || limit > s.maxBlob {
		limit = s.maxBlob
	}
	o, err := s.read(h, gitobj.Blob, limit)
	return o.Data, err
}

// tooLarge is nil when an object is as large as its header says, because a fresh
// clone says the same; the first time that is doubted.
func (s *store) tooLarge(h tree.Hash, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hopeless[h] {
		return nil
	}
	return s.suspect(h, err)
}

// Size implements tree.Sizer. It goes by an object's header, which damage of the
// disk may have changed: what would make a tree broken is read whole first, and
// held to its name.
func (s *store) Size(h tree.Hash) (int64, error) {
	for {
		s.mu.Lock()
		o, ok := s.recent[h]
		disk := s.disk
		s.mu.Unlock()
		kind, size, err := o.Type, int64(len(o.Data)), error(nil)
		if !ok {
			kind, size, err = 0, 0, packs.ErrNotFound
			if disk != nil {
				kind, size, err = disk.Stat(h)
			}
			// A header says so, and no hash covers it before all is read: damage
			// of the local disk must not be taken for what the remote holds.
			if err == nil && kind != gitobj.Blob {
				if _, rerr := disk.Read(h, s.maxBlob); rerr != nil && !errors.Is(rerr, tree.ErrTooLarge) {
					err = rerr
				}
			}
		}
		switch {
		case err == nil && kind != gitobj.Blob:
			_, err := s.read(h, gitobj.Blob, 0)
			var wrong *wrongType
			if errors.As(err, &wrong) {
				return 0, &tree.BrokenError{Why: fmt.Sprintf("what stands as a file is a %s (%s)", wrong.is, h.Short())}
			}
			return size, err
		case err == nil:
			return min(size, packs.MaxInMemory), nil // no one file is too much
		}
		s.mu.Lock()
		if s.disk != disk { // a fresh clone was swapped in meanwhile
			s.mu.Unlock()
			continue
		}
		defer s.mu.Unlock()
		return 0, s.suspect(h, err)
	}
}

// commit reads a commit.
func (s *store) commit(h tree.Hash) (gitobj.CommitData, error) {
	s.mu.Lock()
	c, ok := s.commits.Get(h)
	s.mu.Unlock()
	if ok {
		return c, nil
	}
	o, err := s.read(h, gitobj.Commit, 0)
	if err != nil {
		return gitobj.CommitData{}, err
	}
	c, err = gitobj.ParseCommit(o.Data)
	if err != nil {
		return gitobj.CommitData{}, fmt.Errorf("commit %s: %w", h, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits.Put(h, c)
	return c, nil
}

// rawCommit is a commit's body as it is stored.
func (s *store) rawCommit(h tree.Hash) ([]byte, error) {
	o, err := s.read(h, gitobj.Commit, 0)
	return o.Data, err
}

// rawCommitHere is rawCommit for a commit that may not be here: that does not cast
// doubt on the store.
func (s *store) rawCommitHere(h tree.Hash) ([]byte, error) {
	if !s.has(h) {
		return nil, packs.ErrNotFound
	}
	return s.rawCommit(h)
}

// has reports whether an object is here, without doubting the store.
func (s *store) has(h tree.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasLocked(h)
}

func (s *store) hasLocked(h tree.Hash) bool {
	if _, ok := s.recent[h]; ok {
		return true
	}
	return s.disk != nil && s.disk.Has(h)
}

// read finds an object. Sizes are checked before a large one is inflated.
func (s *store) read(h tree.Hash, want gitobj.Type, limit int64) (gitobj.Object, error) {
	for {
		s.mu.Lock()
		o, ok := s.recent[h]
		disk := s.disk
		s.mu.Unlock()
		if ok && limit > 0 && int64(len(o.Data)) > limit {
			return gitobj.Object{}, tree.ErrTooLarge
		}
		var err error
		if !ok {
			o, err = readDisk(disk, h, limit)
		}
		switch {
		case err == nil && o.Type != want:
			return gitobj.Object{}, &wrongType{h, o.Type, want}
		case err == nil || errors.Is(err, tree.ErrTooLarge):
			return o, err
		}
		s.mu.Lock()
		if s.disk != disk { // a fresh clone was swapped in meanwhile
			s.mu.Unlock()
			continue
		}
		defer s.mu.Unlock()
		return gitobj.Object{}, s.suspect(h, err)
	}
}

// wrongType is an object that stands where another type must.
type wrongType struct {
	object   tree.Hash
	is, want gitobj.Type
}

// Error implements error.
func (e *wrongType) Error() string {
	return fmt.Sprintf("object %s is a %s, not a %s", e.object, e.is, e.want)
}

func readDisk(disk *packs.Dir, h tree.Hash, limit int64) (gitobj.Object, error) {
	if disk == nil {
		return gitobj.Object{}, packs.ErrNotFound
	}
	return disk.Read(h, limit)
}

func (s *store) suspect(h tree.Hash, err error) error {
	e := &ErrLocal{Object: h, Cause: err}
	if s.doubt == nil && !s.hopeless[h] {
		s.doubt = e
	}
	return e
}

// doubted returns the failed read that has not been seen to yet.
func (s *store) doubted() *ErrLocal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt
}

// doubtAll makes the next fetch clone again, for a reason that is not a read.
func (s *store) doubtAll(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &ErrLocal{Cause: err}
	if s.doubt == nil {
		s.doubt = e
	}
	return e
}

// takePack takes a pack in that lies on this machine.
func (s *store) takePack(pack io.Reader) error {
	s.mu.Lock()
	disk := s.disk
	s.mu.Unlock()
	_, err := disk.Take(pack)
	return err
}

// add takes objects in.
func (s *store) add(set gitobj.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, o := range set {
		if _, ok := s.recent[h]; !ok {
			s.recent[h] = o
			s.recentBytes += len(o.Data)
		}
	}
}

// swap replaces the disk by a freshly cloned one (nil: memory only). What the
// clone does not hold stays in memory, for readers that still have old trees.
func (s *store) swap(disk *packs.Dir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = disk
	if disk != nil {
		for h, o := range s.recent {
			if disk.Has(h) {
				delete(s.recent, h)
				s.recentBytes -= len(o.Data)
			}
		}
	}
	if s.doubt != nil && !s.doubt.Object.IsZero() && (!s.hasLocked(s.doubt.Object) || errors.Is(s.doubt.Cause, tree.ErrTooLarge)) {
		s.hopeless[s.doubt.Object] = true
	}
	s.doubt = nil
}

// recentSize is how much lies in memory.
func (s *store) recentSize() (objects, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recent), s.recentBytes
}

// flush writes the recent objects to disk as one pack. On failure they stay in
// memory and nothing is lost. Memory only: nothing to do.
func (s *store) flush() error {
	s.mu.Lock()
	disk, set := s.disk, maps.Clone(s.recent)
	s.mu.Unlock()
	if disk == nil || len(set) == 0 {
		return nil
	}
	pack, err := set.Pack() // outside the lock: compressing takes a while
	if err != nil {
		return err
	}
	if _, err := disk.Take(bytes.NewReader(pack)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, o := range set {
		if !disk.Has(h) {
			return fmt.Errorf("write pack: object %s did not arrive", h)
		}
		delete(s.recent, h)
		s.recentBytes -= len(o.Data)
	}
	return nil
}

// sourceErr remembers whether reading failed.
type sourceErr struct {
	r   io.Reader
	err error
}

func (s *sourceErr) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
