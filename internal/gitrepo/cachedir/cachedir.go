package cachedir

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
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

const (
	cachePrefix = "cache-"
	headsFile   = "heads.json"
	lockFile    = "lock"
)

// Dir is an open cache directory.
type Dir struct {
	Path string
	// Disk are its packs.
	Disk *packs.Dir
	lock *os.File
}

// cacheHeads says what a cache holds whole.
type cacheHeads struct {
	Refs map[string]string `json:"refs"`
}

// Open opens the best cache of a state directory that nobody else holds,
// or returns nil when there is none; the others are removed, and damaged ones set
// aside. told is told of each of those.
func Open(state string, now time.Time, told func(error)) (*Dir, map[string]tree.Hash) {
	list, err := os.ReadDir(state)
	if err != nil {
		return nil, nil
	}
	var best *Dir
	var bestRefs map[string]tree.Hash
	for _, d := range slices.Backward(list) {
		if !d.IsDir() || !strings.HasPrefix(d.Name(), cachePrefix) || strings.Contains(d.Name(), asideMark) {
			continue
		}
		c, err := lockDir(filepath.Join(state, d.Name()))
		if err != nil {
			if !errors.Is(err, unix.EWOULDBLOCK) { // else it is in use
				told(fmt.Errorf("the cache %s is not used: %w", filepath.Join(state, d.Name()), err))
			}
			continue
		}
		if best != nil {
			c.Remove()
			continue
		}
		refs, err := c.readHeads()
		if err == nil {
			c.Disk, err = packs.Open(c.packDir())
		}
		switch {
		case err == nil:
			best, bestRefs = c, refs
		case c.unfinished(err):
			told(fmt.Errorf("the cache %s was never filled: it is removed", c.Path))
			c.Remove()
		default:
			aside, moveErr := c.SetAside(now)
			told(Damaged(c.Path, err, aside, moveErr))
		}
	}
	return best, bestRefs
}

// New makes an empty cache directory.
func New(state string) (*Dir, error) {
	dir, err := os.MkdirTemp(state, cachePrefix)
	if err != nil {
		return nil, fmt.Errorf("make a cache directory: %w", err)
	}
	c, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	if c.Disk, err = packs.Open(c.packDir()); err != nil {
		c.Remove()
		return nil, fmt.Errorf("make a cache directory: %w", err)
	}
	return c, nil
}

func lockDir(dir string) (*Dir, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own state directory
	if err != nil {
		return nil, fmt.Errorf("lock cache: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock cache %s: %w", dir, err), f.Close())
	}
	return &Dir{Path: dir, lock: f}, nil
}

// unfinished reports whether a cache is what a process left that ended while it
// cloned: neither heads nor packs.
func (c *Dir) unfinished(err error) bool {
	list, _ := filepath.Glob(filepath.Join(c.packDir(), "*.idx"))
	return errors.Is(err, fs.ErrNotExist) && c.Disk == nil && len(list) == 0
}

// packDir is where git keeps packs.
func (c *Dir) packDir() string { return filepath.Join(c.Path, "objects", "pack") }

func (c *Dir) readHeads() (map[string]tree.Hash, error) {
	var h cacheHeads
	if err := statefile.ReadJSON(filepath.Join(c.Path, headsFile), &h); err != nil {
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

// WriteHeads notes what it holds whole.
func (c *Dir) WriteHeads(refs map[string]tree.Hash) error {
	h := cacheHeads{Refs: map[string]string{}}
	for ref, hash := range refs {
		h.Refs[ref] = hash.String()
	}
	return statefile.ReplaceJSON(filepath.Join(c.Path, headsFile), h)
}

// Close lets another process have it.
func (c *Dir) Close() error {
	var err error
	if c.Disk != nil {
		err = c.Disk.Close()
	}
	return errors.Join(err, c.lock.Close())
}

// Remove gives the directory up. A failure leaves files behind that the next
// start removes.
func (c *Dir) Remove() {
	_ = os.RemoveAll(c.Path)
	_ = c.Close()
}

// asideMark is in the name of what is set aside (statefile.SetAside).
const asideMark = ".damaged-"

// SetAside renames a damaged cache, for a person to look at, and gives it up. Of
// those set aside before none is kept: each is a whole copy.
func (c *Dir) SetAside(now time.Time) (aside string, err error) {
	RemoveAside(filepath.Dir(c.Path))
	aside, err = statefile.SetAside(c.Path, now)
	if err != nil {
		_ = c.Close()
		return "", err
	}
	return aside, c.Close()
}

// Damaged is what is said of a damaged cache that was set aside, or was not.
func Damaged(dir string, why error, aside string, err error) error {
	if err != nil {
		return fmt.Errorf("the cache %s is damaged: %w; it is not used: %w", dir, why, err)
	}
	return fmt.Errorf("the cache %s is damaged: %w; it is set aside as %s", dir, why, aside)
}

// RemoveAside removes the caches that were set aside, and reports whether there
// were any.
func RemoveAside(state string) bool {
	list, err := os.ReadDir(state)
	if err != nil {
		return false
	}
	removed := false
	for _, d := range list {
		if strings.HasPrefix(d.Name(), cachePrefix) && strings.Contains(d.Name(), asideMark) {
			removed = os.RemoveAll(filepath.Join(state, d.Name())) == nil || removed
		}
	}
	return removed
}
