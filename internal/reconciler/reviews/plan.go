package reviews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
	"github.com/fleetbroker/fleetbroker/internal/review"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// marker is how our comment is found again.
const marker = report.Marker

// errMoved: the head in git is not the one that the forge named.
var errMoved = errors.New("the head moves")

// base is what pull requests are compared with, read once for each view.
type base struct {
	view   *reconciler.View
	whole  tree.Tree // everything at the head of the inputs
	inputs tree.Tree // what people write alone, as far as it is verified: statuses are bound to it
	ledger tree.Tree
	side   review.Side
}

// baseOf reads the base of a view.
func (r *Reviews) baseOf(ctx context.Context, view *reconciler.View) (*base, error) {
	r.planning.Lock()
	defer r.planning.Unlock()
	if r.base != nil && r.base.view == view {
		return r.base, nil
	}
	b := &base{view: view}
	var err error
	if b.whole, err = r.repo.Said(cmp.Or(view.Verified.Said, view.Inputs)); err != nil {
		return nil, fmt.Errorf("read the base of pull requests: %w", err)
	}
	if b.ledger, err = r.repo.Tree(view.Ledger); err != nil {
		return nil, fmt.Errorf("read the base of pull requests: %w", err)
	}
	if b.inputs, err = review.OnlyInputs(b.whole); err == nil {
		b.inputs, err = inForce(b.inputs, view.Verified.Findings...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the base of pull requests: %w", err)
	}
	if b.side, err = r.side(ctx, b, view.Fleet, b.inputs, tree.Tree{}, nil); err != nil {
		return nil, err
	}
	r.base = b
	return b, nil
}

// side reads a fleet and makes the world of it: the view's, but for what the
// inputs say, and copies, which has the copies of sources (empty: the ledger). The
// caller holds planning.
func (r *Common) side(ctx context.Context, b *base, last *fleet.Fleet, inputs, copies tree.Tree, author func(*model.Intent) (commit, author string)) (review.Side, error) {
	f, err := r.reader.ReadAll(ctx, fleet.Sources{Inputs: inputs, Ledger: b.ledger, Copies: copies, Last: last})
	if err != nil {
		return review.Side{}, fmt.Errorf("read the inputs of a pull request: %w", err)
	}
	known := map[string]*model.Intent{}
	for _, it := range b.view.World.Intents {
		known[it.Path+"\x00"+it.Digest] = it
	}
	w := b.view.World
	w.Fleet, w.FleetName, w.Clusters, w.Tenants = f.Policy, f.Name, f.Clusters, f.Tenants
	w.Frozen, w.Policies = world.Frozen(f, w.Ledger), f.Policies
	w.Intents = world.Intents(f, author)
	for i := range w.Intents {
		it := w.Intents[i] // made just now
		if old, ok := known[it.Path+"\x00"+it.Digest]; ok {
			it.Commit, it.Author, it.Since, it.Offered = old.Commit, old.Author, old.Since, old.Offered
		}
	}
	return review.Side{Fleet: f, World: w}, nil
}

func boundsOf(pr forge.PullRequest) gitrepo.SideBounds {
	if pr.Fork {
		return gitrepo.ForkBounds
	}
	return gitrepo.BranchBounds
}

// plan reviews one pull request.
func (r *Reviews) plan(ctx context.Context, view *reconciler.View, b *base, e *entry) (review.Result, error) {
	if r.opts.Source != nil {
		return r.planSource(ctx, view, b, e)
	}
	pr, bounds := e.pr, boundsOf(e.pr)
	head, err := tree.ParseHash(pr.Head)
	if err != nil {
		return review.Result{}, fmt.Errorf("read pull request %d: %w", pr.Number, err)
	}
	var broken *tree.BrokenError
	side, err := r.opts.Repo.Side(ctx, pr.Ref, view.Inputs, bounds)
	switch {
	case errors.Is(err, gitrepo.ErrSideTooLarge):
		return review.Refusal(head, err.Error()), nil
	case errors.As(err, &broken):
		return review.Refusal(head, broken.Error()+": git refuses such a tree (git fsck --strict) or it is too large to be read; push a commit made from a checkout of "+r.opts.Branch), nil
	case errors.Is(err, fs.ErrNotExist):
		return review.Result{}, errMoved
	case err != nil:
		return review.Result{}, fmt.Errorf("read pull request %d: %w", pr.Number, err)
	case side.Commit != head:
		return review.Result{}, errMoved
	case side.Base.IsZero():
		return review.Refusal(head, "it has no history in common with "+r.opts.Branch), nil
	}
	r.planning.Lock()
	defer r.planning.Unlock()
	in := review.Input{Head: head, Base: view.Inputs, Branch: r.opts.Branch, Before: b.side, Signatures: view.Trust.State()}
	if in.Changes, err = review.ChangesOf(side.BaseTree, side.Tree); err != nil {
		return review.Result{}, err
	}
	if in.Changes.TooMany {
		return review.Refusal(head, fmt.Sprintf("it changes more than %d files: split it", review.MaxFiles)), nil
	}
	merged, conflicts, err := tree.Merge(side.BaseTree, b.whole, side.Tree)
	if err != nil {
		return review.Result{}, err
	}
	if in.Conflicts = conflicts; len(conflicts) > 0 {
		return review.Of(in), nil
	}
	if pr.Fork {
		if why, err := r.try(e, told{head: pr.Head, inputs: b.inputs.Root}, in.Changes, func() (*trial, error) { return newTrial(view, b, merged, in.Changes) }); err != nil {
			return review.Result{}, err
		} else if why != "" {
			return review.Refusal(head, why), nil
		}
	}
	return r.merge(ctx, view, b, pr, side, merged, in)
}

// merge reviews what a pull request makes of the inputs.
func (r *Reviews) merge(ctx context.Context, view *reconciler.View, b *base, pr forge.PullRequest, side gitrepo.Side, merged tree.Tree, in review.Input) (review.Result, error) {
	brought, known, err := r.findings(ctx, view, side, merged)
	if err != nil {
		return review.Result{}, err
	}
	in.Signed, in.Unverified = view.Verified.Signed, unverified(brought)
	work, err := review.Inputs(b.whole, merged)
	if err != nil {
		return review.Result{}, fmt.Errorf("read the inputs of a pull request: %w", err)
	}
	read := func(inputs tree.Tree, findings ...[]verify.Finding) (review.Side, error) {
		inputs, err := inForce(inputs, slices.Concat(findings...)...)
		if err != nil {
			return review.Side{}, fmt.Errorf("read the inputs of a pull request: %w", err)
		}
		s, err := r.side(ctx, b, b.side.Fleet, inputs, tree.Tree{}, func(*model.Intent) (string, string) { return pr.Head, pr.Author })
		s.World.Inputs = pr.Head
		s.World.RemovedBy = map[string]string{}
		for _, path := range in.Changes.Removed {
			s.World.RemovedBy[path] = fmt.Sprintf("%s in pull request %d", pr.Author, pr.Number)
		}
		return s, err
	}
	policy := only(view.Verified.Findings, false)
	if in.After, err = read(work, policy, only(known, true), only(brought, true)); err != nil {
		return review.Result{}, err
	}
	if len(brought) > 0 {
		signed, err := read(work, policy, only(known, true))
		if err != nil {
			return review.Result{}, err
		}
		in.OnceVerified = &signed
	}
	if len(in.Changes.Policy) > 0 {
		inputs, err := review.OnlyInputs(merged)
		if err != nil {
			return review.Result{}, fmt.Errorf("read the inputs of a pull request: %w", err)
		}
		own, err := read(inputs, known, brought)
		if err != nil {
			return review.Result{}, err
		}
		in.Own = &own
	}
	return review.Of(in), nil
}
