package said

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// limitWords are what is wrong with one offer that a limit of its tenant rules out, as
// match.Words are of requirements.
var limitWords = map[string]string{
	account.QuotaGPU:      "would exceed its tenant's quota of GPUs",
	account.QuotaCPU:      "would exceed its tenant's quota of CPU",
	account.QuotaCount:    "would be more contracts than its tenant may hold",
	account.QuotaMemory:   "would exceed its tenant's quota of memory",
	account.QuotaByModel:  "would exceed its tenant's quota of that GPU model",
	account.BudgetHourly:  "costs more than is left of its tenant's hourly budget",
	account.BudgetMonthly: "costs more than is left of its tenant's monthly budget",
}

// shortfall is what is wrong with one offer that fails a requirement or a limit, in
// words; "" for a code that is none.
func shortfall(req string) string { return cmp.Or(limitWords[req], match.Words(req)) }

// IsTenantLimit reports whether a requirement is a limit of the tenant.
func IsTenantLimit(req string) bool { return limitWords[req] != "" }

// Tier is match.Tier: what a tenant has left is more when time has passed.
func Tier(req string) int {
	if IsTenantLimit(req) {
		return 1
	}
	return match.Tier(req)
}

// saidOf is what is wrong with n offers that fail a requirement.
func saidOf(req string, n int) string {
	text := cmp.Or(shortfall(req), "fails "+req) // a plan of another version
	does, what, _ := strings.Cut(text, " ")
	return Verb(does, n) + " " + what
}

// Shortfall is what is wrong with several offers that fail a requirement, in
// words; "" for a code that is none.
func Shortfall(req string) string {
	if shortfall(req) == "" {
		return ""
	}
	return saidOf(req, 2)
}

// Verb is a verb of the third person in the form for n.
func Verb(one string, n int) string {
	if n == 1 {
		return one
	}
	switch one {
	case "is":
		return "are"
	case "has":
		return "have"
	case "does":
		return "do"
	}
	return strings.TrimSuffix(one, "s") // lacks, costs; would stays
}

// NothingFits is the sentence for offers of which none fits, by the first
// requirement that each fails.
func NothingFits(considered int, rejected map[string]int) string {
	if considered == 0 {
		return "nothing is offered"
	}
	reqs := draft.SortedByCount(rejected)
	if considered == 1 && len(reqs) == 1 {
		return "the only offer does not fit: it " + saidOf(reqs[0], 1)
	}
	parts := make([]string, len(reqs))
	for i, req := range reqs {
		parts[i] = fmt.Sprintf("%d %s", rejected[req], saidOf(req, rejected[req]))
	}
	text := fmt.Sprintf("none of %d offers fits", considered)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// PolicyTexts are the messages of the fleet's policies that forbid an offer, for
// people who have never seen the policy.
func PolicyTexts(w *match.Request, rejected map[string]int) string {
	text := ""
	for i := range w.Policies {
		if p := &w.Policies[i]; p.Message != "" && rejected[match.ReqPolicy+p.Name] > 0 {
			text += "; " + p.Name + ": " + p.Message
		}
	}
	return text
}

// Commonest is the requirement that most offers fail, of those whose providers
// report: a stale one has nothing to do with what is asked for, and another replica of
// the daemon, which started later, does not know of it. (The code is on the ledger, and
// two replicas that see different ones would correct each other without end.)
func Commonest(rejected map[string]int) string {
	for _, req := range draft.SortedByCount(rejected) {
		if req != match.ReqSilent && req != match.ReqLost {
			return req
		}
	}
	return ""
}
