// Package grouping says which changes of a plan have to be committed together: what
// takes capacity or a tenant's allowance, and what gives it up.
//
// The reconciler calls it. It is pure; a Union belongs to one goroutine.
package grouping

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Flow lists what a contract's change gives up and what it takes: flavors and
// tenants' allowances.
func Flow(c model.Change) (give, take []string) {
	flavor := func(x *v1alpha1.Contract) string { return "flavor " + x.Spec.Provider + "/" + x.Spec.Flavor }
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

// Union is a disjoint-set forest over the keys of intents. The zero value is
// ready.
type Union struct {
	parent map[string]string
	count  map[string]int
}

// Find is the key that stands for a key's group.
func (u *Union) Find(k string) string {
	for u.parent[k] != "" && u.parent[k] != k {
		k = u.parent[k]
	}
	return k
}

// Size is how many keys a key's group has.
func (u *Union) Size(k string) int { return max(1, u.count[u.Find(k)]) }

// Join makes the groups of two keys one.
func (u *Union) Join(a, b string) {
	if u.parent == nil {
		u.parent, u.count = map[string]string{}, map[string]int{}
	}
	a, b = u.Find(a), u.Find(b)
	if a == b {
		return
	}
	u.count[a] = max(1, u.count[a]) + max(1, u.count[b])
	u.parent[b] = a
}

// Without leaves out the keys that are refused, with all that only holds together with
// them.
func Without(keys []string, groups map[string]string, refused map[string]string) []string {
	if len(refused) == 0 {
		return keys
	}
	group := func(key string) string {
		if g := groups[key]; g != "" {
			return g
		}
		return key
	}
	gone := map[string]bool{}
	for key := range refused {
		gone[group(key)] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return gone[group(key)] })
}
