package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
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
