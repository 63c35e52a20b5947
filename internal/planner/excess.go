package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// findExcess marks the contracts that shrunken flavors can no longer hold: the
// lowest priority first, then the youngest. Releasing ones count as they did
// before.
func (r *round) findExcess() map[string]bool {
	out := map[string]bool{}
	for _, o := range r.Inventory.Suspects() {
		if o.State != model.Fresh {
			continue
		}
		lack := below(o.Free())
		if lack == nil {
			continue
		}
		list := slices.Clone(o.Contracts)
		for _, m := range o.PoolPeers {
			list = append(list, m.Contracts...)
		}
		for i := range list {
			list[i] = r.Latest(list[i])
			if out[list[i].Metadata.Name] {
				lack = lack.Sub(r.Relief(o, list[i]))
			}
		}
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(cmp.Compare(r.Standing(a), r.Standing(b)), b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
		})
		if o.Nodes() != nil {
			lack = excessOnNodes(r, o, list, lack, out)
		}
		for _, c := range list {
			if relief := r.Relief(o, c); !out[c.Metadata.Name] && c.Status.Phase.Held() && relief.Relieves(lack) {
				out[c.Metadata.Name] = true
				lack = lack.Sub(relief)
			}
		}
	}
	lackOnNodes(r, out)
	return out
}

// excessOnNodes marks on each node that has too little of what the offer lacks contracts
// that lie there: those that the provider refuses first, since it knows whose pods run. It
// returns what is lacking still, and orders who is next: contracts with something on a node
// that is gone, then those of which nobody knows where something lies, then the rest.
func excessOnNodes(r *round, o *inventory.Offer, list []*v1alpha1.Contract, lack quantity.Vector, out map[string]bool) quantity.Vector {
	lacked, holds, gone := below(o.Free()), map[string]nodes.Holding{}, map[string]int{}
	for _, c := range list {
		h, name := draft.HoldingOf(&r.Draft, r.OfferOf(c), c.Metadata.Name, c), c.Metadata.Name
		if r.OfferOf(c) != o {
			h = h.Only(inventory.Shared)
		}
		holds[name] = h
		switch {
		case slices.ContainsFunc(h.Parts, func(p nodes.Part) bool { return !o.Nodes().Has(p.Node) }):
			gone[name] = 2
		case h.Loose != nil:
			gone[name] = 1
		}
	}
	onNode := slices.Clone(list)
	slices.SortStableFunc(onNode, func(a, b *v1alpha1.Contract) int { return cmp.Compare(refusedFirst(r, b), refusedFirst(r, a)) })
	o.Nodes().Below(func(node string, short quantity.Vector) {
		for i := range short {
			if lacked.At(i) <= 0 {
				short[i] = 0
			}
		}
		for _, marked := range [...]bool{true, false} {
			for _, c := range onNode {
				h, name := holds[c.Metadata.Name], c.Metadata.Name
				at := slices.IndexFunc(h.Parts, func(p nodes.Part) bool { return p.Node == node })
				if at < 0 || out[name] != marked || !c.Status.Phase.Held() || !h.Parts[at].Size.Relieves(short) {
					continue
				}
				if short = short.Sub(h.Parts[at].Size); !marked {
					out[name], lack = true, lack.Sub(r.Relief(o, c))
				}
			}
		}
	})
	slices.SortStableFunc(list, func(a, b *v1alpha1.Contract) int { return cmp.Compare(gone[b.Metadata.Name], gone[a.Metadata.Name]) })
	return lack
}

// refusedFirst is 1 for a contract that its provider refuses, else 0.
func refusedFirst(r *round, c *v1alpha1.Contract) int {
	if o := r.OfferOf(c); o != nil && o.Flavor.Spec.Refused[c.Metadata.Name] != "" {
		return 1
	}
	return 0
}

// below is how much less than nothing there is, nil where there is not.
func below(free quantity.Vector) (lack quantity.Vector) {
	for i, n := range free {
		if n < 0 {
			lack = lack.Set(i, -n)
		}
	}
	return lack
}

// settleExcess looks again at what shrunken flavors hold, because the
// round may have released or resized some of it.
func (r *round) settleExcess() {
	if len(r.Excess) == 0 {
		return
	}
	was := r.Excess
	draft.Set(&r.Draft, &r.Excess, r.findExcess())
	for _, name := range draft.SortedNames(was) {
		c := r.W.Ledger.Contract(name)
		if r.Excess[name] || !c.Status.Phase.Charged() || !r.Latest(c).Status.Phase.Charged() {
			continue
		}
		if now := r.Current[name]; now != nil && r.StatusOnly[name] {
			r.Put(now, c) // as it was before the first look: what others took since stays
		}
		r.seeAgain(c)
	}
	for _, name := range draft.SortedNames(r.Excess) { // a changed priority may have passed it on
		if c := r.W.Ledger.Contract(name); !was[name] && c != nil && r.Latest(c).Status.Phase.Charged() {
			r.seeAgain(c)
		}
	}
}

// seeAgain observes a contract again, with what the round has made of it.
func (r *round) seeAgain(c *v1alpha1.Contract) {
	seen := r.Observe(r.Latest(c))
	for _, j := range r.Jobs {
		if i := slices.IndexFunc(j.Live, func(held *v1alpha1.Contract) bool { return held.Metadata.Name == c.Metadata.Name }); i >= 0 {
			r.EditJob(j)
			j.Live = draft.Own(&r.Draft, j.Live)
			j.Live[i] = seen
		}
	}
}
