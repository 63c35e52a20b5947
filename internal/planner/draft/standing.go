package draft

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// WaitingSince is since when an intent has waited for capacity.
func (f *Moment) WaitingSince(j *Job) v1alpha1.Time {
	if s := j.State; s != nil && s.Status.State == v1alpha1.IntentQueued && s.Status.Digest == j.In.Digest &&
		s.Status.Reason != lifecycle.CodeNotBefore && s.Status.Reason != lifecycle.CodeWindow {
		return s.Status.Since
	}
	return f.Now
}

// GivesUp reports whether an intent that finds nothing in this round is
// refused, so that the next knows it no more.
func (f *Moment) GivesUp(j *Job) bool {
	return j.In.Spec.Queue.Policy == "fail" || f.TimedOut(j)
}

// TimedOut reports whether an intent has waited for as long as it wants to.
func (f *Moment) TimedOut(j *Job) bool {
	timeout := j.In.Spec.Queue.Timeout.Duration
	return timeout > 0 && !f.WaitingSince(j).Add(timeout).After(f.Now.Time)
}

// GaveWay is why a contract has to give way, for people.
func (r *Draft) GaveWay(c *v1alpha1.Contract) string {
	d := c.Status.Displaced
	tenant, name, _ := strings.Cut(d.By, "/")
	switch d.Cause {
	case v1alpha1.Reclaimed:
		return "it was borrowed from quota that " + d.By + " now asks for"
	case v1alpha1.Interrupted:
		return c.Spec.Provider + " takes back the spot capacity of " + c.Spec.Flavor
	}
	if in := r.Find(tenant, name); in != nil && d.Cause != v1alpha1.Moved {
		return fmt.Sprintf("priority %d < %d of %s", r.Standing(c), r.priorityOf(in), d.By)
	}
	return "it gives way to " + d.By
}

// MadeWay names the contracts that gave way to a job since it waits, but for
// those that its other contracts name.
func (r *Draft) MadeWay(j *Job) []string {
	list := r.Notices[KeyOf(j.TenantName, j.Name)]
	if len(list) == 0 {
		return nil
	}
	var out []string
	for _, c := range list {
		c = r.Latest(c)
		if c.Status.Displaced == nil || c.Status.Phase.Charged() || (j.State != nil && c.Status.Displaced.Noticed.Before(j.State.Status.Since.Time)) {
			continue
		}
		named := func(x *v1alpha1.Contract) bool { return slices.Contains(x.Decision.Displaced, c.Metadata.Name) }
		if !slices.ContainsFunc(j.All, named) && !slices.ContainsFunc(j.Live, named) {
			out = append(out, c.Metadata.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// heldBack are those whose contracts do not end in this round.
type heldBack struct {
	// All deletions and losses; only by rules below RulesEndsApart.
	All                bool
	Tenants, Providers map[string]bool
}

// Tenant reports whether what a tenant's deleted intents hold is kept.
func (h *heldBack) Tenant(name string) bool { return h.All || h.Tenants[name] }

// Provider reports whether what a provider no longer serves is kept.
func (h *heldBack) Provider(name string) bool { return h.All || h.Providers[name] }

// WarmPriority is below that of every intent.
const WarmPriority = -1

// priorityOf is an intent's priority under its tenant's ceiling.
func (f *Facts) priorityOf(in *model.Intent) int32 {
	if in.Metadata.Namespace == v1alpha1.FleetTenant {
		return WarmPriority
	}
	p := in.Spec.Priority
	if t := f.W.Tenants[in.Metadata.Namespace]; t != nil && t.Spec.MaxPriority != nil {
		p = min(p, *t.Spec.MaxPriority)
	}
	return p
}

// GraceOf is how long a contract keeps its capacity after notice.
func (r *Draft) GraceOf(c *v1alpha1.Contract) time.Duration {
	if r.OutOfForce(c) {
		return c.Spec.Grace.Duration
	}
	in := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if in.Spec.Preemption == nil {
		return 0
	}
	return in.Spec.Preemption.Grace.Duration
}

// NamedBefore is the name under which the ledger knows an intent that is renamed
// in this round, "" for others.
func (r *Draft) NamedBefore(j *Job) string {
	if old := RenamedFrom(j); r.Renamed[[2]string{j.TenantName, old}] != nil {
		return old
	}
	return ""
}

// RenamedFrom is the name that an intent had before, "" for none.
func RenamedFrom(j *Job) string {
	if j.In == nil {
		return ""
	}
	return j.In.Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]
}

// Standing is the priority by which a contract is judged: the one it records,
// until its intent's change reaches it.
func (r *Draft) Standing(c *v1alpha1.Contract) int32 {
	if r.Aged(c) {
		return 0
	}
	return c.Spec.Priority
}

// OutOfForce reports whether a contract is judged by what it records alone,
// because its intent cannot be read, is not acted on or is no more.
func (r *Draft) OutOfForce(c *v1alpha1.Contract) bool {
	if in := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name); in == nil || in.Problem != "" {
		return true
	}
	return r.IsFrozenContract(c)
}

// MayPreempt reports whether a contract's intent lets a job of higher priority
// displace it.
func (r *Draft) MayPreempt(j *Job, c *v1alpha1.Contract) bool {
	if r.OutOfForce(c) {
		return r.Aged(c) || c.Spec.Preemptible == nil || *c.Spec.Preemptible
	}
	in := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
	p := in.Spec.Preemption
	return r.priorityOf(in) < j.Priority && (p == nil || p.Preemptible == nil || *p.Preemptible)
}
