package contend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
)

// mayDisplace reports whether a job may make others give way: it preempts or
// its tenant has quota that others borrowed, and it did not have to give way
// itself since it was last served.
func (r *Contest) mayDisplace(j *draft.Job) bool {
	if r.W.Deaf || j.Displaced || j.Finding() {
		return false
	}
	return preempts(j) || r.reclaims(j)
}

func preempts(j *draft.Job) bool {
	p := j.In.Spec.Preemption
	return p != nil && p.Preempts == "lower"
}

// causeFor is why a contract may be made to give way to a job, "" when it may
// not. A gang goes whole, so that the reason to take one is reason to take all.
func (r *Contest) causeFor(j *draft.Job, c *v1alpha1.Contract) v1alpha1.Cause {
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
	higher := func(m *v1alpha1.Contract) bool { return r.Standing(m) >= j.Priority }
	if cause == v1alpha1.Preempted && slices.ContainsFunc(gang, higher) {
		return ""
	}
	return cause
}

func (r *Contest) causeAlone(j *draft.Job, c *v1alpha1.Contract) v1alpha1.Cause {
	lower := r.Standing(c) < j.Priority && preempts(j)
	lent := r.Accounts.Reclaimable(j.Tenant, c)
	if !c.Status.Phase.Charged() || r.Cut[c.Metadata.Name] || !(lower || lent) {
		return ""
	}
	tenant, name := c.Metadata.Namespace, c.Spec.Intent.Name
	if in := r.Find(tenant, name); in == nil && r.HeldBack.Tenant(tenant) && !r.IsFrozenContract(c) || in != nil && in.Spec.Suspend && !r.OutOfForce(c) || tenant == j.TenantName && (name == j.Name || slices.Contains(r.Relations().Together[draft.KeyOfJob(j)], name)) {
		return ""
	}
	switch {
	case lent:
		return v1alpha1.Reclaimed
	case !r.MayPreempt(j, c):
		return ""
	}
	return v1alpha1.Preempted
}

// makeClaim looks whether what gives way already is enough for a job, and which
// others would have to. It books what is free already of the place.
func (r *Contest) makeClaim(j *draft.Job) {
	if j.In == nil || r.W.Deaf || r.TimedOut(j) || !slices.ContainsFunc(j.Tasks, func(t draft.Task) bool { return t.Kind == draft.TaskFresh }) {
		return // who gives up waiting in this round keeps nothing from others in it
	}
	charged, leaving := r.noticesFor(j)
	may := r.mayDisplace(j)
	if len(charged)+len(leaving) == 0 && !may {
		return
	}
	cl := &claim{job: j, key: draft.KeyOf(j.TenantName, j.Name), causes: map[string]v1alpha1.Cause{}, left: leaving}
	pending := slices.Concat(charged, leaving)
	if may {
		pending = append(pending, r.leavingAnyway(j, leaving)...)
	}
	m := r.Mark()
	r.Lend(pending...)
	var found rehearsed
	if len(pending) > 0 {
		found = r.dryRun(j)
	}
	searched := len(found.places) == 0 && may && !r.infeasible[searchKey(j)]
	if searched && !r.maySearch(j) {
		r.Rollback(m)
		postponeSearch(r, j)
		return
	}
	if searched {
		search := &victimSearch{Contest: r, job: j, causes: cl.causes}
		var more []*v1alpha1.Contract
		more, found = search.find()
		charged = append(charged, more...)
	}
	r.Rollback(m)
	if len(found.places) == 0 {
		if searched {
			draft.SetKey(&r.Draft, r.infeasible, searchKey(j), true)
		}
		return
	}
	cl.victims = r.needed(charged, found.places)
	if cl.soon = len(cl.victims)+len(cl.left) == 0; cl.soon && j.In.Spec.Queue.Policy == "fail" {
		return // it does not wait for what comes free by itself
	}
	r.book(cl, found)
	r.setClaim(j, cl)
	r.explainClaim(cl)
}

// searchKey is the same for jobs whose search for victims ends alike.
func searchKey(j *draft.Job) string {
	return fmt.Sprint(j.TenantName, " ", j.Priority, " ", len(j.Tasks), " ", j.Gang(), " ", j.Consumer, " ", j.In.Digest)
}

