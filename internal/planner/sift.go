package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/consolidate"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// cachedDecision is what quick decided on an intent, which holds as long as
// nothing that it looked at changes; nil when it was not quick. There are as many as
// intents, and nearly all have no more than that.
type cachedDecision struct {
	decision *draft.Decision
	more     *furtherDecision
}

// furtherDecision is until when a decision holds (zero: for good), or how an intent waits
// on which there is none, where that is known.
type furtherDecision struct {
	until v1alpha1.Time
	known *draft.Known
}

// expired reports whether a decision holds no more.
func (v *cachedDecision) expired(now v1alpha1.Time) bool {
	return v.decision == nil || v.more != nil && !v.more.until.IsZero() && !v.more.until.After(now.Time)
}

// compareName orders by tenant and name.
func compareName(a, b *model.Intent) int {
	return draft.CompareNames(a.Metadata.Namespace, a.Metadata.Name, b.Metadata.Namespace, b.Metadata.Name)
}

// sift keeps the intents that are served as they ask, and makes jobs of the
// others: their places in Plan.Intents stay free for addDecisions, and are the round's
// sifted, in the order of the jobs.
func (r *round) sift() {
	list := make([]*draft.Decision, len(r.Intents), len(r.Intents)+len(r.orphans))
	var due v1alpha1.Time
	for i := range r.cached {
		v := &r.cached[i]
		if v.decision != nil && v.more == nil { // nearly all: nothing else of them is read
			list[i] = v.decision
			continue
		}
		in := r.Intents[i]
		if v.expired(r.Now) {
			if i > 0 && compareName(r.Intents[i-1], in) == 0 {
				r.doubled = true
				continue // two files that name one intent are frozen by the reader
			}
			if j := knownJob(r, in, v); j != nil {
				addSifted(r, i, j)
				continue
			}
			*v = cachedDecision{}
			d, until, ok := r.quick(in)
			if !ok {
				due = lifecycle.Earlier(due, until)
				addSifted(r, i, r.NewJob(in, in.Metadata.Namespace, in.Metadata.Name))
				continue
			}
			if v.decision = &d; !until.IsZero() {
				v.more = &furtherDecision{until: until}
			}
		}
		if v.more != nil {
			due = lifecycle.Earlier(due, v.more.until)
		}
		list[i] = v.decision
	}
	r.Plan.Intents = list
	r.Due(due)
}

// addSifted adds the job of the intent at a place.
func addSifted(r *round, i int, j *draft.Job) {
	r.AddJob(j)
	r.sifted = append(r.sifted, i)
}

// knownJob is the job of an intent of which it is known how it waits, nil for others.
func knownJob(r *round, in *model.Intent, v *cachedDecision) *draft.Job {
	if v.more == nil || v.more.known == nil || !v.more.known.Lasts(r.Match) {
		return nil
	}
	return r.KnownJob(in, v.more.known)
}

