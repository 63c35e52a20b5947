package explain

import (
	"cmp"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// Bounds of the search for what nearly fits: people read the first few, and a
// market of ten thousand offers with thousands waiting must not slow a round.
const (
	nearClasses = 32  // requests a round that are looked into
	nearOffers  = 400 // offers of each requirement that are looked at
	nearShown   = 3
	tryShown    = 3
	tryFound    = 6 // changes that would do, of which the cheapest are shown
)

// relaxation is an intent's specification with one requirement brought down to
// what an offer has.
type relaxation struct {
	offer *inventory.Offer
	req   string
	// spec that the offer would satisfy.
	spec v1alpha1.IntentSpec
	// text is the change as one writes it, "" when there is none to suggest.
	text string
	// said is how the offer fails.
	said string
	// cost of a change: money that is added, as a part of what was there; others
	// come after money.
	cost float64
	// price is what the whole intent then costs an hour, unlimited where it is not known.
	price quantity.Micro
}

// suggestion is the change as one writes it, with what it would cost as a comment.
func (x *relaxation) suggestion(currency string) string {
	if x.price >= quantity.Unlimited {
		return x.text
	}
	return x.text + "  # " + x.price.Text() + " " + currency + "/h"
}

// LookNear finds for the intents that wait for an offer which offers fail exactly
// one requirement, and which changes would place them.
func (r *Explainer) LookNear() {
	type lack struct {
		class   *match.Class
		closest string
	}
	seen := map[lack]*draft.Decision{}
	r.spare = settle.Spare{Work: r.Limits.Work, Conditions: r.Limits.Conditions - r.Bill.Conditions}
	offers := int64(len(r.Inventory.Offers()))
	for _, j := range r.Waiting {
		if j.Dec.Action != draft.Queued || len(j.Open) == 0 {
			continue
		}
		f := &j.Open[max(slices.IndexFunc(j.Open, func(f draft.Failure) bool { return f.Class != nil && f.Closest != "" }), 0)]
		if f.Class == nil {
			continue // no offer was looked at
		}
		r.EditJob(j)
		k := lack{f.Class, f.Closest}
		if same := seen[k]; same != nil {
			j.Dec.Near, j.Dec.Try = same.Near, same.Try
			continue
		}
		if len(seen) == nearClasses {
			return
		}
		if !r.spare.Take(j.In, 2*offers) {
			continue
		}
		seen[k] = &j.Dec
		if k := j.Known; k != nil && k.Far && k.Described == r.Inventory.Described() {
			j.Far = true
			continue
		}
		r.Match.Trim()
		r.WithoutBooked([]*draft.Job{j}, func() { r.lookNear(j, f) }) // what is kept for it is there for it
	}
}

// lookNear is LookNear for one job, which failed like that.
func (r *Explainer) lookNear(j *draft.Job, f *draft.Failure) {
	offers := int64(len(r.Inventory.Offers()))
	r.Match.Refresh(f.Class)
	list := r.near(j, f)
	j.Far = j.Far && f.Closest == ""
	if f.Closest != "" {
		j.Dec.Near = append(j.Dec.Near, f.Closest)
	}
	for i := range list {
		if said := list[i].offer.Ref + " " + list[i].said; len(j.Dec.Near) < nearShown && list[i].said != "" && !slices.Contains(j.Dec.Near, said) {
			j.Dec.Near = append(j.Dec.Near, said)
		}
	}
	if f.Closest != "" {
		list = append(r.relaxWithin(j, f), list...)
	}
	r.sortByPrice(list)
	var does []relaxation
	said := map[string]bool{}
	for i := range list {
		x := &list[i]
		if len(does) == tryFound {
			break
		}
		if x.text == "" || said[x.text] {
			continue
		}
		said[x.text] = true
		if !r.spare.Take(j.In, offers*int64(len(j.Alternatives()))) {
			break
		}
		made := r.Made
		var would bool
		if x.price, would = r.wouldPlace(j, x.spec); would {
			does = append(does, *x)
		}
		r.spare.Work -= settle.UnitsOfReplica * (r.Made - made)
	}
	r.sortByPrice(does)
	for i := range does[:min(len(does), tryShown)] {
		j.Dec.Try = append(j.Dec.Try, does[i].suggestion(r.Books.Currency))
	}
}

// sortByPrice puts changes first that buy what was asked for in another form, then the
// cheapest.
func (r *Explainer) sortByPrice(list []relaxation) {
	if !r.By(draft.RulesAsked) {
		return
	}
	form := func(x *relaxation) int {
		if x.req == match.ReqNode {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b relaxation) int {
		return cmp.Or(cmp.Compare(form(&a), form(&b)), cmp.Compare(a.price, b.price))
	})
}

// near are the relaxations after which an offer fails nothing more, the
// smallest first.
func (r *Explainer) near(j *draft.Job, f *draft.Failure) []relaxation {
	s := f.Class
	asked, _ := f.Rules.(*place.Rules) // nil where no offer was looked at
	looked := map[string]int{}
	enough := make([]bool, len(s.Lacks())) // facts of which so many offers were looked at
	var out []relaxation
	j.Far = len(s.Candidates) == 0
	for _, o := range r.Inventory.Offers() {
		if fact := s.Lack(r.Inventory, o); fact >= 0 {
			if !enough[fact] {
				enough[fact] = looked[s.Lacks()[fact]] == nearOffers
			}
			if enough[fact] {
				continue
			}
		}
		c, req := r.failing(s, asked, o)
		if req == "" || looked[req] == nearOffers {
			continue
		}
		if looked[req]++; isRule(asked, req) && s.Of(o) != nil {
			for _, x := range relaxRule(asked, &j.In.Spec, o, req, int(j.Replicas())) {
				x.price = priceOf(&c, s.Request)
				out = append(out, x)
			}
			continue
		}
		if x := r.relax(j, s.Request, &c, req); x != nil {
			j.Far = false // whether it would do depends on what is free, too
			if price, does := r.relaxed(j, s.Request, o, x); does {
				x.offer, x.req, x.price = o, req, price
				out = append(out, *x)
			}
		}
	}
	for _, x := range r.fewerPods(j, f) {
		if price, does := r.relaxed(j, s.Request, x.offer, &x); does {
			x.price = price
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b relaxation) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), inventory.Compare(a.offer, b.offer))
	})
	return out
}

