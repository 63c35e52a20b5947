package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// Contracts end because intents are gone (deletions), or because providers are
// lost or take back what they sold (losses). Many at once are more often than not
// a bad merge or a broken network, and not what anybody wants. The two are counted
// apart: one round ends safety.maxEnds of each at the most. Where there are more,
//
//	one offender  a tenant whose deletions are more than those of all others
//	              together (a provider whose losses are) is held back alone, if
//	              the others' together are within the limit: what one tenant
//	              deletes by its own right must not stop the others. Who deletes
//	              by the same commit as the offender is held back with it: that
//	              is a mistake that spans tenants
//	else          nothing of the kind ends: a mistake that spans tenants, or half
//	              of the network
//
// What is held back waits for an operator (AllowEnds), or until the others are done.

// Ends are the contracts that would end in a world because intents are gone or
// providers are lost, by name, whether held back or not.
func Ends(w draft.World) []string {
	r := newRound(&w)
	r.observeAll()
	r.cutBudgets()
	g := newEndGuard(r)
	var names []string
	for _, groups := range []ends{g.deletions, g.losses} {
		for _, list := range groups {
			for _, c := range list {
				names = append(names, c.Metadata.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// ends are contracts by whose they are, a tenant's or a provider's.
type ends map[string][]*v1alpha1.Contract

func (e ends) count() (n int) {
	for _, list := range e {
		n += len(list)
	}
	return n
}

// endGuard knows which contracts would end in a round, and holds back what is too
// many at once.
type endGuard struct {
	*round
	// deletions are the contracts that would end because intents are gone, by
	// tenant; losses the others that would because of their provider, by provider.
	deletions, losses ends
	// counted are the names of both.
	counted map[string]bool
	// givesUp is what intents give up by themselves.
	givesUp map[[2]string]func(*v1alpha1.Contract) bool
	// limit is how many of each one round may end.
	limit int
	// why lists what is held back.
	why []string
}

func newEndGuard(r *round) *endGuard {
	g := &endGuard{round: r, deletions: ends{}, losses: ends{}, counted: map[string]bool{}, givesUp: map[[2]string]func(*v1alpha1.Contract) bool{}, limit: max(5, (r.W.Ledger.Held()+r.W.Ledger.Booked())/5)}
	if m := r.Fleet.Safety.MaxEnds; m != nil {
		g.limit = int(*m)
	}
	g.find()
	return g
}

// find fills deletions and losses.
func (g *endGuard) find() {
	renamed := map[[2]string]bool{}
	for k := range g.renames {
		// As in adopt: an intent that the ledger knows by its own name takes
		// nothing over, and what it was called before is gone.
		if g.W.Ledger.State(k[0], k[1]) == nil {
			renamed[[2]string{k[0], g.Find(k[0], k[1]).Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]}] = true
		}
	}
	// What is frozen does not end because its intent or its provider is gone, but
	// gives spot capacity back as all do.
	for k := range g.orphans {
		for _, c := range g.KeptOf(k) {
			g.count(g.deletions, k[0], c, !renamed[k] && !g.IsFrozenContract(c))
		}
	}
	for _, o := range g.Inventory.Unheard() {
		for _, c := range o.Contracts {
			taken, mate := o.State == model.Withdrawn && g.Interrupted(c, o), g.counted[c.Metadata.Name]
			g.count(g.losses, o.Provider, c, taken || o.State == model.Lost && !g.W.Deaf && !g.IsFrozenContract(c))
			if taken && !mate && g.By(draft.RulesGangsCounted) { // with a mate all of its gang was
				g.countGang(o.Provider, c)
			}
		}
	}
	for _, c := range ahead.Losses(&g.Placer) {
		g.count(g.losses, c.Spec.Provider, c, true)
	}
}

// countGang counts what leaves with a contract whose provider takes it back: all of a gang that
// must share a domain.
func (g *endGuard) countGang(provider string, c *v1alpha1.Contract) {
	in := g.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if w, ok := place.WithinOf(&g.Placer, in); !ok || !w.Required {
		return
	}
	for _, mate := range g.W.Ledger.ByIntent(c.Metadata.Namespace, c.Spec.Intent.Name) {
		g.count(g.losses, provider, mate, true)
	}
}

// count counts a contract that is ending. What its term or a budget ends now, or
// an operator, is not counted, nor what its own intent asks for no more: that ends in this
// round whatever is held back, and would let the others go in the next.
func (g *endGuard) count(to ends, whose string, c *v1alpha1.Contract, ending bool) {
	end, name := c.Spec.Term.End, c.Metadata.Name
	if ending && (c.Status.Phase.Charged() || c.Status.Phase == v1alpha1.PhaseBooked) && !g.counted[name] && !g.W.ForceRelease[name] && !g.Cut[name] && (end.IsZero() || end.After(g.Now.Time)) && !g.isGivenUp(c) {
		g.counted[name] = true
		to[whose] = append(to[whose], c)
	}
}

// isGivenUp reports whether the intent of a contract gives it up.
func (g *endGuard) isGivenUp(c *v1alpha1.Contract) bool {
	if !g.By(draft.RulesGivenUpApart) {
		return false
	}
	k := [2]string{c.Metadata.Namespace, c.Spec.Intent.Name}
	gives, known := g.givesUp[k]
	if !known {
		gives = settle.GivenUp(&g.Settler, g.Find(k[0], k[1]))
		g.givesUp[k] = gives
	}
	return gives(c)
}

// holdBack holds back what would end too many contracts at once.
func (g *endGuard) holdBack() {
	if g.W.AllowEnds || g.Fleet.Suspend {
		return
	}
	allow := fmt.Sprintf("(fleet.yaml, spec.safety.maxEnds): allow it once with `fleetbroker reconcile --once --allow-ends %s`", cmp.Or(g.W.Inputs, "COMMIT"))
	if !g.By(draft.RulesEndsApart) {
		if n := g.deletions.count() + g.losses.count(); n > g.limit {
			g.HeldBack.All, g.Plan.HeldBackEnds = true, n
			g.Plan.HeldBack = fmt.Sprintf("%d contracts would end because intents are gone or providers are lost; one round may end %d %s", n, g.limit, allow)
		}
		return
	}
	g.HeldBack.Tenants = g.holdBackOf(g.deletions, "because intents are gone", "tenant")
	g.HeldBack.Providers = g.holdBackOf(g.losses, "because providers are lost", "provider")
	if len(g.why) > 0 {
		g.Plan.HeldBack = fmt.Sprintf("%s; one round may end %d for each of these reasons %s", strings.Join(g.why, ", and "), g.limit, allow)
	}
}

// holdBackOf is whose ends are held back, nobody's when they are within the limit.
func (g *endGuard) holdBackOf(e ends, because, kind string) map[string]bool {
	total := e.count()
	if total <= g.limit {
		return nil
	}
	held := map[string]bool{}
	for name, list := range e {
		if rest := total - len(list); rest <= g.limit && len(list) > rest {
			held = map[string]bool{name: true} // there is only one that has more than all others together
			break
		}
		held[name] = true
	}
	if kind == "tenant" {
		g.holdSameCommits(e, held)
	}
	total = 0
	for name := range held {
		total += len(e[name])
	}
	g.Plan.HeldBackEnds += total
	names := draft.SortedNames(held)
	text := fmt.Sprintf("%d contracts would end %s, of %s %s", total, because, kind, names[0])
	if n := len(names); n > 1 {
		const most = 3
		text = fmt.Sprintf("%d contracts would end %s, of %ss %s", total, because, kind, strings.Join(names[:min(n, most)], ", "))
		if n > most {
			text += fmt.Sprintf(" and %d more", n-most)
		}
	}
	g.why = append(g.why, text)
	return held
}

// holdSameCommits holds back those, too, of whose intents the same commit deletes
// some as of those that are held back, as far as it is known who deleted what.
func (g *endGuard) holdSameCommits(e ends, held map[string]bool) {
	commits := map[string]bool{}
	for name := range held {
		for _, c := range e[name] {
			commits[g.W.RemovedBy[c.Spec.Intent.Path]] = true
		}
	}
	delete(commits, "")
	for name, list := range e {
		for _, c := range list {
			path := c.Spec.Intent.Path
			g.Plan.Removed = append(g.Plan.Removed, path)
			held[name] = held[name] || commits[g.W.RemovedBy[path]]
		}
		if !held[name] {
			delete(held, name)
		}
	}
	slices.Sort(g.Plan.Removed)
	g.Plan.Removed = slices.Compact(g.Plan.Removed)
}
