package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// priorityOf is an intent's priority under its tenant's ceiling.
func (r *round) priorityOf(in *model.Intent) int32 {
	if in.Metadata.Namespace == v1alpha1.FleetTenant {
		return warmPriority
	}
	p := in.Spec.Priority
	if t := r.w.Tenants[in.Metadata.Namespace]; t != nil && t.Spec.MaxPriority != nil {
		p = min(p, *t.Spec.MaxPriority)
	}
	return p
}

// mayDisplace reports whether a job may make others give way: it preempts or
// its tenant has quota that others borrowed, and it did not have to give way
// itself since it was last served.
func (r *round) mayDisplace(j *job) bool {
	if r.w.Deaf || j.displaced || j.finding() {
		return false
	}
	return j.preempts() || r.reclaims(j)
}

func (j *job) preempts() bool {
	p := j.in.Spec.Preemption
	return p != nil && p.Preempts == "lower"
}

// causeFor is why a contract may be made to give way to a job, "" when it may
// not. A gang goes whole, so that the reason to take one is reason to take all.
func (r *round) causeFor(j *job, c *v1alpha1.Contract) v1alpha1.Cause {
	if !c.Status.Phase.Charged() {
		return "" // it goes already; its gang's other contracts are asked for themselves
	}
	cause := r.causeAlone(j, c)
	gang := r.gangOf(c)
	for _, m := range gang {
		if cause == "" {
			cause = r.causeAlone(j, m)
		}
	}
	// A contract keeps the priority under which it was promised until its
	// intent's change reaches it.
	higher := func(m *v1alpha1.Contract) bool { return r.standing(m) >= j.priority }
	if cause == v1alpha1.Preempted && slices.ContainsFunc(gang, higher) {
		return ""
	}
	return cause
}

func (r *round) causeAlone(j *job, c *v1alpha1.Contract) v1alpha1.Cause {
	lower := r.standing(c) < j.priority && j.preempts()
	lent := r.accounts.Reclaimable(j.tenant, c)
	if !c.Status.Phase.Charged() || r.cut[c.Metadata.Name] || !(lower || lent) {
		return ""
	}
	tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
	if in := r.find(tenant, name); in == nil && r.heldBack.tenant(tenant) && !r.isFrozenContract(c) || in != nil && in.Spec.Suspend && !r.outOfForce(c) || tenant == j.tenantName && (name == j.name || r.belongTogether(j, name)) {
		return ""
	}
	switch {
	case lent:
		return v1alpha1.Reclaimed
	case !r.mayPreempt(j, c):
		return ""
	}
	return v1alpha1.Preempted
}

// claim looks whether what gives way already is enough for a job, and which
// others would have to. It books what is free already of the place.
func (r *round) claim(j *job) {
	if j.in == nil || r.w.Deaf || r.timedOut(j) || !slices.ContainsFunc(j.tasks, func(t task) bool { return t.kind == fresh }) {
		return // who gives up waiting in this round keeps nothing from others in it
	}
	charged, leaving := r.noticesFor(j)
	may := r.mayDisplace(j)
	if len(charged)+len(leaving) == 0 && !may {
		return
	}
	cl := &claim{job: j, key: keyOf(j.tenantName, j.name), causes: map[string]v1alpha1.Cause{}, left: leaving}
	pending := slices.Concat(charged, leaving)
	if may {
		pending = append(pending, r.leavingAnyway(j, leaving)...)
	}
	m := r.mark()
	r.lend(pending...)
	var places []booking
	if len(pending) > 0 {
		places = r.rehearse(j)
	}
	if len(places) == 0 && may && !r.hopeless[r.hopeKey(j)] {
		var more []*v1alpha1.Contract
		if more, places = r.victims(j, cl); len(places) == 0 {
			r.hopeless[r.hopeKey(j)] = true
		}
		charged = append(charged, more...)
	}
	r.rollback(m)
	if len(places) == 0 {
		return
	}
	cl.victims = r.needed(charged, places)
	if cl.soon = len(cl.victims)+len(cl.left) == 0; cl.soon && j.in.Spec.Queue.Policy == "fail" {
		return // it does not wait for what comes free by itself
	}
	r.book(cl, places)
	r.setClaim(j, cl)
	r.tellClaim(cl)
}

