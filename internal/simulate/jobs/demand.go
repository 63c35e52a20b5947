package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// maxRows bounds the demand of a simulation; the oldest rows that are over go first.
const maxRows = 5000

// thousands of a card.
const thousands = 1000

// row is a row of demand as it travels to the child.
type row struct {
	Name, Tenant     string
	CPU, Memory      int64
	GPUs, Milli      int64
	Models           []string
	Created, Deleted int64
	Priority         int32
	MaxHourly        *v1alpha1.Decimal
	began, ended     v1alpha1.Time // ended is zero where that is open
	life             time.Duration // of what waits: for how long it asks
	intent, key      string
}

// again is how long after its end a replica that comes again counts as another.
const again = time.Hour

// past is the demand of the fleet since some days ago: a row for each replica, or part of
// one, that held a contract, from its first contract to the end of its last, and one for
// each replica that waits now. What was there before is there from the start.
//
// What intents ask of places, and of cards beyond their model, is not part of it.
func past(in *scenario.Input, days int) (rows []row, from v1alpha1.Time, left int) {
	from = v1alpha1.TimeOf(in.Now.Add(-time.Duration(days) * 24 * time.Hour))
	intents := map[string]*model.Intent{}
	for _, i := range in.Intents {
		intents[i.Metadata.Namespace+"/"+i.Metadata.Name] = i
	}
	by := map[string][]*v1alpha1.Contract{}
	for c := range in.Ledger.Contracts() {
		if c.Status.Phase == v1alpha1.PhaseBooked || c.Spec.Term.Start.IsZero() || c.Spec.Term.Start.After(in.Now.Time) {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d.%d", c.Metadata.Namespace, c.Spec.Intent.Name, c.Spec.Intent.Replica, c.Spec.Intent.Part)
		by[key] = append(by[key], c)
	}
	var all []*row
	for key, list := range by {
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(a.Spec.Term.Start.Compare(b.Spec.Term.Start.Time), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
		})
		var r *row
		for _, c := range list {
			if r == nil || !r.ended.IsZero() && c.Spec.Term.Start.Sub(r.ended.Time) > again {
				r = &row{key: key, began: c.Spec.Term.Start}
				all = append(all, r)
			}
			r.of(c, intents[c.Metadata.Namespace+"/"+c.Spec.Intent.Name])
			r.ended = endOf(c)
		}
	}
	held := map[string]int32{}
	for _, r := range all {
		if r.ended.IsZero() || r.ended.After(in.Now.Time) {
			held[r.Tenant+"/"+r.intent]++
		}
	}
	for _, i := range in.Intents {
		all = append(all, waiting(in, i, held[i.Metadata.Namespace+"/"+i.Metadata.Name])...)
	}
	all = slices.DeleteFunc(all, func(r *row) bool { return !r.ended.IsZero() && !r.ended.After(from.Time) })
	slices.SortFunc(all, func(a, b *row) int {
		return cmp.Or(a.began.Compare(b.began.Time), cmp.Compare(a.key, b.key))
	})
	if len(all) > maxRows {
		left = len(all) - maxRows
		all = all[left:]
	}
	for i, r := range all {
		r.Name = fmt.Sprintf("r%05d", i)
		r.Created, r.Deleted = max(int64(r.began.Sub(from.Time)/time.Second), 0), -1
		switch {
		case r.life > 0:
			r.Deleted = r.Created + max(int64(r.life/time.Second), 1)
		case !r.ended.IsZero():
			r.Deleted = max(int64(r.ended.Sub(from.Time)/time.Second), r.Created+1)
		}
		rows = append(rows, *r)
	}
	return rows, from, left
}

// endOf is when a contract's capacity was given back, or will be; zero while that is
// open.
func endOf(c *v1alpha1.Contract) v1alpha1.Time {
	if c.Status.Phase.Charged() {
		return c.Spec.Term.End
	}
	return c.Status.Since
}

