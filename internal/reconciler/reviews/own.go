package reviews

import (
	"context"
	"errors"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// own sets the status of the daemon's own pull request, where decisions go to
// the branch that people write: it is the plan, and there is none to be made of
// it.
func (r *Reviews) own(ctx context.Context, e *entry) error {
	c, err := r.opts.Repo.Offered()
	s := forge.Status{Context: Check, State: forge.Success, URL: e.pr.URL, Description: "decided by fleetbroker; reserved once it is merged"}
	switch {
	case errors.Is(err, gitrepo.ErrOfferTaken):
		s.State, s.Description = forge.Failed, err.Error()
	case err != nil:
		return err
	case c.Hash.String() != e.pr.Head:
		s.State, s.Description = forge.Pending, "it is brought up to date"
	}
	return r.status(ctx, e, s)
}
