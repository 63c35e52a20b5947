package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// intentKey is an intent's tenant and name.
type intentKey struct{ tenant, name string }

func keyOfIntent(it *model.Intent) intentKey {
	return intentKey{it.Metadata.Namespace, it.Metadata.Name}
}

// authors are who last changed the intents that the ledger does not know as
// they are. They follow fleet and ledger by what differs: asking the ledger
// about each of 100,000 intents costs more than reading a commit of one.
type authors struct {
	// head is the commit of the inputs by whose history they were found.
	head   tree.Hash
	fleet  *fleet.Fleet
	ledger *ledger.Ledger
	// unknown are the intents that the ledger did not know as they were.
	unknown map[intentKey]bool
	// byPath are the commits that last changed their files.
	byPath map[string]gitrepo.Commit
	// number grows each time they are found, from 1; asked are the intents that
	// were looked at the last time.
	number uint64
	asked  [][2]string
}

// whose brings authors and removers up to the inputs that were read, which came
// after since: not where neither a file of the fleet changed nor the history of
// those that are there.
func (r *Reconciler) whose(ctx context.Context, since tree.Hash) error {
	follows, err := r.follows(r.authors.head, r.heads.Inputs.Commit.Hash)
	if err != nil {
		return err
	}
	if r.authors.fleet == r.fleet && follows {
		r.authors.head = r.heads.Inputs.Commit.Hash
		return nil
	}
	if err := r.findRemovers(ctx, since); err != nil {
		return err
	}
	return r.attribute(ctx, follows)
}

// attribute brings the authors up to the newest fleet and ledger. follows: the
// inputs descend from those by which they were found.
func (r *Reconciler) attribute(ctx context.Context, follows bool) error {
	last, head := &r.authors, r.heads.Inputs.Commit.Hash
	look := maps.Clone(last.unknown) // true: the intent itself is as it was
	if look == nil {
		look = map[intentKey]bool{}
	}
	if last.ledger != nil {
		for tenant, name := range r.ledger.Differs(last.ledger) {
			look[intentKey{tenant, name}] = true
		}
	}
	for _, it := range otherIntents(last.fleet, r.fleet) {
		look[keyOfIntent(it)] = false
	}
	next := authors{head: head, fleet: r.fleet, ledger: r.ledger, unknown: map[intentKey]bool{}, byPath: map[string]gitrepo.Commit{}, number: last.number + 1}
	ask := map[string]bool{}
	for k := range look {
		next.asked = append(next.asked, [2]string{k.tenant, k.name})
	}
	for k, called := range model.Among(r.fleet.Intents, look, keyOfIntent, func(k intentKey) []*model.Intent { return intentsCalled(r.fleet, k) }) {
		for _, it := range called {
			if _, _, copied := r.fleet.Sourced(it.Path); copied || isRequest(it.Path) {
				continue // no commit of the inputs brought it
			}
			st := r.ledger.State(k.tenant, k.name)
			if st != nil && st.Status.Digest == it.Digest {
				continue
			}
			next.unknown[k] = true
			if c, ok := last.byPath[it.Path]; ok && look[k] && follows {
				next.byPath[it.Path] = c
			} else {
				ask[it.Path] = true
			}
		}
	}
	for _, f := range r.state.Findings { // who wrote what is in force, and not who wrote over it
		if !ask[f.Path] {
			continue
		}
		delete(ask, f.Path)
		c, err := r.opts.Repo.LastChange(ctx, f.Verified, f.Path)
		if err != nil {
			return fmt.Errorf("find who changed %s: %w", f.Path, err)
		}
		next.byPath[f.Path] = c
	}
	if len(ask) > 0 {
		found, err := r.opts.Repo.LastChanges(ctx, head, slices.Sorted(maps.Keys(ask)))
		if err != nil {
			return fmt.Errorf("find who changed %d intents: %w", len(ask), err)
		}
		maps.Copy(next.byPath, found)
	}
	r.authors = next
	return nil
}

// follows reports whether a commit of the inputs descends from an earlier one:
// not where an operator accepted that the history was rewritten, by which others
// may have changed a file of which nothing changed.
func (r *Reconciler) follows(earlier, now tree.Hash) (bool, error) {
	if earlier.IsZero() || earlier == now {
		return true, nil
	}
	is, err := r.opts.Repo.IsAncestor(earlier, now)
	if err != nil {
		return false, fmt.Errorf("find out whether the inputs %s were rewritten: %w", now.Short(), err)
	}
	return is, nil
}

// maxRemovers bounds how many removed files are remembered. Their contracts
// are released in the round that first sees them gone, unless they are held
// back; beyond the bound a release only lacks its author.
const maxRemovers = 10_000

// findRemovers notes who deleted which files of intents since a commit of the
// inputs, so that a release can say so.
func (r *Reconciler) findRemovers(ctx context.Context, since tree.Hash) error {
	now := r.heads.Inputs.Commit.Hash
	if since.IsZero() || since == now {
		return nil
	}
	changes, err := r.opts.Repo.Changes(ctx, since, now, "intents")
	if err != nil {
		return fmt.Errorf("find who removed intents: %w", err)
	}
	for path, ch := range changes {
		if ch.Kind != gitrepo.Deleted {
			delete(r.removers, path)
			continue
		}
		if r.removers == nil || len(r.removers) >= maxRemovers {
			r.removers = map[string]gitrepo.Commit{}
		}
		r.removers[path] = ch.Commit
	}
	return nil
}

// removers says for each deleted file who deleted it, as "Ada L. in 4f1c2ab".
func removers(commits map[string]gitrepo.Commit) map[string]string {
	out := make(map[string]string, len(commits))
	for path, c := range commits {
		out[path] = fmt.Sprintf("%s in %s", c.Author.Name, c.Hash.Short())
	}
	return out
}

// otherIntents are the intents of a fleet that are new or not the very values
// of the last one (nil: none). Both are in order of tenant and name, and an
// unchanged file gives the same value again.
func otherIntents(last, now *fleet.Fleet) []*model.Intent {
	var old []*model.Intent
	if last != nil {
		old = last.Intents
	}
	head, tail := model.SameEnds(old, now.Intents)
	old = old[head : len(old)-tail]
	var out []*model.Intent
	for _, it := range now.Intents[head : len(now.Intents)-tail] {
		for len(old) > 0 && old[0].ResourceIntent != it.ResourceIntent && old[0].Compare(it.Metadata.Namespace, it.Metadata.Name) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && old[0].ResourceIntent == it.ResourceIntent && old[0].Path == it.Path {
			old = old[1:]
			continue
		}
		out = append(out, it)
	}
	return out
}

// intentsCalled are those of a name: one, or several where files disagree.
func intentsCalled(f *fleet.Fleet, k intentKey) []*model.Intent {
	from, to := model.Called(f.Intents, k.tenant, k.name)
	return f.Intents[from:to]
}
