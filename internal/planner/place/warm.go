package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Warm pools. A pool of fleet.yaml is an intent like any other, but for three
// things: it belongs to the fleet itself (v1alpha1.FleetTenant, which no team
// can be called), its tasks come last, and other intents may take over what it has.
// Filling, refilling, shrinking and failing over are thereby those of every
// intent. How many slices one wants that follows a forecast: expected.go.
//
// A takeover ends the pool's contract as Released, without draining, and makes one
// of the intent on the same slice, with the same resources, in the same commit.
// On the consumer only labels, taint and annotations change: slice, virtual
// node and Node stay, which is what makes it quick.

// defaultPremium is how much more than the best other offer a warm slice may
// cost to be taken over, in millionths.
const defaultPremium = 200_000

// PoolOf is the warm pool of a job's name, nil when there is none.
func (r *Placer) PoolOf(name string) *v1alpha1.WarmPool {
	for i := range r.Fleet.WarmPools {
		if r.Fleet.WarmPools[i].Name == name {
			return &r.Fleet.WarmPools[i]
		}
	}
	return nil
}

// warmJobs are those of warm pools of which contracts may be taken over.
func (r *Placer) warmJobs() []*draft.Job {
	if len(r.Fleet.WarmPools) == 0 {
		return nil
	}
	if r.warm == nil {
		list := []*draft.Job{}
		for _, j := range r.Jobs {
			if j.Warm() && !j.Silent && !j.Frozen {
				list = append(list, j)
			}
		}
		draft.Set(&r.Draft, &r.warm, list)
	}
	return r.warm
}

// takeover is a warm contract that an intent could take over.
type takeover struct {
	pool *draft.Job
	old  *v1alpha1.Contract
	cand match.Candidate
}

// takeovers are those that one task may choose from.
type takeovers struct {
	*Placer
	job    *draft.Job
	how    Request
	class  *match.Class
	limits *Limits
}

