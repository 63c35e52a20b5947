package cli

import (
	"fmt"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// objects reads trees and files of a git repository, and holds each to its name, as git
// does: a signature speaks for names alone, and go-git takes what stands in a clone as it is.
// It is safe for concurrent use; go-git's storage is not, hence the lock.
type objects struct {
	mu      sync.Mutex
	storage storer.EncodedObjectStorer
}

// mostObject bounds one object that is read whole, in bytes; the largest directory or file
// that a daemon reads has half of it.
const mostObject = 256 << 20

// Dir implements tree.Store.
func (o *objects) Dir(h tree.Hash) ([]tree.Entry, error) {
	data, err := o.read(plumbing.TreeObject, h, 0)
	if err != nil {
		return nil, err
	}
	return gitobj.DecodeDir(data)
}

// File implements tree.Store.
func (o *objects) File(h tree.Hash, limit int64) ([]byte, error) {
	return o.read(plumbing.BlobObject, h, limit)
}

// Size implements tree.Sizer.
func (o *objects) Size(h tree.Hash) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	enc, err := o.storage.EncodedObject(plumbing.AnyObject, plumbing.Hash(h))
	switch {
	case err != nil:
		return 0, fmt.Errorf("read file %s: %w", h.Short(), err)
	case enc.Type() != plumbing.BlobObject:
		return 0, &tree.BrokenError{Why: fmt.Sprintf("what stands as a file is a %s (%s)", enc.Type(), h.Short())}
	}
	return enc.Size(), nil
}

// Commit is a commit's body as it is stored.
func (o *objects) Commit(h tree.Hash) ([]byte, error) {
	return o.read(plumbing.CommitObject, h, 0)
}

func (o *objects) read(kind plumbing.ObjectType, h tree.Hash, limit int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	enc, err := o.storage.EncodedObject(kind, plumbing.Hash(h))
	if err != nil {
		return nil, o.cutOff(fmt.Errorf("read %s %s: %w", kind, h.Short(), err))
	}
	if limit > 0 && enc.Size() > limit || enc.Size() > mostObject {
		return nil, tree.ErrTooLarge
	}
	data, err := gitobj.ReadObject(enc)
	if err != nil {
		return nil, err
	}
	if is := (gitobj.Object{Type: kind, Data: data}).Hash(); is != h {
		return nil, hinted(fmt.Errorf("read %s %s: what stands under that name is %s: this clone is damaged, or was changed by hand", kind, h.Short(), is.Short()), "see what git says of it (git fsck), and clone again")
	}
	return data, nil
}

// cutOff adds what to do to an error of what is missing, where the clone is shallow or
// borrows from another.
func (o *objects) cutOff(err error) error {
	if clonedir.Shallow(o.storage) {
		return hinted(err, "this clone is shallow: its history is cut off. Fetch the rest: git fetch --unshallow (in CI: fetch-depth: 0, or GIT_DEPTH: 0)")
	}
	if clonedir.Borrows(o.storage) {
		return hinted(err, "this clone borrows objects from another (objects/info/alternates), which is not read. Copy them in: git repack -a -d && rm .git/objects/info/alternates")
	}
	return err
}
