package planner

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// observe moves a charged contract along its phases by what clusters say of
// it, and returns its current version. It decides nothing about the intent.
func (r *round) observe(c *v1alpha1.Contract) *v1alpha1.Contract {
	if !c.Status.Phase.Charged() {
		return c
	}
	phase, reason := r.phaseOf(c)
	if !moved(c, phase, reason) {
		return c
	}
	if phase == c.Status.Phase && reason.Code == c.Status.Reason {
		r.plan.reworded = true
	}
	if phase == c.Status.Phase && phase != v1alpha1.PhaseDegraded {
		next := ledger.Explain(c, reason)
		r.status(c, next)
		return next
	}
	next, err := r.books.Transition(c, phase, reason, r.now)
	if err != nil {
		return c // the phase table knows no such step: it stays where it is
	}
	if phase == v1alpha1.PhaseActive && c.Status.Phase != v1alpha1.PhaseDegraded {
		r.change(c, next)
	} else {
		r.status(c, next)
	}
	return next
}

// moved reports whether a phase and its reason are worth a new version: the
// message may change by the second, so that the code decides. Where its manifests
// cannot be applied the newest trouble is to be fixed: its message is written as
// well, as a change of status only, which is committed once a status interval.
func moved(c *v1alpha1.Contract, phase v1alpha1.Phase, reason ledger.Reason) bool {
	if phase != c.Status.Phase || reason.Code != c.Status.Reason {
		return true
	}
	return reason.Code == ledger.WaitsForDelivery && reason.Message != c.Status.Message
}

// phaseOf is the phase in which a charged contract is seen to be, with the
// reason when it is Degraded or not Active yet. What nobody has seen changes
// nothing.
func (r *round) phaseOf(c *v1alpha1.Contract) (v1alpha1.Phase, ledger.Reason) {
	o := r.offerOf(c)
	switch {
	case r.w.Deaf && o != nil && (o.State == model.Lost || o.State == model.Silent):
		return c.Status.Phase, ledger.ReasonOf(c) // it may be our ears: a daemon that has just started has heard nobody
	case o != nil && o.State == model.Elsewhere:
		return c.Status.Phase, ledger.ReasonOf(c)
	case o != nil && o.State == model.Lost:
		return v1alpha1.PhaseDegraded, because(ledger.DegradedProviderLost, c.Spec.Provider+" is not heard since "+stamp(o.Since))
	case o != nil && o.State == model.Silent:
		return v1alpha1.PhaseDegraded, because(ledger.DegradedProviderSilent, c.Spec.Provider+" is not heard since "+stamp(o.Since))
	case r.by(rulesSilentUntilHeard) && o != nil && o.State == model.Withdrawn && saysSilent(c) && !r.w.Observed.Of(c.Metadata.Name).ProviderSeen:
		return c.Status.Phase, ledger.ReasonOf(c) // nobody has heard its provider since: a daemon that has just started knows no better
	case refusal(o, c) != "":
		return v1alpha1.PhaseDegraded, because(ledger.DegradedRefused, refusal(o, c))
	case r.excess[c.Metadata.Name]:
		return v1alpha1.PhaseDegraded, because(ledger.DegradedShrunk, c.Spec.Provider+"/"+c.Spec.Flavor+" has less than it sold")
	case c.Spec.Stage == v1alpha1.StageReserve && c.Status.Phase == v1alpha1.PhaseReserved:
		return v1alpha1.PhaseReserved, ledger.ReasonOf(c)
	case c.Spec.Stage == v1alpha1.StageReserve:
		return v1alpha1.PhaseReserved, ledger.Reason{}
	}
	if reason := r.notHeld(c, o); reason.Code != "" {
		return v1alpha1.PhaseDegraded, reason
	}
	obs := r.w.Observed.Of(c.Metadata.Name).Consumer
	if !obs.Reachable || obs.Slice == v1alpha1.Unknown {
		return r.unseen(c, obs)
	}
	lacks, exact := lacking(c, obs)
	if lacks.Code != "" && r.growing(c, obs) {
		return c.Status.Phase, ledger.Reason{}
	}
	wasActive := c.Status.Phase == v1alpha1.PhaseActive || (c.Status.Phase == v1alpha1.PhaseDegraded && beenActive(c))
	switch {
	case lacks.Code == "" && (exact || wasActive):
		return v1alpha1.PhaseActive, ledger.Reason{}
	case obs.SliceDenied != "", wasActive:
		return v1alpha1.PhaseDegraded, lacks
	case obs.Slice == v1alpha1.Present, c.Status.Phase == v1alpha1.PhasePeering:
		return v1alpha1.PhasePeering, waits(c, v1alpha1.PhasePeering, obs, lacks)
	}
	return v1alpha1.PhaseReserved, waits(c, v1alpha1.PhaseReserved, obs, ledger.Reason{})
}