// all are the warm contracts that a replica could take over, whatever else there is.
func (x takeovers) all() (out []*takeover) {
	if !x.may() {
		return nil
	}
	for _, pool := range x.warmJobs() {
		for _, old := range pool.Live {
			if c := x.of(old); c != nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// may reports whether the job may take any over.
func (x takeovers) may() bool {
	j := x.job
	return !j.Warm() && !x.how.DryRun && x.how.part == nil && x.limits.Only == nil && plainNode(&j.In.Spec)
}

// best is the warm contract that serves the task best, nil when there is none, or
// when the best other offer is so much cheaper that waiting for it pays. other is
// that offer, nil when nothing else fits.
func (x takeovers) best(other *match.Candidate) *takeover {
	if !x.may() {
		return nil
	}
	var found *takeover
	for _, pool := range x.warmJobs() {
		terms := x.PoolOf(pool.Name)
		for _, old := range pool.Live {
			c := x.of(old)
			if c == nil || (other != nil && exceedsPremium(c.cand.Quote.Most(), other.Quote.Most(), terms)) {
				continue
			}
			c.pool = pool
			if found == nil || compareTakeovers(c, found) < 0 {
				found = c
			}
		}
	}
	return found
}

// plainNode reports whether what an intent wants of its virtual node can be
// given to one that runs already.
func plainNode(s *v1alpha1.IntentSpec) bool {
	n := s.VirtualNode
	return s.Stage != v1alpha1.StageReserve && (n == nil || (n.RuntimeClassName == "" && !n.ByHand()))
}

// of is the takeover of one warm contract, nil unless it works, its offer has every
// fact, it has as many cards as are asked for and no less of anything else, and the
// intent can pay for all of it. What was resized cannot be taken over before its
// slice is seen to have followed: until then it is of the old size.
func (x takeovers) of(old *v1alpha1.Contract) *takeover {
	j, s := x.job, x.class
	o := x.OfferOf(old)
	if old.Status.Phase != v1alpha1.PhaseActive || old.Spec.Consumer != j.Consumer || o == nil || s.Of(o) == nil {
		return nil
	}
	if !x.asSold(old) || o.Overdrawn() >= 0 {
		return nil // a flavor that shrank sells nothing, what is warm of it neither
	}
	size := inventory.Sold(x.Names, old, o.Flavor)
	asked := s.Request.Asked(o)
	if !asked.Within(size) || asked.At(quantity.GPU) != size.At(quantity.GPU) || !layout.Stays(x.Match, &x.Draft, s.Request, o, size, old) {
		return nil
	}
	if only := nodesFor(x.Placer, j, x.how, o); only != nil && slices.ContainsFunc(old.Spec.Nodes, func(n v1alpha1.ContractNode) bool { return !only(n.Node) }) {
		return nil
	}
	c := &takeover{old: old, cand: x.Match.Priced(s.Request, o, size)}
	if c.cand.FailsMoney != "" || x.limits.Rejects(&c.cand) != "" || x.askedBack(o, size) {
		return nil
	}
	c.cand.Terms = s.Of(o).Terms
	c.cand.Resources = x.Resources(s.Request, o, size, old)
	c.cand.Score = s.Request.Weights.Score(&c.cand)
	return c
}

// asSold reports whether a contract's slice is seen to be what was sold;
// where no cluster reports it, whether the contract is older than this instant.
func (x takeovers) asSold(c *v1alpha1.Contract) bool {
	if obs := x.W.Observed.Of(c.Metadata.Name).Consumer; obs.Reachable && obs.Slice != v1alpha1.Unknown {
		missing, exact := lifecycle.Missing(c, &obs)
		return missing.Code == "" && exact
	}
	if c.Status.AccruedAt == x.Now {
		x.Due(v1alpha1.Time{Time: x.Now.Add(draft.SecondsOf(1))})
		return false
	}
	return true
}

// exceedsPremium reports whether a warm slice costs more than its pool's premium above
// another offer. An unpriced one is never the cheaper.
func exceedsPremium(warm, other quantity.Micro, pool *v1alpha1.WarmPool) bool {
	premium := int64(defaultPremium)
	if pool != nil && pool.MaxPremium != nil {
		premium = pool.MaxPremium.Micro()
	}
	return warm > other && int64(warm-other) > quantity.Wide{}.AddProduct(int64(other), premium, 1).Quo(1_000_000)
}

// compareTakeovers prefers the cheaper, then the smaller, then the first by name.
func compareTakeovers(a, b *takeover) int {
	return cmp.Or(
		cmp.Compare(a.cand.Quote.Most(), b.cand.Quote.Most()), cmp.Compare(a.cand.Size.At(quantity.CPU), b.cand.Size.At(quantity.CPU)),
		cmp.Compare(a.cand.Size.At(quantity.Memory), b.cand.Size.At(quantity.Memory)), strings.Compare(a.old.Metadata.Name, b.old.Metadata.Name))
}

// take takes a warm contract over: the pool's contract ends, the intent's begins on
// the same slice, and the pool has a slice to replace.
func (x takeovers) take(c *takeover, next []*match.Candidate, t draft.Task) *v1alpha1.Contract {
	r, j, s := x.Placer, x.job, x.class
	made := r.NewContract(j, x.how, s, &c.cand, next, t.Replica)
	made.Spec.Slice, made.Spec.Resources, made.Spec.GPUs, made.Spec.Nodes = c.old.Spec.Slice, c.old.Spec.Resources, c.old.Spec.GPUs, c.old.Spec.Nodes
	made.Decision.Claimed, made.Decision.Scaled, made.Decision.Offer.Nodes = c.pool.Name, c.old.Decision.Scaled, layout.Figures(x.OfferOf(c.old), c.old.Spec.Nodes)
	ended, err := r.Books.Claim(c.old, made, r.Now)
	if err != nil {
		ended = c.old
	}
	pool := c.pool
	r.EditJob(pool)
	draft.SetKey(&r.Draft, r.Claimed, c.old.Metadata.Name, true)
	r.Change(c.old, ended)
	r.Put(nil, made)
	r.Replace(pool, c.old, nil)
	if r.By(draft.RulesAgain) {
		pool.DropTasks(c.old) // what the pool changed of it is no longer its own to change
	}
	pool.Dec.Contracts = append(slices.Clip(pool.Dec.Contracts), r.Line(ended, draft.Release))
	pool.Why = "claimed by " + j.TenantName + "/" + j.Name
	if pool.Sizing != nil {
		draft.Set(&r.Draft, &pool.Sizing.Claims, pool.Sizing.Claims+1)
	}
	if pool.Lacks() {
		pool.Tasks = append(slices.Clip(pool.Tasks), draft.Task{Kind: draft.TaskFresh, Replica: c.old.Spec.Intent.Replica})
	}
	return made
}

// askedBack reports whether an intent waits that would ask a size on an offer back
// at once if the task's tenant borrowed for it. What is free it would have taken
// itself; what is kept warm it may only ask for once it is borrowed.
func (x takeovers) askedBack(o *inventory.Offer, size quantity.Vector) bool {
	lent := x.job.Tenant.Borrowed(sizeOn(o, size), nil)
	if len(lent) == 0 {
		return false
	}
	for _, k := range x.Jobs {
		if !draft.WaitsNow(&x.Draft, k) || k.TenantName == x.job.TenantName || k.Warm() || k.Silent || !k.Tenant.Owns(lent) {
			continue
		}
		x.NoteAskedForAll(k)
		for alt := range k.Alternatives() {
			if c := x.ClassOf(k, alt).Of(o); c != nil && c.FailsMoney == "" && makesRoom(c, size) {
				return true
			}
		}
	}
	return false
}

// makesRoom reports whether a candidate would fit if so much were given back.
func makesRoom(c *match.Candidate, back quantity.Vector) bool {
	for i, n := range c.Offer.Free() {
		if n+back.At(i) < max(c.Size.At(i), 0) {
			return false
		}
	}
	return len(c.Size) <= len(c.Offer.Free()) || c.Size[len(c.Offer.Free()):].Within(nil)
}
