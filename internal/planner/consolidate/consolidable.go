package consolidate

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// consolidable reports whether an intent is served as it asks by contracts that
// all work, so that moving one is the only thing that happens to it.
func (r *consolidation) consolidable(j *draft.Job) bool {
	if j.In == nil || j.Silent || j.Warm() || j.Dec.Action != "" || j.Finding() || j.In.Spec.Stage == v1alpha1.StageReserve ||
		len(j.Tasks)+len(j.Open)+j.Releasing+j.Later > 0 || len(j.Live) == 0 || j.In.Spec.Split != nil || r.Ruled(j) {
		return false
	}
	return !slices.ContainsFunc(j.Live, func(c *v1alpha1.Contract) bool {
		return c.Status.Phase != v1alpha1.PhaseActive || c.Status.Displaced != nil || c.Spec.Intent.Part != 0
	})
}

// keepAway has a job keep away from what denied it, also where nothing else happens to it.
func (r *consolidation) keepAway(j *draft.Job) {
	if r.By(draft.RulesAgainAll) {
		r.EditJob(j)
		settle.KeepAway(r.Settler, j)
	}
}
