package reconciler

import (
	"context"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// checked is what of the inputs may be acted on, together with what it was
// verified of: an accepted commit and a head.
type checked struct {
	of    [2]tree.Hash
	state *verify.State
}

// reading is what was read at a pair of heads. A Reconciler replaces it as a
// whole, once all of it was read, so that no part is ever taken for that of
// other heads. The zero value is that of a start.
type reading struct {
	heads gitrepo.Heads
	checked
	fleet  *fleet.Fleet
	inputs tree.Hash // key of what fleet was read from
	ledger *ledger.Ledger
}

// verified is what of the inputs may be acted on, and where to look for older
// versions of broken files: where signatures are asked for, among what was
// accepted only.
func (r *Reconciler) verified(ctx context.Context, heads gitrepo.Heads) (checked, []tree.Tree, error) {
	accepted := heads.Accepted.Inputs
	if accepted.IsZero() && r.opts.Root.Signed() {
		was, err := r.opts.Repo.Recorded(ctx)
		if err == nil {
			accepted, err = r.verifier.BaseThrough(ctx, was, heads.Inputs.Commit.Hash)
		}
		if err != nil {
			return checked{}, nil, err
		}
		heads.Accepted.Inputs = accepted
	}
	of := [2]tree.Hash{accepted, heads.Inputs.Commit.Hash}
	if accepted.IsZero() {
		accepted = heads.Inputs.Commit.Hash
	}
	older, err := r.older(accepted)
	if err != nil {
		return checked{}, nil, err
	}
	found := r.checked
	if found.state == nil || found.of != of {
		state, err := r.verifier.Verify(ctx, heads.Accepted.Inputs, heads.Inputs.Commit.Hash, older)
		if err != nil {
			return checked{}, nil, err
		}
		found = checked{of: of, state: state}
		if state.Signed && heads.Accepted.Inputs.IsZero() {
			r.opts.Log.Warn("nothing was accepted before: the inputs are taken as they stand, and what comes after is held to what they say of signers", "commit", accepted.Short())
		}
	}
	if !found.state.Signed && accepted != heads.Inputs.Commit.Hash {
		older, err = r.older(accepted, heads.Inputs.Commit.Hash)
	}
	return found, older, err
}

// older is where to look for the last good version of a broken file: only a
// start has none in memory.
func (r *Reconciler) older(from ...tree.Hash) ([]tree.Tree, error) {
	if r.fleet != nil {
		return nil, nil
	}
	return r.verifier.Older(from...)
}

// findingTexts are what is not acted on as a set, for telling whether it is the
// same.
func findingTexts(s *verify.State) map[string]bool {
	out := map[string]bool{}
	for _, f := range s.Findings {
		out[f.Path+": "+f.String()] = true
	}
	for _, b := range s.Broken {
		out[b.String()] = true
	}
	return out
}

// withFindings is a fleet that also says what is not acted on.
func withFindings(f *fleet.Fleet, s *verify.State) *fleet.Fleet {
	if len(s.Findings) == 0 && len(s.Broken) == 0 {
		return f
	}
	out := *f
	out.Diagnostics = slices.Clone(f.Diagnostics)
	for _, b := range s.Broken {
		out.Diagnostics = append(out.Diagnostics, b.Diagnostic())
	}
	for _, x := range s.Findings {
		out.Diagnostics = append(out.Diagnostics, x.Diagnostic())
	}
	return &out
}
