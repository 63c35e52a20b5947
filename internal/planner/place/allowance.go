package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/parts"
)

// What looking for parts of replicas (spec.split) may cost a round is counted in looks: for
// each part one for each candidate, looksOfOrder for each that may take it, because they are
// put in order, and one for each candidate where a part of a size is tried on one of them.
// A tenant's jobs have limits.work of them in a round together, but each that has its turn
// has at least what one search costs that finds its parts at once (LooksOfParts), which
// package settle has charged it for. What is tried on trial alone takes what is left.

const looksOfOrder = 3

// looksFor are those of a turn, nil for as many as there are.
func looksFor(r *Placer, j *draft.Job, q Request) *looks.Looks {
	if !divides(r, j) {
		return nil
	}
	l := &looks.Looks{Spent: r.Parts, Of: j.TenantName, Most: r.Limits.Work, Trial: q.DryRun || q.Unasked, What: "the looks for parts of its replicas"}
	if !l.Trial {
		l.Most = max(l.Most, l.Spent[l.Of]+LooksOfParts(r, j, len(j.Tasks)))
	}
	return l
}

// divides reports whether what a job looks for by parts is counted.
func divides(r *Placer, j *draft.Job) bool {
	return j.In != nil && j.In.Spec.Split != nil && j.In.Spec.Split.MaxParts > 1 && !j.In.Spec.VirtualNode.IsShared() && r.By(draft.RulesPartsCounted)
}

// LooksOfParts is what a job is charged for the parts of so many replicas: a search that finds
// them at once by the first alternative that has any, of the most parts that it may have,
// though for no more parts than its tenant may hold contracts. Further alternatives have what
// is left.
func LooksOfParts(r *Placer, j *draft.Job, replicas int) int64 {
	if !divides(r, j) {
		return 0
	}
	alternatives, split := j.Alternatives(), j.In.Spec.Split
	for i := range alternatives {
		n := min(int64(split.MaxParts), r.SplitUnits(&alternatives[i])/parts.LeastUnits(split, &alternatives[i]))
		if n < 2 {
			continue
		}
		all := n * int64(max(replicas, 1))
		if j.Tenant != nil {
			most, _ := r.Accounts.Most(j.Tenant)
			all = max(n, min(all, most-int64(j.Tenant.Contracts())))
		}
		cost := (looksOfOrder + 2) * all
		if _, shares := Shares(r, j); shares { // each domain is looked at, and one of them in earnest
			cost += (looksOfOrder+2)*n + domainsTried
		}
		return cost * int64(len(r.Inventory.Offers()))
	}
	return 0
}
