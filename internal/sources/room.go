package sources

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// DefaultDisk is how much of the disk the mirrors of all sources may take, in bytes.
const DefaultDisk = 2 << 30

// room is the disk that mirrors share. A half is parted among the sources evenly, so that
// none can take another's part; of the other half has who comes first. It is safe for
// concurrent use.
type room struct {
	mu    sync.Mutex
	limit int64
	// sources is how many there are.
	sources int
	// used is what each mirror takes, by its directory.
	used map[string]int64
}

// measure takes over what mirrors there are in a directory.
func (r *room) measure(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() || !mirrored.MatchString(e.Name()) {
			continue
		}
		at, sum := filepath.Join(dir, e.Name()), int64(0)
		err = errors.Join(err, filepath.WalkDir(at, func(_ string, f fs.DirEntry, err error) error {
			if err != nil || !f.Type().IsRegular() {
				return err
			}
			info, err := f.Info()
			if err == nil {
				sum += info.Size()
			}
			return err
		}))
		r.set(at, sum)
	}
	if err != nil {
		return fmt.Errorf("measure the mirrors of sources: %w", err)
	}
	return nil
}

// share says for how many sources the room is.
func (r *room) share(sources int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = sources
}

// set says what a mirror takes; 0: it is gone.
func (r *room) set(dir string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes == 0 {
		delete(r.used, dir)
		return
	}
	r.used[dir] = bytes
}

// part is what a source has for itself. The caller holds mu.
func (r *room) part() int64 { return r.limit / 2 / int64(max(r.sources, 1)) }

// taken is what is kept for each source, and what mirrors take beyond that. The caller
// holds mu.
func (r *room) taken() int64 {
	part := r.part()
	sum := part * int64(max(r.sources, 1))
	for _, n := range r.used {
		sum += max(n-part, 0)
	}
	return sum
}

// tight reports whether little is left, and a mirror takes more than its part: what has
// piled up in it is to go.
func (r *room) tight(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used[dir] > r.part() && r.taken() > r.limit/4*3
}

// grow has a mirror take more, unless there is no room for that.
func (r *room) grow(dir string, bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.used[dir]
	r.used[dir] = had + bytes
	if r.used[dir] <= r.part() || r.taken() <= r.limit {
		return nil
	}
	r.used[dir] = had
	return fmt.Errorf("the disk has no room for more of it: its local copy has %d MiB, %d MiB are its own part, and those of all sources may have %d MiB together (--source-disk); have the team make the repository smaller, or raise that along with the volume of the state directory",
		had>>20, r.part()>>20, r.limit>>20)
}

// writer grows a mirror with what is written.
func (r *room) writer(dir string, to io.Writer) io.Writer { return &growing{r, dir, to} }

type growing struct {
	room *room
	dir  string
	to   io.Writer
}

// Write implements io.Writer.
func (g *growing) Write(p []byte) (int, error) {
	if err := g.room.grow(g.dir, int64(len(p))); err != nil {
		return 0, err
	}
	return g.to.Write(p)
}
