package sources

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tidyEvery is how often mirrors are looked for that nobody follows, in addition to
// when an entry goes.
const tidyEvery = 10 * time.Minute

// mirrored are the names that mirrorOf makes, and the known hosts next to them.
var mirrored = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{16}(\.known_hosts)?$`)

// sweep deletes the mirrors of which no entry of the fleet that is acted on has the name
// and URL. A link among them goes, and what it leads to stays. Nothing is deleted before
// the fleet was read.
func (k *Keeper) sweep() {
	k.mu.Lock()
	followed, kept := k.followed, map[string]bool{}
	for _, s := range k.all {
		if s.active {
			kept[filepath.Base(k.mirrorOf(&s.entry))] = true
		}
	}
	k.mu.Unlock()
	if !followed {
		return
	}
	root, err := os.OpenRoot(k.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		k.opts.Log.Warn("mirrors of former sources are not deleted", "error", err)
		return
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if name := e.Name(); mirrored.MatchString(name) && !kept[strings.TrimSuffix(name, ".known_hosts")] {
			err = errors.Join(err, root.RemoveAll(name))
			k.room.set(filepath.Join(k.dir, name), 0)
		}
	}
	if err = errors.Join(err, root.Close()); err != nil {
		k.opts.Log.Warn("mirrors of former sources are not deleted", "error", err)
	}
}
