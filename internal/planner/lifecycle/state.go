package lifecycle

import (
	"maps"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Outcome is what a round makes of an intent.
type Outcome struct {
	State v1alpha1.IntentPhase
	// Code and Message are why.
	Code, Message string
	// Asked: the intent has a file that was acted on, of Path and Digest. Else those
	// before stay.
	Asked        bool
	Path, Digest string
	FirstSeen    v1alpha1.FirstSeen
	// Started is when its term began, zero while it has not.
	Started v1alpha1.Time
	// Since is since when it is in its state, where that is not the round's time.
	Since v1alpha1.Time
	// Waits: something of it is still to be done. Displacing: it has to give way from
	// this round on.
	Waits, Displacing bool
	Proposals         []v1alpha1.Proposal
	Expected          *v1alpha1.Expectation
	NextOrdinals      map[string]int32
}

// After is what the ledger remembers of an intent after a round: was, with its outcome.
// The message is written only when state, code or file change: it holds figures of the
// market, and a commit for each of its movements would drown the others.
func After(was *v1alpha1.IntentStatus, o *Outcome, now v1alpha1.Time) v1alpha1.IntentStatus {
	st := *was
	st.Frozen = nil
	if o.Asked {
		st.Path, st.Digest = o.Path, o.Digest
	}
	st.FirstSeen, st.State, st.Reason, st.Started = o.FirstSeen, o.State, o.Code, o.Started
	if was.State != st.State || was.Reason != st.Reason || was.Digest != st.Digest {
		st.Message = o.Message
		if st.State == v1alpha1.IntentPlaced && st.Reason == "" {
			st.Message = ""
		}
	}
	if was.State != st.State || was.Digest != st.Digest {
		st.Since = now
	}
	switch {
	case o.State == v1alpha1.IntentPlaced && o.Code == "" && !o.Waits:
		st.Displaced = v1alpha1.Time{} // served again
	case o.Displacing:
		st.Displaced = now
	case was.Digest != st.Digest:
		st.Displaced = v1alpha1.Time{}
	}
	if !o.Since.IsZero() {
		st.Since = o.Since
	}
	st.Proposals, st.Expected = o.Proposals, o.Expected
	st.NextOrdinals = nil
	if len(o.NextOrdinals) > 0 {
		st.NextOrdinals = maps.Clone(o.NextOrdinals)
	}
	return st
}

// day is how often a tenant is notified that an intent is frozen.
const day = 24 * time.Hour

// FrozenSince is since when an intent is frozen, as the ledger remembers it; now where
// it does not.
func FrozenSince(was *v1alpha1.IntentState, now v1alpha1.Time) v1alpha1.Time {
	if was != nil && was.Status.Frozen != nil {
		return was.Status.Frozen.Since
	}
	return now
}

// NextTold is when the tenant of an intent that is frozen since then is notified next.
func NextTold(since, now v1alpha1.Time) v1alpha1.Time {
	return v1alpha1.TimeOf(since.Add((now.Sub(since.Time)/day + 1) * day))
}

// Freeze is what the ledger remembers of a frozen intent: what it remembered, since when
// it is frozen, and when its tenant was last notified, and why. One that holds nothing is
// not frozen.
func Freeze(was *v1alpha1.IntentStatus, holds bool, since v1alpha1.Time, why string, now v1alpha1.Time) v1alpha1.IntentStatus {
	st := *was
	if !holds {
		st.Frozen = nil
		return st
	}
	f := v1alpha1.Frozen{Since: since, Told: v1alpha1.TimeOf(since.Add(now.Sub(since.Time) / day * day)), Reason: why}
	if was := was.Frozen; was != nil && was.Told == f.Told {
		f.Reason = was.Reason // as it was notified
	}
	st.Frozen = &f
	return st
}
