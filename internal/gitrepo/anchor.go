package gitrepo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/anchor"
)

// NoAnchorError is a ledger in which no signature says what stands.
type NoAnchorError struct {
	Ref  string
	Head tree.Hash
	// Rivals are the newest signed commits, of which none contains the others;
	// empty: no commit is signed.
	Rivals []tree.Hash
	// Closest is the signature that comes nearest to one that counts.
	Closest  Closest
	Standing anchor.Standing // of Head
}

func (e *NoAnchorError) Error() string {
	if len(e.Rivals) == 0 {
		return fmt.Sprintf("no commit of %s up to %s is signed by a key in force of the trust root's list ledger, so nothing says what of it stands: name the daemon's key there, or %s%s",
			e.Ref, e.Head.Short(), e.Standing.Accept(e.Ref, tree.Hash{}), e.Closest.String())
	}
	return fmt.Sprintf("%s up to %s contains signed commits without an order (%s, %s), so nothing says which of them stands: look at both, put the branch on one, and accept it with `fleetbroker reconcile --once --accept-rewrite`",
		e.Ref, e.Head.Short(), e.Rivals[0], e.Rivals[1])
}

// known are the accepted heads as far as they were accepted under the present
// trust root. The caller holds mu.
func (r *Repo) known() Accepted {
	id := r.identity.Load()
	if !id.Signed {
		return r.accepted
	}
	if r.accepted.Root != id.Root {
		return Accepted{Root: id.Root, Dropped: r.accepted.Dropped, Market: r.accepted.Market}
	}
	return r.accepted
}

// lookAtNotes finds the accepted refs that signatures do not bear out: a note of the
// ledger is a commit of ours that stood there, and one of the inputs is in their
// branch, or is what such a commit acted on. Anybody who can push a ref writes them.
func (r *Repo) lookAtNotes(ctx context.Context) {
	r.alarms = map[string]string{}
	id := r.identity.Load()
	if !id.Signed {
		return
	}
	a := r.known()
	for _, n := range []struct {
		ref, branch string
		accepted    tree.Hash
		by          string
	}{
		{acceptedInputsRef, r.inputsRef, a.Inputs, "no signed commit of the ledger acted on"},
		{acceptedLedgerRef, r.ledgerRef, a.Ledger, "no key of the trust root signed as a commit of this ledger"},
	} {
		h := r.refs[n.ref]
		if h.IsZero() || h == n.accepted || r.isNamed(n.branch, h) { // an operator may accept what no key in force has signed
			continue
		}
		if gone, err := r.isDropped(n.branch, n.accepted, h); err == nil && gone {
			r.alarms[n.ref] = fmt.Sprintf("%s names %s, which the trust root let go of before what is accepted: another account wrote that ref. It is ignored and put right; see who may push refs", n.ref, h.Short())
			continue
		}
		if ok, err := r.bornOut(ctx, n.ref, h); err == nil && ok {
			continue
		}
		if n.ref == acceptedInputsRef && !r.refs[n.branch].IsZero() {
			if in, err := r.isAncestor(h, r.refs[n.branch]); err == nil && in {
				continue // intents need not be signed
			}
		}
		r.alarms[n.ref] = fmt.Sprintf("%s names %s, which %s: another account wrote that ref. It is ignored and put right; see who may push refs", n.ref, h.Short(), n.by)
	}
}

// noted is what an accepted ref says, zero when it is not gone by.
func (r *Repo) noted(ref string) tree.Hash {
	if r.alarms[ref] != "" {
		return tree.Hash{}
	}
	return r.refs[ref]
}

