package planner

import "github.com/fleetbroker/fleetbroker/internal/planner/draft"

// notes lists what a fleet states that has no effect as the rest of it is,
// each with the document it is in, and tenants that hold more than they may.
func (r *round) notes() []string {
	var out []string
	for _, name := range draft.SortedNames(r.W.Tenants) {
		t := &r.W.Tenants[name].Spec
		if unsigned := r.Fleet.Verification.Mode != "signed"; unsigned && len(t.Approvers)+len(t.Signers) > 0 {
			out = append(out, "tenant "+name+": spec.approvers and spec.signers are not asked for while spec.verification.mode of fleet.yaml is not signed")
		}
	}
	for _, name := range draft.SortedNames(r.W.Tenants) {
		if text := tenantBeyond(r.W, name, r.Limits); text != "" {
			out = append(out, text)
		}
	}
	return out
}
