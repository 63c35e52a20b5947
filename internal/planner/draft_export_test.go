package planner

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/consolidate"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/explain"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
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
	r.Turns = 1
	for name := range r.W.Tenants { // opened on first use
		r.Accounts.Of(name)
	}
	return &Trial{r}
}

// Mark, Rollback and Keep are the draft's.
func (t *Trial) Mark() draft.Mark      { return t.r.Mark() }
func (t *Trial) Rollback(m draft.Mark) { t.r.Rollback(m) }
func (t *Trial) Keep(m draft.Mark)     { t.r.Keep(m) }

// Free is what each offer has free.
func (t *Trial) Free() map[*inventory.Offer]quantity.Vector {
	out := map[*inventory.Offer]quantity.Vector{}
	for _, o := range t.r.Inventory.Offers() {
		out[o] = o.Free().Clone()
	}
	return out
}

// Unexplained is an offer that has something else free than it had at a mark without what
// was taken since, "" for none.
func (t *Trial) Unexplained(since draft.Mark, had map[*inventory.Offer]quantity.Vector) string {
	seen := map[inventory.Place]bool{}
	for _, x := range t.r.Changed(since) {
		if seen[x.Place] {
			return x.Offer.Ref + " is in it twice"
		}
		seen[x.Place] = true
		had[x.Offer] = had[x.Offer].Sub(x.Size)
		for _, m := range x.Offer.PoolPeers {
			for i := quantity.CPU; i <= quantity.Storage; i++ {
				had[m] = had[m].Set(i, had[m].At(i)-x.Size.At(i))
			}
		}
	}
	for o, want := range had {
		if !o.Free().Equal(want) {
			return fmt.Sprintf("%s has %v free, want %v", o.Ref, o.Free(), want)
		}
	}
	return ""
}

// Operations are the names of what Do can do.
var Operations = []string{"turn", "fill", "look", "adapt", "lend", "shift", "off the account", "on the account", "release", "reserve", "drop reservations", "due", "estimate", "repair", "displace", "near", "capture", "move", "wake", "book", "look ahead", "consolidate", "excess", "takeover", "remake", "begin", "cancel"}

// Do works one operation on the n-th of what there is of its kind. It reports
// whether there was any.
func (t *Trial) Do(operation string, n int) bool {
	r := t.r
	j := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Tasks) == 0 }), n)
	holder := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Live) == 0 }), n)
	switch {
	case slices.Contains([]string{"turn", "fill", "look", "reserve"}, operation) && j == nil,
		slices.Contains([]string{"lend", "off the account", "on the account", "release", "adapt", "capture", "move", "takeover", "remake"}, operation) && holder == nil:
		return false
	}
	switch operation {
	case "turn":
		r.FillWaiting([]*draft.Job{j}, place.Request{InBatch: true})
	case "fill":
		r.Fill(j, place.Request{})
	case "look":
		r.LookOnly(j, place.Request{})
	case "reserve":
		if !r.MayReserve(j) {
			return false
		}
		r.Reserve(j, r.Endings())
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
		r.EditJob(holder)
		holder.Tasks = []draft.Task{{Kind: draft.TaskAdapt, Replica: i.Replica, Part: i.Part, Units: i.Units, Of: i.Of, Old: c}}
		r.Fill(holder, place.Request{})
	case "shift":
		r.Shift(r.Inventory.Offers()[n%len(r.Inventory.Offers())].Place(), inventory.Loan{Size: quantity.Vector{int64(n), 1, 0, 0, int64(n % 3)}})
	case "drop reservations":
		r.DropReservations()
	case "due":
		r.Due(v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(int64(n + 1)))})
	case "estimate":
		t.wait()
		r.Estimate()
	case "repair":
		r.repairAll(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Tasks) == 0 || j.Finding() }))
	case "displace":
		r.Displace()
	case "near":
		t.wait()
		r.LookNear()
	case "capture":
		r.Probe = &explain.Probe{Tenant: holder.TenantName, Name: holder.Name}
		r.CaptureKept()
		r.Probe = nil
	case "wake":
		in := r.Intents[n%max(len(r.Intents), 1):]
		if len(in) == 0 || r.JobOf(in[0].Metadata.Namespace, in[0].Metadata.Name) != nil {
			return false
		}
		w := r.NewJob(in[0], in[0].Metadata.Namespace, in[0].Metadata.Name)
		r.SettleJob(w)
		r.AddJob(w)
	case "move":
		c := holder.Live[0]
		r.Exchange(holder, place.Request{}, draft.Task{Kind: draft.TaskMove, Replica: c.Spec.Intent.Replica, Old: c}, 0, 1, lifecycle.CodeConsolidated, "a test")
	case "takeover", "remake":
		c := holder.Live[0]
		i := c.Spec.Intent
		r.EditJob(holder)
		task := draft.Task{Kind: draft.TaskRemake, Replica: i.Replica, Units: i.Units, Of: i.Of, Old: c}
		if operation == "takeover" {
			task.Kind, task.Part = [...]draft.Task{{Kind: draft.TaskFailover}, {Kind: draft.TaskLeave}}[n%2].Kind, i.Part
		}
		holder.Tasks = []draft.Task{task}
		r.Fill(holder, place.Request{})
	default:
		return t.doAhead(operation, n)
	}
	return true
}

