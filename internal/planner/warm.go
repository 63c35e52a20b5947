package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Warm pools. A pool of fleet.yaml is an intent like any other, but for three
// things: it belongs to the fleet itself (v1alpha1.FleetTenant, which no team
// can be called), its tasks come last, and other intents may claim what it has.
// Filling, refilling, shrinking and failing over are thereby those of every
// intent. How many slices one wants that follows a forecast: expected.go.
//
// A claim ends the pool's contract as Released, without draining, and makes one
// of the intent on the same slice, with the same resources, in the same commit.
// On the consumer only labels, taint and annotations change: slice, virtual
// node and Node stay, which is what makes it quick.

const (
	// warmPath is where pools are written.
	warmPath = "fleet.yaml"
	// warmPriority is below that of every intent.
	warmPriority = -1
	// defaultPremium is how much dearer than the best other offer a warm slice
	// may be to be claimed, in millionths.
	defaultPremium = 200_000
)

// withWarmPools is the world with the tenant of its warm pools, and an intent
// for each of them. w is not modified.
func withWarmPools(w *World) (*World, []*model.Intent) {
	if w.Fleet == nil || len(w.Fleet.WarmPools) == 0 || w.Tenants[v1alpha1.FleetTenant] != nil {
		return w, nil
	}
	out := *w
	var pools []*model.Intent
	tenant := &v1alpha1.Tenant{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTenant},
		Metadata: v1alpha1.Metadata{Name: v1alpha1.FleetTenant},
	}
	seen := map[string]bool{}
	for i := range w.Fleet.WarmPools {
		p := &w.Fleet.WarmPools[i]
		if seen[p.Name] {
			continue // validation refuses it; the first holds
		}
		seen[p.Name] = true
		if !slices.Contains(tenant.Spec.Consumers, p.Consumer) {
			tenant.Spec.Consumers = append(tenant.Spec.Consumers, p.Consumer)
		}
		pools = append(pools, warmIntent(w, p))
	}
	out.Tenants = maps.Clone(w.Tenants)
	if out.Tenants == nil {
		out.Tenants = map[string]*v1alpha1.Tenant{}
	}
	out.Tenants[v1alpha1.FleetTenant] = tenant
	return &out, pools
}

// warmIntent is a pool as an intent: as many slices as it says, each on its
// own, of which having none yet is no failure.
func warmIntent(w *World, p *v1alpha1.WarmPool) *model.Intent {
	alone := false
	doc := &v1alpha1.ResourceIntent{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindResourceIntent},
		Metadata: v1alpha1.Metadata{Name: p.Name, Namespace: v1alpha1.FleetTenant},
		Spec: v1alpha1.IntentSpec{
			Consumer: p.Consumer, Resources: p.Resources, Gang: &alone,
			Replicas: v1alpha1.Replicas{Min: p.Count, Max: p.Count},
		},
	}
	return &model.Intent{
		ResourceIntent: doc, Path: warmPath, Digest: warmDigest(p), Commit: w.Inputs, Author: w.Fleet.WriteBack.Author.String(),
	}
}

