package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Usage is how a contract is used, as far as agents report it. What nobody reports is
// absent: nothing is estimated here.
type Usage struct {
	// Pods on its virtual nodes, those of DaemonSets left out, as the consumer's agent
	// reports them; absent where no report of it is fresh.
	Pods *int64 `json:"pods,omitempty"`
	// IdleSince is since when it is Active and has no pod, as far back as the daemon has
	// followed it; absent while it has some.
	IdleSince v1alpha1.Time `json:"idleSince,omitzero"`
	// Shares of what it holds that its pods take, as the provider's agent averages them over
	// the last hour or so; absent where it does not (overcommit.maxRisk asks for it).
	Shares []UsedShare `json:"shares,omitempty"`
}

// UsedShare is how much of one resource is used, in milli-CPU, bytes or units.
type UsedShare struct {
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Held     int64  `json:"held"`
}

// Percent of what is held, 100 at most.
func (u UsedShare) Percent() int64 {
	if u.Held <= 0 {
		return 0
	}
	return min(100*min(u.Used, u.Held)/u.Held, 100)
}

// Idle reports whether no pod uses it.
func (u *Usage) Idle() bool { return u != nil && !u.IdleSince.IsZero() }

// usedOf a contract are the resources that its pods take, as the provider's agent says it of
// the contract's slice, in the contract's own names; nil where it does not.
func (m *Model) usedOf(c *v1alpha1.Contract) v1alpha1.Resources {
	of := m.used[[2]string{c.Spec.Provider, c.Spec.Flavor}]
	use, reported := of[cmp.Or(c.Spec.Slice, c.Metadata.Name)]
	if n, gpu := use[v1alpha1.GPU]; reported && gpu && c.Spec.GPUs != nil {
		use = maps.Clone(use)
		use[c.Spec.GPUs.ResourceName] = n
	}
	return use
}

// reportedUse is what providers' agents say of slices, by offer.
func (m *Model) reportedUse() map[[2]string]map[string]v1alpha1.Resources {
	out := map[[2]string]map[string]v1alpha1.Resources{}
	for _, o := range m.Offers {
		if f := o.Flavor; len(f.Spec.Usage) > 0 {
			out[[2]string{f.Metadata.Namespace, f.Metadata.Name}] = f.Spec.Usage
		}
	}
	return out
}

// usage of a contract; nil where nothing is known.
func (m *Model) usage(c *v1alpha1.Contract) *Usage {
	if !c.Status.Phase.Held() {
		return nil
	}
	u := &Usage{}
	if seen := m.snap.World.Demand[c.Spec.Consumer]; seen != nil {
		u.pods(c, seen)
	}
	used := m.usedOf(c)
	for _, name := range c.Spec.Resources.Names() {
		if n, reported := used[name]; reported {
			u.Shares = append(u.Shares, UsedShare{name, n.Int64(), c.Spec.Resources[name].Int64()})
		}
	}
	if u.Pods == nil && len(u.Shares) == 0 {
		return nil
	}
	return u
}

// pods are those on all virtual nodes of a contract; nothing where one of them is not
// reported.
func (u *Usage) pods(c *v1alpha1.Contract, seen *v1alpha1.DemandSeen) {
	sum, since := int64(0), v1alpha1.Time{}
	for _, node := range c.VirtualNodes() {
		use, reported := seen.Nodes[node.Name]
		if !reported {
			return
		}
		sum += use.Pods
		if use.IdleSince.After(since.Time) { // the last one counts
			since = use.IdleSince
		}
	}
	u.Pods = &sum
	if sum == 0 && c.Status.Phase == v1alpha1.PhaseActive {
		u.IdleSince = since
	}
}

// addIdle adds what the contracts that are seen and used by no pod cost an hour, and how
// many contracts nobody reports on.
func (m *Model) addIdle(s Sight, key func(*costLine) string, rows map[string]*CostRow, total *CostRow) {
	for i := range m.contracts {
		c := &m.contracts[i]
		if c.Phase != v1alpha1.PhaseActive || !s.None() && !s.Of(c.Tenant) {
			continue
		}
		of := []*CostRow{total, rows[key(&costLine{tenant: c.Tenant, intent: c.Intent, provider: c.Provider, contract: c.Name, month: m.Books.Month(m.Now)})]}
		for _, r := range slices.DeleteFunc(of, func(r *CostRow) bool { return r == nil }) {
			switch {
			case c.Usage == nil || c.Usage.Pods == nil:
				r.Unreported++
			case c.Usage.Idle():
				r.Idle++
				if c.Currency == m.Currency() {
					r.IdleHourly = r.IdleHourly.Add(c.Hourly)
				} else {
					r.Missing++
				}
			}
		}
	}
}

// idleGPUs are those of contracts that no pod uses, by model.
func (m *Model) idleGPUs() map[string]int64 {
	out := map[string]int64{}
	for i := range m.contracts {
		if c := &m.contracts[i]; c.GPUs > 0 && c.Usage.Idle() {
			out[c.Model] += c.GPUs
		}
	}
	return out
}
