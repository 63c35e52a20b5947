package reviews

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/review"
)

// lookBack is how many new commits of the inputs are looked at, at most, for
// pull requests that were merged before they were planned or while no daemon
// ran, and followed how long a merged one is told what becomes of what it asked
// for.
const (
	lookBack = 20
	followed = 24 * time.Hour
)

// merged is a pull request whose contracts are awaited.
type merged struct {
	number int64
	wanted []review.Wanted
	until  time.Time
	view   *reconciler.View
	// commit is what the merge made, where that is known; lost, that it was told to
	// be not acted on.
	commit tree.Hash
	lost   bool
	told   string // that its source is frozen
}

// unsigned are the findings about the commit that the merge made.
func (m *merged) unsigned(view *reconciler.View) []review.Unverified {
	var out []review.Unverified
	for _, f := range unverified(view.Unverified()) {
		if !m.commit.IsZero() && f.Commit == m.commit {
			out = append(out, f)
		}
	}
	return out
}

// gone looks what became of a pull request that is not open any more.
func (r *Reviews) gone(ctx context.Context, e *entry) error {
	pr, err := r.opts.Forge.Get(ctx, e.pr.Number)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return err
	}
	delete(r.open, e.pr.Number)
	if err == nil && pr.State == forge.Merged && len(e.result.Wanted) > 0 {
		r.merged[pr.Number] = &merged{number: pr.Number, wanted: e.result.Wanted, until: r.opts.Now().Add(followed)}
	}
	return nil
}

// follow tells merged pull requests what the ledger holds for them.
func (r *Reviews) follow(ctx context.Context, view *reconciler.View) (next time.Duration, err error) {
	next = r.opts.Poll
	if unready(view) != "" {
		return next, nil
	}
	if r.opts.Source == nil && r.looked != view.Inputs {
		if err := r.lookBack(ctx, view); err != nil {
			return soon, err
		}
		r.looked = view.Inputs
	}
	var errs []error
	for number, m := range r.merged {
		next = soon
		if m.view == view && (r.opts.Source == nil || m.told == r.frozen()) {
			continue
		}
		text, settled := review.Reserved(m.wanted, view.Contracts, view.Ledger.String(), view.Plan, unverified(view.Unverified()))
		if r.opts.Source != nil && text == "" {
			text = r.frozen()
		} else if left := m.unsigned(view); len(left) > 0 {
			text, settled, m.lost = review.Unsigned(text, m.commit.String(), left), false, true
		} else if m.lost && text == "" {
			text = review.ReservedMarker + "\nWhat this brought is signed by now, and in force.\n"
		}
		if text != "" {
			if _, err := r.opts.Forge.Comment(ctx, number, review.ReservedMarker, text); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		m.view, m.told = view, r.frozen()
		if settled || r.opts.Now().After(m.until) {
			delete(r.merged, number)
		}
	}
	return next, errors.Join(errs...)
}

// lookBack finds pull requests that were merged before we saw what they ask
// for, by the commits of the inputs that are new since the last look. Their
// comments are found again by the marker.
func (r *Reviews) lookBack(ctx context.Context, view *reconciler.View) error {
	at := view.Inputs
	for range lookBack {
		if at == r.looked {
			return nil
		}
		c, err := r.opts.Repo.Info(at)
		if err != nil {
			return fmt.Errorf("look for merged pull requests: %w", err)
		}
		if len(c.Parents) == 0 || r.opts.Now().Sub(c.When()) > followed {
			return nil
		}
		if err := r.mergedAt(ctx, view, c.Hash, c.Parents[0]); err != nil {
			return err
		}
		at = c.Parents[0]
	}
	return nil
}

// mergedAt notes the pull request that a commit of the inputs merged.
func (r *Reviews) mergedAt(ctx context.Context, view *reconciler.View, commit, parent tree.Hash) error {
	before, err := r.opts.Repo.Said(parent)
	if err != nil {
		return fmt.Errorf("look for merged pull requests: %w", err)
	}
	after, err := r.opts.Repo.Said(commit)
	if err != nil {
		return fmt.Errorf("look for merged pull requests: %w", err)
	}
	changes, err := review.ChangesOf(before, after)
	if err != nil {
		return err
	}
	this := &merged{commit: commit}
	lost := len(this.unsigned(view)) > 0
	if len(changes.Work) == 0 && !lost {
		return nil
	}
	prs, err := r.opts.Forge.WithCommit(ctx, commit.String())
	if err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, path := range changes.Work {
		changed[path] = true
	}
	var wanted []review.Wanted
	for _, it := range view.Fleet.Intents {
		if changed[it.Path] {
			wanted = append(wanted, review.Wanted{Tenant: it.Metadata.Namespace, Name: it.Metadata.Name, Path: it.Path, Digest: it.Digest})
		}
	}
	for _, pr := range prs {
		if pr.State != forge.Merged || pr.Base != r.opts.Branch {
			continue
		}
		m := r.merged[pr.Number]
		if m == nil && (len(wanted) > 0 || lost) {
			m = &merged{number: pr.Number, wanted: wanted, until: r.opts.Now().Add(followed)}
			r.merged[pr.Number] = m
		}
		if m != nil {
			m.commit = commit
		}
	}
	return nil
}
