package contend

import (
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// What the search for contracts that give way may cost a round is counted in looks, on the
// account of those for parts (place.Placer.Parts): looksOfVictim for each contract that is
// looked at on an offer. A tenant's jobs search as long as it has something left of
// limits.work; whoever searched once in a round may go on, so that its claim stays, and the
// others have their turn in the next round: those before them have theirs by then. A tenant's
// first search of a round always has its turn, and each minute some of those that are drawn go
// on to twice as much, so that nobody waits for good behind those that find nothing.

// looksOfVictim is what it takes to find out whether a contract may give way.
const looksOfVictim = 20

const unsearchedText = "; the work of this round is used up (spec.limits.work of the fleet): which contracts give way to it is looked for in one of the next rounds"

// searchAgain is when those search that had no turn.
const searchAgain = 10 * time.Second

// maySearch reports whether a job's search has its turn.
func (r *Contest) maySearch(j *draft.Job) bool {
	switch {
	case !r.By(draft.RulesTogetherCounted) || r.searching[j]:
		return true
	case r.Parts[j.TenantName] >= r.mostSearches(j) && r.searchers[j.TenantName]:
		return false
	}
	if r.searching == nil {
		r.searching, r.searchers = map[*draft.Job]bool{}, map[string]bool{}
	}
	r.searching[j], r.searchers[j.TenantName] = true, true
	return true
}

// mostSearches is of how many looks a job's tenant may have spent for it to search.
func (r *Contest) mostSearches(j *draft.Job) int64 {
	const drawn = 32 // one in so many
	if settle.Lot(r.Now.Truncate(settle.TurnsOf).Unix(), j.TenantName, j.Name)%drawn == 0 {
		return 2 * r.Limits.Work
	}
	return r.Limits.Work
}

// lookedAt counts contracts of an offer that a job's search looks at.
func (r *Contest) lookedAt(j *draft.Job, contracts int) {
	if r.By(draft.RulesTogetherCounted) {
		r.Parts[j.TenantName] += looksOfVictim * int64(contracts)
	}
}

// postponeSearch makes a job say that its search had no turn.
func postponeSearch(r *Contest, j *draft.Job) {
	r.Due(v1alpha1.TimeOf(r.Now.Add(searchAgain)))
	if len(j.Open) > 0 {
		f := &j.Open[0]
		f.Text, f.Tail = f.Text+unsearchedText, f.Tail+len(unsearchedText)
	}
}
