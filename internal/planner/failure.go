package planner

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// failure is a task that could not be done now.
type failure struct {
	task task
	code string
	text string
	// rejected counts all offers by the first requirement they fail.
	rejected map[string]int
	shape    *match.Class
	// rules that held for the task.
	rules *rules
	// done is how many tasks before it could be done.
	done int
}

// failedShape is why nothing of a shape fits, for the next that asks the same.
type failedShape struct {
	counts, changes int
	tenant          *account.Tenant
	limits          limits
	found           failure
}

// failure says why a task of n found no candidate.
func (r *round) failure(j *job, s *match.Class, l *limits, t task, done, n int) *failure {
	known := &memoOf(s).failed
	if known.tenant != l.Tenant || known.changes != l.Tenant.Version() || known.counts != s.Changes() || !known.limits.same(l) {
		*known = failedShape{counts: s.Changes(), changes: l.Tenant.Version(), tenant: l.Tenant, limits: *l, found: r.explainFailure(s, l)}
	}
	f := known.found
	f.task, f.done = t, done
	if done > 0 {
		f.code = CodeGang
		f.text = fmt.Sprintf("%d of %d replicas fit; %s", done, n, f.text)
	}
	return &f
}

func (r *round) explainFailure(s *match.Class, l *limits) failure {
	f := failure{shape: s, rules: l.rules, rejected: s.Rejected(), code: CodeNothingFits}
	broken := map[string]int{}
	if s.Fitting > 0 {
		f.rejected = maps.Clone(f.rejected)
		for i := range s.Candidates {
			if s.Candidates[i].Fails == "" {
				req := l.breaks(&s.Candidates[i])
				broken[req]++
				f.rejected[req]++
			}
		}
	}
	f.text = NothingFits(len(r.inventory.Offers()), f.rejected) + policyTexts(s.Request, f.rejected)
	switch {
	case len(broken) > 0:
		top := sortedByCount(broken)[0]
		switch top {
		case ReqTenantHourly, ReqTenantMonthly:
			f.code = CodeBudget
		case match.ReqMaxHourly, match.ReqMaxHourlySpot, match.ReqMaxTotal:
			f.code = CodeIntentBudget
		case match.ReqDenied, reqOther:
		case match.ReqRemoteNamespace:
			f.code = CodeRemoteNamespace
		case match.ReqSecret:
			f.code = CodeSecret
		case match.ReqSpread:
			f.code = CodeSpread
		case match.ReqTogether:
			f.code = CodeTogether
		case match.ReqApart:
			f.code = CodeApart
		default:
			f.code = CodeQuota
		}
		if text := cmp.Or(l.bars.brokenText(s, l, top), l.rules.brokenText(s, l, top), r.accounts.Text(l.Tenant, top)); text != "" {
			f.text = text + "; " + f.text
		}
	case strings.HasPrefix(commonest(f.rejected), "budget."):
		f.code = CodeIntentBudget
	}
	return f
}

// policyTexts are the messages of the fleet's policies that forbid an offer, for
// whoever has never seen the policy.
func policyTexts(w *match.Request, rejected map[string]int) string {
	text := ""
	for i := range w.Policies {
		if p := &w.Policies[i]; p.Message != "" && rejected[match.ReqPolicy+p.Name] > 0 {
			text += "; " + p.Name + ": " + p.Message
		}
	}
	return text
}

// commonest is the requirement that most offers fail, of those that are heard:
// what is not says nothing of what is asked for, and another daemon, which
// started later, does not know of it. (The code stands on the ledger, and two
// daemons that see different ones would correct each other without end.)
func commonest(rejected map[string]int) string {
	for _, req := range sortedByCount(rejected) {
		if req != match.ReqSilent && req != match.ReqLost {
			return req
		}
	}
	return ""
}
