package gitrepo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Limits of Commit's patience.
const (
	// fruitless bounds the refused pushes after which a request of which
	// nothing passed is taken as refused whole: when the items in 16 different
	// parts of it are all refused, the items are not to blame.
	fruitless = 24
	// resend is how often a push that failed without an answer, and did not
	// land, is sent again before it counts as refused.
	resend = 3
	// silent bounds the refused pushes that got no answer: the whole and its
	// halves (a proxy may refuse the size), no further.
	silent = 3
	// clockTolerance is how far a parent may be ahead of our clock.
	clockTolerance = 30 * time.Second
)

// Commit puts the items on the remote's ledger, in one commit if it can.
//
// Errors: *ErrReplan, *ErrBusy, *ErrHeld, *ErrRefused, *ErrUnknown, *ErrRewritten,
// *ErrClock, or the context's. In each case the Result tells what landed
// before it. A nil error with Result.Refused set means that the remote refuses
// those items and took the others.
func (r *Repo) Commit(ctx context.Context, req Request) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start := r.opts.Now()
	w := &writer{r: r, req: req, base: req.Base, done: map[string]bool{}}
	err := w.run(ctx)
	w.keepPending()
	r.maintain()
	r.opts.Observer.CommitDone(r.opts.Now().Sub(start), len(req.Items), outcome(w.res, err))
	return w.res, err
}

func outcome(res Result, err error) string {
	var (
		replan    *ErrReplan
		busy      *ErrBusy
		refused   *ErrRefused
		unknown   *ErrUnknown
		rewritten *ErrRewritten
	)
	switch {
	case err == nil && len(res.Commits) > 0:
		return "committed"
	case err == nil:
		return "unchanged"
	case errors.As(err, &replan):
		return "replan"
	case errors.As(err, &busy):
		return "busy"
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &unknown):
		return "unknown"
	case errors.As(err, &rewritten):
		return "rewritten"
	}
	return "error"
}

// writer is one call of Commit.
type writer struct {
	r   *Repo
	req Request
	res Result
	// base is the ledger commit up to which the request's preconditions hold.
	base tree.Hash
	done map[string]bool
	// offer: the commit goes to the branch of proposals and not to the ledger.
	offer bool
	// attempts are pushes without a known fate. A slow server may still carry
	// one out after the refs were read again.
	attempts []attempt
	// refusals counts pushes refused, unanswered those of them that failed
	// without the server saying no.
	refusals, unanswered int
}

func (w *writer) run(ctx context.Context) error {
	if err := w.req.check(w.r.opts.Generated); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	if len(w.req.Items) == 0 {
		return nil
	}
	queue := [][][]Item{groups(w.req.Items)}
	var cause error
	for len(queue) > 0 {
		chunk := w.left(queue[0])
		queue = queue[1:]
		if len(chunk) == 0 {
			continue
		}
		refusal, err := w.commitChunk(ctx, chunk)
		if err != nil {
			return err
		}
		if refusal == nil {
			continue
		}
		cause = refusal
		if len(w.res.Commits) == 0 && w.hopeless(refusal) {
			break
		}
		if len(chunk) == 1 {
			for _, it := range chunk[0] {
				w.res.Refused = append(w.res.Refused, Refusal{it.Key, refusal})
			}
			continue
		}
		queue = append(queue, chunk[:len(chunk)/2], chunk[len(chunk)/2:])
	}
	if cause != nil && len(w.res.Commits) == 0 {
		return &ErrRefused{Ref: w.r.ledgerRef, Cause: cause}
	}
	return nil
}

// hopeless counts refusals and tells when there have been enough.
func (w *writer) hopeless(refusal error) bool {
	w.refusals++
	var answered *Rejection
	if !errors.As(refusal, &answered) {
		w.unanswered++
	}
	return w.refusals >= fruitless || w.unanswered >= silent
}

