package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Trial is a prepared round that a test works on step by step.
type Trial struct{ r *round }

// NewTrial reads a world from nothing, up to the first turn.
func NewTrial(w World) *Trial {
	r := newRound(&w)
	r.prepareAll()
	for _, j := range r.jobs {
		if len(j.tasks) > 0 && j.in != nil {
			j.budget(r, len(j.tasks))
		}
	}
	r.turns = 1
	for name := range r.w.Tenants { // opened on first use
		r.accounts.Of(name)
	}
	return &Trial{r}
}

// Mark, Rollback and Keep are the draft's.
func (t *Trial) Mark() int {
	m := t.r.mark()
	t.r.wholly(t.r.jobs...)
	return int(m)
}

func (t *Trial) Rollback(m int) { t.r.rollback(mark(m)) }
func (t *Trial) Keep(m int)     { t.r.keep(mark(m)) }

// Edits is how many changes are written down.
func (t *Trial) Edits() int { return len(t.r.edits) }

// Operations are the names of what Do can do.
var Operations = []string{"turn", "fill", "look", "rehearse", "lend", "shift", "off the account", "on the account", "release", "rewrite", "claim", "reserve", "drop reservations", "due", "estimate"}

// Do works one operation on the n-th of what there is of its kind. It reports
// whether there was any.
func (t *Trial) Do(operation string, n int) bool {
	r := t.r
	j := pick(slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return j.in == nil || len(j.tasks) == 0 }), n)
	holder := pick(slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return j.in == nil || len(j.live) == 0 }), n)
	switch {
	case slices.Contains([]string{"turn", "fill", "look", "rehearse", "claim", "reserve"}, operation) && j == nil,
		slices.Contains([]string{"lend", "off the account", "on the account", "release", "rewrite"}, operation) && holder == nil:
		return false
	}
	switch operation {
	case "turn":
		r.turn(j, request{})
	case "fill":
		r.fill(j, request{})
	case "look":
		r.lookOnly(j, request{})
	case "rehearse":
		r.rehearse(j)
	case "claim":
		r.claim(j)
	case "reserve":
		r.reserve(j)
	case "lend":
		r.lend(holder.live[0])
	case "off the account":
		r.offAccount(holder.live[0])
	case "on the account":
		r.onAccount(holder.live[0])
	case "release":
		holder.drop(r, holder.live[0], v1alpha1.PhaseReleased, CodeRemoved, "a test")
	case "rewrite":
		r.rewrite(holder, holder.live[0], nil)
	case "shift":
		r.shift(r.inventory.Offers()[n%len(r.inventory.Offers())], quantity.Vector{int64(n), 1, 0, 0, int64(n % 3)})
	case "drop reservations":
		r.dropReservations()
	case "due":
		r.due(v1alpha1.Time{Time: r.now.Add(secondsOf(int64(n + 1)))})
	case "estimate":
		r.waiting = slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return len(j.open) == 0 || j.in == nil })
		for _, w := range r.waiting {
			w.dec.Action = Queued
		}
		r.estimate()
	}
	return true
}

func pick(list []*job, n int) *job {
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
	for _, o := range r.inventory.Offers() {
		fmt.Fprint(out, o.Ref, trim(o.Free()), trim(o.Held()), trim(o.HeldByPeers()))
		if o.Cards() != nil {
			fmt.Fprint(out, o.Cards().Free(), o.Cards().Empty(), o.Cards().Spare())
		}
		fmt.Fprintln(out)
	}
	for _, name := range sortedNames(r.w.Tenants) {
		fmt.Fprintln(out, name, r.accounts.Of(name))
	}
	for _, name := range sortedNames(r.before) {
		fmt.Fprintf(out, "%s %p %p %v\n", name, r.before[name], r.current[name], r.statusOnly[name])
	}
	claims := []string{}
	for j, c := range r.claims {
		claims = append(claims, fmt.Sprintf("claim %s/%s %p", j.tenantName, j.name, c))
	}
	slices.Sort(claims)
	fmt.Fprintln(out, claims, sortedNames(r.claimed), sortedNames(r.replaced), sortedNames(r.isFreed), len(r.freed), r.now, r.plan.Due, r.progressed, len(r.current))
	for _, remote := range sortedNames(r.mappedNow) {
		for _, provider := range sortedNames(r.mappedNow[remote]) {
			for m, n := range r.mappedNow[remote][provider] {
				if n != 0 {
					fmt.Fprintln(out, remote, provider, m, n)
				}
			}
		}
	}
	jobs := slices.SortedFunc(slices.Values(r.jobs), func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.tenantName, b.tenantName), cmp.Compare(a.name, b.name))
	})
	for _, j := range jobs {
		fmt.Fprintf(out, "%s/%s %v %v %v %v %d %q %+v %v\n", j.tenantName, j.name, j.live, j.ordinals, j.tasks, j.started, j.releasing, j.why, j.dec, j.sizing)
	}
	return out.String()
}
