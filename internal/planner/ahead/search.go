package ahead

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/booking"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/looks"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
)

// search looks for places of a job's replicas during its whole term.
type search struct {
	*place.Placer
	job      *draft.Job
	how      place.Request
	from, to v1alpha1.Time
	// beside are bookings of the job that stay, placed what was booked so far.
	beside, placed []*v1alpha1.Contract
	spent          match.SpendLimits
	// cheap: the cheapest first, in place of that with the best score.
	cheap bool
	hints *hints
	views *views
	looks *looks.Looks
}

// found is a candidate that is free during a whole term, or what it fails.
type found struct {
	match.Candidate
	full v1alpha1.Time // when least of it is free
}

func (x *search) try(alt int, replicas []int32, how place.Request) *draft.Failure {
	m, was := x.Mark(), x.views.moment()
	x.placed, x.spent = nil, x.spentOn(x.beside)
	for i, replica := range replicas {
		if f := x.one(alt, replica, how, int64(len(replicas)-i-1)); f != nil {
			x.views.takeBack(was, func() { x.Rollback(m) })
			x.placed = nil
			f.Done = i
			if i > 0 {
				f.Text = strconv.Itoa(i) + " of " + strconv.Itoa(len(replicas)) + " replicas fit; " + f.Text
			}
			return f
		}
	}
	x.Keep(m)
	return nil
}

// spentOn is what bookings of the job take of its own budget.
func (x *search) spentOn(list []*v1alpha1.Contract) (sum match.SpendLimits) {
	for _, c := range list {
		most := x.Accounts.Money.Most(c)
		sum.Hourly += most
		sum.Total += most.ForSeconds(x.job.Seconds)
	}
	return sum
}

// one books a replica.
func (x *search) one(alt int, replica int32, how place.Request, others int64) *draft.Failure {
	s := x.ClassFor(x.job, how, alt)
	if !x.looks.Take(x.looksAt(s)) {
		return &draft.Failure{Class: s, Code: lifecycle.CodeWork, Text: "its offers were not looked at", Rejected: map[string]int{}}
	}
	l := place.LimitsAhead(x.Placer, x.job, how, s, x.spent, others, replica, append(slices.Clone(x.beside), x.placed...), x.views.limits(x.job.Tenant, x.from, x.to))
	x.LookedAhead(x.job, s, l, func(of *match.Candidate) (match.Candidate, string) {
		c := x.look(s, l, of)
		if isRoom(c.Fails) {
			return c.Candidate, x.nearText(&c)
		}
		return c.Candidate, ""
	})
	var fits []*match.Candidate
	rejected := maps.Clone(s.Rejected())
	var near []found
	for i := range s.Candidates {
		if was := s.Candidates[i].Fails; was != "" {
			if rejected[was]--; rejected[was] == 0 {
				delete(rejected, was)
			}
		}
		c := x.look(s, l, &s.Candidates[i])
		if c.Fails == "" {
			fits = append(fits, &c.Candidate)
			continue
		}
		rejected[c.Fails]++
		near = append(near, c)
	}
	if len(fits) == 0 {
		return x.failure(s, near, rejected)
	}
	slices.SortFunc(fits, func(a, b *match.Candidate) int { return match.Compare(a, b, x.cheap) })
	x.book(s, fits[0], fits[1:min(len(fits), 1+match.MaxNext)], replica, how, rejected)
	return nil
}

// look is a candidate as it is during the term.
func (x *search) look(s *match.Class, l *place.Limits, of *match.Candidate) found {
	c := found{Candidate: *of}
	o := c.Offer
	c.Fails, c.Scales = "", false
	p := x.views.of(o)
	var least quantity.Vector
	least, c.full = p.Least(x.from, x.to, c.Size)
	switch {
	case !bookable(x.Placer, s, o, c.Size):
		c.Fails = match.ReqBookedCards
		if x.By(draft.RulesUnitsBooked) {
			c.Fails = match.ReqBookedParts
		}
	case !booking.Fits(c.Size, least):
		c.Fails = x.Names.Prefixed(shortOf(c.Size, least))
	case !x.packs(s, o, c.Size):
		c.Fails = match.ReqNode
	case tooMuch(o, p.MostBooked(x.from, x.to), c.Size, x.Fleet.Bookings.Share()):
		c.Fails = match.ReqBookedShare
	case tooMany(p, x.from):
		c.Fails = match.ReqBookedMany
	case c.FailsMoney != "":
		c.Fails = c.FailsMoney
	case c.Quote.Class == v1alpha1.Spot:
		c.Fails = match.ReqPurchase
	}
	if c.Fails == "" {
		c.Fails = l.Rejects(&c.Candidate)
	}
	if c.Fails == "" {
		c.Resources = x.Match.Resources(s.Request, o, c.Size, nil, nil)
		c.Score = s.Request.Weights.Score(&c.Candidate)
	}
	return c
}

// bookable reports whether what a class asks of an offer's cards is counted, so that it is free
// or not whichever the cards are: whole cards, instances of MIG, and one unit of a card, the
// smallest share that is sold: wherever one is free, there is a card that has it. A larger
// share lies on one card, and on which one there will be room nobody can say.
func bookable(r *place.Placer, s *match.Class, o *inventory.Offer, size quantity.Vector) bool {
	switch {
	case o.Cards() == nil:
		return true
	case r.By(draft.RulesUnitsBooked) && size.At(quantity.GPU) <= 1:
		return true
	}
	return r.By(draft.RulesInstancesBooked) && s.Request.GPU.Loose(o.Flavor.Spec.GPU)
}

