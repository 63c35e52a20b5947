package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/accepted"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// A state directory holds accepted.json and any number of cache-* directories.
// A cache directory is a bare repository's objects in packs, heads.json
// (what it is known to hold whole) and a lock held for as long as a process
// uses it. A second process on the same state directory (`reconcile --once`
// beside a daemon) makes a cache of its own. Caches nobody holds are removed.

const (
	cachePrefix  = "cache-"
	headsFile    = "heads.json"
	lockFile     = "lock"
	acceptedFile = accepted.File
)

// diskCache is an open cache directory.
type diskCache struct {
	dir  string
	lock *os.File
	disk *packs.Dir
}

// cacheHeads says what a cache holds whole.
type cacheHeads struct {
	Refs map[string]string `json:"refs"`
}

// openCache opens the best cache of a state directory that nobody else holds,
// or returns nil when there is none; the others are removed, and damaged ones set
// aside. told is told of each of those.
func openCache(state string, now time.Time, told func(error)) (*diskCache, map[string]tree.Hash) {
	list, err := os.ReadDir(state)
	if err != nil {
		return nil, nil
	}
	var best *diskCache
	var bestRefs map[string]tree.Hash
	for _, d := range slices.Backward(list) {
		if !d.IsDir() || !strings.HasPrefix(d.Name(), cachePrefix) || strings.Contains(d.Name(), asideMark) {
			continue
		}
		c, err := lockCache(filepath.Join(state, d.Name()))
		if err != nil {
			if !errors.Is(err, unix.EWOULDBLOCK) { // else it is in use
				told(fmt.Errorf("the cache %s is not used: %w", filepath.Join(state, d.Name()), err))
			}
			continue
		}
		if best != nil {
			c.remove()
			continue
		}
		refs, err := c.readHeads()
		if err == nil {
			c.disk, err = packs.Open(c.packDir())
		}
		switch {
		case err == nil:
			best, bestRefs = c, refs
		case c.unfinished(err):
			told(fmt.Errorf("the cache %s was never filled: it is removed", c.dir))
			c.remove()
		default:
			aside, moveErr := c.setAside(now)
			told(damagedCache(c.dir, err, aside, moveErr))
		}
	}
	return best, bestRefs
}

// newCache makes an empty cache directory.
func newCache(state string) (*diskCache, error) {
	dir, err := os.MkdirTemp(state, cachePrefix)
	if err != nil {
		return nil, fmt.Errorf("make a cache directory: %w", err)
	}
	c, err := lockCache(dir)
	if err != nil {
		return nil, err
	}
	if c.disk, err = packs.Open(c.packDir()); err != nil {
		c.remove()
		return nil, fmt.Errorf("make a cache directory: %w", err)
	}
	return c, nil
}

func lockCache(dir string) (*diskCache, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own state directory
	if err != nil {
		return nil, fmt.Errorf("lock cache: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock cache %s: %w", dir, err), f.Close())
	}
	return &diskCache{dir: dir, lock: f}, nil
}

// unfinished reports whether a cache is what a process left that ended while it
// cloned: neither heads nor packs.
func (c *diskCache) unfinished(err error) bool {
	list, _ := filepath.Glob(filepath.Join(c.packDir(), "*.idx"))
	return errors.Is(err, fs.ErrNotExist) && c.disk == nil && len(list) == 0
}

// packDir is where git keeps packs.
func (c *diskCache) packDir() string { return filepath.Join(c.dir, "objects", "pack") }

func (c *diskCache) readHeads() (map[string]tree.Hash, error) {
	var h cacheHeads
	if err := statefile.ReadJSON(filepath.Join(c.dir, headsFile), &h); err != nil {
		return nil, err
	}
	refs := map[string]tree.Hash{}
	for ref, s := range h.Refs {
		hash, err := tree.ParseHash(s)
		if err != nil {
			return nil, err
		}
		refs[ref] = hash
	}
	return refs, nil
}

func (c *diskCache) writeHeads(refs map[string]tree.Hash) error {
	h := cacheHeads{Refs: map[string]string{}}
	for ref, hash := range refs {
		h.Refs[ref] = hash.String()
	}
	return statefile.ReplaceJSON(filepath.Join(c.dir, headsFile), h)
}

func (c *diskCache) close() error {
	var err error
	if c.disk != nil {
		err = c.disk.Close()
	}
	return errors.Join(err, c.lock.Close())
}

// remove gives the directory up. A failure leaves files behind that the next
// start removes.
func (c *diskCache) remove() {
	_ = os.RemoveAll(c.dir)
	_ = c.close()
}

// Accepted are the heads last accepted.
type Accepted = accepted.Heads

// ReadAccepted reads the heads that a daemon with this state directory has
// accepted.
func ReadAccepted(state string) (Accepted, error) { return accepted.Read(state) }
