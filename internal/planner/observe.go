package planner

import "github.com/fleetbroker/fleetbroker/internal/planner/draft"

// observeAll takes over what was reported of contracts and flavors since.
func (r *round) observeAll() {
	r.finishReleases()
	draft.Set(&r.Draft, &r.Excess, r.findExcess())
}

// finishReleases moves every Releasing contract along: what is gone is gone
// before anything else is decided.
func (r *round) finishReleases() {
	for _, c := range draft.ByName(r.Releasing) {
		r.Progress(c)
	}
}
