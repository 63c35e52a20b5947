package reconciler

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// groupsOf names, for each intent, the group it must be committed with: what
// takes capacity or a tenant's allowance goes together with what gives it up
// in the same plan, or half of the plan could oversell; and an intent's new name
// with its old one, or what was spent under it could be lost between the two.
func groupsOf(keys []string, byKey map[string]*share) map[string]string {
	var u union
	gives := map[string]bool{}
	uses := map[string][]string{}
	for _, key := range keys {
		for _, c := range byKey[key].Contracts {
			give, take := flow(c)
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
			u.join(uses[res][0], key)
		}
	}
	for _, key := range keys {
		for _, st := range byKey[key].States {
			if old := byKey[key].decision.Tenant + "/" + st.From; st.From != "" && byKey[old] != nil {
				u.join(old, key)
			}
		}
	}
	out := map[string]string{}
	for _, key := range keys {
		if root := u.find(key); root != key || u.size(key) > 1 {
			out[key] = root
		}
	}
	return out
}

// flow lists what a contract's change gives up and what it takes: flavors and
// tenants' allowances.
func flow(c model.Change) (give, take []string) {
	flavor := func(x *v1alpha1.Contract) string { return "flavor " + flavorOf(x) }
	tenant := func(x *v1alpha1.Contract) string { return "tenant " + x.Metadata.Namespace }
	b, a := c.Before, c.After
	switch {
	case b == nil:
		return nil, []string{flavor(a), tenant(a)}
	case a == nil:
		return []string{tenant(b)}, nil
	case b.Status.Phase.Held() && !a.Status.Phase.Held():
		return []string{flavor(b)}, nil
	case b.Status.Phase.Charged() && !a.Status.Phase.Charged():
		return []string{tenant(b)}, nil
	case !b.Spec.Resources.Equal(a.Spec.Resources) || b.Spec.Price.Hourly.Cmp(a.Spec.Price.Hourly) != 0:
		both := []string{flavor(a), tenant(a)}
		return both, both
	}
	return nil, nil
}

// union is a disjoint-set forest over intent keys.
type union struct {
	parent map[string]string
	count  map[string]int
}

func (u *union) find(k string) string {
	for u.parent[k] != "" && u.parent[k] != k {
		k = u.parent[k]
	}
	return k
}

func (u *union) size(k string) int { return max(1, u.count[u.find(k)]) }

func (u *union) join(a, b string) {
	if u.parent == nil {
		u.parent, u.count = map[string]string{}, map[string]int{}
	}
	a, b = u.find(a), u.find(b)
	if a == b {
		return
	}
	u.count[a] = max(1, u.count[a]) + max(1, u.count[b])
	u.parent[b] = a
}
