package reviews

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// joined is a side's history with one commit more, which nobody has made or
// signed: the merge with the base.
type joined struct {
	side gitrepo.Side
	hash tree.Hash
	raw  []byte
	tree tree.Tree

	vetter *tree.Vetter
	graph  *ancestry.Graph
}

// RawCommit implements verify.History.
func (j *joined) RawCommit(h tree.Hash) ([]byte, error) {
	if h == j.hash {
		return j.raw, nil
	}
	return j.side.RawCommit(h)
}

// Tree implements verify.History.
func (j *joined) Tree(h tree.Hash) (tree.Tree, error) {
	if h == j.hash {
		return j.tree, nil
	}
	return j.side.TreeOf(h)
}

// Vetter is shared with the daemon's own reader: what the base has was looked at
// already.
func (j *joined) Vetter() *tree.Vetter { return j.vetter }

// Graph knows what the daemon's own reader knows of the base.
func (j *joined) Graph() *ancestry.Graph { return j.graph.With(verify.ParentsOf(j)) }

// findings are those of a merge: what the pull request brings, and what the base
// has without it.
func (r *Reviews) findings(ctx context.Context, view *reconciler.View, side gitrepo.Side, merged tree.Tree) (brought, known []verify.Finding, err error) {
	if !view.Verified.Signed {
		return nil, nil, nil
	}
	merger := gitobj.Person{When: r.opts.Now()}
	commit := gitobj.Object{Type: gitobj.Commit, Data: gitobj.CommitData{
		Tree: merged.Root, Parents: []tree.Hash{view.Inputs, side.Commit}, Author: merger, Committer: merger,
	}.Encode()}
	j := &joined{side, commit.Hash(), commit.Data, merged, r.opts.Repo.Vetter(), r.opts.Repo.Graph()}
	state, err := verify.New(j, r.opts.Now).Merge(ctx, view.Inputs, view.Verified, view.Fleet, j.hash)
	if err != nil {
		return nil, nil, fmt.Errorf("verify what a pull request brings: %w", err)
	}
	for _, f := range state.Findings {
		if slices.ContainsFunc(view.Verified.Findings, func(o verify.Finding) bool { return o.Path == f.Path && o.Commit == f.Commit }) {
			known = append(known, f)
		} else {
			brought = append(brought, f)
		}
	}
	return brought, known, nil
}

// inForce is a tree with what stays in force where something is not verified.
func inForce(t tree.Tree, findings ...verify.Finding) (tree.Tree, error) {
	entries := map[string]tree.Entry{}
	for _, f := range findings {
		entries[f.Path] = f.Entry
	}
	return tree.With(t, entries)
}

// only are the findings of a pull request's work, or of policy.
func only(findings []verify.Finding, work bool) []verify.Finding {
	var out []verify.Finding
	for _, f := range findings {
		if review.IsWork(f.Path) == work {
			out = append(out, f)
		}
	}
	return out
}

// unverified are findings as a review tells them.
func unverified(findings []verify.Finding) []review.Unverified {
	var out []review.Unverified
	for _, f := range findings {
		out = append(out, review.Unverified{Path: f.Path, Commit: f.Commit, Author: f.Author, Why: f.Why, Unapproved: f.Unapproved})
	}
	return out
}