// hopeKey is the same for jobs whose search for victims ends alike.
func (r *round) hopeKey(j *job) string {
	return fmt.Sprint(j.tenantName, " ", j.priority, " ", len(j.tasks), " ", j.gang(), " ", j.consumer, " ", j.in.Digest)
}

// leavingAnyway are contracts of others that have been Releasing for less than
// the grace period: nobody has to give way for what comes free by itself. What
// is not seen gone by then is not counted on.
func (r *round) leavingAnyway(j *job, own []*v1alpha1.Contract) []*v1alpha1.Contract {
	grace := r.grace()
	var out []*v1alpha1.Contract
	for _, c := range slices.Concat(byName(r.releasing), r.freed) {
		c = r.latest(c)
		o := r.offerOf(c)
		if c.Status.Phase != v1alpha1.PhaseReleasing || o == nil || o.Blocked != "" || slices.Contains(own, c) {
			continue
		}
		if d := c.Status.Displaced; d != nil && d.By != "" && d.By != keyOf(j.tenantName, j.name) {
			continue
		}
		until := v1alpha1.TimeOf(c.Status.Since.Add(grace))
		if until.After(r.now.Time) {
			r.due(until)
			out = append(out, c)
		}
	}
	return out
}

// rehearse does what a job would do now and takes it back: where its replicas
// would be placed, nothing when not all of them (of a gang; else none).
func (r *round) rehearse(j *job) []booking {
	m := r.mark()
	defer r.rollback(m)
	k := r.understudy(j)
	before := len(k.tasks)
	r.fill(k, rehearsal)
	if (j.gang() && len(k.tasks) > 0) || len(k.tasks) == before {
		return nil
	}
	return r.placesOf(j, k)
}

// understudy is a copy of a job that may be filled and thrown away: only with
// what has to be placed anew.
func (r *round) understudy(j *job) *job {
	k := *j
	k.dec, k.shapes = Decision{}, nil
	k.live, k.ordinals, k.open = slices.Clone(j.live), maps.Clone(j.ordinals), nil
	k.tasks = r.fresh(j.tasks)
	return &k
}

// placesOf are where an understudy was placed.
func (r *round) placesOf(j, k *job) []booking {
	var places []booking
	for _, c := range k.live {
		if slices.Contains(j.live, c) {
			continue
		}
		o := r.offerOf(c)
		places = append(places, booking{o, r.footprint(o, c.Metadata.Name, c)})
	}
	return places
}

// tellClaim says what a claimant waits for.
func (r *round) tellClaim(cl *claim) {
	if len(cl.job.open) == 0 {
		return
	}
	f := &cl.job.open[0]
	if cl.soon {
		f.text = "waits for capacity that is being released; " + f.text
		return
	}
	f.code = CodeReclaiming
	verb := "takes back what is borrowed by "
	until := r.now
	var whom []string
	for _, v := range cl.victims {
		leaves := v1alpha1.TimeOf(r.now.Add(r.graceOf(v)))
		if d := v.Status.Displaced; d != nil {
			leaves = d.Leaves
		}
		if cl.causeOf(v) == v1alpha1.Preempted {
			f.code, verb = CodePreempting, "preempts "
		}
		if leaves.After(until.Time) {
			until = leaves
		}
		whom = append(whom, keyOf(v.Metadata.Namespace, v.Spec.Intent.Name))
	}
	slices.Sort(whom)
	whom = slices.Compact(whom)
	if n := len(whom); n > 3 {
		whom = append(whom[:3], fmt.Sprintf("%d more", n-3))
	}
	text := "waits until what gave way to it is seen gone"
	for _, c := range cl.left {
		if c.Status.Displaced.Cause == v1alpha1.Preempted {
			f.code = CodePreempting
		}
	}
	if len(whom) > 0 {
		text = verb + strings.Join(whom, ", ") + ", by " + stamp(until)
	}
	f.text = text + "; " + f.text
}

// graceOf is how long a contract keeps its capacity after notice.
func (r *round) graceOf(c *v1alpha1.Contract) time.Duration {
	if r.outOfForce(c) {
		return c.Spec.Grace.Duration
	}
	in := r.find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if in.Spec.Preemption == nil {
		return 0
	}
	return in.Spec.Preemption.Grace.Duration
}
