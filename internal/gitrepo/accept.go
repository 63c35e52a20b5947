package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// rereadAccepted takes over what another process on this state directory
// accepted.
func (r *Repo) rereadAccepted() error {
	if r.opts.Dir == "" || r.unsaved {
		return nil
	}
	a, err := readAccepted(r.opts.Dir)
	if err != nil {
		return err
	}
	if a != (Accepted{}) {
		r.accepted = a
	}
	return nil
}

// checkRewritten demands that both heads descend from the heads accepted here
// and from those noted at the remote.
func (r *Repo) checkRewritten() error {
	for _, f := range []struct {
		ref      string
		accepted []tree.Hash
	}{
		{r.inputsRef, []tree.Hash{r.accepted.Inputs, r.refs[acceptedInputsRef]}},
		{r.ledgerRef, []tree.Hash{r.accepted.Ledger, r.refs[acceptedLedgerRef]}},
	} {
		head := r.refs[f.ref]
		for _, a := range f.accepted {
			pair := [2]tree.Hash{a, head}
			if a.IsZero() || a == head || r.descends[pair] {
				continue
			}
			ok := false
			var err error
			if !head.IsZero() {
				ok, err = r.isAncestor(a, head)
			}
			if err != nil {
				return err
			}
			if !ok {
				return &ErrRewritten{Ref: f.ref, Old: a, New: head}
			}
			if len(r.descends) > 100 {
				clear(r.descends)
			}
			r.descends[pair] = true
		}
	}
	return nil
}

// Accept notes the heads that a round has acted on: later heads must descend
// from them, and Foreign is asked about what came since. A zero hash leaves
// that side as it is. Commit accepts what it pushes by itself.
func (r *Repo) Accept(inputs, ledger tree.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.accepted
	if !inputs.IsZero() {
		a.Inputs = inputs
	}
	if !ledger.IsZero() {
		a.Ledger = ledger
	}
	if a != r.accepted {
		r.accepted, r.unsaved = a, true
		r.trySaveAccepted()
	}
}

// AcceptRewrite takes a rewritten branch's present head as accepted, here and
// at the remote. The commit must be the head of inputs or ledger: an operator
// accepts what he looked at and not what came after.
func (r *Repo) AcceptRewrite(ctx context.Context, commit tree.Hash) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.rereadAccepted(); err != nil {
		return err
	}
	if err := r.download(ctx); err != nil {
		return err
	}
	refs := r.refs
	a := r.accepted
	isHead := false
	var cmds []Command
	for _, f := range []struct {
		branch, ref string
		to          *tree.Hash
	}{{r.inputsRef, acceptedInputsRef, &a.Inputs}, {r.ledgerRef, acceptedLedgerRef, &a.Ledger}} {
		if commit.IsZero() || refs[f.branch] != commit {
			continue
		}
		isHead = true
		*f.to = commit
		if old := refs[f.ref]; !old.IsZero() && old != commit {
			cmds = append(cmds, Command{Ref: f.ref, Old: old, New: commit})
		}
	}
	if !isHead {
		return fmt.Errorf("accept %s: it is not the head of %s (%s) or of %s (%s); look again and name the head you mean",
			commit.Short(), r.inputsRef, refs[r.inputsRef].Short(), r.ledgerRef, refs[r.ledgerRef].Short())
	}
	if err := r.moveRefs(ctx, cmds); err != nil {
		return fmt.Errorf("accept %s: %w", commit.Short(), err)
	}
	if a != r.accepted {
		r.accepted, r.unsaved = a, true
	}
	return r.saveAccepted()
}

// moveRefs updates refs to commits that the remote has. A failed push is
// judged by the refs as they are then.
func (r *Repo) moveRefs(ctx context.Context, cmds []Command) error {
	if len(cmds) == 0 {
		return nil
	}
	pack, err := gitobj.Set{}.Pack()
	if err != nil {
		return err
	}
	perr := r.remote.Push(ctx, cmds, pack)
	if perr == nil {
		refs := maps.Clone(r.refs)
		for _, c := range cmds {
			refs[c.Ref] = c.New
			if c.New.IsZero() {
				delete(refs, c.Ref)
			}
		}
		r.refs = refs
		return nil
	}
	refs, err := r.remote.Refs(ctx)
	if err != nil {
		return errors.Join(perr, err)
	}
	if slices.ContainsFunc(cmds, func(c Command) bool { return refs[c.Ref] != c.New }) {
		return perr
	}
	return r.download(ctx)
}
