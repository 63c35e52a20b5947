package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/cachedir"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/packs"
)

// Small packs are read into memory; larger ones go to disk as they come. The
// second figure bounds what a pack may inflate to in memory.
const (
	smallPack         = 4 << 20
	smallPackInflated = 64 << 20
)

// diskPause is how long the local copy stays in memory after the disk failed,
// before the disk is tried again.
const diskPause = 10 * time.Minute

// maxHaves bounds the commits named to the server for each ref, so that it
// finds a common one after a short rewind too.
const maxHaves = 16

// download reads the refs and brings the objects of the tracked ones.
func (r *Repo) download(ctx context.Context) error {
	why := r.mustReclone()
	if why != nil {
		r.opts.Observer.LocalTrouble(why)
		r.cacheDamage = damageOf(why)
	}
	if why != nil || (r.opts.Dir != "" && r.cache == nil && !r.opts.Now().Before(r.diskRetry)) {
		return r.reclone(ctx)
	}
	var refs map[string]tree.Hash
	err := r.remote.Fetch(ctx, func(is map[string]tree.Hash) (want, have []tree.Hash) {
		refs = is
		if want = r.missing(refs, r.store.has); len(want) > 0 {
			have = r.haves()
		}
		return want, have
	}, r.take)
	if errors.Is(err, gitobj.ErrPackTooLarge) {
		refs, err = r.downloadEach(ctx, r.here())
	}
	if err != nil {
		return err
	}
	return r.complete(refs)
}

// missing are the tracked heads whose commits are not in a copy, but for refused
// ones. A commit that is there has its whole closure there, because objects arrive
// in complete packs.
func (r *Repo) missing(refs map[string]tree.Hash, has func(tree.Hash) bool) []tree.Hash {
	var want []tree.Hash
	for _, ref := range r.tracked() {
		if h := refs[ref]; !h.IsZero() && !slices.Contains(want, h) && !has(h) && r.refused[ref].head != h {
			want = append(want, h)
		}
	}
	return want
}

// haves names what the local copy holds whole, and some ancestors of it.
func (r *Repo) haves() []tree.Hash {
	seen := map[tree.Hash]bool{}
	var out []tree.Hash
	for _, refs := range []map[string]tree.Hash{r.refs, r.whole} {
		for _, ref := range r.tracked() {
			h := refs[ref]
			for n := 0; n < maxHaves && !h.IsZero() && !seen[h] && r.store.has(h); n++ {
				seen[h] = true
				out = append(out, h)
				c, err := r.store.commit(h)
				if err != nil || len(c.Parents) == 0 {
					break
				}
				h = c.Parents[0]
			}
		}
	}
	return out
}

// take receives the pack of an incremental fetch.
func (r *Repo) take(pack io.Reader) error {
	if r.store.disk == nil {
		return r.takeIntoMemory(pack, 0)
	}
	var head bytes.Buffer
	n, err := io.Copy(&head, io.LimitReader(pack, smallPack+1))
	if err != nil {
		return err
	}
	if n <= smallPack {
		err := r.takeIntoMemory(bytes.NewReader(head.Bytes()), smallPackInflated)
		if !errors.Is(err, gitobj.ErrPackTooLarge) {
			return err
		}
	}
	return r.takeOntoDisk(io.MultiReader(&head, pack))
}

// takeOntoDisk spools a large pack first, so that readers do not wait for the
// network while the storage takes it in. A disk that fails is doubted: the
// next attempt clones, to a new directory or into memory.
func (r *Repo) takeOntoDisk(pack io.Reader) (err error) {
	spool, err := os.CreateTemp(r.cache.Path, "incoming-")
	if err != nil {
		return r.store.doubtAll(err)
	}
	defer func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}()
	src := &sourceErr{r: pack}
	if _, err = io.Copy(spool, io.LimitReader(src, packs.MaxReceived+1<<20)); err != nil {
		if src.err != nil {
			return err
		}
		return r.store.doubtAll(err)
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return r.store.doubtAll(err)
	}
	if err := r.store.takePack(spool); errors.Is(err, gitobj.ErrPackTooLarge) {
		return err // no copy that is made again would hold it
	} else if err != nil {
		return r.store.doubtAll(err)
	}
	return nil
}

func (r *Repo) takeIntoMemory(pack io.Reader, limit int64) error {
	set, err := gitobj.ReadPack(pack, limit)
	if err != nil {
		return err
	}
	r.store.add(set)
	return nil
}

// mustReclone tells why the local copy cannot be trusted any more, or has
// become slow; nil: it is fine.
func (r *Repo) mustReclone() error {
	if d := r.store.doubted(); d != nil {
		return d
	}
	if r.cache == nil {
		return nil
	}
	if err := r.cache.Disk.Present(); err != nil {
		return fmt.Errorf("look at the local copy: %w", err)
	}
	if n := r.cache.Disk.Len(); n > r.opts.MaxPacks {
		return &tooManyPacks{n, r.opts.MaxPacks}
	}
	for _, h := range r.whole {
		if !r.store.has(h) {
			return fmt.Errorf("the local copy lacks commit %s, which it should have", h)
		}
	}
	return nil
}

