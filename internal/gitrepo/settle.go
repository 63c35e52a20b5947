package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// attempt is a push whose fate was, or is, not known.
type attempt struct {
	commit, parent tree.Hash
	keys           []string
}

// fate is what became of a push that was not acknowledged.
type fate int

const (
	refused fate = iota
	moved
	landed
)

// settle finds out what became of a failed push, by reading the refs again.
// The error's text decides nothing.
func (w *writer) settle(ctx context.Context, st staged, perr error) (fate, error) {
	r := w.r
	w.forget(st.commit)
	w.attempts = append(w.attempts, attempt{st.commit, st.parent, st.keys})
	refs, err := w.reread(ctx)
	if err != nil {
		return 0, &ErrUnknown{Commit: st.commit, Keys: st.keys, Cause: errors.Join(perr, err)}
	}
	if refs[r.ledgerRef] == st.commit {
		w.landed(st, refs)
		return landed, nil
	}
	changed := slices.ContainsFunc(st.cmds, func(c Command) bool { return refs[c.Ref] != c.Old }) || r.anyBlocked(refs, st.cmds)
	if !changed {
		var answered *Rejection
		if errors.As(perr, &answered) {
			w.forget(st.commit)
			return refused, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, &ErrUnknown{Commit: st.commit, Keys: st.keys, Cause: errors.Join(perr, err)}
		}
		return refused, nil
	}
	sctx := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		sctx, cancel = w.detached(ctx)
		defer cancel()
	}
	if err := r.sync(sctx); err != nil {
		var rewritten *ErrRewritten
		if errors.As(err, &rewritten) {
			return 0, err
		}
		return 0, &ErrUnknown{Commit: st.commit, Keys: st.keys, Cause: errors.Join(perr, err)}
	}
	return w.recognise(st)
}

// recognise looks for our attempts, this one and earlier ones, below a ledger
// head that is none of them.
func (w *writer) recognise(st staged) (fate, error) {
	r := w.r
	head := r.refs[r.ledgerRef]
	fate := moved
	var open []attempt
	for _, a := range w.attempts {
		in, err := r.contains(head, a)
		if err != nil {
			return 0, err
		}
		switch {
		case in:
			info, err := r.info(a.commit)
			if err != nil {
				return 0, err
			}
			w.record(info, a.keys)
			if a.commit == st.commit {
				fate = landed
			}
		case head == a.parent:
			open = append(open, a)
		}
	}
	w.attempts = open
	return fate, nil
}

// reread reads the refs, a few times if need be, also after the caller's
// context has ended: whoever waits for an answer gets one.
func (w *writer) reread(ctx context.Context) (map[string]tree.Hash, error) {
	var err error
	for try := 1; ; try++ {
		var refs map[string]tree.Hash
		if refs, err = w.rereadOnce(ctx); err == nil {
			return refs, nil
		}
		if try == resend || ctx.Err() != nil {
			return nil, err
		}
		if serr := w.pause(ctx, try); serr != nil {
			return nil, errors.Join(err, serr)
		}
	}
}

func (w *writer) rereadOnce(ctx context.Context) (map[string]tree.Hash, error) {
	sctx, cancel := w.detached(ctx)
	defer cancel()
	return w.r.remote.Refs(sctx)
}

// detached outlives the caller's context by the time allowed for settling, which
// is shorter once the caller stops: the push has had its grace.
func (w *writer) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	bound := w.r.opts.SettleTimeout
	if ctx.Err() != nil {
		bound = min(bound, w.r.opts.StopGrace/2)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), bound)
}

// landed takes a staged commit over as part of the ledger. refs are the
// remote's, when they were read again after it.
func (w *writer) landed(st staged, refs map[string]tree.Hash) {
	r := w.r
	r.store.add(st.objects)
	next := maps.Clone(r.refs)
	for _, c := range st.cmds {
		// A ref that another writer moved since is left stale: what it points
		// at is not here yet, and the next push to it will find out.
		if refs == nil || refs[c.Ref] == c.New {
			next[c.Ref] = c.New
		}
	}
	r.refs = next
	w.record(st.info, st.keys)
	r.publishedMarket(st.market)
	w.attempts = slices.DeleteFunc(w.attempts, func(a attempt) bool { return st.parent == a.parent })
}

// record notes a commit as landed and accepted.
func (w *writer) record(c Commit, keys []string) {
	r := w.r
	w.res.Commits = append(w.res.Commits, Committed{c, keys})
	for _, k := range keys {
		w.done[k] = true
	}
	w.base = c.Hash
	r.accepted, r.unsaved = r.known(), true
	r.accepted.Ledger = c.Hash
	if c.Trailer(DroppedTrailer) != "" {
		r.accepted.Dropped = ""
	}
	if forward, err := r.forward(r.accepted.Inputs, w.req.accepts()); err == nil && forward {
		r.accepted.Inputs = w.req.accepts()
	}
}

func (w *writer) finish(items []Item) {
	for _, it := range items {
		w.done[it.Key] = true
	}
}

func (w *writer) forget(commit tree.Hash) {
	w.attempts = slices.DeleteFunc(w.attempts, func(a attempt) bool { return a.commit == commit })
}

// keepPending leaves undecided pushes to the next Fetch.
func (w *writer) keepPending() {
	r := w.r
	for _, a := range w.attempts {
		if !slices.ContainsFunc(r.pending, func(b attempt) bool { return b.commit == a.commit }) {
			r.pending = append(r.pending, a)
		}
	}
}

// forward tells whether moving an accepted head from old to new is a step
// forward in history.
func (r *Repo) forward(old, new tree.Hash) (bool, error) {
	if new.IsZero() || old == new {
		return false, nil
	}
	if old.IsZero() {
		return true, nil
	}
	ok, err := r.isAncestor(old, new)
	if err != nil {
		return false, fmt.Errorf("compare accepted heads: %w", err)
	}
	return ok, nil
}
