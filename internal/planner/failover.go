package planner

import (
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// deniedHold is how long a denial must stand before its contract goes
// elsewhere: an agent may deny what it has not heard of yet.
const deniedHold = 30 * time.Second

// After a flavor has denied an intent's slice the intent keeps away from it for
// denialBackoff, twice as long after each further denial, a day at the most.
const (
	denialBackoff    = 10 * time.Minute
	denialBackoffMax = 24 * time.Hour
)

// failoverOf is the task of a contract that its provider no longer serves: it
// is lost, its flavor can no longer hold the contract, or it denies the slice.
// nil when there is no such trouble, or not for long enough yet.
func (r *round) failoverOf(replica int32, c *v1alpha1.Contract) *task {
	o := r.offerOf(c)
	if r.w.Deaf {
		return nil
	}
	if o != nil && o.State == model.Lost {
		if r.heldBack.provider(o.Provider) {
			return nil
		}
		return &task{kind: failover, replica: replica, old: c}
	}
	if r.late(c) {
		return &task{kind: failover, replica: replica, old: c}
	}
	if c.Status.Phase != v1alpha1.PhaseDegraded {
		return nil
	}
	var hold time.Duration
	switch c.Status.Reason {
	case ledger.DegradedShrunk:
		hold = r.grace()
	case ledger.DegradedSliceDenied:
		hold = deniedHold
	case ledger.DegradedRefused: // the agent itself says so: there is nothing to wait for
	default:
		return nil
	}
	from := v1alpha1.TimeOf(c.Status.Since.Add(hold))
	if from.After(r.now.Time) {
		r.due(from)
		return nil
	}
	return &task{kind: failover, replica: replica, old: c}
}

// grace is how long the fleet bears trouble before it acts.
func (r *round) grace() time.Duration {
	if d := r.fleet.Defaults.GracePeriod.Duration; d > 0 {
		return d
	}
	return defaultGrace
}

// failOver places a replica elsewhere because its provider does not serve it.
// For each alternative in order the runners-up of its contract are tried first,
// those that still fit, then all offers. The old contract is Releasing from
// then on and keeps its capacity until it is seen gone. Where nothing fits it
// stays, Degraded, and waits for its provider or for an offer.
func (r *round) failOver(j *job, q request, t task) *failure {
	code, text := r.trouble(t.old)
	next := r.runnersUp(t.old)
	var first *failure
	for alt := range j.alternatives() {
		for _, o := range next {
			here := q
			here.only = o
			if f := r.exchange(j, here, t, alt, alt+1, code, text); f == nil {
				j.why = text + "; its runner-up " + o.Ref + " took over"
				return nil
			}
		}
		f := r.exchange(j, q, t, alt, alt+1, code, text)
		if f == nil {
			return nil
		}
		if first == nil {
			first = f
		}
	}
	first.code = code
	first.text = text + "; it is kept and waits, because nothing else fits; " + first.text
	return first
}

// trouble is why a contract fails over, as a code and in words.
func (r *round) trouble(c *v1alpha1.Contract) (code, text string) {
	if o := r.offerOf(c); o != nil && o.State == model.Lost {
		return CodeProviderLost, c.Spec.Provider + " is not heard since " + stamp(o.Since)
	}
	if r.late(c) {
		return CodeSLA, "it was not usable within the " + r.maxTimeToActive(c).String() + " of sla.maxTimeToActive"
	}
	said := ""
	if c.Status.Message != "" {
		said = ": " + c.Status.Message
	}
	switch c.Status.Reason {
	case ledger.DegradedRefused:
		return CodeRefused, c.Spec.Provider + "/" + c.Spec.Flavor + " refuses it" + said
	case ledger.DegradedSliceDenied:
		return CodeSliceDenied, c.Spec.Provider + "/" + c.Spec.Flavor + " denies the slice" + said
	}
	return CodeShrunk, c.Spec.Provider + "/" + c.Spec.Flavor + " has less than it sold"
}

// runnersUp are the offers that a contract's decision names as next best, as
// far as they are still in the market.
func (r *round) runnersUp(c *v1alpha1.Contract) []*inventory.Offer {
	var out []*inventory.Offer
	for i := range c.Decision.RunnersUp {
		provider, name, _ := strings.Cut(c.Decision.RunnersUp[i].Flavor, "/")
		if o := r.inventory.Find(provider, name); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// endOfCode is the end of a contract that is given up for a reason: Failed
// where its provider let it down, Preempted where it had to give way.
func endOfCode(code string) v1alpha1.Phase {
	switch code {
	case CodeProviderLost, CodeSliceDenied, CodeShrunk, CodeRefused, CodeSLA:
		return v1alpha1.PhaseFailed
	case string(v1alpha1.Preempted), string(v1alpha1.Reclaimed), string(v1alpha1.Interrupted):
		return v1alpha1.PhasePreempted
	}
	return v1alpha1.PhaseReleased
}

// avoided are the flavors that an intent keeps away from, because they denied
// it a slice not long ago: what the ledger remembers of its contracts, so that
// every daemon and every replay agree. From a provider that denied it a flavor
// and does not offer that one any more, or denied it two, it keeps away whole
// (a key without a flavor): another name of the same cards is no help.
func (r *round) avoided(j *job) map[inventory.Key]bool {
	type record struct {
		n    int
		last v1alpha1.Time
	}
	var seen map[inventory.Key]record
	note := func(k inventory.Key, at v1alpha1.Time) {
		was := seen[k]
		if at.Before(was.last.Time) {
			at = was.last
		}
		seen[k] = record{was.n + 1, at}
	}
	denials := map[string][]refusalRecord{}
	for _, c := range j.all {
		at, denied := deniedAt(r.latest(c))
		if now := r.latest(c); r.late(now) {
			at, denied = r.now, true // as long as it is late, the same place again is no help
		}
		if !denied {
			continue
		}
		if seen == nil {
			seen = map[inventory.Key]record{}
		}
		note(inventory.Key{Provider: c.Spec.Provider, Name: c.Spec.Flavor}, at)
		if rec, refused := refusalOf(r.latest(c)); refused {
			denials[rec.provider] = append(denials[rec.provider], rec)
		}
	}
	for provider, list := range denials {
		o := r.inventory.Find(provider, list[0].flavor)
		one := !slices.ContainsFunc(list, func(rec refusalRecord) bool { return rec.flavor != list[0].flavor })
		if one && o != nil && o.State != model.Withdrawn {
			continue
		}
		for _, rec := range list {
			note(inventory.Key{Provider: provider}, rec.at)
		}
	}
	var out map[inventory.Key]bool
	for k, s := range seen {
		wait := denialBackoffMax
		if s.n <= 8 { // 10 minutes doubled seven times is 21 hours
			wait = min(wait, denialBackoff<<(s.n-1))
		}
		until := v1alpha1.TimeOf(s.last.Add(wait))
		if !until.After(r.now.Time) {
			continue
		}
		r.due(until)
		if out == nil {
			out = map[inventory.Key]bool{}
		}
		out[k] = true
	}
	return out
}

// deniedAt is when a contract was found to be denied by its provider: since
// then while it is Degraded for that, and else when it was given up for it.
func deniedAt(c *v1alpha1.Contract) (v1alpha1.Time, bool) {
	code, at := lifecycle.Trouble(c)
	switch code {
	case CodeSliceDenied, CodeRefused, CodeSLA:
		return at, true
	}
	return at, false
}

// refusedUnused starts the end of a contract that its provider refuses before it was
// ever used: nothing runs there that would have to be moved first.
func (r *round) refusedUnused(j *job, c *v1alpha1.Contract) bool {
	if r.w.Deaf || c.Status.Phase != v1alpha1.PhaseDegraded || c.Status.Reason != ledger.DegradedRefused || lifecycle.BeenActive(c) {
		return false
	}
	code, text := r.trouble(c)
	j.drop(r, c, v1alpha1.PhaseFailed, code, text)
	return true
}

// onlyFailovers reports whether all that a job could not do was to move away
// from providers that do not serve it. What it has then stands, Degraded: it
// neither waits in the queue nor is it refused.
func (j *job) onlyFailovers() bool {
	return len(j.tasks) > 0 && !slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind != failover })
}
