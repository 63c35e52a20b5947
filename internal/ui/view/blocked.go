package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
)

// Holder is a tenant that holds what an intent waits for.
type Holder struct {
	// Tenant, "" for all those together that the viewer does not see.
	Tenant string `json:"tenant,omitempty"`
	// GPUs that it holds, by so many Contracts, on offers that match what is asked for, are
	// large enough, and have too few free.
	GPUs      int `json:"gpus"`
	Contracts int `json:"contracts"`
	// Resources other than GPUs, such as cpu, memory and accelerators by their names, that it
	// holds on offers that have too little of them free.
	Resources v1alpha1.Resources `json:"resources,omitempty"`
	// Ends is when the first of these contracts' terms ends; absent when none does.
	Ends v1alpha1.Time `json:"ends,omitzero"`
}

// stock is an offer as those see it who wait for it.
type stock struct {
	flavor *v1alpha1.Flavor
	free   v1alpha1.Resources
	// accelerators that it has: it is left to those who ask for one.
	accelerators map[string]bool
}

// Amounts are the resources that it holds, GPUs left out, in words.
func (h Holder) Amounts() []string { return inWords(h.Resources) }

// stocks are all offers that are open to new contracts.
func (m *Model) stocks() []stock {
	sold := map[[2]string]bool{}
	for i := range m.flavors {
		sold[[2]string{m.flavors[i].Provider, m.flavors[i].Name}] = m.flavors[i].CPU.Sellable
	}
	var out []stock
	for _, o := range m.Offers {
		f := o.Flavor
		if !sold[[2]string{f.Metadata.Namespace, f.Metadata.Name}] {
			continue
		}
		s := stock{flavor: f, free: m.Free(f), accelerators: map[string]bool{}}
		for name, n := range f.Spec.Capacity {
			if !n.IsZero() && accelerators.Is(name, m.Fleet.Policy.Accelerators) {
				s.accelerators[name] = true
			}
		}
		out = append(out, s)
	}
	return out
}

// blocked notes in rows of the queue who holds what they wait for. It looks at each offer,
// and at the contracts of those that are too full.
func (m *Model) blocked(s Sight, rows []QueueRow) {
	at := map[[2]string]int{} // rows by intent
	for i := range rows {
		at[[2]string{rows[i].Tenant, rows[i].Name}] = i
	}
	offered := m.offered()
	for _, it := range m.Fleet.Intents {
		i, here := at[it.Key()]
		if !here {
			continue
		}
		held := map[string]*Holder{}
		for k := range offered {
			if short := offered[k].short(it); len(short) > 0 {
				m.holders(s, held, offered[k].flavor, short)
			}
		}
		for _, h := range held {
			rows[i].BlockedBy = append(rows[i].BlockedBy, *h)
		}
		slices.SortFunc(rows[i].BlockedBy, func(a, b Holder) int {
			return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Contracts, a.Contracts), cmp.Compare(a.Tenant, b.Tenant))
		})
	}
}

// holders adds who holds some of these resources of a flavor.
func (m *Model) holders(s Sight, held map[string]*Holder, f *v1alpha1.Flavor, short []string) {
	for _, c := range m.Ledger.HeldOn(f.Metadata.Namespace, f.Metadata.Name) {
		gpus, others := int64(0), v1alpha1.Resources{}
		for _, name := range short {
			switch n := c.Spec.Resources[name]; {
			case name == v1alpha1.GPU:
				if c.Spec.GPUs != nil {
					gpus = c.Spec.GPUs.Count
				}
			case !n.IsZero():
				others[name] = n
			}
		}
		if gpus == 0 && len(others) == 0 {
			continue
		}
		tenant := ""
		if s.Of(c.Metadata.Namespace) {
			tenant = c.Metadata.Namespace
		}
		h := held[tenant]
		if h == nil {
			h = &Holder{Tenant: tenant}
			held[tenant] = h
		}
		h.GPUs, h.Contracts = h.GPUs+int(gpus), h.Contracts+1
		if len(others) > 0 {
			h.Resources = h.Resources.Clone().Add(others)
		}
		if end := c.Spec.Term.End; tenant != "" && !end.IsZero() && (h.Ends.IsZero() || end.Before(h.Ends.Time)) {
			h.Ends = end
		}
	}
}

// short are the resources of which an offer has too little free for an intent, and would
// have enough if nobody held any; none where it would not fit anyway.
func (s *stock) short(it *model.Intent) []string {
	for _, r := range match.Alternatives(&it.Spec) {
		if short, fits := s.lacks(&r, it.Spec.Placement.AllowAccelerators); fits && len(short) > 0 {
			return short
		}
	}
	return nil
}

func (s *stock) lacks(r *v1alpha1.ResourceRequest, anyway bool) (short []string, fits bool) {
	need, asks := r.Named, anyway || r.GPU != nil || len(s.accelerators) == 0
	for name, n := range need {
		asks = asks || s.accelerators[name] && !n.IsZero()
	}
	if !asks {
		return nil, false
	}
	if r.GPU != nil {
		units, ok := unitsOf(r.GPU, s.flavor.Spec.GPU)
		if !ok {
			return nil, false
		}
		need = need.Clone()
		need[v1alpha1.GPU] = v1alpha1.AmountOf(units)
	}
	for _, name := range need.Names() {
		n := need[name]
		_, stated := s.flavor.Spec.Capacity[name]
		switch {
		case !stated && (name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage): // taken as enough
		case s.flavor.Spec.Capacity[name].Less(n):
			return nil, false
		case s.free[name].Less(n):
			short = append(short, name)
		}
	}
	return short, true
}

// unitsOf is how many of a flavor's units a request comes to; not ok where its cards are
// others than are asked for.
func unitsOf(g *v1alpha1.GPURequest, have *v1alpha1.FlavorGPU) (units int64, ok bool) {
	if have == nil {
		return 0, false
	}
	perCard := max(int64(have.UnitsPerGPU), 1)
	sharing := cmp.Or(strings.ToLower(have.Sharing), "none")
	memory := have.Memory.Amount
	if g.Share != nil && have.Profile == "" && sharing != "mig" {
		memory = memory.Mul(perCard) // what a share of a card is of
	}
	switch {
	case g.Vendor != "" && !strings.EqualFold(g.Vendor, have.Vendor),
		g.Profile != "" && gpuforms.Profile(g.Profile) != gpuforms.Profile(have.Profile),
		g.Memory != (v1alpha1.MemoryRange{}) && !g.Memory.Contains(memory),
		!wanted(g, have.Model):
		return 0, false
	case g.Sharing != "":
		ok = strings.EqualFold(g.Sharing, sharing)
	case g.Share != nil || g.Profile != "":
		ok = true
	default: // whole cards
		ok = sharing == "none" && perCard == 1
	}
	return match.CardRequestOf(g).Units(perCard), ok
}

// wanted reports whether a request takes a model.
func wanted(g *v1alpha1.GPURequest, model string) bool {
	return len(g.Models) == 0 || slices.ContainsFunc(g.Models, func(want string) bool {
		want = strings.ToLower(strings.TrimSpace(want))
		return want == "any" || gpunames.Match(want, model)
	})
}
