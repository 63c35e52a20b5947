package reconciler

import (
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/forms"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/world"
)

// world joins what was read with the market and the observations of now.
func (r *Reconciler) world(in *inputs, k key, s *market.Snapshot, observed v1alpha1.ConsumerObservations, unheard map[string]bool) planner.World {
	r.given = world.Input{
		Now: r.now(in), Fleet: r.refuser.Fleet(in.fleet, in.ledger, forms.Served(r.opts.Delivery)), Inputs: in.heads.Inputs.Commit.Hash.String(), Ledger: in.ledger,
		Market: s, Author: in.author, Authors: in.attributed, Asked: in.asked, RemovedBy: removers(r.removers), Unheard: unheard, Observed: observed,
		Deaf: k.deaf, AllowEnds: k.allowEnds, ForceRelease: r.opts.ForceRelease,
	}
	return r.folder.Fold(r.given)
}

// author is who last changed an intent, as far as it was looked up: for
// intents that the ledger does not know as they are. An intent that came
// through the API says itself who asked.
func (in *inputs) author(it *model.Intent) (commit, author string) {
	if isRequest(it.Path) {
		return "", world.AskedBy(it.Metadata.Annotations)
	}
	if commit, author, ok := in.fleet.Sourced(it.Path); ok {
		return commit, author
	}
	c, ok := in.authors[it.Path]
	if !ok {
		return "", ""
	}
	return c.Hash.String(), c.Author.String()
}

// setMarket tells the market what the inputs say of prices, places and graces.
func (r *Reconciler) setMarket(f *fleet.Fleet, key tree.Hash) {
	r.opts.Market.SetInputs(market.Inputs{
		Key: key.String(), Fleet: f.Policy, Clusters: f.Clusters, Flavors: f.Flavors, Prices: f.Prices,
	})
}

// observe is what the consumers say, and the number of what they say.
func (r *Reconciler) observe() (v1alpha1.ConsumerObservations, uint64) {
	if r.opts.Delivery == nil {
		return nil, 0
	}
	return r.opts.Delivery.Observe()
}
