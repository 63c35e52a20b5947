package planner

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// What is known of those that wait (draft.Known) is kept beside the decisions of quick,
// and dropped with them: when the file, the ledger, or a contract of the intent is
// another. What else it depends on is asked each time: the class, which follows offers,
// tenants and prices (Known.Lasts), and everything before the turn, which is decided
// again.

// learn notes of those that wait how they do, where the next round may go by it.
func learn(r *round, states map[[2]string]model.StateChange) {
	if len(r.pools) > 0 || r.Probe != nil {
		return
	}
	for _, j := range r.Waiting {
		if k := j.Known; k != nil && j.Far {
			k.Far, k.Described = true, r.Inventory.Described()
		}
		if j.Known != nil || j.Dec.Action != draft.Queued || len(j.Open) != 1 || !j.Plain() || !j.Asks() || r.Claims[j] != nil || noticed(r, j) {
			continue
		}
		if len(r.Relations().Together[draft.KeyOfJob(j)]) > 0 {
			continue // the search for its unit counts, whoever's turn it is
		}
		f := &j.Open[0]
		if rules, _ := f.Rules.(*place.Rules); rules != nil {
			continue // they are of this round
		}
		if f.Class == nil || len(f.Class.Candidates) > 0 || f.Closest != "" || !f.Class.Lasts(r.Match) {
			continue
		}
		if _, changes := states[draft.KeyOfJob(j)]; changes {
			continue
		}
		if at, found := indexOf(r, j); found {
			k := &draft.Known{Class: f.Class, Changes: f.Class.Changes(), Size: r.SizeOf(j), State: j.State, Open: *f, Text: j.Text, Far: j.Far, Described: r.Inventory.Described()}
			r.cached[at] = cachedDecision{more: &furtherDecision{known: k}}
		}
	}
}

// noticed reports whether others have notice to give way to a job.
func noticed(r *round, j *draft.Job) bool {
	return len(r.Notices) > 0 && len(r.Notices[draft.KeyOf(j.TenantName, j.Name)]) > 0
}

// indexOf is where among the intents a job's is, which is the only one of its name.
func indexOf(r *round, j *draft.Job) (at int, found bool) {
	at, found = slices.BinarySearchFunc(r.Intents, j.In, compareName)
	return at, found && r.Intents[at] == j.In && (at+1 == len(r.Intents) || compareName(r.Intents[at+1], j.In) != 0)
}

// saysTheSame reports whether the ledger states of a job what it would: it waits as it did.
func saysTheSame(j *draft.Job) bool {
	return j.Known != nil && !j.Silent && !j.Frozen && !j.Gone && j.Dec.Action == draft.Queued && j.Text == j.Known.Text && !j.Displacing && len(j.Proposals) == 0
}
