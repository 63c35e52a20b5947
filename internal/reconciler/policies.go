package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
)

// renewPolicies brings the policies on the ledger in line with the Cluster files, where
// contracts stand: whom a file names a deliverer is let in now, not with the next
// contract. It runs only in rounds that have nothing else to write, once for each
// state of the files, and reports whether it wrote. (In the mode pull-request they
// come with the next change of a contract, for people to see.)
func (r *Reconciler) renewPolicies(ctx context.Context, in *inputs, now v1alpha1.Time) bool {
	if r.policed != nil && maps.Equal(r.policed, in.fleet.Clusters) || r.shadow(in) || r.offers(in) {
		return false
	}
	items, err := outdated(in)
	if err == nil && len(items) > 0 {
		_, err = r.opts.Repo.Commit(ctx, gitrepo.Request{
			Base: in.heads.Ledger.Commit.Hash, Inputs: in.heads.Inputs.Commit.Hash, Verified: in.clean, When: now.Time, Items: items,
			Compose: func(_ tree.Tree, items []gitrepo.Item) (gitrepo.Composed, error) {
				var of []string
				for _, it := range items {
					of = append(of, strings.TrimPrefix(it.Key, manifests.Root+"/"))
				}
				return gitrepo.Composed{Subject: "policies of " + strings.Join(of, ", ") + " updated"}, nil
			},
			Trailers: []string{
				"Inputs: " + in.heads.Inputs.Commit.Hash.String(), "Market: " + tree.Hash{}.String(),
				"Plan: policies", "Now: " + now.UTC().Format(time.RFC3339),
			},
			Reads: []string{},
		})
		r.ask.Store(true)
	}
	if err != nil {
		r.opts.Log.Warn("policies are not as their Cluster files say yet", "error", err)
		return false
	}
	r.policed = in.fleet.Clusters
	return len(items) > 0
}

// outdated are the policies on the ledger that their consumers' Cluster files
// make others now, an item for each consumer.
func outdated(in *inputs) ([]gitrepo.Item, error) {
	var items []gitrepo.Item
	for _, name := range slices.Sorted(maps.Keys(in.fleet.Clusters)) {
		it := gitrepo.Item{
			Key: manifests.Dir(name), Puts: map[string][]byte{},
			Line: "update policies of " + name + ": its Cluster file names others who apply manifests",
		}
		for file, want := range manifests.Policies(name, in.fleet.Clusters[name]) {
			switch e, err := in.heads.Ledger.Tree.Find(file); {
			case errors.Is(err, fs.ErrNotExist): // no contract brought it
			case err != nil:
				return nil, fmt.Errorf("look at the policies of %s: %w", name, err)
			case e.Hash != tree.BlobHash(want):
				it.Puts[file] = want
			}
		}
		if len(it.Puts) > 0 {
			items = append(items, it)
		}
	}
	return items, nil
}
