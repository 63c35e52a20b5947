package reconciler

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/reconciler/grouping"
)

// groupsOf names, for each intent, the group it must be committed with: what
// takes capacity or a tenant's allowance goes together with what gives it up
// in the same plan, or half of the plan could oversell; and an intent's new name
// with its old one, or what was spent under it could be lost between the two.
func groupsOf(keys []string, byKey map[string]*share) map[string]string {
	var u grouping.Union
	gives := map[string]bool{}
	uses := map[string][]string{}
	for _, key := range keys {
		for _, c := range byKey[key].Contracts {
			give, take := grouping.Flow(c)
			for _, res := range append(give, take...) {
				uses[res] = append(uses[res], key)
			}
			for _, res := range give {
				gives[res] = true
			}
		}
	}
	for _, res := range slices.Sorted(maps.Keys(gives)) {
		for _, key := range uses[res][1:] {
			u.Join(uses[res][0], key)
		}
	}
	for _, key := range keys {
		for _, st := range byKey[key].States {
			if old := byKey[key].decision.Tenant + "/" + st.From; st.From != "" && byKey[old] != nil {
				u.Join(old, key)
			}
		}
	}
	out := map[string]string{}
	for _, key := range keys {
		if root := u.Find(key); root != key || u.Size(key) > 1 {
			out[key] = root
		}
	}
	return out
}
