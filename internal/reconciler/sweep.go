package reconciler

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// sweep takes requests out of the tree, once a UTC day, that ended longer ago
// than retention.ended: nobody sends them again, and history keeps them. It
// runs only in rounds that have nothing else to write, and reports whether it
// wrote.
func (r *Reconciler) sweep(ctx context.Context, in *inputs, now v1alpha1.Time) bool {
	day := now.UTC().Truncate(24 * time.Hour)
	if day.Equal(r.swept) || r.shadow(in) || r.offers(in) || !r.mayPush(pushbudget.Status) {
		return false
	}
	r.swept = day
	items := over(in, now)
	if len(items) == 0 {
		return false
	}
	req := r.newRequest(in, tree.Hash{}, "sweep", now)
	req.Items = items
	req.Compose = func(tree.Tree, []gitrepo.Item) (gitrepo.Composed, error) {
		return gitrepo.Composed{Subject: fmt.Sprintf("%d requests retired", len(items))}, nil
	}
	_, err := r.opts.Repo.Commit(ctx, req)
	if err != nil {
		r.opts.Log.Warn("old requests cannot be removed: tried again tomorrow", "error", err)
	}
	r.ask.Store(true)
	return err == nil
}

// over are the requests that hold nothing and ended long ago.
func over(in *inputs, now v1alpha1.Time) []gitrepo.Item {
	var items []gitrepo.Item
	for _, it := range in.fleet.Intents {
		if !isRequest(it.Path) {
			continue
		}
		tenant, name := it.Metadata.Namespace, it.Metadata.Name
		state := in.ledger.State(tenant, name)
		if state == nil || now.Sub(state.Status.Since.Time) <= in.fleet.Policy.Retention.Ended.Duration {
			continue
		}
		switch state.Status.State {
		case v1alpha1.IntentSuspended, v1alpha1.IntentDone, v1alpha1.IntentRefused:
		default:
			continue
		}
		held := false
		for _, c := range in.ledger.ByIntent(tenant, name) {
			held = held || c.Status.Phase.Held()
		}
		if !held {
			items = append(items, gitrepo.Item{
				Key: tenant + "/" + name, Deletes: []string{it.Path},
				Line: fmt.Sprintf("retire the request of %s/%s, which ended %s", tenant, name, state.Status.Since.UTC().Format(time.RFC3339)),
			})
		}
	}
	return items
}
