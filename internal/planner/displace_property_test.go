package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	. "github.com/fleetbroker/fleetbroker/internal/planner/plantest"
)

func anyPreemption(t *rapid.T, in *model.Intent) {
	if rapid.Bool().Draw(t, "preemption") {
		p := &v1alpha1.Preemption{Preempts: rapid.SampledFrom([]string{"", "never", "lower", "lower"}).Draw(t, "preempts")}
		if rapid.IntRange(0, 3).Draw(t, "not preemptible") == 0 {
			p.Preemptible = Ptr(false)
		}
		p.Grace.Duration = time.Duration(rapid.SampledFrom([]int{0, 60, 7200}).Draw(t, "grace")) * time.Second
		in.Spec.Preemption = p
	}
}

func intentOf(w planner.World, ref string) *model.Intent {
	for i := range w.Intents {
		if w.Intents[i].Metadata.Namespace+"/"+w.Intents[i].Metadata.Name == ref {
			return w.Intents[i]
		}
	}
	if tenant, name, _ := strings.Cut(ref, "/"); tenant == v1alpha1.FleetTenant {
		// A warm pool: below every intent.
		return &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{
			Metadata: v1alpha1.Metadata{Name: name, Namespace: tenant}, Spec: v1alpha1.IntentSpec{Priority: -1},
		}}
	}
	return nil
}

// checkDisplaced asks of every notice that a plan gives whether it may be given.
func checkDisplaced(w planner.World, p *planner.Plan, after *ledger.Ledger, fail func(string, ...any)) {
	for i := range p.Contracts {
		before, c := p.Contracts[i].Before, p.Contracts[i].After
		if c == nil || c.Status.Displaced == nil {
			continue
		}
		d := c.Status.Displaced
		if before == nil {
			fail("%s is placed and displaced in one round", c.Metadata.Name)
		}
		if before.Status.Phase.Charged() && c.Status.Phase == v1alpha1.PhaseReleasing && c.Status.Target == v1alpha1.PhasePreempted && w.Deaf {
			fail("%s is preempted in a deaf round", c.Metadata.Name)
		}
		if before.Status.Displaced != nil {
			continue
		}
		if d.Cause == v1alpha1.Interrupted {
			if c.Spec.Price.Class != v1alpha1.Spot || w.Deaf {
				fail("%s of class %s is interrupted", c.Metadata.Name, c.Spec.Price.Class)
			}
			continue
		}
		if d.Cause == v1alpha1.Moved {
			checkMoved(w, before, c, after, fail)
			continue
		}
		checkChain(w, c, fail)
		if d.Cause == v1alpha1.Reclaimed {
			checkReclaimed(w, c, after, fail)
			continue
		}
		by, victim := intentOf(w, d.By), intentOf(w, c.Metadata.Namespace+"/"+c.Spec.Intent.Name)
		if by == nil || victim == nil {
			fail("%s gives way to nobody: %+v", c.Metadata.Name, d)
		}
		if victim.Spec.Priority >= by.Spec.Priority || c.Spec.Priority >= by.Spec.Priority {
			fail("%s of priority %d gives way to %s of %d", c.Metadata.Name, c.Spec.Priority, d.By, by.Spec.Priority)
		}
		if q := victim.Spec.Preemption; q != nil && q.Preemptible != nil && !*q.Preemptible {
			fail("%s is not preemptible", c.Metadata.Name)
		}
		if by.Spec.Preemption == nil || by.Spec.Preemption.Preempts != "lower" {
			fail("%s preempts nobody", d.By)
		}
		if after.Contract(c.Metadata.Name) == nil {
			fail("%s is displaced and gone", c.Metadata.Name)
		}
	}
}

// checkMoved asks of a contract that moved for an intent whether it may have: by the fleet, to
// a place of its own, after it has been where it was, and for one that waits.
func checkMoved(w planner.World, before, c *v1alpha1.Contract, after *ledger.Ledger, fail func(string, ...any)) {
	f, d := &w.Fleet.Consolidation, c.Status.Displaced
	by, mover := intentOf(w, d.By), intentOf(w, c.Metadata.Namespace+"/"+c.Spec.Intent.Name)
	if w.Deaf || f.Mode != "apply" || by == nil || mover == nil || mover.Spec.Priority > by.Spec.Priority {
		fail("%s moves for %s", c.Metadata.Name, d.By)
	}
	if !w.Observed.Of(c.Metadata.Name).Consumer.NodeReady || c.Status.Phase != v1alpha1.PhaseReleasing || w.Now.Sub(before.Spec.Term.Start.Time) < f.Hold.Duration {
		fail("%s was %s since %s, and is %s", c.Metadata.Name, before.Status.Phase, before.Spec.Term.Start, c.Status.Phase)
	}
	replaced := false
	for _, next := range after.ByIntent(c.Metadata.Namespace, c.Spec.Intent.Name) {
		replaced = replaced || next.Status.Phase.Charged() && next.Spec.Intent.Replica == c.Spec.Intent.Replica
	}
	if !replaced {
		fail("%s moves for %s, to nowhere", c.Metadata.Name, d.By)
	}
	for _, old := range w.Ledger.ByIntent(c.Metadata.Namespace, c.Spec.Intent.Name) {
		if x := old.Status.Displaced; x != nil && x.Cause == v1alpha1.Moved && old.Spec.Intent.Replica == c.Spec.Intent.Replica && w.Now.Sub(x.Noticed.Time) < f.Hold.Duration {
			fail("%s moves for %s, %s after its replica moved for another", c.Metadata.Name, d.By, w.Now.Sub(x.Noticed.Time))
		}
	}
	for old := range w.Ledger.Contracts() {
		if x := old.Status.Displaced; x != nil && x.Cause == v1alpha1.Moved && x.By == d.By && w.Now.Sub(x.Noticed.Time) < f.Hold.Duration {
			fail("%s moves for %s, %s after another did", c.Metadata.Name, d.By, w.Now.Sub(x.Noticed.Time))
		}
	}
}