// saysSilent reports whether a contract is Degraded because its provider is not
// heard.
func saysSilent(c *v1alpha1.Contract) bool {
	code := c.Status.Reason
	return c.Status.Phase == v1alpha1.PhaseDegraded && (code == ledger.DegradedProviderLost || code == ledger.DegradedProviderSilent)
}

// notHeld is the reason of a contract that its provider refused and does not
// refuse any more, as long as the provider holds nothing of it: a Tenant that
// was Drained took it away, and the consumer's slice still says Accepted.
func (r *round) notHeld(c *v1alpha1.Contract, o *inventory.Offer) ledger.Reason {
	if c.Status.Phase != v1alpha1.PhaseDegraded || o == nil || o.Static {
		return ledger.Reason{}
	}
	if code := c.Status.Reason; code != ledger.DegradedRefused && code != ledger.DegradedNotHeld {
		return ledger.Reason{}
	}
	if !r.providerGone(c, r.w.Observed.Of(c.Metadata.Name), false) {
		return ledger.Reason{}
	}
	return because(ledger.DegradedNotHeld, c.Spec.Provider+" honours it again and holds nothing of it yet: its slice is replicated anew")
}

// waits is why a contract in a phase is not Active yet: what stands in the way
// on our side, else what its clusters have not done. Of two daemons the one that
// delivers says it: were the other to write that it knows of no trouble, they
// would take back each other's words for ever.
func waits(c *v1alpha1.Contract, phase v1alpha1.Phase, obs v1alpha1.ConsumerObservation, lacks ledger.Reason) ledger.Reason {
	switch {
	case obs.Bystander && phase == c.Status.Phase:
		return ledger.ReasonOf(c)
	case obs.Message != "":
		return because(ledger.WaitsForDelivery, obs.Message)
	case obs.PeeringMessage != "":
		return because(ledger.WaitsForPeering, obs.PeeringMessage)
	}
	return lacks
}

// unseen is the phase of a contract whose consumer says nothing: as it was,
// but for a provider's trouble that is over. One that waits to be delivered
// tells why its consumer cannot be reached, or what keeps its manifests from it.
func (r *round) unseen(c *v1alpha1.Contract, obs v1alpha1.ConsumerObservation) (v1alpha1.Phase, ledger.Reason) {
	if r.w.Reached[c.Spec.Consumer] && !obs.Reachable {
		return c.Status.Phase, ledger.ReasonOf(c)
	}
	if c.Status.Phase != v1alpha1.PhaseDegraded {
		switch {
		case c.Status.Phase == v1alpha1.PhaseActive || obs.Message == "":
			return c.Status.Phase, ledger.ReasonOf(c)
		case obs.Reachable:
			return c.Status.Phase, because(ledger.WaitsForDelivery, obs.Message)
		}
		return c.Status.Phase, because(ledger.DegradedConsumerUnreachable, obs.Message)
	}
	switch c.Status.Reason {
	case ledger.DegradedProviderSilent, ledger.DegradedProviderLost, ledger.DegradedShrunk, ledger.DegradedRefused:
		if r.offerOf(c) == nil {
			break // nobody has heard of the flavor yet
		}
		for _, h := range slices.Backward(c.Status.History) {
			if h.Phase != v1alpha1.PhaseDegraded {
				return h.Phase, ledger.Reason{}
			}
		}
		return v1alpha1.PhaseReserved, ledger.Reason{}
	}
	return v1alpha1.PhaseDegraded, ledger.ReasonOf(c)
}

