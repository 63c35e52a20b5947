package place

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// failedClass is why nothing of a request class fits, for the next that asks the same.
type failedClass struct {
	counts, changes int
	tenant          *account.Tenant
	limits          Limits
	found           draft.Failure
}

// failure is why a task of n found no candidate.
func (r *Placer) failure(j *draft.Job, s *match.Class, l *Limits, t draft.Task, done, n int) *draft.Failure {
	known := &memoOf(s).failed
	if known.tenant != l.Tenant || known.changes != l.Tenant.Version() || known.counts != s.Changes() || !known.limits.same(l) {
		*known = failedClass{counts: s.Changes(), changes: l.Tenant.Version(), tenant: l.Tenant, limits: *l, found: r.explainFailure(s, l)}
	}
	f := known.found
	f.Task, f.Done = t, done
	if done > 0 {
		f.Code = lifecycle.CodeGang
		f.Text = fmt.Sprintf("%d of %d replicas fit; %s", done, n, f.Text)
	}
	return &f
}

func (r *Placer) explainFailure(s *match.Class, l *Limits) draft.Failure {
	f := draft.Failure{Class: s, Rules: l.Rules, Rejected: s.Rejected(), Code: lifecycle.CodeNothingFits}
	broken := map[string]int{}
	if s.Fitting > 0 {
		f.Rejected = maps.Clone(f.Rejected)
		for i := range s.Candidates {
			if s.Candidates[i].Fails == "" {
				req := l.Rejects(&s.Candidates[i])
				broken[req]++
				f.Rejected[req]++
			}
		}
	}
	counts, policies := said.NothingFits(len(r.Inventory.Offers()), f.Rejected), said.PolicyTexts(s.Request, f.Rejected)
	f.Text, f.Counts, f.Tail = counts+policies, len(counts), len(policies)
	switch {
	case len(broken) > 0:
		top := draft.SortedByCount(broken)[0]
		switch top {
		case account.BudgetHourly, account.BudgetMonthly:
			f.Code = lifecycle.CodeBudget
		case match.ReqMaxHourly, match.ReqMaxHourlySpot, match.ReqMaxTotal:
			f.Code = lifecycle.CodeIntentBudget
		case match.ReqDenied, reqOther:
		case match.ReqRemoteNamespace:
			f.Code = lifecycle.CodeRemoteNamespace
		case match.ReqSecret:
			f.Code = lifecycle.CodeSecret
		case match.ReqSpread:
			f.Code = lifecycle.CodeSpread
		case match.ReqWithin:
			f.Code = lifecycle.CodeWithin
		case match.ReqTogether:
			f.Code = lifecycle.CodeTogether
		case match.ReqApart:
			f.Code = lifecycle.CodeApart
		case match.ReqBooked:
			f.Code = lifecycle.CodeBooked
		default:
			f.Code = lifecycle.CodeQuota
		}
		text := cmp.Or(l.bars.Broken(s, l.Rejects, top), l.Rules.Broken(s, l.Rejects, top), l.booked.brokenText(s, l.Rejects, top))
		if text == "" {
			text = r.Accounts.Text(l.Tenant, top)
			f.Limit, f.Figures = top, text
		}
		if text != "" {
			f.Text = text + "; " + f.Text
		}
	case strings.HasPrefix(said.Commonest(f.Rejected), "budget."):
		f.Code = lifecycle.CodeIntentBudget
	}
	return f
}
