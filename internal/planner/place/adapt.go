package place

import (
	"fmt"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/account"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// adapt makes a contract what its intent now asks for. What it has already is kept
// as it is, whichever alternative it came from; else each alternative is tried
// in order, first by resizing in place, then by another contract in exchange.
// Until that succeeds the contract stays.
func (r *Placer) adapt(j *draft.Job, q Request, t draft.Task) *draft.Failure {
	c := t.Old
	o := r.OfferOf(c)
	// Its virtual nodes keep their names and credentials as long as they run.
	stays := o != nil && c.Spec.Consumer == j.Consumer && c.Spec.VirtualNode.SameNodes(j.In.Spec.VirtualNode) && r.obeys(j, q, c, o)
	here := inPlace{r, j, r.For(j, q, 1, c), c, o}
	if stays {
		for _, alt := range q.alternatives(j) {
			if here.isSize(alt) {
				w := r.requestOf(j, q, alt)
				w.Seconds = j.Seconds
				here.rewrite(r.Match.TransferEstimate(w, o))
				return nil
			}
		}
	}
	var first *draft.Failure
	for i, alt := range q.alternatives(j) {
		if stays && here.resize(alt) {
			j.Dec.Alternative = i
			return nil
		}
		f := r.replaceChanged(j, q, t, i, i+1)
		if f == nil {
			return nil
		}
		if first == nil {
			first = f
		}
	}
	return first
}

// inPlace is a contract that changes with its intent and stays on its offer.
type inPlace struct {
	*Placer
	job      *draft.Job
	how      Request // for this replica, with what the contract costs to spend
	contract *v1alpha1.Contract
	offer    *inventory.Offer
}

// suits reports whether an alternative accepts the contract's offer and price
// class. What is applied cannot become a mere reservation in place: it has pods to
// drain.
func (r inPlace) suits(w *match.Request) bool {
	c, o := r.contract, r.offer
	if w.Intent.Spec.Stage == v1alpha1.StageReserve && c.Spec.Stage != v1alpha1.StageReserve {
		return false
	}
	return o.Provider != w.Consumer && r.Match.FailsNature(w, o) == "" && slices.Contains(w.Purchase, c.Spec.Price.Class)
}

// isSize reports whether the contract is just what an alternative would take of its
// offer, at a price that the intent still affords.
func (r inPlace) isSize(alt v1alpha1.ResourceRequest) bool {
	size, q, is := r.same(alt)
	return is && r.mayStay(size, q)
}

// same is isSize but for how long the contract may stay, with its size and price.
func (r inPlace) same(alt v1alpha1.ResourceRequest) (size quantity.Vector, q match.Quote, is bool) {
	c, o := r.contract, r.offer
	w := r.requestOf(r.job, r.how, alt)
	if size = w.Size(o); !r.suits(w) || !size.Equal(inventory.Sold(r.Names, c, o.Flavor)) || !layout.Stays(r.Match, &r.Draft, w, o, size, c) {
		return nil, q, false
	}
	w.Spending = r.how.spending
	q = match.Quote{Class: c.Spec.Price.Class, Peak: r.Accounts.Money.Most(c)}
	q.Transfer, _ = r.Match.Transfer(w, o)
	return size, q, w.Affordable(q, size, 0) == ""
}

// rewrite writes the intent's change into the contract where capacity and price
// stay: offload, labels, priority, path, a longer term.
func (r inPlace) rewrite(transfer *v1alpha1.TransferEstimate) {
	j, c := r.job, r.contract
	if rules.BarsOf(&r.Draft, j).Breaks(c.Spec.Provider) == match.ReqRemoteNamespace { // taken in this very round; the next one finds it remapped
		j.Dec.Contracts = append(j.Dec.Contracts, r.Line(c, draft.Keep))
		return
	}
	next := *c
	writer := contractWriter{r.Placer, j, r.how}
	writer.inscribe(&next.Spec)
	next.Decision.Transfer = transfer
	next.Spec.Term.End, next.Spec.Term.Yields = writer.termOf(r.offer, inventory.Sold(r.Names, c, r.offer.Flavor), match.Quote{Peak: r.Peak(c), Transfer: r.transferOf(&next)}, r.self())
	r.Change(c, &next)
	r.Due(next.Spec.Term.End)
	r.Replace(j, c, &next)
	r.NoteProgress() // its term may weigh less on the month
	j.Dec.Contracts = append(j.Dec.Contracts, r.Line(&next, draft.Keep))
}

// resize makes the contract an alternative's size, at today's price, if its offer
// has what it grows by.
func (r inPlace) resize(alt v1alpha1.ResourceRequest) bool {
	j, c, o := r.job, r.contract, r.offer
	w := r.requestOf(j, r.how, alt)
	if !r.suits(w) {
		return false
	}
	w.Spending = r.how.spending
	size := w.Size(o)
	if !r.fits(w, size) {
		return false
	}
	w.Purchase = []v1alpha1.PriceClass{c.Spec.Price.Class}
	cand := r.Match.Priced(w, o, size)
	if cand.FailsMoney != "" || !r.mayStay(size, cand.Quote) || !r.isWithin(&cand) {
		return false
	}
	next := r.resized(w, &cand)
	if !layout.SameNodes(&r.Draft, &c.Spec, &next.Spec) {
		return false
	}
	r.Change(c, next)
	next = r.Observe(next) // clusters may report another state of its new size
	r.Due(next.Spec.Term.End)
	r.Replace(j, c, next)
	r.NoteProgress()
	j.Why, j.WhyCode = "the intent changed", lifecycle.CodeChanged
	line := r.Line(next, draft.Resize)
	line.Unpriced = r.Match.Unpriced(o, cand.Quote.Class, size)
	if asked := w.Asked(o); !asked.Equal(size) {
		line.Asked = inventory.Slice(r.Names, asked, o.Flavor)
	}
	j.Dec.Contracts = append(j.Dec.Contracts, line)
	return true
}

// grows reports whether a size is more of anything than the contract has.
func (r inPlace) grows(size quantity.Vector) bool {
	return !size.Within(inventory.Sold(r.Names, r.contract, r.offer.Flavor))
}

// fits reports whether the offer has a size where the contract is.
func (r inPlace) fits(w *match.Request, size quantity.Vector) bool {
	c, o, grows := r.contract, r.offer, r.grows(size)
	if grows && (o.Blocked != "" || o.Overdrawn() >= 0 || r.Match.LeftToOthers(w, o)) {
		return false
	}
	if grows && !size.Clone().Sub(r.Footprint(o, c.Metadata.Name, c)).Within(o.Free().Max(quantity.Vector{})) {
		return false
	}
	return !grows && layout.Stays(r.Match, &r.Draft, w, o, size, c) || layout.HostsInstead(r.Match, &r.Draft, w, o, size, c)
}

// isWithin reports whether the tenant's limits, and what the intent names at the provider,
// allow the contract to become a candidate.
func (r inPlace) isWithin(cand *match.Candidate) bool {
	m := r.Mark()
	r.OffAccount(r.contract)
	l := r.LimitsOf(r.job.Tenant, r.how, r.job.Seconds)
	draft.OnAxis(&r.Placer.Draft).Narrow(&l.Limits, r.Now, r.job.End)
	broken := l.Rejects(cand)
	r.Rollback(m)
	return rules.BarsOf(&r.Draft, r.job).Breaks(r.offer.Provider) != match.ReqRemoteNamespace && (broken == "" || !r.grows(cand.Size))
}

// resized is the contract as a candidate.
func (r inPlace) resized(w *match.Request, cand *match.Candidate) *v1alpha1.Contract {
	c, o, size := r.contract, r.offer, cand.Size
	figures, scaled := r.figures(), r.Inventory.Scaled(o, size, r.Footprint(o, c.Metadata.Name, c))
	next := r.Books.Settle(c, r.Now)
	writer := contractWriter{r.Placer, r.job, r.how}
	writer.inscribe(&next.Spec)
	writer.fix(w, o, &next.Spec, size, cand.Quote, c)
	next.Spec.Borrowed = r.job.Tenant.Borrowed(sizeOn(o, size), c)
	next.Spec.Term.End, next.Spec.Term.Yields = writer.termOf(o, size, cand.Quote, r.self())
	next.Decision.Market, next.Decision.Offer, next.Decision.Transfer = r.W.Market, figures, r.Match.TransferEstimate(w, o)
	next.Decision.Scaled, next.Decision.Dearest, next.Decision.Rules, next.Decision.Offer.Nodes = scaled, nil, r.RulesRecorded(), layout.Figures(o, next.Spec.Nodes)
	return next
}

// figures are the offer's with all contracts but this one.
func (r inPlace) figures() v1alpha1.OfferFigures {
	f := r.Inventory.Figures(r.offer)
	f.Held = r.Names.Resources(r.offer.Held().Clone().Sub(r.Footprint(r.offer, r.contract.Metadata.Name, r.contract)))
	return f
}

// move places a replica elsewhere because its offer is being emptied. Where
// nothing else fits it stays until the time that the operator named, and is
// then released.
func (r *Placer) move(j *draft.Job, q Request, t draft.Task) *draft.Failure {
	f := r.Exchange(j, q, t, 0, len(q.alternatives(j)), lifecycle.CodeDrain, t.Old.Spec.Provider+"/"+t.Old.Spec.Flavor+" is being emptied")
	if f == nil {
		return nil
	}
	o := r.OfferOf(t.Old)
	if o.LeaveBy.After(r.Now.Time) {
		f.Code = lifecycle.CodeDrain
		f.Text = fmt.Sprintf("%s is being emptied by %s; %s", t.Old.Spec.Provider+"/"+t.Old.Spec.Flavor, draft.Stamp(o.LeaveBy), f.Text)
		return f
	}
	if slices.Contains(j.Live, t.Old) {
		r.Drop(j, t.Old, DrainedTo(t.Old), lifecycle.CodeDrain, "its flavor had to be empty by "+draft.Stamp(o.LeaveBy)+" and nothing else fits")
		r.NoteProgress()
	}
	return f
}

// DrainedTo is the end of a contract that was still there when its flavor had
// to be empty.
func DrainedTo(c *v1alpha1.Contract) v1alpha1.Phase {
	if c.Spec.Price.Class == v1alpha1.Spot {
		return v1alpha1.PhasePreempted
	}
	return v1alpha1.PhaseFailed
}

// Rewritten is a booking with its intent's change, nil where that alters what is booked:
// its size, its place, or its price class. What it costs stays as it was booked.
func Rewritten(r *Placer, j *draft.Job, c *v1alpha1.Contract) *v1alpha1.Contract {
	here := inPlace{r, j, r.For(j, Request{}, 1), c, r.OfferOf(c)}
	if o := here.offer; o == nil || c.Spec.Consumer != j.Consumer || !c.Spec.VirtualNode.SameNodes(j.In.Spec.VirtualNode) || !r.obeys(j, here.how, c, o) || rules.BarsOf(&r.Draft, j).Breaks(c.Spec.Provider) != "" {
		return nil
	}
	for _, alt := range j.Alternatives() {
		if _, _, is := here.same(alt); is {
			next := *c
			contractWriter{r, j, here.how}.inscribe(&next.Spec)
			return &next
		}
	}
	return nil
}

// mayStay reports whether a contract may have a size of its offer until its intent now
// ends, as far as others have not booked it, and beside what its tenant has booked.
func (r inPlace) mayStay(size quantity.Vector, q match.Quote) bool {
	u := untilBookedFor(r.Placer, r.job, r.how)
	if u == nil {
		return true
	}
	if at, short := u.short(r.offer, size, q, r.self()); short && draft.OnAxis(&r.Placer.Draft).HasBookings(r.offer) && !(yields(r.job) && at.After(r.Now.Time)) {
		return false
	}
	end, _ := u.writer.termOf(r.offer, size, q, r.self())
	n, cards := sizeOn(r.offer, size), account.Cards{GPU: r.offer.Flavor.Spec.GPU, Kind: r.offer.CardKind}
	return draft.OnAxis(&r.Placer.Draft).MayLast(r.contract, end, &n, &cards, q.Peak)
}

func (r inPlace) self() map[string]bool { return map[string]bool{r.contract.Metadata.Name: true} }

// obeys reports whether a contract may stay where it is under what its intent
// now asks for. A domain that it does not name itself moves nothing that exists.
func (r *Placer) obeys(j *draft.Job, q Request, c *v1alpha1.Contract, o *inventory.Offer) bool {
	p := &j.In.Spec.Placement
	how := Request{in: q.in}
	if p.Within == nil && q.in.how == keepsHome {
		how = how.anywhere()
	}
	if len(p.Spread) == 0 && len(p.Together) == 0 && len(p.Apart) == 0 && how.in.how == keepsNone {
		return true
	}
	x := r.rulesFor(j, how, r.ClassFor(j, r.For(j, q, 1, c), 0), c.Spec.Intent.Replica, nil, c)
	return x.Breaks(o) == "" && !x.Strays(&r.Draft, o, c, how.in.how == keepsOne)
}
