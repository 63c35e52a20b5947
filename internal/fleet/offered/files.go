package offered

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Missing are the clusters that do not exist and that a tenant counts on as its consumer,
// or a flavor as its provider: by the name of the first tenant that does, else by the
// flavor's (Ref), whose file reports it for all.
func Missing(tenants map[string]*v1alpha1.Tenant, flavors []*v1alpha1.Flavor, exists func(id string) bool) map[string]string {
	out := map[string]string{}
	count := func(id, by string) {
		if out[id] == "" && !exists(id) {
			out[id] = by
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		for _, id := range tenants[name].Spec.Consumers {
			count(id, name)
		}
	}
	for _, fl := range flavors {
		count(fl.Metadata.Namespace, fl.Ref())
	}
	return out
}

// NoCluster is what to write where a consumer does not exist: did is the name that was
// probably meant, as a message has it, "" for none.
func NoCluster(id, did string, tenants map[string]*v1alpha1.Tenant) string {
	n := 0
	for _, t := range tenants {
		if slices.Contains(t.Spec.Consumers, id) {
			n++
		}
	}
	if did == "" {
		did = fmt.Sprintf("; add clusters/%s.yaml", id)
	}
	if n > 1 {
		did += fmt.Sprintf(" (%d tenants name it)", n)
	}
	return did
}

// Unpriced are the flavors, by provider, that neither state a price nor may have one by a
// price table.
func Unpriced(flavors []*v1alpha1.Flavor, tables []*v1alpha1.PriceTable) map[string][]*v1alpha1.Flavor {
	type row struct {
		provider string
		gpu      bool
	}
	tabled := map[row]bool{}
	for _, t := range tables {
		for i := range t.Spec.Prices {
			tabled[row{t.Spec.Prices[i].Provider, t.Spec.Prices[i].Model != ""}] = true
		}
	}
	out := map[string][]*v1alpha1.Flavor{}
	for _, fl := range flavors {
		if of := fl.Metadata.Namespace; fl.Spec.Price == nil && !tabled[row{of, fl.Spec.GPU != nil}] {
			out[of] = append(out[of], fl)
		}
	}
	return out
}
