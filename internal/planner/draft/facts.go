package draft

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// SecondsOf is n seconds.
func SecondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

// MsOf is n milliseconds.
func MsOf(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// KeyOf is an intent as "<tenant>/<name>".
func KeyOf(tenant, name string) string { return tenant + "/" + name }

// OfferOf is the offer that a contract stands on, nil when it is in no market.
func (r *Draft) OfferOf(c *v1alpha1.Contract) *inventory.Offer {
	return r.Inventory.Of(c)
}

// CompareNames orders by tenant, then name.
func CompareNames(tenant, name, otherTenant, otherName string) int {
	if c := strings.Compare(tenant, otherTenant); c != 0 {
		return c
	}
	return strings.Compare(name, otherName)
}

// Find is the intent of a name, by binary search.
func (r *Draft) Find(tenant, name string) *model.Intent {
	i, ok := slices.BinarySearchFunc(r.Intents, [2]string{tenant, name}, func(in *model.Intent, k [2]string) int {
		return CompareNames(in.Metadata.Namespace, in.Metadata.Name, k[0], k[1])
	})
	if !ok {
		return nil
	}
	return r.Intents[i]
}

// SortedByCount lists requirements by count, the most frequent first, then by
// name.
func SortedByCount(counts map[string]int) []string {
	out := make([]string, 0, len(counts))
	for k := range counts {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return out
}

// freezes answers which intents and paths are frozen, and why.
type freezes struct {
	paths   map[string]string
	dirs    []model.Freeze
	intents map[[2]string]string
	Any     bool
}

// NewFreezes sorts what is frozen by how it is asked for.
func NewFreezes(list []model.Freeze) freezes {
	f := freezes{paths: map[string]string{}, intents: map[[2]string]string{}, Any: len(list) > 0}
	for _, x := range list {
		switch {
		case x.Path == "/" || strings.HasSuffix(x.Path, "/"):
			f.dirs = append(f.dirs, x)
		case x.Path != "":
			f.paths[x.Path] = x.Why
		}
		if x.Tenant != "" {
			f.intents[[2]string{x.Tenant, x.Intent}] = x.Why
		}
	}
	return f
}

// Why says why an intent, or what came from any of paths, is frozen.
func (f *freezes) Why(tenant, intent string, paths ...string) (string, bool) {
	if !f.Any {
		return "", false
	}
	for _, k := range [...][2]string{{tenant, intent}, {tenant, ""}} {
		if why, ok := f.intents[k]; ok {
			return why, true
		}
	}
	for _, p := range paths {
		if why, ok := f.paths[p]; ok && p != "" {
			return why, true
		}
		for _, d := range f.dirs {
			if d.Path == "/" || (p != "" && strings.HasPrefix(p, d.Path)) {
				return d.Why, true
			}
		}
	}
	return "", false
}

// SortedNames are the keys of a map, in order.
func SortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// JobOf is the job of an intent in this round, nil when it needs none.
func (r *Draft) JobOf(tenant, name string) *Job {
	if len(r.jobsByName) != len(r.Jobs) {
		r.jobsByName = make(map[[2]string]*Job, len(r.Jobs))
		for _, j := range r.Jobs {
			r.jobsByName[[2]string{j.TenantName, j.Name}] = j
		}
	}
	return r.jobsByName[[2]string{tenant, name}]
}

// By reports whether a round decides by the rules of a number.
func (r *Draft) By(rules int) bool { return r.W.Rules == 0 || r.W.Rules >= rules }
