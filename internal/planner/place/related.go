package place

import (
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

// neighbours are the providers of an intent that a job must be placed with: of what stays
// there. Nobody where all of a unit are tried on one provider.
func neighbours(r *Placer, j *draft.Job, q Request, name string) []string {
	if q.provider != "" {
		return nil
	}
	k := r.JobOf(j.TenantName, name)
	leaves := Leaving(r, k)
	if len(leaves) == 0 || !r.By(draft.RulesTogetherMoves) {
		return rules.ProvidersOf(&r.Draft, j.TenantName, name, false)
	}
	var out []string
	for _, c := range k.Live {
		if !leaves[c] {
			out = append(out, c.Spec.Provider)
		}
	}
	return out
}
