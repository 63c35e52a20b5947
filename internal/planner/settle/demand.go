package settle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// Replicas that follow demand (spec.replicas: {min, max}).
//
// The consumer's agent reports which pods wait for room on an intent's virtual
// nodes, and how many pods are on each (World.Demand). More replicas come at
// once: as many as the waiting pods fill, by first fit of the biggest pods
// first, beyond what replicas that are still on their way, or have just come,
// will take. Fewer come late, which is what keeps it from flapping: a replica
// goes only if no pod has been on its node for idleTime, none waits for the
// intent, and the youngest replica is as old. Pods are thus never evicted
// because demand fell. Ten minutes are cluster-autoscaler's defaults for the
// same two rules (scale-down-unneeded-time, scale-down-delay-after-add).
//
// What nobody reports changes nothing: while no report comes from the agent, or it
// reports nothing of pods, an intent keeps as many replicas as it has.

const (
	// idleTime is how long a replica must be of no use before it goes.
	idleTime = 10 * time.Minute
	// fillTime is how long after it became usable a replica is expected to take
	// pods that still wait: the scheduler tries them again within it.
	fillTime = time.Minute
)

const idleText = "no pod has used it for ten minutes"

// follow sets how many replicas an intent wants that follows demand, picks
// those that go, and returns why they do.
func (r *Settler) follow(j *draft.Job) (n int32, gone map[int32]bool, why string) {
	least, most := j.Least(), max(j.In.Spec.Replicas.Max, 1)
	have := draft.ByReplica(j.Live)
	n = int32(len(have))
	defer func() { j.Target = n }()
	seen := r.W.Demand[j.Consumer]
	switch {
	case n < least:
		n = least
		return n, nil, ""
	case n > most:
		n = most
		return n, r.surplusOf(j, int(n)), "the intent wants fewer replicas"
	case r.W.Deaf || seen == nil || r.fleeting(j):
		return n, nil, ""
	}
	if c := r.calls()[[2]string{j.TenantName, j.Name}]; c.waiting {
		if more := min(n+c.more, most); more > n {
			j.Grows = fmt.Sprintf("pods wait for room in %s: %d replicas instead of %d", j.Consumer, more, n)
			n = more
		}
		return n, nil, ""
	}
	gone = r.idle(j, seen, have, int(n-least))
	n -= int32(len(gone))
	return n, gone, idleText
}

// fleeting reports whether anything about an intent changes at this very
// instant: what follows from that is judged a second later, so that a plan that
// was applied leaves nothing to do.
func (r *Settler) fleeting(j *draft.Job) bool {
	is := j.State == nil || j.State.Status.Since == r.Now || j.State.Status.Digest != j.In.Digest
	for _, c := range j.Live {
		is = is || c.Spec.Term.Start == r.Now || c.Status.Since == r.Now || c.Status.AccruedAt == r.Now || c.Spec.Intent.Digest != j.In.Digest
	}
	if is {
		r.Due(v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(1))})
	}
	return is
}

// idle are at most so many replicas of which no pod has made use for long: the
// highest numbers whose going leaves the others spread as the intent asks.
func (r *Settler) idle(j *draft.Job, seen *v1alpha1.DemandSeen, have map[int32][]*v1alpha1.Contract, most int) map[int32]bool {
	gone := map[int32]bool{}
	if most <= 0 {
		return gone
	}
	var old v1alpha1.Time // when all are
	for _, list := range have {
		for _, c := range list {
			if at := v1alpha1.TimeOf(c.Spec.Term.Start.Add(idleTime)); at.After(old.Time) {
				old = at
			}
		}
	}
	if old.After(r.Now.Time) {
		r.Due(old)
		return gone
	}
	replicas := slices.Sorted(maps.Keys(have))
	for _, k := range slices.Backward(replicas) {
		if len(gone) == most {
			break
		}
		if r.idleSince(seen, have[k]) && r.spreadWithout(j, gone, k) {
			gone[k] = true
		}
	}
	return gone
}

// idleSince reports whether a replica works and has had no pod for long.
func (r *Settler) idleSince(seen *v1alpha1.DemandSeen, list []*v1alpha1.Contract) bool {
	for _, c := range list {
		for _, node := range c.VirtualNodes() {
			use, reported := seen.Nodes[node.Name]
			if !reported || use.Pods > 0 || use.IdleSince.IsZero() || c.Status.Phase != v1alpha1.PhaseActive {
				return false
			}
			if long := v1alpha1.TimeOf(use.IdleSince.Add(idleTime)); long.After(r.Now.Time) {
				r.Due(long)
				return false
			}
		}
	}
	return true
}

// call is what pods that wait ask of one intent.
type call struct {
	// waiting: some pod waits that a replica of it could hold.
	waiting bool
	// more replicas than it has, to hold all of them.
	more int32
}

// caller is an intent that follows demand while pods are shared out.
type caller struct {
	name            [2]string // tenant and intent
	value, consumer string
	priority        int32
	// size is what each node of a replica has; coming are those of replicas that
	// are on their way or have just come, with what is left of them.
	size   []v1alpha1.Resources
	coming []v1alpha1.Resources
	room   int32 // replicas that may still be opened
	call   call
}