// failing is an offer as a candidate of a class, and the first that it fails: of what the
// class asks for, or of the rules.
func (r *Explainer) failing(s *match.Class, rules *place.Rules, o *inventory.Offer) (c match.Candidate, req string) {
	if known := s.Of(o); known != nil {
		c, req = *known, known.Fails
	} else {
		c, req = match.Candidate{Offer: o}, r.Match.FailsFact(s.Request, o)
	}
	if req == "" {
		req = rules.Breaks(o)
	}
	if c.Pricing == nil {
		c.Pricing = &match.Pricing{Size: s.Request.Size(o)}
	}
	return c, req
}

// relaxed reports whether an offer does for a changed specification, and what that costs.
func (r *Explainer) relaxed(j *draft.Job, w *match.Request, o *inventory.Offer, x *relaxation) (price quantity.Micro, does bool) {
	again := r.RequestBy(j, j.Asking(x.spec), w.Seconds)
	if r.Match.FailsFact(again, o) != "" {
		return 0, false
	}
	now := r.Match.Priced(again, o, again.Size(o))
	if r.Match.FailsCapacity(again, o, now.Size) != "" || now.FailsMoney != "" {
		return 0, false
	}
	return priceOf(&now, w), true
}

// priceOf is what all replicas of a request would cost an hour on a candidate, unlimited where
// no price is known.
func priceOf(c *match.Candidate, w *match.Request) quantity.Micro {
	if c.Vague {
		return quantity.Unlimited
	}
	return c.Quote.Most() * quantity.Micro(max(w.Replicas, 1))
}

// wouldPlace plans an intent with a changed specification after all others, and takes it
// back: what the whole intent would cost an hour then, unlimited where no price is known.
func (r *Explainer) wouldPlace(j *draft.Job, spec v1alpha1.IntentSpec) (price quantity.Micro, would bool) {
	k := r.CopyOf(j)
	k.In, k.Alts = j.Asking(spec), nil
	if n := int(k.Replicas()); n < int(j.Replicas()) && n < len(k.Tasks) {
		k.Tasks = k.Tasks[:n]
	}
	if len(k.Tasks) == 0 {
		return 0, false
	}
	if _, why := r.Unfit(k); why != "" {
		return 0, false
	}
	m := r.Mark()
	defer r.Rollback(m)
	r.LookOnly(k, place.Request{WithUnit: true, Unasked: true})
	return r.costOf(k), len(k.Tasks) == 0
}

// costOf is what a job's contracts cost an hour, with those that were decided for it and what
// moving its data comes to.
func (r *Explainer) costOf(j *draft.Job) (sum quantity.Micro) {
	for _, c := range j.Live {
		sum = sum.Plus(r.InFleet(c.Spec.Price.Hourly, c.Spec.Price.Currency))
	}
	for i := range j.Dec.Contracts {
		l := &j.Dec.Contracts[i]
		if l.Action == draft.Keep {
			continue
		}
		if l.Hourly.IsZero() && len(l.Unpriced) >= len(l.Resources) {
			return quantity.Unlimited // its offer states no price
		}
		sum = sum.Plus(r.InFleet(l.Hourly, l.Currency)).Plus(quantity.Micro(l.Transfer.Micro()))
	}
	return sum
}
