package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/accepted"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/cachedir"
)

// probePause is how often the state directory is tried, whether it can be written.
const probePause = 10 * time.Second

// tooManyPacks is a local copy that is whole and has become slow.
type tooManyPacks struct{ is, most int }

func (e *tooManyPacks) Error() string {
	return fmt.Sprintf("the local copy has %d packs, more than %d", e.is, e.most)
}

// note takes down whether a file of the state directory was written; "": whether
// the directory can be. Without a Health failures go to the Observer.
func (r *Repo) note(file string, err error) {
	switch {
	case r.opts.State != nil:
		r.opts.State.Note(filepath.Join(r.opts.Dir, file), err)
	case err != nil:
		r.opts.Observer.LocalTrouble(err)
	}
}

// probe finds out whether the state directory can be written, also where there is
// nothing to write. Once it can again, the disk is due at once.
func (r *Repo) probe() {
	now := r.opts.Now()
	if r.opts.Dir == "" || now.Before(r.probeDue) {
		return
	}
	r.probeDue = now.Add(probePause)
	err := os.MkdirAll(r.opts.Dir, 0o700)
	if err == nil {
		err = statefile.Probe(r.opts.Dir)
	}
	if err == nil && r.unwritable {
		r.diskRetry = time.Time{}
	}
	if r.opts.State != nil || !r.unwritable { // the Observer is told once
		r.note("", err)
	}
	r.unwritable = err != nil
}

func (r *Repo) saveAccepted() error {
	if !r.unsaved || r.opts.Dir == "" {
		return nil
	}
	if r.damaged != nil {
		aside, err := statefile.SetAside(filepath.Join(r.opts.Dir, acceptedFile), r.opts.Now())
		if err != nil {
			return err
		}
		r.opts.Observer.LocalTrouble(fmt.Errorf("%w; it is set aside as %s", r.damaged, aside))
		r.damaged = nil
	}
	if err := accepted.Write(r.opts.Dir, r.accepted); err != nil {
		return err
	}
	r.unsaved = false
	return nil
}

// trySaveAccepted goes on without the file if it must: then it is only behind
// the remote's own note, and written at the next occasion.
func (r *Repo) trySaveAccepted() {
	if r.unsaved && r.opts.Dir != "" {
		r.note(acceptedFile, r.saveAccepted())
	}
}

// tryFlush is flush for callers that go on without the disk.
func (r *Repo) tryFlush() {
	if r.cache != nil {
		r.note(cacheNote, r.flush())
	}
}

// cacheNote is under what name the local copy's directory is noted: it changes
// with each clone.
const cacheNote = "cache"

// giveUp removes a cache that another replaces; a damaged one is set aside.
func (r *Repo) giveUp(c *cachedir.Dir) {
	why := r.cacheDamage
	r.cacheDamage = nil
	if why == nil {
		c.Remove()
		return
	}
	if _, err := os.Stat(c.Path); errors.Is(err, fs.ErrNotExist) {
		_ = c.Close()
		return // nothing is left of it
	}
	aside, err := c.SetAside(r.opts.Now())
	r.opts.Observer.LocalTrouble(cachedir.Damaged(c.Path, why, aside, err))
}

// damageOf is why a local copy is damaged that must be cloned again: nil where it
// is only slow, or where its disk could not be written.
func damageOf(why error) error {
	if local := new(ErrLocal); errors.As(why, &local) && local.Object.IsZero() {
		return nil
	}
	if errors.As(why, new(*tooManyPacks)) {
		return nil
	}
	return why
}
