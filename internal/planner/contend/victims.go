package contend

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Bounds of the search for victims, so that a round stays short whatever waits.
const (
	pairUnits   = 64 // of an offer with more units than this, no pairs are tried
	placesTried = 8  // offers that are tried for one claim before it is given up
)

// victimSearch looks for the contracts that have to give way so that a job fits.
type victimSearch struct {
	*Contest
	job *draft.Job
	// causes are why those that were chosen give way.
	causes map[string]v1alpha1.Cause
	// copied is a copy of the job, as far as it is placed by how: the alternative at hand,
	// one replica after the other. chosen are
	// the contracts that give way for that, and tried the offers where more than
	// capacity is missing.
	copied *draft.Job
	how    place.Request
	chosen []*v1alpha1.Contract
	tried  map[*inventory.Offer]bool
}

// find is the contracts that have to give way, and where the job then fits.
// Alternatives are tried in order. It works as if one replica after the other were
// placed, and asks in the end whether the whole would be.
func (s *victimSearch) find() ([]*v1alpha1.Contract, rehearsed) {
	for _, alt := range s.job.Alternatives() {
		var found []victims
		for _, q := range place.EachDomain(&s.Placer, s.job, place.Rehearsal.By(alt), placesTried) {
			chosen := s.findBy(q)
			if len(chosen) == 0 {
				continue
			}
			m := s.Mark()
			s.Lend(chosen...)
			rehearsed := s.dryRun(s.job)
			s.Rollback(m)
			if len(rehearsed.places) > 0 {
				found = append(found, victims{chosen, rehearsed})
			}
		}
		if len(found) > 0 { // of equals the first
			least := slices.MinFunc(found, func(a, b victims) int { return s.disturbs(a.chosen).compare(s.disturbs(b.chosen)) })
			return least.chosen, least.rehearsed
		}
	}
	return nil, rehearsed{}
}

// victims are contracts that give way, and what is placed without them.
type victims struct {
	chosen []*v1alpha1.Contract
	rehearsed
}

// disturbs is what contracts that give way cost others.
func (s *victimSearch) disturbs(chosen []*v1alpha1.Contract) disturbance {
	d := disturbance{contracts: len(chosen), priority: -1, start: 1 << 62}
	for _, c := range chosen {
		d.priority, d.start = max(d.priority, s.Standing(c)), min(d.start, c.Spec.Term.Start.Unix())
	}
	return d
}

// findBy is find by one alternative in one domain, without the question whether the whole
// fits.
func (s *victimSearch) findBy(q place.Request) []*v1alpha1.Contract {
	k := s.CopyOf(s.job)
	q.Loose = true
	s.how, s.copied, s.chosen, s.tried = q, k, nil, map[*inventory.Offer]bool{}
	m := s.Mark()
	defer s.Rollback(m)
	for len(k.Tasks) > 0 {
		s.Fill(k, q)
		if len(k.Tasks) == 0 || len(s.tried) == placesTried {
			break
		}
		set := s.leastDisturbing()
		if set == nil {
			break
		}
		causes := make([]v1alpha1.Cause, len(set.leaves))
		for i, c := range set.leaves { // before the claimant's own quota counts as used
			causes[i] = s.causeFor(s.job, c)
		}
		m := s.Mark()
		s.Lend(set.leaves...)
		left := len(k.Tasks)
		s.Fill(k, q)
		if len(k.Tasks) == left { // something else than capacity is in the way there
			s.Rollback(m)
			s.tried[set.offer] = true
			continue
		}
		s.Keep(m)
		s.chosen = append(s.chosen, set.leaves...)
		for i, c := range set.leaves {
			s.causes[c.Metadata.Name] = causes[i]
		}
	}
	if len(k.Tasks) > 0 && s.job.Gang() {
		return nil
	}
	return s.chosen
}

// victimSet is a set of units whose leaving makes room on an offer.
type victimSet struct {
	disturbance
	offer  *inventory.Offer
	leaves []*v1alpha1.Contract
	price  quantity.Micro
}

// before is the order of sets on different offers: the least disturbing, then
// the cheaper place.
func (a *victimSet) before(b *victimSet) bool {
	return cmp.Or(a.compare(b.disturbance), cmp.Compare(a.price, b.price), cmp.Compare(a.offer.Index, b.offer.Index)) < 0
}

// leastDisturbing is the set of contracts whose leaving makes room for one
// replica at the least cost to others, nil when there is none.
func (s *victimSearch) leastDisturbing() *victimSet {
	k := s.copied
	class := s.ClassFor(k, s.how, 0)
	l := s.LimitsFor(k, s.how, class, match.SpendLimits{}, int64(len(k.Tasks)-1))
	l.Rules = place.SharedRules(&s.Placer, k, s.how, class)
	var best *victimSet
	for i := range class.Candidates {
		c := &class.Candidates[i]
		if c.FailsMoney != "" || s.tried[c.Offer] || !strings.HasPrefix(c.Fails, match.ReqCapacity) || l.Rejects(c) != "" {
			continue
		}
		if set := s.setOn(class.Request, c); set != nil && (best == nil || set.before(best)) {
			best = set
		}
	}
	return best
}

