package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Sources are repositories that are read beside the rounds; *sources.Keeper is one.
type Sources interface {
	// Over is a ledger's tree with the copies of sources as they should be, by what was
	// read of them. It waits for nothing.
	Over(ledger tree.Tree) (tree.Tree, error)
	// Follow says which sources the fleet names, and what the ledger has of them.
	Follow(policy *v1alpha1.FleetSpec, ledger tree.Tree) error
	// Refused leaves copies out for a while, because the remote took no commit with them.
	Refused(sources []string, why error)
}

// planSources is the Plan of a commit that decides nothing and copies sources.
const planSources = "sources"

// lay puts what was read of sources over the ledger's tree. The round reads and
// plans on that, and each commit of its decisions brings the copies along.
func (r *Reconciler) lay(heads *gitrepo.Heads) (err error) {
	if r.opts.Sources != nil {
		heads.Ledger.Tree, err = r.opts.Sources.Over(heads.Ledger.Tree)
	}
	return err
}

func (r *Reconciler) followSources(f *fleet.Fleet, ledger tree.Tree) error {
	if r.opts.Sources == nil {
		return nil
	}
	return r.opts.Sources.Follow(f.Policy, ledger)
}

// refusedCopies leaves copies out of the next rounds when the remote took nothing of a
// commit that had them: a server may scan what is pushed. It reports whether it did.
func (r *Reconciler) refusedCopies(in *inputs, res gitrepo.Result, err error) bool {
	var refused *gitrepo.ErrRefused
	if r.opts.Sources == nil || len(res.Commits) > 0 || !errors.As(err, &refused) && len(res.Refused) == 0 {
		return false
	}
	if err == nil {
		err = res.Refused[0].Cause
	}
	stands, terr := r.opts.Repo.Tree(in.heads.Ledger.Commit.Hash)
	due, derr := sourced.Between(stands, in.heads.Ledger.Tree)
	if terr != nil || derr != nil || len(due.Sources) == 0 {
		return false
	}
	r.opts.Sources.Refused(due.Sources, err)
	r.ask.Store(true)
	return true
}

// copySources copies after a round that decided nothing, and reports whether it wrote.
func (r *Reconciler) copySources(ctx context.Context, in *inputs, now v1alpha1.Time) bool {
	if r.opts.Sources == nil || r.shadow(in) || r.offers(in) {
		return false
	}
	stands, err := r.opts.Repo.Tree(in.heads.Ledger.Commit.Hash)
	var due sourced.Changes
	if err == nil {
		due, err = sourced.Between(stands, in.heads.Ledger.Tree)
	}
	if err == nil && len(due.Trailers) == 0 {
		return false
	}
	var res gitrepo.Result
	if err == nil {
		req := r.newRequest(in, tree.Hash{}, planSources, now)
		req.Reads = []string{}
		req.Items = []gitrepo.Item{{
			Key: planSources, Puts: due.Puts, Deletes: due.Deletes, Trailers: due.Trailers,
			Line: "copy " + strings.ReplaceAll(strings.Join(due.Trailers, ", "), sourced.Trailer+": ", "source "),
		}}
		res, err = r.opts.Repo.Commit(ctx, req)
		r.refusedCopies(in, res, err)
		if err == nil && len(res.Refused) > 0 {
			err = fmt.Errorf("the remote refuses it: %w", res.Refused[0].Cause)
		}
	}
	if err != nil {
		r.opts.Log.Warn("sources are not copied; tried again with the next round", "error", err)
		return false
	}
	r.suspected.wrote = append(r.suspected.wrote, res.Commits...)
	r.ask.Store(true)
	return true
}