// growing reports whether an Active contract was resized a moment ago and only
// waits for its provider and Node to follow: no trouble within a grace period.
// (Resizing writes down what was accrued; entering a phase does so too, at its
// since.)
func (r *round) growing(c *v1alpha1.Contract, obs v1alpha1.ConsumerObservation) bool {
	if c.Status.Phase != v1alpha1.PhaseActive || !c.Status.AccruedAt.After(c.Status.Since.Time) && c.Status.AccruedAt != r.now {
		return false
	}
	obs.Granted, obs.Allocatable = c.Spec.Resources, c.Spec.Resources
	if lacks, _ := lacking(c, obs); lacks.Code != "" {
		return false
	}
	until := v1alpha1.TimeOf(c.Status.AccruedAt.Add(r.grace()))
	if !c.Status.AccruedAt.After(c.Status.Since.Time) {
		until = v1alpha1.Time{Time: r.now.Add(secondsOf(1))} // of this very instant: a moment later nothing says that it was resized
	}
	r.due(until)
	return until.After(r.now.Time)
}

// defaultGrace is FORMATS' default of a fleet's gracePeriod.
const defaultGrace = 5 * time.Minute

func beenActive(c *v1alpha1.Contract) bool {
	return slices.ContainsFunc(c.Status.History, func(h v1alpha1.PhaseChange) bool { return h.Phase == v1alpha1.PhaseActive })
}

// lacking is what a contract lacks on its consumer to be usable, as a reason,
// none for nothing; exact says that every key was granted as contracted.
func lacking(c *v1alpha1.Contract, obs v1alpha1.ConsumerObservation) (reason ledger.Reason, exact bool) {
	exact = true
	for name, want := range c.Spec.Resources {
		exact = exact && obs.Granted[name] == want
	}
	switch {
	case obs.SliceDenied != "":
		return because(ledger.DegradedSliceDenied, obs.SliceDenied), exact
	case obs.Slice == v1alpha1.Absent:
		return because(ledger.DegradedSliceMissing, "the ResourceSlice is not on "+c.Spec.Consumer), exact
	case len(obs.Granted) == 0:
		return because(ledger.DegradedGrantedLess, "nothing is granted yet"), false
	}
	if name := less(obs.Granted, c.Spec.Resources); name != "" {
		return because(ledger.DegradedGrantedLess, obs.Granted[name].Canonical(name)+" of "+c.Spec.Resources[name].Canonical(name)+" "+name), exact
	}
	switch {
	case obs.VirtualNode == v1alpha1.Absent:
		return because(ledger.DegradedSliceMissing, "the VirtualNode is not on "+c.Spec.Consumer), exact
	case obs.Node == v1alpha1.Absent:
		return because(ledger.DegradedNodeNotReady, "the Node is not on "+c.Spec.Consumer+ownSecret(c)), exact
	case obs.ProviderMessage != "":
		return because(ledger.DegradedUnreachable, obs.ProviderMessage), exact
	case !obs.NodeReady && obs.NodeMessage != "":
		return because(ledger.DegradedNodeNotReady, obs.NodeMessage), exact
	case !obs.NodeReady:
		return because(ledger.DegradedNodeNotReady, "nobody reports of the Node"+ownSecret(c)), exact
	}
	usable := c.Usable()
	if name := less(obs.Allocatable, usable); name != "" {
		return because(ledger.DegradedNodeNotReady, "the Node has "+obs.Allocatable[name].Canonical(name)+" of "+usable[name].Canonical(name)+" "+name), exact
	}
	switch {
	case obs.Offloading:
	case obs.OffloadingReason == ledger.DegradedBackOff:
		return because(ledger.DegradedBackOff, obs.OffloadingMessage), exact
	default:
		return because(ledger.DegradedOffloading, obs.OffloadingMessage), exact
	}
	return ledger.Reason{}, exact
}

