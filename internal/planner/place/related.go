package place

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// Rules are those on where a replica may be.
type Rules = rules.Set

// Relations are the intents that are together or apart, by name; they are kept from round
// to round.
func (r *Placer) Relations() *rules.Relations {
	if r.Related == nil {
		r.Related = rules.RelationsOf(&r.Draft, r.Relatives)
	}
	return r.Related
}

// BelongTogether reports whether a job's intent must be where another of its
// tenant is. It would not be served in that one's place.
func (r *Placer) BelongTogether(j *draft.Job, name string) bool {
	return slices.Contains(r.Relations().Together[draft.KeyOfJob(j)], name)
}
