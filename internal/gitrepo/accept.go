package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/accepted"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// rereadAccepted takes over what another process on this state directory
// accepted.
func (r *Repo) rereadAccepted() {
	if r.opts.Dir == "" || r.unsaved {
		return
	}
	a, err := accepted.Read(r.opts.Dir)
	if r.damaged = err; err != nil {
		r.unsaved = r.accepted != Accepted{} // what is known here is written again
		return
	}
	if a != (Accepted{}) {
		r.accepted = a
	}
}

// lookAtDamage names a file of accepted heads that cannot be read. In a signed
// fleet the root decides what stands. In an unsigned one the remote's notes count;
// a branch without one is nobody's word, and waits for an operator's.
func (r *Repo) lookAtDamage() error {
	if r.damaged == nil || r.accepted != (Accepted{}) {
		return nil
	}
	said := "what the remote notes as accepted counts"
	if r.identity.Load().Signed {
		said = "the trust root decides what stands"
	} else {
		for _, f := range [][2]string{{r.inputsRef, acceptedInputsRef}, {r.ledgerRef, acceptedLedgerRef}} {
			if head := r.refs[f[0]]; !head.IsZero() && r.refs[f[1]].IsZero() {
				return &NoMemoryError{Ref: f[0], Head: head, Why: r.damaged}
			}
		}
	}
	r.alarms[acceptedFile] = fmt.Sprintf("%v; %s, and the file is set aside", r.damaged, said)
	return nil
}

// checkRewritten demands that both heads descend from the heads accepted here
// and from those noted at the remote; where nothing was accepted here, the inputs
// from those that the ledger notes.
func (r *Repo) checkRewritten(ctx context.Context) error {
	r.lookAtNotes(ctx)
	if err := r.lookAtDamage(); err != nil {
		return err
	}
	return r.eachGone(ctx, func(ref string, gone tree.Hash) error {
		e := &ErrRewritten{Ref: ref, Old: gone, New: r.refs[ref]}
		e.Standing, _ = r.anchors().Standing(ctx, e.New, gone, ref == r.ledgerRef && r.identity.Load().Signed) // for the message
		return e
	})
}

// eachGone calls do for each accepted head that its branch does not contain.
func (r *Repo) eachGone(ctx context.Context, do func(ref string, gone tree.Hash) error) error {
	recorded, err := r.recordedAtStart(ctx)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		ref      string
		accepted []tree.Hash
	}{
		{r.inputsRef, []tree.Hash{r.accepted.Inputs, r.noted(acceptedInputsRef), recorded}},
		{r.ledgerRef, []tree.Hash{r.accepted.Ledger, r.noted(acceptedLedgerRef)}},
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
			if err == nil && !ok {
				err = do(f.ref, a)
			}
			if err != nil {
				return err
			}
			if len(r.descends) > 100 {
				clear(r.descends)
			}
			r.descends[pair] = ok
		}
	}
	return nil
}

// recordedAtStart is what the ledger notes of the inputs, where nothing was accepted
// here: who starts without state finds by it that they were set back.
func (r *Repo) recordedAtStart(ctx context.Context) (tree.Hash, error) {
	if !r.accepted.Inputs.IsZero() {
		return tree.Hash{}, nil
	}
	return r.recordedInputs(ctx)
}

// Accept notes the heads that a round has acted on: later heads must descend
// from them, and Foreign is asked about what came since. A zero hash leaves
// that side as it is. Commit accepts what it pushes by itself.
func (r *Repo) Accept(inputs, ledger tree.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.known()
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
	r.rereadAccepted()
	if err := r.download(ctx); err != nil {
		return err
	}
	r.lookAtNotes(ctx)
	to := map[string]tree.Hash{}
	for _, branch := range []string{r.inputsRef, r.ledgerRef} {
		if !commit.IsZero() && r.refs[branch] == commit {
			to[branch] = commit
		}
	}
	if len(to) == 0 {
		return fmt.Errorf("accept %s: it is not the head of %s (%s) or of %s (%s); look again and name the head you mean",
			commit.Short(), r.inputsRef, r.refs[r.inputsRef].Short(), r.ledgerRef, r.refs[r.ledgerRef].Short())
	}
	return r.acceptAt(ctx, to)
}

// acceptAt takes branches as accepted at commits that they contain, here and at the
// remote, and notes what they let go of.
func (r *Repo) acceptAt(ctx context.Context, to map[string]tree.Hash) error {
	a := r.known()
	recorded, err := r.recordedAtStart(ctx)
	if err != nil {
		return err
	}
	var cmds []Command
	for _, f := range []struct {
		branch, ref string
		is          *tree.Hash
	}{{r.inputsRef, acceptedInputsRef, &a.Inputs}, {r.ledgerRef, acceptedLedgerRef, &a.Ledger}} {
		commit, ok := to[f.branch]
		if !ok {
			continue
		}
		gone := []tree.Hash{*f.is, r.noted(f.ref)}
		if f.branch == r.inputsRef {
			gone = append(gone, recorded)
		}
		if a.Dropped, err = letgo.Add(a.Dropped, f.branch, gone, r.refs[f.branch], r.isAncestor); err != nil {
			return err
		}
		if commit, err = letgo.Stands(commit, *f.is, r.refs[f.branch], r.within); err != nil {
			return err
		}
		*f.is = commit
		old := r.refs[f.ref]
		if between, err := r.isBetween(commit, old, r.refs[f.branch]); err != nil {
			return err
		} else if between {
			continue // another daemon's note, of what came after
		}
		if !old.IsZero() || r.damaged != nil && !r.identity.Load().Signed {
			cmds = append(cmds, Command{Ref: f.ref, Old: old, New: commit})
		}
	}
	if cmds, err = r.clear(ctx, cmds); err == nil {
		err = r.moveRefs(ctx, cmds)
	}
	if err != nil {
		return fmt.Errorf("accept a rewritten history: %w", err)
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