// pods is how a size of an offer is made of a class's pods, on any cards of its nodes: what is
// booked of cards is counted (bookable).
func (x *search) pods(s *match.Class, o *inventory.Offer, size quantity.Vector) (ask nodes.Ask, ok bool) {
	ask, ok = x.Match.Pods(s.Request, o, size)
	ask.Cards = nil
	return ask, ok
}

// packs reports whether an offer's nodes hold a size during all of the term.
func (x *search) packs(s *match.Class, o *inventory.Offer, size quantity.Vector) bool {
	ask, ok := x.pods(s, o, size)
	return !ok || x.views.nodes(o, x.from, x.to).Fits(size, ask)
}

// shortOf is the first resource of which there is too little, cards first.
func shortOf(size, free quantity.Vector) int {
	if n := size.At(quantity.GPU); n > free.At(quantity.GPU) {
		return quantity.GPU
	}
	return slices.IndexFunc(indexes(size), func(i int) bool { return size[i] > 0 && size[i] > free.At(i) })
}

func indexes(v quantity.Vector) []int {
	out := make([]int, len(v))
	for i := range v {
		out[i] = i
	}
	return out
}

// tooMuch reports whether more than a share of an offer would be booked, in percent.
func tooMuch(o *inventory.Offer, booked, size quantity.Vector, share int64) bool {
	if share >= 100 {
		return false
	}
	for i, n := range size {
		if all := o.Capacity.At(i) - o.Growth.At(i); n > 0 && all > 0 && all < ledger.Unlimited.Int64() {
			if booked.At(i)+n > all/100*share+all%100*share/100 {
				return true
			}
		}
	}
	return false
}

// tooMany reports whether one more start of a booking is more than an offer may have.
func tooMany(p *booking.Running, from v1alpha1.Time) bool {
	starts := p.Starts()
	return len(starts) >= booking.MaxInstants && !slices.Contains(starts, from)
}

// book writes the booking of a replica.
func (x *search) book(s *match.Class, c *match.Candidate, next []*match.Candidate, replica int32, how place.Request, rejected map[string]int) {
	j := x.job
	out := x.NewContract(j, how, s, c, next, replica)
	out.Spec.Term = v1alpha1.Term{Start: x.from, End: x.to}
	out.Spec.Borrowed = nil
	d := &out.Decision
	d.Rejected, d.Scaled, d.Dearest, d.Displaced, d.Claimed = rejected, nil, nil, nil, ""
	if len(rejected) == 0 {
		d.Rejected = nil
	}
	d.Offer = x.figures(c.Offer, c.Size)
	if ask, ok := x.pods(s, c.Offer, c.Size); ok {
		parts := x.views.nodes(c.Offer, x.from, x.to).Pack(c.Size, ask, nil)
		out.Spec.Nodes = layout.Written(x.Names, c.Offer, parts, &out.Spec)
		d.Offer.Nodes = layout.Figures(c.Offer, out.Spec.Nodes)
	}
	if g := out.Spec.GPUs; g != nil && g.Cards != nil { // on which its instances lie is chosen as it begins
		counted := *g
		counted.Cards, out.Spec.GPUs = nil, &counted
	}
	ledger.Book(out, ledger.Reason{}, x.Now)
	x.Put(nil, out)
	x.views.add(c.Offer, j.Tenant, out)
	if early := v1alpha1.TimeOf(x.from.Add(-x.Fleet.Bookings.LeadTime())); early.After(x.Now.Time) {
		x.Due(early)
	} else {
		x.Due(v1alpha1.TimeOf(x.Now.Add(time.Second)))
	}
	x.placed = append(x.placed, out)
	x.spent.Hourly += c.Quote.Most()
	x.spent.Total += c.Quote.Most().ForSeconds(j.Seconds)
}

// figures are an offer's at the instant of the term at which least of it is free.
func (x *search) figures(o *inventory.Offer, size quantity.Vector) v1alpha1.OfferFigures {
	f := x.Inventory.Figures(o)
	f.ScalableTo = nil
	_, f.At = x.views.of(o).Least(x.from, x.to, size)
	f.Held, f.Pool = x.views.figures(o, f.At)
	return f
}

// failure is why a replica finds no place for the term.
func (x *search) failure(s *match.Class, near []found, rejected map[string]int) *draft.Failure {
	text := said.NothingFits(len(x.Inventory.Offers()), rejected)
	f := &draft.Failure{Class: s, Rejected: rejected, Code: codeOf(rejected), Text: text, Counts: len(text)}
	if len(x.placed) > 0 && x.By(draft.RulesBookedWhole) { // what is free counts replicas that are taken back: see explain
		return f
	}
	slices.SortStableFunc(near, func(a, b found) int { return cmp.Compare(a.full.Unix(), b.full.Unix()) })
	for i := range near {
		if c := &near[i]; isRoom(c.Fails) {
			x.hints.add(x.nearText(c))
		}
	}
	x.suggest(near)
	return f
}

// codeOf is the code for which a booking is not made.
func codeOf(rejected map[string]int) string {
	for _, req := range draft.SortedByCount(rejected) {
		switch {
		case isRoom(req):
			return lifecycle.CodeNothingFits
		case req == account.BudgetHourly, req == account.BudgetMonthly:
			return lifecycle.CodeBudget
		case req == match.ReqMaxHourly, req == match.ReqMaxTotal, req == match.ReqMaxHourlyPerGPU:
			return lifecycle.CodeIntentBudget
		case said.IsTenantLimit(req):
			return lifecycle.CodeQuota
		}
	}
	return lifecycle.CodeNothingFits
}