// doAhead works one operation on bookings, or on what a round's later steps look at.
func (t *Trial) doAhead(operation string, n int) bool {
	r := t.r
	switch operation {
	case "book":
		j := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || !j.In.Spec.Schedule.Book }), n)
		if j == nil {
			return false
		}
		r.EditJob(j)
		r.SettleJob(j)
	case "look ahead":
		bookAhead(r)
	case "begin":
		j := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return j.In == nil || len(j.Booked) == 0 }), n)
		if j == nil {
			return false
		}
		r.EditJob(j)
		var starts ahead.Starts
		starts.Begin(&r.Placer, j, j.In)
		starts.GiveUp(&r.Placer, j)
	case "cancel":
		j := pick(slices.DeleteFunc(slices.Clone(r.Jobs), func(j *draft.Job) bool { return len(j.Booked) == 0 }), n)
		if j == nil {
			return false
		}
		r.EditJob(j)
		draft.OnAxis(&r.Draft).CancelBooking(j, j.Booked[0], v1alpha1.PhaseReleased, lifecycle.CodeRemoved, "a test")
	case "consolidate":
		consolidate.Run(&r.Settler, func() []*draft.Job { return r.Waiting }, func() {})
	case "excess":
		r.settleExcess()
	}
	return true
}

// wait makes those wait that found nothing, as the last steps of a round do. It is no
// operation of the draft.
func (t *Trial) wait() {
	r := t.r
	r.Waiting = nil
	for _, j := range r.Jobs {
		if len(j.Open) > 0 && len(j.Tasks) > 0 && j.In != nil {
			r.EditJob(j)
			j.Dec.Action = draft.Queued
			r.Waiting = append(r.Waiting, j)
		}
	}
}

func pick(list []*draft.Job, n int) *draft.Job {
	if len(list) == 0 {
		return nil
	}
	return list[n%len(list)]
}

// notState are the fields of a round, by name, that a rollback may leave: what was
// looked at, and what follows from the world and the rest alone.
var notState = map[string]string{
	"journal": "what is compared here is what it brings back",
	"Waiting": "set by Trial.wait",
	"Probe":   "set by Trial.Do",
	"step":    "called, never changed", "Void": "called, never changed", "Looked": "called, never changed",
	"Made": "counts what was tried", "Parts": "counts what was looked at", "spare": "is spent by trying", "searched": "is spent by trying", "searching": "is spent by trying", "searchers": "is spent by trying", "Bill": "is spent before the first mark",
	"W": "the world", "given": "the world", "Fleet": "the world", "Limits": "the world", "Books": "the world",
	"Inventory": "compared offer by offer", "Accounts": "compared account by account", "Jobs": "compared job by job", "MappedNow": "compared without what counts nothing",
	"jobsByName": "an index of Jobs", "Names": "a numbering that only grows", "Nothing": "tasks that only grow in number", "Tally": "the ledger as it was",
	"Match": "classes by what is asked", "Related": "follows from the intents", "Relatives": "follows from the intents", "Whole": "follows from the offers",
	"infeasibleUnits": "holds for one number of touches", "turns": "made on first use; holds for one number of touches", "called": "follows from what was reported",
}

// notOfJob are the fields of a job that a rollback may leave.
var notOfJob = map[string]string{
	"Classes": "by what is asked, found on first use",
	"Alts":    "follows from the intent",
}

// State is everything that a rollback must bring back, as text: every field of the
// round and its layers, and every field of each job, but for those named above.
func (t *Trial) State() string {
	r, out := t.r, &strings.Builder{}
	writeFields(out, reflect.ValueOf(r).Elem(), notState)
	fmt.Fprintf(out, "plan %+v\n", *r.Plan)
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
	claims := []string{}
	for j, c := range r.Claims {
		claims = append(claims, fmt.Sprintf("claim %s/%s %+v %+v", j.TenantName, j.Name, *c, c.Reserved))
	}
	slices.Sort(claims)
	fmt.Fprintln(out, strings.Join(claims, "\n"))
	for _, s := range r.Seats {
		fmt.Fprintf(out, "seat %+v\n", *s)
	}
	for _, remote := range draft.SortedNames(r.MappedNow) {
		at := r.MappedNow[remote].At
		for _, provider := range draft.SortedNames(at) {
			fmt.Fprintln(out, remote, provider, at[provider])
		}
		fmt.Fprintln(out, remote, r.MappedNow[remote].Providers)
	}
	for i, j := range r.Jobs {
		fmt.Fprintf(out, "job %d %p %s/%s known %v\n", i, j, j.TenantName, j.Name, r.JobOf(j.TenantName, j.Name) == j)
		writeFields(out, reflect.ValueOf(j).Elem(), notOfJob)
		if j.Sizing != nil {
			fmt.Fprintf(out, "sizing %+v\n", *j.Sizing)
		}
	}
	return out.String()
}

// writeFields writes the fields of a struct, those of embedded ones in their place.
func writeFields(out io.Writer, v reflect.Value, but map[string]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case but[f.Name] != "":
		case f.Name == "ahead" && !v.Field(i).IsNil():
			fmt.Fprintf(out, "%s %+v\n", f.Name, v.Field(i).Elem())
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			writeFields(out, v.Field(i), but)
		default:
			fmt.Fprintf(out, "%s %+v\n", f.Name, v.Field(i))
		}
	}
}
