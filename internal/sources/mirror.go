package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// Bounds of a mirror.
const (
	// maxReceived and maxInflated bound what one fetch may bring, in bytes.
	maxReceived = 64 << 20
	maxInflated = 64 << 20
	// maxPacks is how many packs may pile up before the mirror is made again, maxMirror
	// how many bytes with their indices.
	maxPacks  = 100
	maxMirror = 128 << 20
	// maxCommit bounds a commit that is read, maxTree a directory, in bytes.
	maxCommit = 1 << 20
	maxTree   = 4 << 20
)

// decoding bounds how many packs are decoded at once: each may take maxInflated.
var decoding = make(chan struct{}, 2)

// mirror is the local copy of one source. It belongs to the goroutine that reads the
// source.
type mirror struct {
	dir   string
	room  *room
	disk  *packs.Dir
	graph *ancestry.Graph
	// beside is what was read in addition, and is not kept: of a pull request.
	beside gitobj.Set
}

// openMirror opens the mirror of a source, which is emptied if it cannot be read, has grown
// too large, or takes the room of others.
func (k *Keeper) openMirror(e *v1alpha1.IntentSource) (*mirror, error) {
	m := &mirror{dir: k.mirrorOf(e), room: &k.room}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a mirror: %w", err)
	}
	var err error
	if m.disk, err = packs.Open(m.dir); err != nil || m.disk.Len() > maxPacks || m.disk.Bytes() > maxMirror || m.disk.Len() > 1 && m.room.tight(m.dir) {
		err = m.reset()
	}
	m.graph = ancestry.New(m.parents)
	m.settle()
	return m, err
}

// settle tells how much of the disk the mirror takes now.
func (m *mirror) settle() {
	if m.disk != nil {
		m.room.set(m.dir, m.disk.Bytes())
	}
}

// reset empties the mirror: the next fetch brings everything again.
func (m *mirror) reset() (err error) {
	if m.disk != nil {
		err = m.disk.Close()
	}
	if err = errors.Join(err, os.RemoveAll(m.dir), os.MkdirAll(m.dir, 0o700)); err != nil {
		return fmt.Errorf("empty a mirror: %w", err)
	}
	empty, err := packs.Open(m.dir)
	if err != nil {
		return err
	}
	m.disk, m.graph = empty, ancestry.New(m.parents)
	return nil
}

// fetch brings a branch's head, with all that it reaches. A zero head: the remote has
// no such branch.
func (m *mirror) fetch(ctx context.Context, remote gitrepo.Remote, branch string, have []tree.Hash) (head tree.Hash, err error) {
	err = remote.Fetch(ctx, func(refs map[string]tree.Hash) (want, has []tree.Hash) {
		if head = refs[gitrepo.Branch(branch)]; head.IsZero() || m.disk.Has(head) {
			return nil, nil
		}
		for _, h := range have {
			if m.disk.Has(h) {
				has = append(has, h)
			}
		}
		return []tree.Hash{head}, has
	}, func(pack io.Reader) error { return m.take(ctx, pack) })
	if err == nil && !head.IsZero() && !m.disk.Has(head) {
		err = fmt.Errorf("it sent a pack without %s, which it advertises", head.Short())
	}
	return head, err
}

// take receives a pack, weighs it in memory, and keeps it.
func (m *mirror) take(ctx context.Context, pack io.Reader) error {
	return m.spooled(ctx, pack, func(spool io.ReadSeeker) error {
		if _, err := readPack(spool, maxInflated); err != nil {
			return err
		}
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("receive a pack: %w", err)
		}
		if _, err := m.disk.Take(spool); err != nil {
			return err
		}
		if n := m.disk.Bytes(); n > maxMirror+maxReceived { // many small objects have a large index
			return errors.Join(fmt.Errorf("its local copy has %d MiB, at most %d are kept: %w", n>>20, (maxMirror+maxReceived)>>20, gitobj.ErrPackTooLarge), m.reset())
		}
		return nil
	})
}