// quick reports whether an intent is served exactly as it asks and nothing has
// happened to it, with what is decided of it then and until when that answer holds
// (zero: for good). Nearly all intents of a fleet are, so it looks at no more than it
// must, and at nothing that its tenant states (tenantsChanged). A fleet that
// consolidates has none: whether a contract could be cheaper elsewhere depends on every
// offer, the tenant's other contracts and the prices of the hour, so each intent is
// looked into in each round.
func (r *round) quick(in *model.Intent) (d draft.Decision, until v1alpha1.Time, ok bool) {
	due := func(t v1alpha1.Time) {
		if t.After(r.Now.Time) {
			until = lifecycle.Earlier(until, t)
		}
	}
	if r.Fleet.Suspend || consolidate.Wanted(r.Fleet) || in.Metadata.Namespace == v1alpha1.FleetTenant || r.Probe.Is(in.Metadata.Namespace, in.Metadata.Name) || in.Problem != "" || len(in.Spec.Schedule.Windows) > 0 {
		return d, until, false
	}
	state := r.W.Ledger.State(in.Metadata.Namespace, in.Metadata.Name)
	if state == nil || state.Status.Digest != in.Digest || state.Status.Path != in.Path || state.Status.Frozen != nil {
		return d, until, false
	}
	if _, frozen := r.Frozen.Why(in.Metadata.Namespace, in.Metadata.Name, in.Path); frozen {
		return d, until, false
	}
	list := r.W.Ledger.ByIntent(in.Metadata.Namespace, in.Metadata.Name)
	switch {
	case in.Spec.Suspend || state.Status.State == v1alpha1.IntentDone:
		d, ok = atRest(in, &state.Status, list)
		return d, until, ok
	case state.Status.State != v1alpha1.IntentPlaced:
		return d, until, false
	}
	var live int32
	for _, c := range list {
		if !c.Status.Phase.Held() {
			continue
		}
		s := &c.Spec
		o := r.OfferOf(c)
		if !c.Status.Phase.Charged() || s.Intent.Digest != in.Digest || settle.Unrecorded(in, c) || s.Intent.Path != in.Path || s.Intent.Of != 0 ||
			o == nil || o.State != model.Fresh || !o.LeaveBy.IsZero() || c.Status.Displaced != nil || r.Interrupted(c, o) || r.Cut[c.Metadata.Name] || r.W.ForceRelease[c.Metadata.Name] {
			return d, until, false
		}
		if !s.Term.End.IsZero() {
			if !s.Term.End.After(r.Now.Time) {
				return d, until, false
			}
			due(s.Term.End)
		}
		if c.Status.Phase == v1alpha1.PhaseDegraded {
			return d, until, false // it may have to go elsewhere
		}
		t := r.TransitionOf(c)
		if due(t.Due); t.Moves(c) {
			return d, until, false
		}
		late, at := r.LateBy(c)
		if due(at); late {
			return d, until, false
		}
		live++
	}
	if in.Spec.Replicas.Range || live != max(in.Spec.Replicas.Min, 1) {
		return d, until, false
	}
	return r.kept(in, list), until, true
}

// atRest is the decision on an intent that asks for nothing any more, or not now, and
// holds nothing; ok is whether the ledger says so already.
func atRest(in *model.Intent, st *v1alpha1.IntentStatus, list []*v1alpha1.Contract) (d draft.Decision, ok bool) {
	if slices.ContainsFunc(list, func(c *v1alpha1.Contract) bool { return c.Status.Phase.Held() }) {
		return d, false
	}
	d = draft.Decision{Tenant: in.Metadata.Namespace, Name: in.Metadata.Name, Path: in.Path, Code: st.Reason}
	if !in.Spec.Suspend {
		d.Action, d.Reason = draft.Done, settle.DoneText
		return d, true
	}
	d.Action, d.Reason = draft.Suspend, settle.SuspendedText(in)
	return d, st.State == v1alpha1.IntentSuspended && st.Reason == lifecycle.CodeSuspended && st.Started.IsZero() && len(st.Proposals) == 0 && st.Expected == nil
}

// addVanished makes jobs of what the ledger holds or remembers for intents
// that are no more: first of what it remembers, then of what it only holds.
func (r *round) addVanished() {
	type lost struct {
		key   [2]string
		first string // of its contracts, "" when it is remembered
	}
	list := make([]lost, 0, len(r.orphans))
	for k := range r.orphans {
		l := lost{key: k}
		if r.W.Ledger.State(k[0], k[1]) == nil {
			for _, c := range r.HeldOf(k) {
				if l.first == "" || c.Metadata.Name < l.first {
					l.first = c.Metadata.Name
				}
			}
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b lost) int {
		return cmp.Or(strings.Compare(a.first, b.first), draft.CompareNames(a.key[0], a.key[1], b.key[0], b.key[1]))
	})
	for _, l := range list {
		if r.Renamed[l.key] == nil {
			r.AddJob(r.NewJob(nil, l.key[0], l.key[1]))
		}
	}
}
