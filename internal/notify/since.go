package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// codeSLA is the reason of a contract that was given up because it broke its
// intent's sla (the planner's CodeSLA).
const codeSLA = "SLABroken"

// Since are the events that lie between two states of a ledger, oldest first:
// all phases that contracts went through, and what became of their intents.
// asked is the sla of an intent, nil where there is none; a nil asked has none.
func Since(fleet string, before, now *ledger.Ledger, asked func(tenant, intent string) *v1alpha1.SLA) []Event {
	var out []Event
	for tenant, intent := range now.Differs(before) {
		was, is := before.ByIntent(tenant, intent), now.ByIntent(tenant, intent)
		out = append(out, ofContracts(fleet, was, is)...)
		if asked != nil {
			out = append(out, shorts(fleet, was, is, asked(tenant, intent))...)
		}
		out = append(out, ofState(fleet, before.State(tenant, intent), now.State(tenant, intent))...)
	}
	out = append(out, asides(fleet, before.SetAside(), now.SetAside())...)
	slices.SortFunc(out, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Intent, b.Intent),
			strings.Compare(a.Contract, b.Contract), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// asides tell a tenant which of its files are set aside. They are refusals: what
// they ask for is not read.
func asides(fleet string, before, now []v1alpha1.SetAsidePiece) []Event {
	var out []Event
	for _, p := range now {
		parts := strings.SplitN(p.Path, "/", 3)
		known := slices.ContainsFunc(before, func(b v1alpha1.SetAsidePiece) bool { return b.Path == p.Path && b.Hash == p.Hash })
		if known || len(parts) < 3 || parts[0] != "intents" && parts[0] != "requests" {
			continue
		}
		out = append(out, named(Event{
			Kind: "refused", At: p.At, Fleet: fleet, Tenant: parts[1], Reason: "SetAside",
			Text: p.Path + " is set aside and what it last said stays in force: the process that reads it ended twice (" + p.Why + "). Change it, or ask the fleet's operator to have it tried again",
		}, p.Path+"\x00"+p.Hash+"\x00"+stamp(p.At)))
	}
	return out
}

// ofContracts are the events of one intent's contracts.
func ofContracts(fleet string, before, now []*v1alpha1.Contract) []Event {
	was := map[string]*v1alpha1.Contract{}
	for _, c := range before {
		was[c.Metadata.Name] = c
	}
	// Who left a place that another contract of the same replica has taken.
	left := map[[2]int32]*v1alpha1.Contract{}
	for _, c := range now {
		old := was[c.Metadata.Name]
		if old != nil && counts(old) && !counts(c) {
			left[slot(c)] = c
		}
	}
	var out []Event
	for _, c := range now {
		old := was[c.Metadata.Name]
		if old == c && left[slot(c)] == nil {
			continue
		}
		out = append(out, steps(fleet, old, c, left[slot(c)])...)
		if from := left[slot(c)]; old != nil && from != nil && c.Status.Phase.Charged() { // it was placed first, and now the other goes
			out = append(out, ofContract(fleet, "moved", c, from.Status.Since, from.Status.Reason, "moves from "+place(from)+" to "+where(c)+because(from.Status.Why())))
		}
		out = append(out, notice(fleet, old, c)...)
		if old != nil && longer(old.Spec.Term.End, c.Spec.Term.End) {
			e := ofContract(fleet, "extended", c, c.Status.Since, "", "is extended "+untilText(c.Spec.Term.End))
			out = append(out, named(e, stamp(c.Spec.Term.End)))
		}
	}
	return out
}

// counts reports whether a contract serves its replica, now or in a term to come.
func counts(c *v1alpha1.Contract) bool {
	return c.Status.Phase.Charged() || c.Status.Phase == v1alpha1.PhaseBooked
}

func slot(c *v1alpha1.Contract) [2]int32 {
	return [2]int32{c.Spec.Intent.Replica, c.Spec.Intent.Part}
}

// steps are the phases that a contract entered since old, which is nil for one
// that was not there. from is the contract whose place it took, if any.
func steps(fleet string, old, c, from *v1alpha1.Contract) []Event {
	var out []Event
	tell := func(kind string, p v1alpha1.PhaseChange, text string) {
		out = append(out, ofContract(fleet, kind, c, p.At, p.Reason, text))
	}
	phase := v1alpha1.Phase("")
	if old != nil {
		phase = old.Status.Phase
	}
	for _, p := range entered(old, c) {
		switch {
		case p.Phase == v1alpha1.PhaseReserved && phase == "" && from != nil:
			tell("moved", p, "moves from "+place(from)+" to "+where(c)+because(from.Status.Why()))
		case p.Phase == v1alpha1.PhaseBooked && from != nil:
			tell("moved", p, "moves its booking from "+place(from)+" to "+booked(c)+because(from.Status.Why()))
		case p.Phase == v1alpha1.PhaseBooked:
			tell("placed", p, "is booked on "+booked(c))
		case p.Phase == v1alpha1.PhaseReserved && phase == v1alpha1.PhaseBooked:
			tell("placed", p, "begins its booking on "+where(c))
		case p.Phase == v1alpha1.PhaseReserved && phase == "":
			tell("placed", p, "is placed on "+where(c))
		case p.Phase == v1alpha1.PhaseActive:
			tell("active", p, "is active on "+where(c))
		case p.Phase == v1alpha1.PhaseDegraded:
			tell("degraded", p, "is degraded on "+place(c)+because(p.Why()))
		case p.Phase == v1alpha1.PhaseReleasing && c.Status.Target == v1alpha1.PhasePreempted && c.Status.Displaced == nil:
			tell("preempted", p, "gives way on "+place(c)+because(p.Why()))
		}
		if p.Phase == v1alpha1.PhaseReleasing && p.Reason == codeSLA {
			tell("sla", p, "breaks its sla on "+place(c)+because(p.Why()))
		}
		phase = p.Phase
	}
	if c.Status.Phase == v1alpha1.PhaseBooked && c.Status.Reason != "" && old != nil && old.Status.Reason != c.Status.Reason {
		tell("degraded", v1alpha1.PhaseChange{At: c.Status.Since, Reason: c.Status.Reason}, "cannot keep its booking on "+booked(c)+because(c.Status.Why()))
	}
	return out
}

// booked is where a booking is, and its term.
func booked(c *v1alpha1.Contract) string {
	return place(c) + " from " + stamp(c.Spec.Term.Start) + " to " + stamp(c.Spec.Term.End)
}

// shorts are the contracts of one intent that broke its sla since before, as the audit log
// reckons, from the history that a contract keeps: by an outage that has ended, with how
// long it was, and by having been usable late, with after how long.
func shorts(fleet string, before, now []*v1alpha1.Contract, sla *v1alpha1.SLA) []Event {
	if sla == nil {
		return nil
	}
	was := map[string]*v1alpha1.Contract{}
	for _, c := range before {
		was[c.Metadata.Name] = c
	}
	var out []Event
	for _, c := range now {
		first, why := ledger.FirstShort(c, sla)
		for _, p := range entered(was[c.Metadata.Name], c) {
			if first != nil && p == *first {
				out = append(out, ofContract(fleet, "sla", c, p.At, codeSLA, "breaks its sla on "+place(c)+because(why)+outage(c, p)))
			}
			if took := ledger.LateBy(c, sla, p); took > 0 {
				e := ofContract(fleet, "sla", c, p.At, codeSLA, fmt.Sprintf("is usable on %s after %s: its sla asks for %s", place(c), took, sla.MaxTimeToActive))
				out = append(out, named(e, "usable "+stamp(p.At)))
			}
		}
	}
	return out
}

// outage is how long a contract was out before a change of phase, as the end of a sentence.
func outage(c *v1alpha1.Contract, p v1alpha1.PhaseChange) string {
	h := c.Status.History
	if i := slices.Index(h, p); i > 0 && h[i-1].Phase == v1alpha1.PhaseDegraded {
		return fmt.Sprintf(", after an outage of %s", p.At.Sub(h[i-1].At.Time))
	}
	return ""
}

// entered are the phases of c's history that old has not seen. A history keeps
// ten: of more, those are lost.
func entered(old, c *v1alpha1.Contract) []v1alpha1.PhaseChange {
	if old == nil || len(old.Status.History) == 0 {
		return c.Status.History
	}
	last := old.Status.History[len(old.Status.History)-1]
	for i := len(c.Status.History) - 1; i >= 0; i-- {
		if h := c.Status.History[i]; h.Phase == last.Phase && h.At.Equal(last.At.Time) {
			return c.Status.History[i+1:]
		}
	}
	return c.Status.History
}

// notice is what a contract is told ahead: that it has to go, and by when.
func notice(fleet string, old, c *v1alpha1.Contract) []Event {
	d := c.Status.Displaced
	if d == nil || d.Cause == v1alpha1.Moved || (old != nil && old.Status.Displaced != nil && old.Status.Displaced.Noticed.Equal(d.Noticed.Time)) {
		return nil
	}
	kind, why := "preempted", " gives way to "+d.By
	switch {
	case d.Cause == v1alpha1.Interrupted:
		kind, why = "interrupted", " is taken back by its provider"
	case d.By == "":
		why = " has to give way"
	}
	return []Event{ofContract(fleet, kind, c, d.Noticed, string(d.Cause), "on "+place(c)+why+", until "+stamp(d.Leaves))}
}

// longer reports whether a term's end moved away; zero is no end.
func longer(was, is v1alpha1.Time) bool {
	return !was.IsZero() && (is.IsZero() || is.After(was.Time))
}

func untilText(end v1alpha1.Time) string {
	if end.IsZero() {
		return "without an end"
	}
	return "until " + stamp(end)
}

// ofState is what became of an intent as a whole.
func ofState(fleet string, before, now *v1alpha1.IntentState) []Event {
	if now == nil || (before != nil && before.Status.State == now.Status.State) {
		return nil
	}
	s := now.Status
	kind, text := "", ""
	switch s.State {
	case v1alpha1.IntentQueued:
		kind, text = "queued", "is queued"
	case v1alpha1.IntentRefused:
		kind, text = "refused", "is refused"
	case v1alpha1.IntentDone:
		kind, text = "completed", "is done"
	default:
		return nil
	}
	e := Event{
		Kind: kind, At: s.Since, Fleet: fleet, Tenant: now.Metadata.Namespace, Intent: now.Metadata.Name, Reason: s.Reason,
		Text: now.Metadata.Namespace + "/" + now.Metadata.Name + " " + text + because(s.Message),
	}
	return []Event{named(e, stamp(s.Since))}
}