// warmDigest is of what a pool's slices are; how many there are is not part of
// it, so that a change of the count changes none of them.
func warmDigest(p *v1alpha1.WarmPool) string {
	b, err := json.Marshal(struct {
		Consumer  string
		Resources v1alpha1.ResourceRequest
	}{p.Consumer, p.Resources})
	if err != nil {
		b = []byte(p.Name)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// warm reports whether a job is a warm pool's.
func (j *job) warm() bool { return j.in != nil && j.tenantName == v1alpha1.FleetTenant }

// poolOf is the warm pool of a job's name, nil when there is none.
func (r *round) poolOf(name string) *v1alpha1.WarmPool {
	for i := range r.fleet.WarmPools {
		if r.fleet.WarmPools[i].Name == name {
			return &r.fleet.WarmPools[i]
		}
	}
	return nil
}

// warmJobs are those of warm pools that may be claimed from.
func (r *round) warmJobs() []*job {
	if len(r.fleet.WarmPools) == 0 {
		return nil
	}
	if r.warm == nil {
		r.warm = []*job{}
		for _, j := range r.jobs {
			if j.warm() && !j.silent && !j.frozen {
				r.warm = append(r.warm, j)
			}
		}
	}
	return r.warm
}

// warmClaim is a warm contract that an intent could take over.
type warmClaim struct {
	pool *job
	old  *v1alpha1.Contract
	cand match.Candidate
}

// claimable is the warm contract that serves a task best, nil when there is
// none, or when the best other offer is so much cheaper that waiting for it
// pays. best is that offer, nil when nothing else fits.
func (r *round) claimable(j *job, q request, s *match.Class, l *limits, best *match.Candidate) *warmClaim {
	if j.warm() || q.dryRun || j.of > 0 || l.only != nil || !plainNode(&j.in.Spec) {
		return nil
	}
	var found *warmClaim
	for _, wj := range r.warmJobs() {
		pool := r.poolOf(wj.name)
		for _, old := range wj.live {
			c := r.claimOf(j, s, l, old)
			if c == nil || (best != nil && dearer(c.cand.Quote.Most(), best.Quote.Most(), pool)) {
				continue
			}
			c.pool = wj
			if found == nil || compareClaims(c, found) < 0 {
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

// claimOf weighs one warm contract: it works, its offer has every fact, it has
// as many cards as are asked for and no less of anything else, and the intent
// can pay for all of it. What was resized cannot be claimed before its slice is
// seen to have followed: until then it is of the old size.
func (r *round) claimOf(j *job, s *match.Class, l *limits, old *v1alpha1.Contract) *warmClaim {
	o := r.offerOf(old)
	if old.Status.Phase != v1alpha1.PhaseActive || old.Spec.Consumer != j.consumer || o == nil || s.Of(o) == nil {
		return nil
	}
	if !r.asSold(old) || o.Overdrawn() >= 0 {
		return nil // a flavor that shrank sells nothing, what is warm of it neither
	}
	size := inventory.Sold(r.names, old, o.Flavor)
	asked := s.Request.Asked(o)
	if !asked.Within(size) || asked.At(quantity.GPU) != size.At(quantity.GPU) {
		return nil
	}
	c := &warmClaim{old: old, cand: r.match.Priced(s.Request, o, size)}
	if c.cand.FailsMoney != "" || l.breaks(&c.cand) != "" || r.askedBack(j, o, size) {
		return nil
	}
	c.cand.Terms = s.Of(o).Terms
	c.cand.Resources = r.resources(s.Request, o, size, old)
	c.cand.Score = s.Request.Weights.Score(&c.cand)
	return c
}

// asSold reports whether a contract's slice is seen to be what the contract
// says; where nobody sees it, whether the contract is older than this instant.
func (r *round) asSold(c *v1alpha1.Contract) bool {
	if obs := r.w.Observed.Of(c.Metadata.Name).Consumer; obs.Reachable && obs.Slice != v1alpha1.Unknown {
		missing, exact := lifecycle.Missing(c, &obs)
		return missing.Code == "" && exact
	}
	if c.Status.AccruedAt == r.now {
		r.due(v1alpha1.Time{Time: r.now.Add(secondsOf(1))})
		return false
	}
	return true
}

// dearer reports whether a warm slice costs more than its pool's premium above
// another offer. An unpriced one is never the cheaper.
func dearer(warm, other quantity.Micro, pool *v1alpha1.WarmPool) bool {
	premium := int64(defaultPremium)
	if pool != nil && pool.MaxPremium != nil {
		premium = pool.MaxPremium.Micro()
	}
	return warm > other && int64(warm-other) > quantity.Wide{}.AddProduct(int64(other), premium, 1).Quo(1_000_000)
}

// compareClaims prefers the cheaper, then the smaller, then the first by name.
func compareClaims(a, b *warmClaim) int {
	return cmp.Or(
		cmp.Compare(a.cand.Quote.Most(), b.cand.Quote.Most()), cmp.Compare(a.cand.Size.At(quantity.CPU), b.cand.Size.At(quantity.CPU)),
		cmp.Compare(a.cand.Size.At(quantity.Memory), b.cand.Size.At(quantity.Memory)), strings.Compare(a.old.Metadata.Name, b.old.Metadata.Name))
}

// takeClaim makes a claim: the pool's contract ends, the intent's begins on the same
// slice, and the pool has a slice to replace.
func (r *round) takeClaim(j *job, s *match.Class, c *warmClaim, next []*match.Candidate, t task, alt int) *v1alpha1.Contract {
	made := r.newContract(j, s, &c.cand, next, t.replica, alt)
	made.Spec.Slice, made.Spec.Resources, made.Spec.GPUs = c.old.Spec.Slice, c.old.Spec.Resources, c.old.Spec.GPUs
	made.Decision.Claimed, made.Decision.Scaled = c.pool.name, c.old.Decision.Scaled
	ended, err := r.books.Claim(c.old, made, r.now)
	if err != nil {
		ended = c.old
	}
	pool := c.pool
	name := c.old.Metadata.Name
	live, tasks, lines, why := slices.Clone(pool.live), slices.Clone(pool.tasks), slices.Clone(pool.dec.Contracts), pool.why
	r.did(func() {
		delete(r.claimed, name)
		pool.sizing.claimed(-1)
		pool.live, pool.tasks, pool.dec.Contracts, pool.why = live, tasks, lines, why
	})
	r.claimed[name] = true
	r.change(c.old, ended)
	r.put(nil, made)
	r.replace(pool, c.old, nil)
	pool.dec.Contracts = append(slices.Clone(lines), r.line(ended, Release))
	pool.why = "claimed by " + j.tenantName + "/" + j.name
	pool.sizing.claimed(1)
	if pool.lacks() {
		pool.tasks = append(slices.Clone(tasks), task{kind: fresh, replica: c.old.Spec.Intent.Replica})
	}
	return made
}
