package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
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
	// Booked: these contracts are bookings. What they take is free until the first Begins, and
	// the intent would hold it for longer.
	Booked bool          `json:"booked,omitempty"`
	Begins v1alpha1.Time `json:"begins,omitzero"`
}

// stock is an offer as those see it who wait for it.
type stock struct {
	flavor *v1alpha1.Flavor
	pool   []*v1alpha1.Flavor // the others of its pool
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
		s := stock{flavor: f, pool: m.poolOf(f), free: m.Free(f), accelerators: map[string]bool{}}
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
		all := holders{sight: s, by: map[holderKey]*Holder{}, seen: map[*v1alpha1.Contract]bool{}}
		for k := range offered {
			m.look(&all, &offered[k], it)
		}
		for _, h := range all.by {
			rows[i].BlockedBy = append(rows[i].BlockedBy, *h)
		}
		slices.SortFunc(rows[i].BlockedBy, func(a, b Holder) int {
			return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Contracts, a.Contracts), cmp.Compare(a.Tenant, b.Tenant), a.Begins.Compare(b.Begins.Time))
		})
	}
}

// look adds who holds what an offer has too little of for an intent, or, where it has enough
// now, who has booked it for a time at which the intent would still hold it.
func (m *Model) look(all *holders, o *stock, it *model.Intent) {
	for _, r := range match.Alternatives(&it.Spec) {
		need, short, fits := o.lacks(&r, it.Spec.Placement.AllowAccelerators)
		switch {
		case !fits:
			continue
		case len(short) > 0:
			for _, c := range m.on(o, m.Ledger.HeldOn) {
				all.add(c.contract, c.of(short), false)
			}
			return
		case it.Spec.Preemption != nil && it.Spec.Preemption.Yields == "booked":
			return
		}
		until := v1alpha1.Time{}
		if d := it.Spec.Schedule.Duration.Duration; d > 0 {
			until = v1alpha1.TimeOf(m.Now.Add(d))
		}
		if short, booked := m.taken(o, need, until); len(short) > 0 {
			for _, c := range booked {
				all.add(c.contract, c.of(short), true)
			}
			return
		}
	}
}

// taking is what a contract takes of an offer, by the offer's names: of one of its pool only
// what they share.
type taking struct {
	contract *v1alpha1.Contract
	takes    v1alpha1.Resources
}

// of are those of these names.
func (x taking) of(names []string) v1alpha1.Resources {
	out := v1alpha1.Resources{}
	for _, name := range names {
		if n := x.takes[name]; !n.IsZero() {
			out[name] = n
		}
	}
	return out
}

// on is what contracts take of an offer and its pool.
func (m *Model) on(o *stock, list func(provider, flavor string) []*v1alpha1.Contract) (out []taking) {
	for _, c := range list(o.flavor.Metadata.Namespace, o.flavor.Metadata.Name) {
		out = append(out, taking{c, ledger.AsOffered(c, o.flavor)})
	}
	for _, f := range o.pool {
		for _, c := range list(f.Metadata.Namespace, f.Metadata.Name) {
			takes := ledger.AsOffered(c, f).Clone()
			maps.DeleteFunc(takes, func(name string, _ v1alpha1.Amount) bool { return !ledger.IsPooled(name) })
			out = append(out, taking{c, takes})
		}
	}
	return out
}

// taken are the resources of which an offer, that has enough now, has too little at the first
// instant before until (zero: no end) at which bookings leave too little, and these bookings.
func (m *Model) taken(o *stock, need v1alpha1.Resources, until v1alpha1.Time) (short []string, by []taking) {
	booked := m.on(o, m.Ledger.BookedOn)
	slices.SortStableFunc(booked, func(a, b taking) int { return a.contract.Spec.Term.Start.Compare(b.contract.Spec.Term.Start.Time) })
	names := need.Names()
	for _, first := range booked {
		at := first.contract.Spec.Term.Start
		if !until.IsZero() && !at.Before(until.Time) {
			break
		}
		free := o.free.Clone()
		for _, c := range m.on(o, m.Ledger.HeldOn) {
			if end := c.contract.Spec.Term.End; !end.IsZero() && !end.After(at.Time) {
				free = free.Add(c.of(names))
			}
		}
		by = nil
		for _, c := range booked {
			if t := c.contract.Spec.Term; !t.Start.After(at.Time) && t.End.After(at.Time) {
				free, by = free.Sub(c.of(names)), append(by, c)
			}
		}
		for _, name := range names {
			if o.states(name) && free[name].Less(need[name]) {
				short = append(short, name)
			}
		}
		if len(short) > 0 {
			return short, by
		}
	}
	return nil, nil
}

// holderKey is a tenant, "" for those that the viewer does not see, and whether it has booked.
type holderKey struct {
	tenant string
	booked bool
}

// holders are who holds or has booked what an intent waits for.
type holders struct {
	sight Sight
	by    map[holderKey]*Holder
	seen  map[*v1alpha1.Contract]bool // one takes of each offer of its pool
}

// add adds what a contract holds, or has booked.
func (h *holders) add(c *v1alpha1.Contract, takes v1alpha1.Resources, booked bool) {
	if len(takes) == 0 || h.seen[c] {
		return
	}
	h.seen[c] = true
	key := holderKey{booked: booked}
	if h.sight.Of(c.Metadata.Namespace) {
		key.tenant = c.Metadata.Namespace
	}
	x := h.by[key]
	if x == nil {
		x = &Holder{Tenant: key.tenant, Booked: booked}
		h.by[key] = x
	}
	x.GPUs, x.Contracts = x.GPUs+int(takes[v1alpha1.GPU].Int64()), x.Contracts+1
	delete(takes, v1alpha1.GPU)
	if len(takes) > 0 {
		x.Resources = x.Resources.Clone().Add(takes)
	}
	switch term := c.Spec.Term; {
	case key.tenant == "":
	case booked:
		x.Begins = earlier(x.Begins, term.Start)
	default:
		x.Ends = earlier(x.Ends, term.End)
	}
}

// earlier is the earlier of two instants; zero is none.
func earlier(a, b v1alpha1.Time) v1alpha1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a.Time) {
		return b
	}
	return a
}

// states reports whether an offer says how much it has of a resource: pods and storage that it
// does not state are taken as enough.
func (s *stock) states(name string) bool {
	_, stated := s.flavor.Spec.Capacity[name]
	return stated || name != v1alpha1.Pods && name != v1alpha1.EphemeralStorage
}

// lacks are what a request needs of an offer, and the resources of which there is too little
// free and would be enough if nobody held any; it does not fit where that is not so.
func (s *stock) lacks(r *v1alpha1.ResourceRequest, anyway bool) (need v1alpha1.Resources, short []string, fits bool) {
	need = r.Named
	asks := anyway || r.GPU != nil || len(s.accelerators) == 0
	for name, n := range need {
		asks = asks || s.accelerators[name] && !n.IsZero()
	}
	if !asks {
		return nil, nil, false
	}
	if r.GPU != nil {
		units, ok := unitsOf(r.GPU, s.flavor.Spec.GPU)
		if !ok {
			return nil, nil, false
		}
		need = need.Clone()
		need[v1alpha1.GPU] = v1alpha1.AmountOf(units)
	}
	for _, name := range need.Names() {
		n := need[name]
		switch {
		case !s.states(name):
		case s.flavor.Spec.Capacity[name].Less(n):
			return nil, nil, false
		case s.free[name].Less(n):
			short = append(short, name)
		}
	}
	return need, short, true
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