// of fills in what a contract holds, and what its intent accepts.
func (r *row) of(c *v1alpha1.Contract, in *model.Intent) {
	r.Tenant, r.intent, r.Priority = c.Metadata.Namespace, c.Spec.Intent.Name, c.Spec.Priority
	r.CPU, r.Memory = c.Spec.Resources[v1alpha1.CPU].Int64(), c.Spec.Resources[v1alpha1.Memory].Int64()
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		units := max(int64(g.UnitsPerGPU), 1)
		r.cards(g.Count*thousands, units)
		r.Models = nil
		if g.Model != "" {
			r.Models = []string{g.Model}
		}
	}
	if in != nil && r.GPUs > 0 {
		r.Models = accepted(in, r.Models)
	}
}

// cards are units of which some make a card: whole cards, or a part of one.
func (r *row) cards(milliUnits, units int64) {
	milli := (milliUnits + units - 1) / units
	if r.GPUs, r.Milli = 1, milli; milli >= thousands {
		r.GPUs, r.Milli = (milli+thousands-1)/thousands, thousands
	}
}

// accepted are the models that an intent names. One that asks for cards in another way
// (memory, tier, capability) would take what it was given.
func accepted(in *model.Intent, given []string) []string {
	g := in.Spec.Resources.GPU
	if g == nil {
		return given
	}
	if len(g.Models) > 0 {
		return anyOf(g.Models)
	}
	if g.Vendor == "" && g.Tier == "" && g.Architecture == "" && g.Interconnect == "" && g.ComputeCapability == "" && g.Profile == "" && g.Memory == (v1alpha1.MemoryRange{}) {
		return nil
	}
	return given
}

// anyOf are models, none where any will do.
func anyOf(models []string) []string {
	if slices.Contains(models, "any") {
		return nil
	}
	return models
}

// waiting are the replicas of an intent that hold nothing now though it waits.
func waiting(in *scenario.Input, i *model.Intent, held int32) []*row {
	s := in.Ledger.State(i.Metadata.Namespace, i.Metadata.Name)
	if s == nil || s.Status.State != v1alpha1.IntentQueued {
		return nil
	}
	q := i.Spec.Resources
	var out []*row
	for n := held; n < max(i.Spec.Replicas.Min, 1); n++ {
		r := &row{
			key: fmt.Sprintf("%s/%s/%d waiting", i.Metadata.Namespace, i.Metadata.Name, n), Tenant: i.Metadata.Namespace, intent: i.Metadata.Name,
			began: s.Status.Since, Priority: i.Spec.Priority, CPU: q.Named[v1alpha1.CPU].Int64(), Memory: q.Named[v1alpha1.Memory].Int64(),
		}
		if g := q.GPU; g != nil {
			r.Models = anyOf(g.Models)
			if r.cards(int64(max(g.Count, 1))*thousands, 1); g.Share != nil {
				r.GPUs, r.Milli = 1, min(max(g.Share.MulInt(thousands).Micro()/1_000_000, 1), thousands)
			}
		}
		if b := i.Spec.Budget; b != nil {
			r.MaxHourly = b.MaxHourly
		}
		if d := i.Spec.Schedule.Duration.Duration; d > 0 {
			r.life = d
		}
		out = append(out, r)
	}
	return out
}

// grown takes rows so many times, spread evenly: 1.5 takes every second row twice.
func grown(rows []row, times v1alpha1.Decimal) []row {
	var out []row
	upTo := func(i int) int64 { return times.MulInt(int64(i)).Micro() / 1_000_000 }
	for i, r := range rows {
		for k := range upTo(i+1) - upTo(i) {
			c := r
			if k > 0 {
				c.Name = fmt.Sprintf("%s-%d", r.Name, k+1)
			}
			out = append(out, c)
		}
	}
	return out
}

// demand is rows as the simulation takes them.
func demand(rows []row) []market.Demand {
	out := make([]market.Demand, 0, len(rows))
	for _, r := range rows {
		out = append(out, market.Demand{
			Name: r.Name, Tenant: r.Tenant, CPU: v1alpha1.AmountOf(r.CPU), Memory: v1alpha1.AmountOf(r.Memory), GPUs: r.GPUs, MilliGPU: r.Milli,
			Models: r.Models, Created: r.Created, Deleted: r.Deleted, Priority: r.Priority, MaxHourly: r.MaxHourly,
		})
	}
	return out
}
