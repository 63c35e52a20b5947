package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

func secondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

func msOf(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// adapt makes a contract what its intent now says. What it has already is kept
// as it is, whichever alternative it came from; else each alternative is tried
// in order, first by resizing in place, then by another contract in exchange.
// Until that succeeds the contract stays.
func (r *round) adapt(j *job, q request, t task) *failure {
	c := t.old
	o := r.offerOf(c)
	// Its virtual nodes keep their names and credentials as long as they run.
	stays := o != nil && c.Spec.Consumer == j.consumer && c.Spec.VirtualNode.SameNodes(j.in.Spec.VirtualNode) && r.obeys(j, c, o)
	if stays {
		for _, alt := range j.alternatives() {
			if r.sameSize(j, c, o, alt) {
				w := r.wishOf(j, alt)
				w.Seconds = j.seconds
				r.rewrite(j, c, r.match.TransferEstimate(w, o))
				return nil
			}
		}
	}
	var first *failure
	for i, alt := range j.alternatives() {
		if stays && r.resize(j, q, c, o, alt) {
			j.dec.Alternative = i
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

// exchange places a replica anew and releases its old contract.
func (r *round) exchange(j *job, q request, t task, from, to int, code, text string) *failure {
	if f := r.attempts(j, q, []task{t}, t.old, from, to); f != nil {
		return f
	}
	r.onAccount(t.old) // attempt took it off; its release does so for good
	r.noteReplaced(t.old)
	after := r.release(t.old, endOfCode(code), code, text)
	r.replace(j, t.old, after)
	j.releasing++
	j.why, j.whyCode = text, code
	return nil
}

// fitsNature reports whether an alternative puts up with a contract's offer
// and price class. What is applied cannot become a mere reservation in place:
// it has pods to drain.
func (r *round) fitsNature(w *match.Request, c *v1alpha1.Contract, o *inventory.Offer) bool {
	if w.Intent.Spec.Stage == v1alpha1.StageReserve && c.Spec.Stage != v1alpha1.StageReserve {
		return false
	}
	return o.Provider != w.Consumer && r.match.FailsNature(w, o) == "" && slices.Contains(w.Purchase, c.Spec.Price.Class)
}

// sameSize reports whether a contract is just what an alternative would take
// of its offer, at a price that the intent still affords.
func (r *round) sameSize(j *job, c *v1alpha1.Contract, o *inventory.Offer, alt v1alpha1.ResourceRequest) bool {
	w := r.wishOf(j, alt)
	if !r.fitsNature(w, c, o) {
		return false
	}
	size := w.Size(o)
	if !size.Equal(inventory.Sold(r.names, c, o.Flavor)) {
		return false
	}
	j.budget(r, 1, c)
	w.Money, w.Seconds = j.purse, j.seconds
	q := match.Quote{Class: c.Spec.Price.Class, Peak: r.peak(c)}
	q.Transfer, _ = r.match.Transfer(w, o)
	return w.Affordable(q, size, 0) == ""
}

// rewrite writes an intent's change into its contract where capacity and price
// stay: offload, labels, priority, path, a longer term.
func (r *round) rewrite(j *job, c *v1alpha1.Contract, transfer *v1alpha1.TransferEstimate) {
	if r.barsOf(j).breaks(c.Spec.Provider) == match.ReqRemoteNamespace { // taken in this very round; remapped says so in the next
		j.dec.Contracts = append(j.dec.Contracts, r.line(c, Keep))
		return
	}
	next := *c
	r.inscribe(j, &next.Spec)
	next.Decision.Transfer = transfer
	next.Spec.Term.End = r.endOf(j, match.Quote{Peak: r.peak(c), Transfer: r.transferOf(&next)})
	r.change(c, &next)
	r.due(next.Spec.Term.End)
	r.replace(j, c, &next)
	r.noteProgress() // its term may weigh less on the month
	j.dec.Contracts = append(j.dec.Contracts, r.line(&next, Keep))
}

// resize makes a contract an alternative's size in place, at today's price, if
// its offer has what it grows by.
func (r *round) resize(j *job, q request, c *v1alpha1.Contract, o *inventory.Offer, alt v1alpha1.ResourceRequest) bool {
	w := r.wishOf(j, alt)
	if !r.fitsNature(w, c, o) {
		return false
	}
	j.budget(r, 1, c)
	w.Money, w.Seconds, w.Replicas = j.purse, j.seconds, 1
	size, had := w.Size(o), inventory.Sold(r.names, c, o.Flavor)
	grows := !size.Within(had)
	if grows && (o.Blocked != "" || o.Overdrawn() >= 0) {
		return false
	}
	if grows && !size.Clone().Sub(r.footprint(o, c.Metadata.Name, c)).Within(o.Free().Max(quantity.Vector{})) {
		return false
	}
	if grows && !match.HostsInstead(o, w.GPU, size, c) {
		return false
	}
	w.Purchase = []v1alpha1.PriceClass{c.Spec.Price.Class}
	cand := r.match.Priced(w, o, size)
	if cand.FailsMoney != "" {
		return false
	}
	m := r.mark()
	r.offAccount(c)
	l := r.limitsOf(j.tenant, q, j.seconds)
	broken := l.breaks(&cand)
	r.rollback(m)
	if r.barsOf(j).breaks(o.Provider) == match.ReqRemoteNamespace {
		return false
	}
	if broken != "" && grows {
		return false
	}
	figures, scaled := r.figuresWithout(o, c), r.scaled(o, size, r.footprint(o, c.Metadata.Name, c))
	next := r.books.Settle(c, r.now)
	r.inscribe(j, &next.Spec)
	r.fix(w, o, &next.Spec, size, cand.Quote)
	next.Spec.Borrowed = j.tenant.Borrowed(sizeOn(o, size), c)
	next.Spec.Term.End = r.endOf(j, cand.Quote)
	next.Decision.Market, next.Decision.Offer, next.Decision.Transfer = r.w.Market, figures, r.match.TransferEstimate(w, o)
	next.Decision.Scaled, next.Decision.Dearest = scaled, nil
	r.change(c, next)
	next = r.observe(next) // of its new size clusters may say something else
	r.due(next.Spec.Term.End)
	r.replace(j, c, next)
	r.noteProgress()
	j.why, j.whyCode = "the intent changed", CodeChanged
	line := r.line(next, Resize)
	if asked := w.Asked(o); !asked.Equal(size) {
		line.Asked = inventory.Slice(r.names, asked, o.Flavor)
	}
	j.dec.Contracts = append(j.dec.Contracts, line)
	return true
}

// figuresWithout are an offer's figures with all contracts but one.
func (r *round) figuresWithout(o *inventory.Offer, c *v1alpha1.Contract) v1alpha1.OfferFigures {
	f := r.inventory.Figures(o)
	f.Held = r.names.Resources(o.Held().Clone().Sub(r.footprint(o, c.Metadata.Name, c)))
	return f
}

// move places a replica elsewhere because its offer is being emptied. Where
// nothing else fits it stays until the time that the operator named, and is
// then released.
func (r *round) move(j *job, q request, t task) *failure {
	f := r.exchange(j, q, t, 0, len(j.alternatives()), CodeDrain, t.old.Spec.Provider+"/"+t.old.Spec.Flavor+" is being emptied")
	if f == nil {
		return nil
	}
	o := r.offerOf(t.old)
	if o.LeaveBy.After(r.now.Time) {
		f.code = CodeDrain
		f.text = fmt.Sprintf("%s is being emptied by %s; %s", t.old.Spec.Provider+"/"+t.old.Spec.Flavor, stamp(o.LeaveBy), f.text)
		return f
	}
	if slices.Contains(j.live, t.old) {
		j.drop(r, t.old, drainedTo(t.old), CodeDrain, "its flavor had to be empty by "+stamp(o.LeaveBy)+" and nothing else fits")
		r.noteProgress()
	}
	return f
}
