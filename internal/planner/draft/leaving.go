package draft

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// A contract that is being released keeps its capacity until it is seen gone,
// and costs nothing from the release on. Whether it also counts against its
// tenant's quota depends on who caused the release, by the reason and the notice
// that the contract records:
//
//	the tenant     it does, until it is seen gone: its intent was removed,
//	               suspended or changed, asks for fewer replicas or holds nothing
//	               any more, its term or window ended, its tenant's budget or
//	               maxDuration ended it, or it gave way to an intent of its own
//	               tenant. Otherwise pods that do not drain would let a tenant
//	               hold its quota again and again.
//	all others     it does not: its provider is lost, refuses or takes back what
//	               it sold, it gave way to another tenant, the fleet drains or
//	               consolidates, an operator gave it up. A replacement must not
//	               wait for them.
//
// What an intent's change replaces counts from the end of its round on (CountReplaced), so
// that a change is made within an exact quota, and the next one after the drain. What
// is seen gone does not count, nor what is on a provider that is lost: nobody
// could see it gone.

// tenantCodes are the codes of releases that a tenant causes itself.
var tenantCodes = []string{
	lifecycle.CodeRemoved, lifecycle.CodeSuspended, lifecycle.CodeChanged, lifecycle.CodeDuplicate, lifecycle.CodeFewer, lifecycle.CodeStageFind, lifecycle.CodeTermEnded, lifecycle.CodeWindow, lifecycle.CodeBudget, lifecycle.CodeMaxDuration,
}

// gaveUp reports whether a contract is being released because of its own tenant.
func gaveUp(c *v1alpha1.Contract) bool {
	if c.Status.Phase != v1alpha1.PhaseReleasing {
		return false
	}
	code := c.Status.Reason
	if code == string(v1alpha1.Preempted) && c.Status.Displaced != nil {
		by, _, _ := strings.Cut(c.Status.Displaced.By, "/")
		return by == c.Metadata.Namespace
	}
	return slices.Contains(tenantCodes, code)
}

// leaves reports whether a contract counts against its tenant's quota though it
// is being released.
func (r *Draft) leaves(c *v1alpha1.Contract) bool {
	if c == nil || !gaveUp(c) || !r.By(RulesHeldUntilGone) || r.replaced[c.Metadata.Name] || r.W.ForceRelease[c.Metadata.Name] {
		return false
	}
	o := r.OfferOf(c)
	return o != nil && o.State != model.Lost && !r.seenGone(c)
}