func because(code, message string) ledger.Reason { return ledger.Reason{Code: code, Message: message} }

// ownSecret reminds of the Secret that an intent has the Node made with: only
// people know what is in it.
func ownSecret(c *v1alpha1.Contract) string {
	if n := c.Spec.VirtualNode; n != nil && n.KubeconfigSecretRef != nil && n.KubeconfigSecretRef.Name != "" {
		return ": see whether Secret " + n.KubeconfigSecretRef.Name + " of virtualNode.kubeconfigSecretRef is in Liqo's tenant namespace there, with a kubeconfig that works"
	}
	return ""
}

// less is the first resource, by name, of which there is less than wanted.
func less(have, want v1alpha1.Resources) string {
	found := ""
	for name, n := range want {
		if have[name].Less(n) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// progress moves a Releasing contract along: drained when virtual node and Node
// are seen gone, ended when the slice and the provider's quota are too. Held
// means held: what nobody has seen gone keeps its capacity. Each step is a
// commit of its own, one a second at the most, so that a plan that was applied
// leaves nothing to do at the same instant.
func (r *round) progress(c *v1alpha1.Contract) *v1alpha1.Contract {
	next := r.nextStep(c)
	if next == nil {
		return c
	}
	if !c.Status.Since.Before(r.now.Time) || c.Status.Drained == r.now {
		r.due(v1alpha1.Time{Time: r.now.Add(secondsOf(1))})
		return c
	}
	r.change(c, next)
	return next
}

// nextStep is a Releasing contract's next version, nil when nothing is seen
// that would move it along.
func (r *round) nextStep(c *v1alpha1.Contract) *v1alpha1.Contract {
	name := c.Metadata.Name
	if r.w.ForceRelease[name] {
		if next, err := r.books.Transition(c, v1alpha1.PhaseFailed, because(CodeForced, "ended by an operator without being seen gone"), r.now); err == nil {
			return next
		}
		return nil
	}
	if r.seenGone(c) {
		if next, err := r.books.End(c, ledger.ReasonOf(c), r.now); err == nil {
			return next
		}
		return nil
	}
	if c.Status.Drained.IsZero() && (c.Spec.Stage == v1alpha1.StageReserve || r.w.Observed.Of(name).Consumer.Drained()) {
		next := *c
		next.Status.Drained = r.now
		return &next
	}
	return nil
}

// seenGone reports whether nothing is left of a contract on either side.
func (r *round) seenGone(c *v1alpha1.Contract) bool {
	obs, undelivered := r.w.Observed.Of(c.Metadata.Name), c.Spec.Stage == v1alpha1.StageReserve
	return (undelivered || obs.Consumer.Gone()) && r.providerGone(c, obs, undelivered)
}

// providerGone reports whether a contract's quota is seen to be gone on its
// provider. Without an agent there is nothing to see.
func (r *round) providerGone(c *v1alpha1.Contract, obs v1alpha1.Observation, undelivered bool) bool {
	o := r.offerOf(c)
	if o != nil {
		for _, name := range [...]string{c.Metadata.Name, c.Spec.Slice} {
			for _, n := range o.Flavor.Spec.Held[name] {
				if !n.IsZero() {
					return false
				}
			}
		}
	}
	if undelivered || (o != nil && o.Static) {
		return true
	}
	if !obs.ProviderSeen {
		return false
	}
	for _, n := range obs.ProviderHolds {
		if !n.IsZero() {
			return false
		}
	}
	return true
}

// release starts a contract's way to an end and returns its current version.
// What was never applied has nothing to drain.
func (r *round) release(c *v1alpha1.Contract, target v1alpha1.Phase, code, text string) *v1alpha1.Contract {
	next, err := r.books.Release(c, target, because(code, text), r.now)
	if err != nil {
		return c
	}
	if c.Spec.Stage == v1alpha1.StageReserve || r.w.Observed.Of(c.Metadata.Name).Consumer.Gone() {
		next.Status.Drained = r.now
	}
	if code == CodeChanged {
		r.noteReplaced(c)
	}
	r.change(c, next)
	r.noteReleasing(c)
	if r.nextStep(next) != nil {
		r.due(v1alpha1.Time{Time: r.now.Add(secondsOf(1))})
	}
	return next
}

// noteReleasing puts a contract whose release this round began among those
// that are being released: who waits counts on it at once, as the next round
// would, and does not choose another place then. It is noted as it was, so that
// its latest version says whether that still holds.
func (r *round) noteReleasing(c *v1alpha1.Contract) {
	if !r.isFreed[c.Metadata.Name] {
		freed := r.freed
		r.isFreed[c.Metadata.Name] = true
		r.freed = append(freed, c)
		r.did(func() {
			delete(r.isFreed, c.Metadata.Name)
			r.freed = freed
		})
	}
}

// finishReleases moves every Releasing contract along: what is gone is gone
// before anything else is decided.
func (r *round) finishReleases() {
	for _, c := range byName(r.releasing) {
		r.progress(c)
	}
}

// latest is the current version of a contract.
func (r *round) latest(c *v1alpha1.Contract) *v1alpha1.Contract {
	if next := r.current[c.Metadata.Name]; next != nil {
		return next
	}
	return c
}

// findExcess marks the contracts that shrunken flavors can no longer hold: the
// lowest priority first, then the youngest. Releasing ones count as they did
// before.
func (r *round) findExcess() map[string]bool {
	out := map[string]bool{}
	for _, o := range r.inventory.Suspects() {
		if o.State != model.Fresh {
			continue
		}
		var lack quantity.Vector
		for i, n := range o.Free() {
			if n < 0 {
				lack = lack.Set(i, -n)
			}
		}
		if lack == nil {
			continue
		}
		list := slices.Clone(o.Contracts)
		for _, m := range o.PoolPeers {
			list = append(list, m.Contracts...)
		}
		for i := range list {
			list[i] = r.latest(list[i])
			if out[list[i].Metadata.Name] {
				lack = lack.Sub(r.relief(o, list[i]))
			}
		}
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(cmp.Compare(r.standing(a), r.standing(b)), b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
		})
		for _, c := range list {
			if out[c.Metadata.Name] || !c.Status.Phase.Held() {
				continue
			}
			relief, helps := r.relief(o, c), false
			for i, n := range lack {
				helps = helps || (n > 0 && relief.At(i) > 0)
			}
			if helps {
				out[c.Metadata.Name] = true
				lack = lack.Sub(relief)
			}
		}
	}
	return out
}

// settleExcess looks once more at what shrunken flavors hold, because the
// round may have released or resized some of it.
func (r *round) settleExcess() {
	if len(r.excess) == 0 {
		return
	}
	was := r.excess
	r.excess = r.findExcess()
	for _, name := range sortedNames(was) {
		c := r.w.Ledger.Contract(name)
		if r.excess[name] || !c.Status.Phase.Charged() || !r.latest(c).Status.Phase.Charged() {
			continue
		}
		if now := r.current[name]; now != nil && r.statusOnly[name] {
			r.put(now, c) // undo what was decided on the first look
		}
		r.seeAgain(c)
	}
	for _, name := range sortedNames(r.excess) { // a changed priority may have passed it on
		if c := r.w.Ledger.Contract(name); !was[name] && c != nil && r.latest(c).Status.Phase.Charged() {
			r.seeAgain(c)
		}
	}
}

// seeAgain observes a contract once more, with what the round has made of it.
func (r *round) seeAgain(c *v1alpha1.Contract) {
	seen := r.observe(r.latest(c))
	for _, j := range r.jobs {
		for i := range j.live {
			if j.live[i].Metadata.Name == c.Metadata.Name {
				j.live[i] = seen
			}
		}
	}
}

// relief is what an offer would gain without a contract of its pool.
func (r *round) relief(o *inventory.Offer, c *v1alpha1.Contract) quantity.Vector {
	at := r.offerOf(c)
	if at == nil {
		return nil
	}
	v := r.footprint(at, c.Metadata.Name, c)
	if at == o {
		return v
	}
	return v[:min(len(v), quantity.Storage+1)]
}
