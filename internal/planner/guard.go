package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
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
	r.finishReleases()
	r.Excess = r.findExcess()
	r.cutBudgets()
	deletions, losses := r.guardedEnds()
	var names []string
	for _, groups := range []ends{deletions, losses} {
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

// guardedEnds are the contracts that would end because intents are gone, by
// tenant, and the others that would because of their provider, by provider.
func (r *round) guardedEnds() (deletions, losses ends) {
	renamed := map[[2]string]bool{}
	for k := range r.renames {
		// As in adopt: an intent that the ledger knows by its own name takes
		// nothing over, and what it was called before is gone.
		if r.W.Ledger.State(k[0], k[1]) == nil {
			renamed[[2]string{k[0], r.Find(k[0], k[1]).Metadata.Annotations[v1alpha1.AnnotationRenamedFrom]}] = true
		}
	}
	deletions, losses = ends{}, ends{}
	seen := map[string]bool{}
	ask := func(to ends, whose string, c *v1alpha1.Contract, ending bool) {
		end, name := c.Spec.Term.End, c.Metadata.Name // what its term or a budget ends now is not counted
		if ending && c.Status.Phase.Charged() && !seen[name] && !r.W.ForceRelease[name] && !r.Cut[name] && (end.IsZero() || end.After(r.Now.Time)) {
			seen[name] = true
			to[whose] = append(to[whose], c)
		}
	}
	// What is frozen does not end because its intent or its provider is gone, but
	// gives spot capacity back as all do.
	for k := range r.orphans {
		for _, c := range r.HeldOf(k) {
			ask(deletions, k[0], c, !renamed[k] && !r.IsFrozenContract(c))
		}
	}
	for _, o := range r.Inventory.Unheard() {
		for _, c := range o.Contracts {
			ask(losses, o.Provider, c, o.State == model.Withdrawn && r.Interrupted(c, o) || o.State == model.Lost && !r.W.Deaf && !r.IsFrozenContract(c))
		}
	}
	return deletions, losses
}

// guardEnds holds back what would end too many contracts at once.
func (r *round) guardEnds() {
	deletions, losses := r.guardedEnds()
	limit := max(5, r.W.Ledger.Held()/5)
	if m := r.Fleet.Safety.MaxEnds; m != nil {
		limit = int(*m)
	}
	if r.W.AllowEnds || r.Fleet.Suspend {
		return
	}
	allow := fmt.Sprintf("(fleet.yaml, spec.safety.maxEnds): allow it once with `fleetbroker reconcile --once --allow-ends %s`", cmp.Or(r.W.Inputs, "COMMIT"))
	if !r.By(draft.RulesEndsApart) {
		if n := deletions.count() + losses.count(); n > limit {
			r.HeldBack.All, r.Plan.HeldBackEnds = true, n
			r.Plan.HeldBack = fmt.Sprintf("%d contracts would end because intents are gone or providers are lost; one round may end %d %s", n, limit, allow)
		}
		return
	}
	var why []string
	r.HeldBack.Tenants, why = r.holdBack(deletions, limit, why, "because intents are gone", "tenant")
	r.HeldBack.Providers, why = r.holdBack(losses, limit, why, "because providers are lost", "provider")
	if len(why) > 0 {
		r.Plan.HeldBack = fmt.Sprintf("%s; one round may end %d for each of these reasons %s", strings.Join(why, ", and "), limit, allow)
	}
}

// holdBack is whose ends are held back, and why with that; nobody's when they are
// within the limit.
func (r *round) holdBack(e ends, limit int, why []string, because, kind string) (map[string]bool, []string) {
	total := e.count()
	if total <= limit {
		return nil, why
	}
	held := map[string]bool{}
	for name, list := range e {
		if rest := total - len(list); rest <= limit && len(list) > rest {
			held = map[string]bool{name: true} // there is only one that has more than all others together
			break
		}
		held[name] = true
	}
	if kind == "tenant" {
		r.holdSameCommits(e, held)
	}
	total = 0
	for name := range held {
		total += len(e[name])
	}
	r.Plan.HeldBackEnds += total
	names := draft.SortedNames(held)
	text := fmt.Sprintf("%d contracts would end %s, of %s %s", total, because, kind, names[0])
	if n := len(names); n > 1 {
		const most = 3
		text = fmt.Sprintf("%d contracts would end %s, of %ss %s", total, because, kind, strings.Join(names[:min(n, most)], ", "))
		if n > most {
			text += fmt.Sprintf(" and %d more", n-most)
		}
	}
	return held, append(why, text)
}

// holdSameCommits holds back those, too, of whose intents the same commit deletes
// some as of those that are held back, as far as it is known who deleted what.
func (r *round) holdSameCommits(e ends, held map[string]bool) {
	commits := map[string]bool{}
	for name := range held {
		for _, c := range e[name] {
			commits[r.W.RemovedBy[c.Spec.Intent.Path]] = true
		}
	}
	delete(commits, "")
	for name, list := range e {
		for _, c := range list {
			path := c.Spec.Intent.Path
			r.Plan.Removed = append(r.Plan.Removed, path)
			held[name] = held[name] || commits[r.W.RemovedBy[path]]
		}
		if !held[name] {
			delete(held, name)
		}
	}
	slices.Sort(r.Plan.Removed)
	r.Plan.Removed = slices.Compact(r.Plan.Removed)
}

// cutBudgets marks the contracts that budgets with atLimit end: all of a month
// that is spent, and of an hour that is too dear the lowest priority first,
// then the youngest.
func (r *round) cutBudgets() {
	for name, t := range r.W.Tenants {
		b := t.Spec.Budget
		if b == nil || b.AtLimit != account.AtLimitEnd || len(r.Charged.Of(name)) == 0 {
			continue
		}
		has := r.Accounts.Of(name).Budget()
		over := has.Hourly - has.MaxHourly
		if has.Spent >= has.MaxMonthly {
			over = quantity.Unlimited
		} else if has.MaxMonthly < quantity.Unlimited && has.Hourly > 0 {
			seconds := quantity.Wide{}.AddProduct(int64(has.MaxMonthly-has.Spent), 3600, 1).Quo(uint64(has.Hourly))
			r.Due(v1alpha1.Time{Time: r.Now.Add(draft.SecondsOf(min(seconds, 40*24*3600) + 1))})
		}
		list := slices.Clone(r.Charged.Of(name))
		slices.SortFunc(list, func(a, b *v1alpha1.Contract) int {
			return cmp.Or(cmp.Compare(r.Standing(a), r.Standing(b)), b.Spec.Term.Start.Compare(a.Spec.Term.Start.Time), strings.Compare(b.Metadata.Name, a.Metadata.Name))
		})
		for _, c := range list {
			if over <= 0 {
				break
			}
			r.Cut[c.Metadata.Name] = true
			over -= r.Peak(c)
		}
	}
}