// reclone clones into a new directory (or, if no disk will have it, into
// memory) and swaps it in. Readers of old trees are not disturbed.
func (r *Repo) reclone(ctx context.Context) error {
	if r.opts.Dir != "" {
		refs, err := r.cloneToDisk(ctx)
		var disk *diskError
		if errors.As(err, &disk) && cachedir.RemoveAside(r.opts.Dir) { // there may be room now
			refs, err = r.cloneToDisk(ctx)
		}
		if err == nil {
			r.note(cacheNote, nil)
			return r.complete(refs)
		}
		if !errors.As(err, &disk) {
			return err
		}
		r.note(cacheNote, err)
		r.diskRetry = r.opts.Now().Add(diskPause)
	}
	var refs map[string]tree.Hash
	set := gitobj.Set{}
	in := intake{
		has: func(h tree.Hash) bool { _, ok := set[h]; return ok },
		raw: func(h tree.Hash) ([]byte, error) { return set[h].Data, nil },
		take: func(p io.Reader) error {
			part, err := gitobj.ReadPack(p, 0)
			maps.Copy(set, part)
			return err
		},
	}
	err := r.cloneFrom(ctx, &refs, in)
	if err != nil {
		return err
	}
	r.swap(nil)
	r.store.add(set)
	return r.complete(refs)
}

// diskError is a failure of the local disk, as opposed to the remote's.
type diskError struct{ err error }

func (e *diskError) Error() string { return "clone to disk: " + e.err.Error() }

func (e *diskError) Unwrap() error { return e.err }

func (r *Repo) cloneToDisk(ctx context.Context) (refs map[string]tree.Hash, err error) {
	c, err := cachedir.New(r.opts.Dir)
	if err != nil {
		return nil, &diskError{err}
	}
	var disked bool
	err = r.cloneFrom(ctx, &refs, intake{
		has: c.Disk.Has,
		raw: func(h tree.Hash) ([]byte, error) {
			o, err := c.Disk.Read(h, r.opts.MaxBlob)
			return o.Data, err
		},
		take: func(pack io.Reader) (err error) {
			disked, err = c.Disk.Take(pack)
			return err
		},
	})
	if err != nil {
		c.Remove()
		if disked {
			return nil, &diskError{err}
		}
		return nil, err
	}
	r.swap(c)
	return refs, nil
}

// cloneFrom fills a new copy, at once if it can.
func (r *Repo) cloneFrom(ctx context.Context, refs *map[string]tree.Hash, in intake) error {
	err := r.remote.Fetch(ctx, r.everything(refs), in.take)
	if !errors.Is(err, gitobj.ErrPackTooLarge) {
		return err
	}
	in.haves = func() []tree.Hash {
		return slices.DeleteFunc(slices.Collect(maps.Values(*refs)), func(h tree.Hash) bool { return !in.has(h) })
	}
	*refs, err = r.cloneEach(ctx, in)
	return err
}

// everything chooses all tracked refs, and notes the refs.
func (r *Repo) everything(refs *map[string]tree.Hash) func(map[string]tree.Hash) (want, have []tree.Hash) {
	return func(is map[string]tree.Hash) (want, have []tree.Hash) {
		*refs = is
		for _, ref := range r.tracked() {
			if h := is[ref]; !h.IsZero() && !slices.Contains(want, h) {
				want = append(want, h)
			}
		}
		return want, nil
	}
}

// complete takes refs over whose objects have just arrived.
func (r *Repo) complete(refs map[string]tree.Hash) error {
	if still := r.missing(refs, r.store.has); len(still) > 0 {
		return fmt.Errorf("fetch: the remote sent a pack without %s, which it advertises; try again", still[0])
	}
	if err := r.noCommits(refs); err != nil {
		return err
	}
	refs = r.standing(refs)
	r.refs = map[string]tree.Hash{}
	for ref, h := range refs { // forges list a ref for every pull request ever made
		if slices.Contains(r.tracked(), ref) || ref == offerRef || strings.HasPrefix(ref, MarketPrefix) || r.blocks(ref) != "" {
			r.refs[ref] = h
		}
	}
	r.maintain()
	return nil
}

func (r *Repo) swap(c *cachedir.Dir) {
	old := r.cache
	r.cache = c
	r.whole = map[string]tree.Hash{}
	if c == nil {
		r.store.swap(nil)
	} else {
		r.store.swap(c.Disk)
	}
	if old != nil {
		r.giveUp(old)
	}
}

// maintain keeps memory bounded and the cache's notes current. It never fails
// the caller: what cannot be written stays in memory.
func (r *Repo) maintain() {
	if r.cache == nil {
		return
	}
	if _, n := r.store.recentSize(); n < r.opts.FlushBytes && len(r.whole) > 0 {
		return
	}
	r.tryFlush()
}
