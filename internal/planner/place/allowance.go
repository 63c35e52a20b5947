package place

import (
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// looksFor are those of a turn, nil for as many as there are.
func looksFor(r *Placer, j *draft.Job, q Request) *looks {
	if !divides(r, j) {
		return nil
	}
	l := &looks{spent: r.Parts, of: j.TenantName, most: r.Limits.Work, trial: q.DryRun || q.Unasked}
	if !l.trial {
		l.most = max(l.most, l.spent[l.of]+LooksOfParts(r, j, len(j.Tasks)))
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
		parts := min(int64(split.MaxParts), r.SplitUnits(&alternatives[i])/LeastUnits(split, &alternatives[i]))
		if parts < 2 {
			continue
		}
		all := parts * int64(max(replicas, 1))
		if j.Tenant != nil {
			most, _ := r.Accounts.Most(j.Tenant)
			all = max(parts, min(all, most-int64(j.Tenant.Contracts())))
		}
		looks := (looksOfOrder + 2) * all
		if _, shares := Shares(r, j); shares { // each domain is looked at, and one of them in earnest
			looks += (looksOfOrder+2)*parts + domainsTried
		}
		return looks * int64(len(r.Inventory.Offers()))
	}
	return 0
}