// setOn is the least disturbing set on one offer.
func (s *victimSearch) setOn(w *match.Request, c *match.Candidate) *victimSet {
	o := c.Offer
	var lack quantity.Vector
	for i := range max(len(c.Size), len(o.Free())) {
		if n := c.Size.At(i) - o.Free().At(i); n > 0 && (c.Size.At(i) > 0 || o.Free().At(i) < 0) {
			lack = lack.Set(i, n)
		}
	}
	var pick []unit
	if ask, byNode := s.Match.Pods(w, o, c.Size); byNode && c.Fails != match.ReqCard {
		ask.Cards = nil // those of who leaves are looked at when they have left
		pick = s.fewestOnNodes(c, s.unitsOn(o, lack.Max(c.Size)), ask, lack)
	} else if c.Fails == match.ReqCard {
		lack = lack.Set(quantity.GPU, min(c.Size.At(quantity.GPU), o.Cards().PerCard()))
		pick = s.fewestOnCard(o, s.unitsOn(o, lack), lack.At(quantity.GPU))
	} else {
		pick = fewest(s.unitsOn(o, lack), lack)
	}
	if pick == nil {
		return nil
	}
	set := &victimSet{disturbance: costOf(pick, lack), offer: o, price: c.Quote.Peak}
	for i := range pick {
		set.leaves = append(set.leaves, pick[i].contracts...)
	}
	return set
}

// unitsOn are the units that may give way to the job and hold what is missing on an
// offer, the least disturbing first.
func (s *victimSearch) unitsOn(o *inventory.Offer, lack quantity.Vector) []unit {
	list := o.Contracts
	for _, m := range o.PoolPeers {
		list = slices.Concat(list, m.Contracts)
	}
	s.lookedAt(s.job, len(list))
	byGang := map[string]int{}
	var out []unit
	for _, c := range list {
		c = s.Latest(c)
		if c.Status.Displaced != nil || s.causeFor(s.copied, c) == "" || slices.Contains(s.chosen, c) {
			continue
		}
		relief := s.Relief(o, c)
		if !relief.Relieves(lack) {
			continue
		}
		key := draft.KeyOf(c.Metadata.Namespace, c.Spec.Intent.Name)
		if at, known := byGang[key]; known {
			out[at].relief = out[at].relief.Add(relief)
			continue
		}
		u := unit{contracts: []*v1alpha1.Contract{c}, relief: relief.Clone(), priority: s.Standing(c), start: c.Spec.Term.Start.Unix(), name: c.Metadata.Name}
		if mates := s.gangOf(c); len(mates) > 1 {
			if slices.ContainsFunc(mates, func(m *v1alpha1.Contract) bool { return m.Status.Displaced != nil || slices.Contains(s.chosen, m) }) {
				continue
			}
			u.contracts = mates
			for _, m := range mates {
				u.start = min(u.start, m.Spec.Term.Start.Unix())
			}
			byGang[key] = len(out)
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b unit) int {
		return cmp.Or(cmp.Compare(len(a.contracts), len(b.contracts)), cmp.Compare(a.priority, b.priority), cmp.Compare(b.start, a.start), strings.Compare(a.name, b.name))
	})
	return out
}

// gangOf are the charged contracts of the gang that a contract is of, itself
// among them; nil when its intent is none.
func (r *Contest) gangOf(c *v1alpha1.Contract) []*v1alpha1.Contract {
	in := r.Find(c.Metadata.Namespace, c.Spec.Intent.Name)
	if in == nil || (in.Spec.Gang != nil && !*in.Spec.Gang) {
		return nil
	}
	var out []*v1alpha1.Contract
	for _, m := range r.W.Ledger.ByIntent(c.Metadata.Namespace, c.Spec.Intent.Name) {
		if m = r.Latest(m); m.Status.Phase.Charged() {
			out = append(out, m)
		}
	}
	return out
}

// needed are the contracts that hold something of the places of a claim, and
// the rest of their gangs: those that have notice and are elsewhere may stay.
func (r *Contest) needed(list []*v1alpha1.Contract, places []draft.Taken) []*v1alpha1.Contract {
	at := map[*inventory.Offer]bool{}
	for _, p := range places {
		at[p.Offer] = true
		for _, m := range p.Offer.PoolPeers {
			at[m] = true
		}
	}
	intents := map[string]bool{}
	for _, c := range list {
		if at[r.OfferOf(c)] {
			intents[draft.KeyOf(c.Metadata.Namespace, c.Spec.Intent.Name)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(c *v1alpha1.Contract) bool {
		return !at[r.OfferOf(c)] && !(intents[draft.KeyOf(c.Metadata.Namespace, c.Spec.Intent.Name)] && r.gangOf(c) != nil)
	})
}

// fewestOnCard is the best of the units that together free so much of one card.
func (s *victimSearch) fewestOnCard(o *inventory.Offer, units []unit, need int64) (best []unit) {
	for i, free := range o.Cards().Free() {
		lack := quantity.Vector(nil).Set(quantity.GPU, need-free)
		var there []unit
		for _, u := range units {
			var relief int64
			for _, c := range u.contracts {
				if s.OfferOf(c) != o {
					continue
				}
				for _, on := range inventory.CardsOf(c) {
					if o.Cards().At(on) == i {
						relief += on.Units
					}
				}
			}
			if relief > 0 {
				u.relief = quantity.Vector(nil).Set(quantity.GPU, relief)
				there = append(there, u)
			}
		}
		if pick := fewest(there, lack); pick != nil && (best == nil || costOf(pick, lack).before(costOf(best, lack))) {
			best = pick
		}
	}
	return best
}
