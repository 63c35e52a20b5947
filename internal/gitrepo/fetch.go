package gitrepo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Head is a branch as it stands at the remote. A branch that does not exist
// has a zero Commit and an empty Tree.
type Head struct {
	Ref    string
	Commit Commit
	// Tree is the commit's. That of a ledger whose head is broken is what the
	// newest whole commit before it has: delivery and planner never see the other.
	Tree tree.Tree
}

// Heads is what Fetch found.
type Heads struct {
	Inputs, Ledger Head
	// Accepted are the heads accepted before this fetch; see Accept.
	Accepted Accepted
	// Settled tells what became of commits whose push had failed (ErrUnknown,
	// ErrRefused), each once. Unsettled counts those still undecided: they can
	// land only as long as the ledger stays where it is.
	Settled   []Settled
	Unsettled int
	// Alarms are what the remote notes as accepted and the trust root does not
	// bear out, and heads that bring more than is taken in. They stop nothing else.
	Alarms []string
}

// Settled is the fate of a commit whose push was not acknowledged.
type Settled struct {
	Commit tree.Hash
	Keys   []string
	Landed bool
}

// Fetch brings the local copy up to the remote and returns its heads. The
// error is an *ErrRewritten when a head does not descend from the accepted
// one; the heads are returned with it, to look at.
func (r *Repo) Fetch(ctx context.Context) (Heads, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probe()
	r.trySaveAccepted()
	r.rereadAccepted()
	heads, err := r.look(ctx)
	var local *ErrLocal
	if errors.As(err, &local) {
		heads, err = r.look(ctx) // after a new clone
	}
	if err != nil {
		return heads, err
	}
	heads.Settled, r.settled = r.settled, nil
	heads.Unsettled = len(r.pending)
	return heads, nil
}

func (r *Repo) look(ctx context.Context) (Heads, error) {
	err := r.sync(ctx)
	var rewritten *ErrRewritten
	if errors.As(err, &rewritten) {
		took, terr := r.acceptNamed(ctx)
		if terr != nil {
			return Heads{}, terr
		}
		if took {
			err = r.sync(ctx)
		}
	}
	if err != nil && !errors.As(err, &rewritten) {
		return Heads{}, err
	}
	if err := r.lookForNamed(); err != nil {
		return Heads{}, err
	}
	heads, herr := r.heads()
	if herr != nil {
		return Heads{}, herr
	}
	return heads, err
}

func (r *Repo) heads() (h Heads, err error) {
	h = Heads{Accepted: r.known(), Alarms: slices.Sorted(maps.Values(r.alarms))}
	for _, ref := range slices.Sorted(maps.Keys(r.refused)) {
		h.Alarms = append(h.Alarms, r.refused[ref].alarm(ref))
	}
	h.Alarms = append(h.Alarms, r.strayAlarms()...)
	h.Alarms = append(h.Alarms, r.marketAlarms()...)
	for _, f := range []struct {
		ref string
		to  *Head
	}{{r.inputsRef, &h.Inputs}, {r.ledgerRef, &h.Ledger}} {
		f.to.Ref = f.ref
		c := r.refs[f.ref]
		if c.IsZero() {
			continue
		}
		info, err := r.info(c)
		if err != nil {
			return Heads{}, err
		}
		f.to.Commit, f.to.Tree = info, tree.Tree{Store: r.store, Root: info.Tree}
	}
	if h.Ledger.Tree, err = r.ledger(r.anchor()).tree(h.Ledger.Commit.Hash); err != nil {
		return Heads{}, err
	}
	if r.identity.Load().Signed {
		return h, nil // a note proves nothing: see Anchor
	}
	// On a first start there is nothing of our own to go by: what another
	// daemon accepted stands.
	if h.Accepted.Inputs.IsZero() {
		h.Accepted.Inputs = r.refs[acceptedInputsRef]
	}
	if h.Accepted.Ledger.IsZero() {
		h.Accepted.Ledger = r.refs[acceptedLedgerRef]
	}
	return h, nil
}

// sync reads the refs, brings the objects, settles pending pushes and checks
// that nothing was rewritten. The caller holds mu.
func (r *Repo) sync(ctx context.Context) error {
	if err := r.download(ctx); err != nil {
		return err
	}
	err := r.checkRewritten(ctx)
	// A server updates the refs of one push one after the other, and a reader
	// may see the accepted ref before the branch. So a contradiction counts
	// only if it stays.
	for try := 0; err != nil && try < 3; try++ {
		var rewritten *ErrRewritten
		if !errors.As(err, &rewritten) {
			return err
		}
		if serr := r.opts.Sleep(ctx, r.opts.Backoff); serr != nil {
			return serr
		}
		if derr := r.download(ctx); derr != nil {
			return derr
		}
		err = r.checkRewritten(ctx)
	}
	if err != nil {
		return err
	}
	r.lookAtMarket(ctx)
	r.lookAtOffer(ctx)
	return r.settle()
}

// settle decides pending pushes by the ledger as it now is.
func (r *Repo) settle() error {
	head := r.refs[r.ledgerRef]
	var open []attempt
	for _, a := range r.pending {
		landed, err := r.contains(head, a)
		if err != nil {
			return err
		}
		switch {
		case landed:
			r.settled = append(r.settled, Settled{Commit: a.commit, Keys: a.keys, Landed: true})
		case head == a.parent:
			open = append(open, a)
		default:
			r.settled = append(r.settled, Settled{Commit: a.commit, Keys: a.keys})
		}
	}
	r.pending = open
	return nil
}

// contains tells whether the ledger at head holds an attempted commit.
func (r *Repo) contains(head tree.Hash, a attempt) (bool, error) {
	if head == a.commit {
		return true, nil
	}
	if head.IsZero() || head == a.parent || !r.store.has(a.commit) {
		return false, nil
	}
	return r.isAncestor(a.commit, head)
}

// LedgerAtRemote asks the remote where the ledger is right now, without
// fetching: for whoever is about to undo something on the ledger's word and
// must not act on an old one. A zero hash: there is no ledger.
func (r *Repo) LedgerAtRemote(ctx context.Context) (tree.Hash, error) {
	refs, err := r.remote.Refs(ctx)
	return refs[r.ledgerRef], err
}
