package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Trial is a prepared round that a test works on step by step.
type Trial struct{ r *round }

// NewTrial reads a world from nothing, up to the first turn.
func NewTrial(w draft.World) *Trial {
	r := newRound(&w)
	r.prepareAll()
	for _, j := range r.Jobs {
		if len(j.Tasks) > 0 && j.In != nil {
			r.Budget(j, len(j.Tasks))
		}
	}
	r.Turns = 1
	for name := range r.W.Tenants { // opened on first use
		r.Accounts.Of(name)
	}
	return &Trial{r}
}

// Mark, Rollback and Keep are the draft's.
func (t *Trial) Mark() int {
	m := t.r.Mark()
	t.r.Wholly(t.r.Jobs...)
	return int(m)
}

func (t *Trial) Rollback(m int) { t.r.Rollback(draft.Mark(m)) }
func (t *Trial) Keep(m int)     { t.r.Keep(draft.Mark(m)) }

// Edits is how many changes are written down.
func (t *Trial) Edits() int { return len(t.r.Edits) }

// Operations are the names of what Do can do.
var Operations = []string{"turn", "fill", "look", "adapt", "lend", "shift", "off the account", "on the account", "release", "reserve", "drop reservations", "due", "estimate"}

// Do works one operation on the n-th of what there is of its kind. It reports
// whether there was any.
func (t *Trial) Do(operation string, n int) bool {
	r := t.r
	j := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Tasks) == 0 }), n)
	holder := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Live) == 0 }), n)
	switch {
	case slices.Contains([]string{"turn", "fill", "look", "reserve"}, operation) && j == nil,
		slices.Contains([]string{"lend", "off the account", "on the account", "release", "adapt"}, operation) && holder == nil:
		return false
	}
	switch operation {
	case "turn":
		r.FillWaiting([]*draft.Job{j}, place.Request{})
	case "fill":
		r.Fill(j, place.Request{})
	case "look":
		r.LookOnly(j, place.Request{})
	case "reserve":
		r.Reserve(j)
	case "lend":
		r.Lend(holder.Live[0])
	case "off the account":
		r.OffAccount(holder.Live[0])
	case "on the account":
		r.OnAccount(holder.Live[0])
	case "release":
		r.Drop(holder, holder.Live[0], v1alpha1.PhaseReleased, lifecycle.CodeRemoved, "a test")
	case "adapt":
		c := holder.Live[0]
		i := c.Spec.Intent
		holder.Tasks = []draft.Task{{Kind: draft.TaskAdapt, Replica: i.Replica, Part: i.Part, Units: i.Units, Of: i.Of, Old: c}}
		r.Fill(holder, place.Request{})
	case "shift":
		r.Shift(r.Inventory.Offers()[n%len(r.Inventory.Offers())], quantity.Vector{int64(n), 1, 0, 0, int64(n % 3)})
	case "drop reservations":
		r.DropReservations()
	case "due":
		r.Due(v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(int64(n + 1)))})
	case "estimate":
		r.Waiting = slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return len(j.Open) == 0 || j.In == nil })
		for _, w := range r.Waiting {
			w.Dec.Action = draft.Queued
		}
		r.Estimate()
	}
	return true
}

func pick(list []*draft.Job, n int) *draft.Job {
	if len(list) == 0 {
		return nil
	}
	return list[n%len(list)]
}

// State is everything that a rollback must bring back, as text.
func (t *Trial) State() string {
	r, out := t.r, &strings.Builder{}
	trim := func(v quantity.Vector) quantity.Vector {
		for len(v) > 0 && v[len(v)-1] == 0 {
			v = v[:len(v)-1]
		}
		return v
	}
	for _, o := range r.Inventory.Offers() {
		fmt.Fprint(out, o.Ref, trim(o.Free()), trim(o.Held()), r.Inventory.Figures(o).Pool)
		if o.Cards() != nil {
			fmt.Fprint(out, o.Cards().Free(), o.Cards().Empty(), o.Cards().Spare())
		}
		fmt.Fprintln(out)
	}
	for _, name := range draft.SortedNames(r.W.Tenants) {
		fmt.Fprintln(out, name, r.Accounts.Of(name))
	}
	for _, name := range draft.SortedNames(r.Before) {
		fmt.Fprintf(out, "%s %p %p %v\n", name, r.Before[name], r.Current[name], r.StatusOnly[name])
	}
	claims := []string{}
	for j, c := range r.Claims {
		claims = append(claims, fmt.Sprintf("claim %s/%s %p", j.TenantName, j.Name, c))
	}
	slices.Sort(claims)
	fmt.Fprintln(out, claims, draft.SortedNames(r.Claimed), draft.SortedNames(r.Replaced), draft.SortedNames(r.IsFreed), len(r.Freed), r.Now, r.Plan.Due, r.Progressed, len(r.Current))
	for _, remote := range draft.SortedNames(r.MappedNow) {
		for _, provider := range draft.SortedNames(r.MappedNow[remote]) {
			for m, n := range r.MappedNow[remote][provider] {
				if n != 0 {
					fmt.Fprintln(out, remote, provider, m, n)
				}
			}
		}
	}
	jobs := slices.SortedFunc(slices.Values(r.Jobs), func(a, b *draft.Job) int {
		return cmp.Or(cmp.Compare(a.TenantName, b.TenantName), cmp.Compare(a.Name, b.Name))
	})
	for _, j := range jobs {
		fmt.Fprintf(out, "%s/%s %v %v %v %v %d %q %+v %v\n", j.TenantName, j.Name, j.Live, j.Ordinals, j.Tasks, j.Started, j.Releasing, j.Why, j.Dec, j.Sizing)
	}
	return out.String()
}
