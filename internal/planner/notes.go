package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/beyond"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// notes lists what a fleet states that has no effect as the rest of it is,
// each with the document it is in, tenants that hold more than they may, and
// accelerators that are not sold because no price of them is named.
func (r *round) notes() []string {
	var out []string
	names := draft.SortedNames(r.W.Tenants)
	for _, name := range names {
		t := &r.W.Tenants[name].Spec
		if unsigned := r.Fleet.Verification.Mode != "signed"; unsigned && len(t.Approvers)+len(t.Signers) > 0 {
			out = append(out, "tenant "+name+": spec.approvers and spec.signers are not asked for while spec.verification.mode of fleet.yaml is not signed")
		}
	}
	for _, name := range names {
		if text := beyond.Tenant(r.W, name, r.Limits); text != "" {
			out = append(out, text)
		}
	}
	return append(out, r.notForSale()...)
}

// Bounds of what is said of accelerators without a price.
const (
	unsoldNotes   = 20 // notes
	unsoldFlavors = 3  // flavors that one names
)

// notForSale names, by provider and resource, the flavors with accelerators that none of
// their prices names, and the line that is missing.
func (r *round) notForSale() []string {
	type key struct{ provider, resource, where string }
	flavors := map[key][]string{}
	for i, names := range r.Match.NotForSale() {
		o := r.Inventory.Offers()[i]
		for _, name := range names {
			k := key{o.Provider, name, pricePlace(o.Sources, o.Static, o.Provider)}
			flavors[k] = append(flavors[k], o.Name)
		}
	}
	out := make([]string, 0, len(flavors))
	for k, list := range flavors {
		slices.Sort(list)
		named := strings.Join(list[:min(len(list), unsoldFlavors)], ", ")
		if more := len(list) - unsoldFlavors; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, fmt.Sprintf("cluster %s: no price is named for %s of %s, so none of it is sold; add %q under %s (\"0\" sells it for nothing)",
			k.provider, k.resource, named, k.resource+`: "<price an hour>"`, k.where))
	}
	slices.Sort(out)
	return out[:min(len(out), unsoldNotes)]
}

// pricePlace is where the price of an offer is stated, or can be.
func pricePlace(s v1alpha1.Sources, static bool, provider string) string {
	cluster := "clusters/" + provider + ".yaml"
	switch {
	case s.Price == v1alpha1.SourceDefault:
		return "spec.defaultPrice.perHour of " + cluster
	case s.Price == v1alpha1.SourceStated && static:
		return "perHour of the flavor's price, of its row in prices/, or of spec.price in " + cluster
	case s.Price == v1alpha1.SourceStated:
		return "perHour of its row in prices/, or of spec.price in " + cluster
	}
	return "spec.price.perHour of " + cluster
}