// In a world where nothing else happens, displacing comes to an end: nobody
// who had to give way takes it back.
func TestNoPingPong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		for i := range rapid.IntRange(2, 8).Draw(t, "intents") {
			ref := s.name()
			s.Intent(ref, s.anyIntent, s.crowd, With(func(spec *v1alpha1.IntentSpec) {
				spec.Schedule, spec.Suspend, spec.Budget = v1alpha1.Schedule{}, false, nil
				spec.Preemption = &v1alpha1.Preemption{Preempts: "lower", Grace: v1alpha1.Duration{Duration: time.Duration(i%3) * time.Hour}}
				spec.Priority = int32(rapid.IntRange(0, 6).Draw(t, "priority") * 10)
			}))
			if rapid.Bool().Draw(t, "one by one") {
				s.Tick(time.Minute).Deliver().Round()
			}
		}
		for _, tenant := range s.W.Tenants {
			tenant.Spec.Budget = nil // a month's turn is something else that happens
		}
		displaced := map[string]string{}
		const steps = 30
		for n := range steps {
			s.Tick(30 * time.Minute).Deliver()
			before := s.W
			p := s.Round()
			for i := range p.Contracts {
				b, c := p.Contracts[i].Before, p.Contracts[i].After
				if b == nil || c == nil || b.Status.Displaced != nil || c.Status.Displaced == nil {
					continue
				}
				victim := c.Metadata.Namespace + "/" + c.Spec.Intent.Name
				if displaced[c.Status.Displaced.By] == victim {
					t.Fatalf("step %d: %s gives way to %s, which had to give way to it\n%s", n, victim, c.Status.Displaced.By, describe(p))
				}
				displaced[victim] = c.Status.Displaced.By
			}
			checkDisplaced(before, p, s.W.Ledger, func(format string, args ...any) { t.Fatalf(format+"\n%s", append(args, describe(p))...) })
			if n == steps-1 && placesAnything(p) {
				t.Fatalf("after %d steps it still places: %s\n%s", steps, fmt.Sprint(displaced), describe(p))
			}
		}
	})
}

func placesAnything(p *planner.Plan) bool {
	for i := range p.Contracts {
		if p.Contracts[i].Before == nil {
			return true
		}
	}
	return false
}

// checkChain asks whether somebody who had to give way displaces others in turn.
func checkChain(w planner.World, c *v1alpha1.Contract, fail func(string, ...any)) {
	by := intentOf(w, c.Status.Displaced.By)
	if by == nil {
		fail("%s gives way to nobody: %+v", c.Metadata.Name, c.Status.Displaced)
	}
	s := w.Ledger.State(by.Metadata.Namespace, by.Metadata.Name)
	if s != nil && !s.Status.Displaced.IsZero() && s.Status.Digest == by.Digest {
		fail("%s had to give way and displaces %s in turn", c.Status.Displaced.By, c.Metadata.Name)
	}
}

// checkReclaimed: only what was borrowed from other tenants is asked back, and
// while it is still beyond its tenant's quota, as it was or as the round made
// it by placing more: a contract that grows within a round borrows in it.
func checkReclaimed(w planner.World, c *v1alpha1.Contract, after *ledger.Ledger, fail func(string, ...any)) {
	tenant := c.Metadata.Namespace
	owner, _, _ := strings.Cut(c.Status.Displaced.By, "/")
	marked := len(c.Spec.Borrowed) > 0
	for _, m := range w.Ledger.ByIntent(tenant, c.Spec.Intent.Name) {
		marked = marked || (m.Status.Phase.Charged() && len(m.Spec.Borrowed) > 0)
	}
	sum, made, q := w.Ledger.Totals(tenant), after.Totals(tenant), w.Tenants[tenant].Spec.Quota
	within := func(t ledger.Totals) bool {
		return t.MilliCards().Int64() <= *q.GPU*1000 && !q.CPU.Amount(v1alpha1.CPU).Less(t.CPU)
	}
	switch {
	case owner == tenant || w.Tenants[owner].Spec.Quota == nil || !marked || q == nil:
		fail("%s is asked back by %s: borrowed %v", c.Metadata.Name, c.Status.Displaced.By, c.Spec.Borrowed)
	case within(sum) && within(made):
		fail("%s is asked back though %s is within its quota", c.Metadata.Name, tenant)
	}
}

// checkBorrowed: what is above a tenant's quota is marked, and was unused by
// the others, but for what they took of their own in the very round.
func checkBorrowed(w planner.World, c *v1alpha1.Contract, after *ledger.Ledger, fail func(string, ...any)) {
	q := w.Tenants[c.Metadata.Namespace].Spec.Quota
	if q == nil {
		return
	}
	over := after.Totals(c.Metadata.Namespace).MilliCards().Int64() - *q.GPU*1000
	if over <= 0 || c.Spec.GPUs == nil || c.Spec.Borrowed[v1alpha1.GPU].IsZero() {
		return
	}
	var held, quotas int64
	for name, t := range w.Tenants {
		if t.Spec.Quota == nil {
			continue
		}
		quotas += *t.Spec.Quota.GPU * 1000
		cards := after.Totals(name).MilliCards().Int64()
		if name != c.Metadata.Namespace {
			cards = min(cards, w.Ledger.Totals(name).MilliCards().Int64())
		}
		held += cards
	}
	if held > quotas {
		fail("%s borrows, and %d thousandths of cards are held of quotas of %d", c.Metadata.Name, held, quotas)
	}
}
