package reconciler

import (
	"context"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// verified is what of the inputs may be acted on, and where to look for older
// versions of broken files: where signatures are asked for, among what was
// accepted only.
func (r *Reconciler) verified(ctx context.Context, heads gitrepo.Heads) (*verify.State, []tree.Tree, error) {
	of := [2]tree.Hash{heads.Accepted.Inputs, heads.Inputs.Commit.Hash}
	accepted := heads.Accepted.Inputs
	if accepted.IsZero() {
		accepted = heads.Inputs.Commit.Hash
	}
	older, err := r.older(accepted)
	if err != nil {
		return nil, nil, err
	}
	state := r.state
	if r.stateOf != of {
		if state, err = r.verifier.Verify(ctx, heads.Accepted.Inputs, heads.Inputs.Commit.Hash, older); err != nil {
			return nil, nil, err
		}
		r.stateOf = of
		if state.Signed && heads.Accepted.Inputs.IsZero() {
			r.opts.Log.Warn("nothing was accepted before: the inputs are taken as they stand, and what comes after is held to what they say of signers", "commit", accepted.Short())
		}
	}
	if !state.Signed && accepted != heads.Inputs.Commit.Hash {
		older, err = r.older(accepted, heads.Inputs.Commit.Hash)
	}
	return state, older, err
}

// older is where to look for the last good version of a broken file: only a
// start has none in memory.
func (r *Reconciler) older(from ...tree.Hash) ([]tree.Tree, error) {
	if r.fleet != nil {
		return nil, nil
	}
	return r.verifier.Older(from...)
}

// findingTexts are findings as a set, for telling whether they are the same.
func findingTexts(findings []verify.Finding) map[string]bool {
	out := map[string]bool{}
	for _, f := range findings {
		out[f.Path+": "+f.String()] = true
	}
	return out
}

// withFindings is a fleet that also says what is not verified.
func withFindings(f *fleet.Fleet, findings []verify.Finding) *fleet.Fleet {
	if len(findings) == 0 {
		return f
	}
	out := *f
	out.Diagnostics = slices.Clone(f.Diagnostics)
	for _, x := range findings {
		out.Diagnostics = append(out.Diagnostics, x.Diagnostic())
	}
	return &out
}
