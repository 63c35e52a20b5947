package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Proposal is a change of the inputs for a person to merge, on a branch of its
// own.
type Proposal struct {
	// Branch to make; one that exists is left as it is.
	Branch string
	// Puts are files written over the inputs' head.
	Puts map[string][]byte
	// Message of the commit.
	Message string
	// When is the committer's time.
	When time.Time
}

// Propose makes the branch with one commit on the inputs' head, and reports
// whether it did: a branch that exists, whoever made it and whatever people
// have done to it since, stands. It never moves a ref. An error says that the
// branch is not known to exist; calling again is safe.
func (r *Repo) Propose(ctx context.Context, p Proposal) (made bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := Branch(p.Branch)
	if !strings.HasPrefix(ref, "refs/heads/") || ref == r.inputsRef || ref == r.ledgerRef {
		return false, fmt.Errorf("propose on %s: a proposal has a branch of its own", ref)
	}
	refs, err := r.remote.Refs(ctx)
	if err != nil {
		return false, fmt.Errorf("propose on %s: %w", ref, err)
	}
	if !refs[ref].IsZero() {
		return false, nil
	}
	if err := r.proposable(refs, ref); err != nil {
		return false, err
	}
	if r.refs == nil {
		if err := r.sync(ctx); err != nil {
			return false, fmt.Errorf("propose on %s: %w", ref, err)
		}
	}
	cmd, pack, err := r.stageProposal(ref, p)
	if err != nil {
		return false, fmt.Errorf("propose on %s: %w", ref, err)
	}
	perr := r.remote.Push(ctx, []Command{cmd}, pack)
	if perr == nil {
		return true, nil
	}
	// Whatever the server said: the refs tell what became of it.
	if refs, err = r.remote.Refs(ctx); err != nil {
		return false, fmt.Errorf("propose on %s: %w", ref, errors.Join(perr, err))
	}
	switch refs[ref] {
	case cmd.New:
		return true, nil
	case tree.Hash{}:
		if err := r.proposable(refs, ref); err != nil {
			return false, err
		}
		return false, fmt.Errorf("propose on %s: %w", ref, perr)
	}
	return false, nil // another daemon was faster
}

// proposable names a branch of people with which git cannot keep the proposal's.
func (r *Repo) proposable(refs map[string]tree.Hash, ref string) error {
	if by := r.blocker(refs, Command{Ref: ref, New: emptyTree}); by != "" {
		return &ErrBranchInTheWay{Branch: strings.TrimPrefix(by, "refs/heads/"), Of: strings.TrimPrefix(ref, "refs/heads/")}
	}
	return nil
}

// stageProposal builds the commit on the inputs' head as it is known here.
func (r *Repo) stageProposal(ref string, p Proposal) (Command, []byte, error) {
	head := r.refs[r.inputsRef]
	base, err := r.inputs(r.accepted.Inputs).stored(head)
	if err != nil {
		return Command{}, nil, err
	}
	objects := gitobj.Set{}
	root, err := gitobj.Edit(base, gitobj.Change{Puts: p.Puts}, objects)
	if err != nil {
		return Command{}, nil, err
	}
	if root == base.Root {
		return Command{}, nil, errors.New("it changes nothing")
	}
	var parents []tree.Hash
	if !head.IsZero() {
		parents = []tree.Hash{head}
	}
	commit, err := r.makeCommit(objects, root, parents, p.When.UTC().Truncate(time.Second), p.Message)
	if err != nil {
		return Command{}, nil, err
	}
	pack, err := objects.Pack()
	return Command{Ref: ref, New: commit}, pack, err
}