// calls shares the pods that wait out among the intents that follow demand, by
// tenant and name. A pod counts for one intent only: of those whose taint it
// tolerates and whose replicas could hold it, the first by priority, then name,
// that may still grow.
func (r *Settler) calls() map[[2]string]call {
	if r.called != nil {
		return r.called
	}
	r.called = map[[2]string]call{}
	byConsumer := map[string][]*caller{}
	for _, in := range r.Intents {
		if c := r.callerOf(in); c != nil {
			byConsumer[c.consumer] = append(byConsumer[c.consumer], c)
		}
	}
	for consumer, list := range byConsumer {
		slices.SortStableFunc(list, func(a, b *caller) int { return cmp.Compare(b.priority, a.priority) })
		pending := slices.Clone(r.W.Demand[consumer].Pending)
		slices.SortStableFunc(pending, heaviestFirst)
		for _, p := range pending {
			shareOut(p, list)
		}
		for _, c := range list {
			r.called[c.name] = c.call
		}
	}
	return r.called
}

// heaviestFirst orders pods by what they request, most GPUs first, then cores,
// then memory; it does not depend on how a report was ordered.
func heaviestFirst(a, b v1alpha1.PendingPods) int {
	gpus := func(p v1alpha1.PendingPods) (n int64) {
		for name, amount := range p.Requests {
			if strings.Contains(name, "/") {
				n += amount.Int64()
			}
		}
		return n
	}
	return cmp.Or(
		cmp.Compare(gpus(b), gpus(a)), cmp.Compare(b.Requests[v1alpha1.CPU].Int64(), a.Requests[v1alpha1.CPU].Int64()),
		cmp.Compare(b.Requests[v1alpha1.Memory].Int64(), a.Requests[v1alpha1.Memory].Int64()),
		strings.Compare(a.Namespace, b.Namespace), slices.Compare(a.Intents, b.Intents),
		strings.Compare(fmt.Sprint(a.Requests), fmt.Sprint(b.Requests)))
}

// callerOf is an intent as pods see it, nil for one that none can wait for.
// Its replicas are those of the ledger.
func (r *Settler) callerOf(in *model.Intent) *caller {
	if !in.Spec.Replicas.Range || in.Spec.Stage == v1alpha1.StageFind {
		return nil
	}
	m := &in.Metadata
	t := r.Accounts.Of(m.Namespace)
	c := &caller{
		name: [2]string{m.Namespace, m.Name}, value: v1alpha1.IntentValue(m.Namespace, m.Name),
		consumer: t.Spec.ConsumerOf(&in.Spec), priority: in.Spec.Priority,
	}
	if p := t.Spec.MaxPriority; p != nil {
		c.priority = min(c.priority, *p)
	}
	if r.W.Demand[c.consumer] == nil {
		return nil
	}
	replicas := draft.ByReplica(slices.DeleteFunc(slices.Clone(r.W.Ledger.ByIntent(m.Namespace, m.Name)), func(c *v1alpha1.Contract) bool { return !c.Status.Phase.Charged() }))
	if len(replicas) == 0 {
		return nil
	}
	c.room = max(in.Spec.Replicas.Max-int32(len(replicas)), 0)
	numbers := slices.Sorted(maps.Keys(replicas))
	for i, k := range numbers {
		for _, one := range replicas[k] {
			if i == len(numbers)-1 {
				c.size = append(c.size, one.Spec.Resources)
			}
			ready := v1alpha1.TimeOf(one.Status.Since.Add(fillTime))
			if one.Status.Phase != v1alpha1.PhaseActive || ready.After(r.Now.Time) {
				if one.Status.Phase == v1alpha1.PhaseActive {
					r.Due(ready)
				}
				c.coming = append(c.coming, one.Spec.Resources.Clone())
			}
		}
	}
	return c
}

// shareOut gives pods of one kind to the intents in their order.
func shareOut(p v1alpha1.PendingPods, list []*caller) {
	left := p.Pods
	for _, c := range list {
		if left == 0 {
			return
		}
		if !slices.Contains(p.Intents, c.value) || !c.holds(p.Requests) {
			continue
		}
		c.call.waiting = true
		for left > 0 {
			took := c.take(p.Requests, left)
			if took == 0 {
				if c.room == 0 {
					break
				}
				c.open()
				continue
			}
			left -= took
		}
	}
}

// holds reports whether a replica could hold such a pod.
func (c *caller) holds(requests v1alpha1.Resources) bool {
	return slices.ContainsFunc(c.size, func(node v1alpha1.Resources) bool { return fits(node, requests, 1) == 1 })
}

// open counts one replica more.
func (c *caller) open() {
	c.room--
	c.call.more++
	for _, node := range c.size {
		c.coming = append(c.coming, node.Clone())
	}
}

// take puts up to n pods on the nodes that are coming and returns how many.
func (c *caller) take(requests v1alpha1.Resources, n int64) (took int64) {
	for _, node := range c.coming {
		k := fits(node, requests, n-took)
		for name, amount := range requests {
			node[name] = node[name].Sub(amount.Mul(k))
		}
		if took += k; took == n {
			break
		}
	}
	return took
}

// fits is how many pods, at most n, a node has room for.
func fits(node, requests v1alpha1.Resources, n int64) int64 {
	for name, amount := range requests {
		if one := amount.Int64(); one > 0 {
			n = min(n, max(node[name].Int64(), 0)/one)
		}
	}
	return n
}

// FollowText is what an intent that follows demand goes by, "" when
// nothing needs to be shown.
func (r *Settler) FollowText(j *draft.Job) string {
	if j.Grows != "" {
		return j.Grows
	}
	if !j.Follows() || len(j.Live) == 0 || r.W.Demand[j.Consumer] != nil || j.In.Spec.Replicas.Max <= j.Least() {
		return ""
	}
	return fmt.Sprintf("it stays at %s (%d to %d are allowed), because no agent of %s tells of its pods", said.Replicas(j.Served()), j.Least(), j.In.Spec.Replicas.Max, j.Consumer)
}