func readPack(pack io.Reader, limit int64) (gitobj.Set, error) {
	set, err := gitobj.ReadPack(pack, limit)
	if errors.Is(err, gitobj.ErrPackTooLarge) {
		err = fmt.Errorf("it brings more than %d MiB: %w", limit>>20, err)
	}
	return set, err
}

// spooled receives a pack whole, so that a slow server holds nothing that others need,
// and hands it on when it may be decoded.
func (m *mirror) spooled(ctx context.Context, pack io.Reader, use func(io.ReadSeeker) error) (err error) {
	spool, err := os.CreateTemp(m.dir, "tmp-*")
	if err != nil {
		return fmt.Errorf("receive a pack: %w", err)
	}
	defer func() {
		err = errors.Join(err, spool.Close(), os.Remove(spool.Name()))
		m.settle()
	}()
	n, err := io.Copy(m.room.writer(m.dir, spool), io.LimitReader(pack, maxReceived+1))
	if err != nil {
		return err
	}
	if n > maxReceived {
		return fmt.Errorf("it brings more than %d MiB: %w", maxReceived>>20, gitobj.ErrPackTooLarge)
	}
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("receive a pack: %w", err)
	}
	return use(spool)
}

func (m *mirror) read(h tree.Hash, want gitobj.Type, limit int64) ([]byte, error) {
	o, beside := m.beside[h]
	switch {
	case !beside:
		var err error
		if o, err = m.disk.Read(h, limit); err != nil {
			return nil, fmt.Errorf("read object %s: %w", h.Short(), err)
		}
	case limit > 0 && int64(len(o.Data)) > limit:
		return nil, fmt.Errorf("read object %s: %w", h.Short(), tree.ErrTooLarge)
	}
	if o.Type != want {
		return nil, fmt.Errorf("object %s is a %s, not a %s", h.Short(), o.Type, want)
	}
	return o.Data, nil
}

func (m *mirror) has(h tree.Hash) bool {
	_, beside := m.beside[h]
	return beside || m.disk.Has(h)
}

func (m *mirror) rawCommit(h tree.Hash) ([]byte, error) { return m.read(h, gitobj.Commit, maxCommit) }

func (m *mirror) commit(h tree.Hash) (gitobj.CommitData, error) {
	raw, err := m.rawCommit(h)
	if err != nil {
		return gitobj.CommitData{}, err
	}
	c, err := gitobj.ParseCommit(raw)
	if err == nil && len(c.Parents) > maxParents {
		err = tree.CheckParents(len(c.Parents))
	}
	if err != nil {
		return c, fmt.Errorf("commit %s: %w", h.Short(), err)
	}
	return c, nil
}

// maxParents is how many parents a commit may have.
const maxParents = 64

func (m *mirror) parents(h tree.Hash) ([]tree.Hash, error) {
	c, err := m.commit(h)
	return c.Parents, err
}

// entries is a directory; a tree that `git fsck --strict` refuses is an error.
func (m *mirror) entries(h tree.Hash) ([]tree.Entry, error) {
	list, _, err := m.listed(h)
	return list, err
}

// listed is a directory, and how many bytes it has.
func (m *mirror) listed(h tree.Hash) (list []tree.Entry, size int, err error) {
	data, err := m.read(h, gitobj.Tree, maxTree)
	if err != nil {
		return nil, 0, err
	}
	if list, err = gitobj.DecodeDir(data); err != nil {
		return nil, len(data), fmt.Errorf("directory %s: %w", h.Short(), err)
	}
	return list, len(data), nil
}

// contains reports whether a commit is head or one of its ancestors.
func (m *mirror) contains(ctx context.Context, head, h tree.Hash) (bool, error) {
	if !m.has(h) {
		return false, nil // a mirror has all that its head reaches
	}
	return m.graph.Holds(ctx, head, h)
}
