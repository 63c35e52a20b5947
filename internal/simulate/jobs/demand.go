package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/simulate/scenario"
)

// maxRows bounds the demand of a simulation. Tenants share it: of those that have more
// than their share the oldest rows are left out.
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
	all = slices.DeleteFunc(all, func(r *row) bool { return !r.ended.IsZero() && !r.ended.After(from.Time) })
	all, left = cut(in, all, held)
	slices.SortFunc(all, (*row).compare)
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

// queue are the replicas of an intent that hold nothing now though it waits.
type queue struct {
	i        *model.Intent
	since    v1alpha1.Time
	from, to int32 // their numbers, to not among them
}

// waits are the queues of each tenant. An intent may ask for any number of replicas, so
// that there is no row for one of them yet.
func waits(in *scenario.Input, held map[string]int32) map[string][]queue {
	out := map[string][]queue{}
	for _, i := range in.Intents {
		tenant, name := i.Metadata.Namespace, i.Metadata.Name
		s := in.Ledger.State(tenant, name)
		if s == nil || s.Status.State != v1alpha1.IntentQueued {
			continue
		}
		if q := (queue{i, s.Status.Since, held[tenant+"/"+name], max(i.Spec.Replicas.Min, 1)}); q.from < q.to {
			out[tenant] = append(out[tenant], q)
		}
	}
	return out
}

// cut adds what waits to what holds, or held, and leaves out what is beyond maxRows: of
// each tenant that has more than its share the oldest. It makes at most maxRows rows.
func cut(in *scenario.Input, was []*row, held map[string]int32) (all []*row, left int) {
	by, waiting := map[string][]*row{}, waits(in, held)
	total := map[string]int{}
	for _, r := range was {
		by[r.Tenant] = append(by[r.Tenant], r)
		total[r.Tenant]++
	}
	for tenant, list := range waiting {
		for _, q := range list {
			total[tenant] += int(q.to - q.from)
		}
	}
	for tenant, n := range shares(total, maxRows) {
		rows, room := by[tenant], n
		list := waiting[tenant]
		slices.SortFunc(list, func(a, b queue) int { // the newest first
			return cmp.Or(b.since.Compare(a.since.Time), cmp.Compare(b.i.Metadata.Name, a.i.Metadata.Name))
		})
		for _, q := range list {
			for k := q.from; k < q.to && room > 0; k, room = k+1, room-1 {
				rows = append(rows, q.row(k))
			}
		}
		slices.SortFunc(rows, (*row).compare)
		all = append(all, rows[max(len(rows)-n, 0):]...)
		left += total[tenant] - n
	}
	return all, left
}

// shares divides so much among those who want some: nobody gets more than they want, and
// who does not get all of it gets no less than another, but for one that does not divide.
func shares(want map[string]int, much int) map[string]int {
	names := slices.SortedFunc(maps.Keys(want), func(a, b string) int { return cmp.Or(cmp.Compare(want[a], want[b]), cmp.Compare(a, b)) })
	out := map[string]int{}
	for i, name := range names {
		out[name] = min(want[name], much/(len(names)-i))
		much -= out[name]
	}
	return out
}

// compare orders rows by when they began.
func (r *row) compare(o *row) int {
	return cmp.Or(r.began.Compare(o.began.Time), cmp.Compare(r.key, o.key))
}

// row is one of the replicas.
func (w *queue) row(n int32) *row {
	i := w.i
	q := i.Spec.Resources
	r := &row{
		key: fmt.Sprintf("%s/%s/%d waiting", i.Metadata.Namespace, i.Metadata.Name, n), Tenant: i.Metadata.Namespace, intent: i.Metadata.Name,
		began: w.since, Priority: i.Spec.Priority, CPU: q.Named[v1alpha1.CPU].Int64(), Memory: q.Named[v1alpha1.Memory].Int64(),
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
	return r
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
