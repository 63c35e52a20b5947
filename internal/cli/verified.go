package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// acceptedRef is where the daemon notes up to which commit it has acted on the
// inputs.
const acceptedRef = "refs/fleetbroker/accepted/inputs"

// commits reads the history of a source for verify.
type commits struct{ *source }

// RawCommit implements verify.History.
func (c commits) RawCommit(h tree.Hash) ([]byte, error) {
	return c.objects.read(plumbing.CommitObject, h, 0)
}

// Tree implements verify.History.
func (c commits) Tree(h tree.Hash) (tree.Tree, error) {
	if h.IsZero() {
		return tree.Tree{}, nil
	}
	return c.tree(h)
}

// verified is what of the inputs the daemon would act on, where it is known what
// it has accepted: with a URL, and in a clone that fetched refs/fleetbroker/*.
// Files that are not committed are taken as they are.
func (s *source) verified(ctx context.Context) (tree.Tree, []verify.Finding, error) {
	if s.repo == nil || s.changed || s.commit.IsZero() {
		return s.inputs, nil, nil
	}
	ref, err := s.repo.Reference(acceptedRef, true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return s.inputs, nil, nil
	}
	if err != nil {
		return tree.Tree{}, nil, fmt.Errorf("read %s: %w", acceptedRef, err)
	}
	state, err := verify.New(commits{s}, time.Now).Verify(ctx, tree.Hash(ref.Hash()), s.commit, nil)
	switch {
	case errors.Is(err, verify.ErrNoDescendant), errors.Is(err, plumbing.ErrObjectNotFound): // an older checkout, or a shallow one
		return s.inputs, nil, nil
	case err != nil:
		return tree.Tree{}, nil, err
	case len(state.Findings) == 0:
		return s.inputs, nil, nil
	}
	return state.Tree, state.Findings, nil
}

// unsigned finds commits since base that nobody who may has signed, by what
// base says of signers.
func (s *source) unsigned(ctx context.Context, base string) ([]finding, error) {
	h, err := s.revision(base)
	if err != nil {
		return nil, err
	}
	state, err := verify.New(commits{s}, time.Now).Branch(ctx, h, s.commit)
	if err != nil {
		return nil, fmt.Errorf("verify what is new since %s: %w", base, err)
	}
	var out []finding
	for _, x := range state.Findings {
		out = append(out, findingOf(x.Diagnostic()))
	}
	return out, nil
}