// prepare makes sure that the local copy can be trusted and earlier pushes
// are decided as far as can be.
func (w *writer) prepare(ctx context.Context) error {
	r := w.r
	if r.refs == nil || len(r.pending) > 0 || r.store.doubted() != nil {
		return r.sync(ctx)
	}
	return r.checkRewritten(ctx)
}

// left are the groups without the items that landed meanwhile.
func (w *writer) left(chunk [][]Item) [][]Item {
	var out [][]Item
	for _, g := range chunk {
		g = slices.DeleteFunc(slices.Clone(g), func(it Item) bool { return w.done[it.Key] })
		if len(g) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// commitChunk commits groups of items together. It returns nil, nil when they
// are on the ledger; a refusal when the remote will not have them.
func (w *writer) commitChunk(ctx context.Context, chunk [][]Item) (refusal, err error) {
	for sent := 0; ; {
		items := slices.Concat(w.left(chunk)...)
		if len(items) == 0 {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st, err := w.ready(ctx, items)
		if err != nil {
			return nil, err
		}
		if st.commit.IsZero() {
			w.finish(items)
			w.res.Unchanged = append(w.res.Unchanged, keysOf(items)...)
			return nil, nil
		}
		if st.cmds, err = w.r.clear(ctx, st.cmds); err != nil {
			return nil, err
		}
		perr := w.push(ctx, st)
		if perr == nil {
			w.landed(st, nil)
			return nil, nil
		}
		if errors.As(perr, new(*ErrHeld)) {
			return nil, perr
		}
		fate, err := w.settle(ctx, st, perr)
		switch {
		case err != nil:
			return nil, err
		case fate == landed:
			return nil, nil
		case fate == moved:
			w.res.Conflicts++
			w.r.opts.Observer.PushConflict()
			// A plan is made again rather than kept until a push may go.
			busy, ok := w.r.remote.(interface{ Busy() bool })
			if w.res.Conflicts >= w.r.opts.Tries || ok && busy.Busy() {
				return nil, &ErrBusy{w.res.Conflicts}
			}
			if err := w.pause(ctx, w.res.Conflicts); err != nil {
				return nil, err
			}
		default:
			var answered *Rejection
			if sent++; errors.As(perr, &answered) || sent >= resend {
				return perr, nil
			}
			if err := w.pause(ctx, sent); err != nil {
				return nil, err
			}
		}
	}
}

// push sends a commit. A stop does not cut it off at once: a push whose answer is
// lost may or may not have taken effect.
func (w *writer) push(ctx context.Context, st staged) error {
	going, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		grace := time.NewTimer(w.r.opts.StopGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
			cancel(context.Cause(ctx))
		case <-going.Done():
		}
	})()
	return w.r.remote.Push(going, st.cmds, st.pack)
}

// pause waits with full jitter, the ceiling doubling from try to try.
func (w *writer) pause(ctx context.Context, try int) error {
	o := w.r.opts
	ceiling := o.Backoff << min(try-1, 5)
	return o.Sleep(ctx, time.Duration(o.Rand()*float64(ceiling)))
}

// ready checks the preconditions on the present head and builds the commit
// there; once more after a new clone if the local copy proves damaged.
func (w *writer) ready(ctx context.Context, items []Item) (staged, error) {
	w.r.restoreMarket(ctx)
	build := func() (staged, error) {
		parent, _, err := w.r.ground(w.r.refs[w.r.ledgerRef])
		if err != nil {
			return staged{}, err
		}
		c, err := w.req.compose(parent, items, w.r.opts.Generated)
		if err != nil {
			return staged{}, err
		}
		if err := w.preconditions(ctx, c); err != nil {
			return staged{}, err
		}
		return w.stage(c, items)
	}
	st, err := build()
	var local *ErrLocal
	if errors.As(err, &local) {
		if err := w.r.sync(ctx); err != nil {
			return staged{}, err
		}
		return build()
	}
	return st, err
}