// leavingAnyway are contracts of others that have been Releasing for less than
// the grace period: no contract has to give way for what comes free by itself. What
// is not seen gone by then is not counted on.
func (r *Contest) leavingAnyway(j *draft.Job, own []*v1alpha1.Contract) []*v1alpha1.Contract {
	grace := r.Grace()
	var out []*v1alpha1.Contract
	for _, c := range slices.Concat(draft.ByName(r.Releasing), r.Freed) {
		c = r.Latest(c)
		o := r.OfferOf(c)
		if c.Status.Phase != v1alpha1.PhaseReleasing || o == nil || o.Blocked != "" || slices.Contains(own, c) {
			continue
		}
		if d := c.Status.Displaced; d != nil && d.By != "" && d.By != draft.KeyOf(j.TenantName, j.Name) {
			continue
		}
		until := v1alpha1.TimeOf(c.Status.Since.Add(grace))
		if until.After(r.Now.Time) {
			r.Due(until)
			out = append(out, c)
		}
	}
	return out
}

// rehearsed is where a job would be placed, and what its tenant's account would be
// charged for that.
type rehearsed struct {
	places  []draft.Taken
	charged []account.Change
}

// dryRun does what a job would do now and takes it back: where its replicas
// would be placed, nothing when not all of them (of a gang; else none).
func (r *Contest) dryRun(j *draft.Job) rehearsed {
	m := r.Mark()
	defer r.Rollback(m)
	k := r.CopyOf(j)
	before := len(k.Tasks)
	r.Fill(k, place.Rehearsal)
	if (j.Gang() && len(k.Tasks) > 0) || len(k.Tasks) == before {
		return rehearsed{}
	}
	return rehearsed{r.Changed(m), r.ChargedSince(m)}
}

// CopyOf is a copy of a job that may be filled and thrown away: only with
// what has to be placed again.
func (r *Contest) CopyOf(j *draft.Job) *draft.Job { return j.Copy(r.Fresh(j.Tasks)) }

// explainClaim writes what a claimant waits for.
func (r *Contest) explainClaim(cl *claim) {
	if len(cl.job.Open) == 0 {
		return
	}
	f := &cl.job.Open[0]
	if cl.soon {
		f.Text = "waits for capacity that is being released; " + f.Text
		return
	}
	f.Code = lifecycle.CodeReclaiming
	verb := "takes back what is borrowed by "
	until := r.Now
	var whom []string
	for _, v := range cl.victims {
		leaves := v1alpha1.TimeOf(r.Now.Add(r.GraceOf(v)))
		if d := v.Status.Displaced; d != nil {
			leaves = d.Leaves
		}
		if cl.causeOf(v) == v1alpha1.Preempted {
			f.Code, verb = lifecycle.CodePreempting, "preempts "
		}
		if leaves.After(until.Time) {
			until = leaves
		}
		whom = append(whom, draft.KeyOf(v.Metadata.Namespace, v.Spec.Intent.Name))
	}
	slices.Sort(whom)
	whom = slices.Compact(whom)
	if n := len(whom); n > 3 {
		whom = append(whom[:3], fmt.Sprintf("%d more", n-3))
	}
	text := "waits until what gave way to it is seen gone"
	for _, c := range cl.left {
		switch c.Status.Displaced.Cause {
		case v1alpha1.Preempted:
			f.Code = lifecycle.CodePreempting
		case v1alpha1.Moved:
			f.Code, text = lifecycle.CodeMakingRoom, "waits until "+draft.KeyOf(c.Metadata.Namespace, c.Spec.Intent.Name)+", which moved to make room for it, is seen gone from "+c.Spec.Provider+"/"+c.Spec.Flavor
		}
	}
	if len(whom) > 0 {
		text = verb + strings.Join(whom, ", ") + ", by " + draft.Stamp(until)
	}
	f.Text = text + "; " + f.Text
}

// reclaims reports whether a job's tenant may have had capacity borrowed from
// it.
func (r *Contest) reclaims(j *draft.Job) bool {
	if len(r.Borrowed) == 0 || !j.Tenant.Lends() {
		return false
	}
	if !r.By(draft.RulesAgain) {
		return true
	}
	for _, c := range r.Borrowed { // in any order: one is enough
		if r.Latest(c).Status.Phase.Charged() {
			return true
		}
	}
	return false // what was borrowed is being given back in this round
}