// PutRight moves accepted refs that another account wrote back to what was
// accepted here, and deletes a note of the last offer that cannot be taken in and
// refs in the way of ours.
func (r *Repo) PutRight(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.deleteStrays(ctx); err != nil {
		return err
	}
	r.restoreMarket(ctx)
	a := r.known()
	var cmds []Command
	for ref, to := range map[string]tree.Hash{acceptedInputsRef: a.Inputs, acceptedLedgerRef: a.Ledger} {
		if old := r.at(ref); (r.alarms[ref] != "" || r.ignored(ref)) && !to.IsZero() && old != to {
			cmds = append(cmds, Command{Ref: ref, Old: old, New: to})
		}
	}
	if r.ignored(offeredRef) {
		cmds = append(cmds, Command{Ref: offeredRef, Old: r.at(offeredRef)})
	}
	slices.SortFunc(cmds, func(a, b Command) int { return cmp.Compare(a.Ref, b.Ref) })
	cmds, err := r.clear(ctx, cmds)
	if err == nil {
		err = r.moveRefs(ctx, cmds)
	}
	if err != nil {
		return fmt.Errorf("put the accepted refs right: %w", err)
	}
	return nil
}

// Anchor is the commit from which on the ledger's commits are held to the rules
// where nothing was accepted here: the one commit of ours that contains every
// other of ours below head, by the trust root's keys. Commits without the
// trailer Ledger count only where none has it. It is zero for a branch that also
// carries the inputs and on which the daemon has not yet written. What the
// remote notes is looked at again, now that all keys are known.
func (r *Repo) Anchor(ctx context.Context, head tree.Hash) (tree.Hash, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkRewritten(ctx); err != nil || head.IsZero() {
		return tree.Hash{}, err
	}
	find := r.anchors()
	numbered, plain, err := find.Below(ctx, head)
	if err != nil {
		return tree.Hash{}, err
	}
	if len(numbered) > 0 {
		plain = numbered
	}
	if len(plain) > 0 {
		top, rivals, err := find.Newest(plain)
		if err != nil {
			return top, err
		}
		named, err := r.anchorNamed(head, plain)
		if err == nil && named.IsZero() && rivals != nil {
			err = &NoAnchorError{Ref: r.ledgerRef, Head: head, Rivals: rivals}
		}
		if !named.IsZero() {
			top = named
		}
		return top, err
	}
	if named, err := r.anchorNamed(head, nil); err != nil || !named.IsZero() {
		return named, err
	}
	if r.inputsRef == r.ledgerRef && r.unwritten(head) {
		return tree.Hash{}, nil
	}
	standing, err := find.Standing(ctx, head, tree.Hash{}, false)
	return tree.Hash{}, cmp.Or(err, error(&NoAnchorError{Ref: r.ledgerRef, Head: head, Closest: r.closest(ctx, head), Standing: standing}))
}

// anchors looks for what of the ledger stands, by the keys in force.
func (r *Repo) anchors() anchor.History {
	return anchor.History{Within: r.within, Commit: func(h tree.Hash) (out anchor.Commit, err error) {
		c, err := r.info(h)
		if err != nil {
			return out, err
		}
		out.Parents, out.By = c.Parents, c.Committer.Email
		if out.Ours, err = r.byUs(*r.identity.Load(), h); err != nil || !out.Ours {
			return out, err
		}
		out.Inputs, _ = tree.ParseHash(cmp.Or(c.Trailer("Verified"), c.Trailer("Inputs"))) // else it names none
		out.Number, err = r.sequenceOf(c)
		return out, err
	}}
}

// closest looks for the signature below a head that comes nearest to one of ours,
// on the line of first parents, for a message.
func (r *Repo) closest(ctx context.Context, head tree.Hash) (c Closest) {
	for h, n := head, 0; !h.IsZero() && n < maxSeek && ctx.Err() == nil; n++ {
		raw, err := r.store.rawCommit(h)
		if err != nil {
			return c
		}
		_, err = r.identity.Load().Trusted.SignedCommit(h, raw, time.Now(), r.isAncestor)
		c.See(h, err)
		info, err := r.info(h)
		if err != nil || len(info.Parents) == 0 {
			return c
		}
		h = info.Parents[0]
	}
	return c
}

// unwritten tells that a commit has nothing of what the daemon writes.
func (r *Repo) unwritten(head tree.Hash) bool {
	t, err := r.Tree(head)
	if err != nil {
		return false
	}
	entries, err := t.Entries()
	names := r.ledger(tree.Hash{}).names
	return err == nil && !slices.ContainsFunc(entries, func(e tree.Entry) bool { return slices.Contains(names, e.Name) })
}
