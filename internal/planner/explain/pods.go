package explain

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// writesPods reports whether an intent states how many pods a replica has, in place of the
// fleet's default.
func writesPods(spec *v1alpha1.IntentSpec) bool {
	_, writes := spec.Resources.Named[v1alpha1.Pods]
	return writes
}

// fewerPods are what to write where an offer has room for one replica, and not for all,
// because each counts with the default of pods, which nobody wrote.
func (r *Explainer) fewerPods(j *draft.Job, f *draft.Failure) (out []relaxation) {
	req, n := match.ReqCapacity+v1alpha1.Pods, int64(j.Replicas())
	if n < 2 || len(j.Live) > 0 || f.Rejected[req] == 0 || writesPods(&j.In.Spec) {
		return nil
	}
	i := r.Names.Of(v1alpha1.Pods)
	for _, o := range r.Inventory.Offers() {
		c := f.Class.Of(o)
		if c == nil || c.Fails != "" {
			continue
		}
		free, each := o.Free().At(i), c.Size.At(i)
		pods := free / n
		if pods >= 10 {
			pods -= pods % 10 // as people write it
		}
		if free >= n*each || pods < 1 {
			continue
		}
		spec := j.In.Spec
		spec.Resources.Named = spec.Resources.Named.Clone()
		spec.Resources.Named[v1alpha1.Pods] = v1alpha1.AmountOf(pods)
		out = append(out, relaxation{offer: o, req: req, spec: spec, cost: 2, text: fmt.Sprintf("resources.pods: %d", pods),
			said: fmt.Sprintf("has %d pods free, and %d replicas have %d, %d each by the fleet's default", free, n, n*each, each)})
		if len(out) == nearOffers {
			break
		}
	}
	return out
}
