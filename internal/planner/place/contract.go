package place

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/layout"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// contractWriter writes the contracts of a job.
type contractWriter struct {
	*Placer
	job *draft.Job
	how Request
}

// NewContract is the contract of a replica, or of the request's part of it, on a
// candidate.
func (r *Placer) NewContract(j *draft.Job, q Request, s *match.Class, c *match.Candidate, next []*match.Candidate, replica int32) *v1alpha1.Contract {
	o, writer := c.Offer, contractWriter{r, j, q}
	r.Made++
	of := v1alpha1.ContractIntent{Replica: replica}
	if q.part != nil {
		of.Part, of.Units, of.Of = q.part.number, q.part.units, q.part.of
	}
	var name string
	name, of.Ordinal = writer.newName(replica, of.Part)
	out := &v1alpha1.Contract{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindContract},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: j.TenantName},
		Spec: v1alpha1.ContractSpec{
			Intent:   of,
			Consumer: j.Consumer, Provider: o.Provider, Flavor: o.Name, Slice: name, Class: o.Class(), Endpoint: o.Endpoint(),
			Term: v1alpha1.Term{Start: r.Now},
		},
	}
	if j.In.Spec.Schedule.Book && j.Started.After(r.Now.Time) { // it takes the place of a booking in its lead
		out.Spec.Term.Start = j.Started
	}
	out.Spec.Term.End, out.Spec.Term.Yields = writer.termOf(o, c.Size, c.Quote, nil)
	writer.inscribe(&out.Spec)
	writer.fix(s.Request, o, &out.Spec, c.Size, c.Quote, nil)
	out.Spec.Borrowed = j.Tenant.Borrowed(sizeOn(o, c.Size), nil)
	out.Decision = writer.decision(s, c, next)
	out.Decision.Displaced, out.Decision.Offer.Nodes = r.MadeWay(j), layout.Figures(o, out.Spec.Nodes)
	ledger.Begin(out, lifecycle.Undelivered(j.In.Spec.FlavorType), r.Now)
	return out
}

// OrdinalKey is the key of a replica's next ordinal.
func OrdinalKey(replica, part int32) string {
	if replica == 0 && part == 0 {
		return "0.0" // nearly always
	}
	return fmt.Sprintf("%d.%d", replica, part)
}

// newName is the name of a replica's next contract.
func (r contractWriter) newName(replica, part int32) (string, int32) {
	j := r.job
	key := OrdinalKey(replica, part)
	for {
		ordinal := r.Numbered(j, key)
		name := ledger.ContractName(j.TenantName, j.Name, j.FirstSeen, replica, part, ordinal)
		if r.W.Ledger.Contract(name) == nil && r.Current[name] == nil {
			return name, ordinal
		}
	}
}

// inscribe copies into a contract what its intent asks for: everything that can
// change while the capacity stays as it is.
func (r contractWriter) inscribe(s *v1alpha1.ContractSpec) {
	j, in := r.job, &r.job.In.Spec
	i := &s.Intent
	i.Name, i.Path, i.Commit, i.Author, i.Digest = j.Name, j.In.Path, r.W.Inputs, j.In.Author, j.In.Digest
	s.Offload, s.VirtualNode, s.Priority = in.Offload, in.VirtualNode, j.Priority
	s.Grace, s.Preemptible = v1alpha1.Duration{}, nil
	if p := in.Preemption; p != nil {
		if s.Grace = p.Grace; p.Preemptible != nil && !*p.Preemptible {
			s.Preemptible = p.Preemptible
		}
	}
	if r.By(draft.RulesAsked) {
		s.Enforcement = in.Enforcement
	}
	s.Stage = ""
	if lifecycle.Reserves(in) {
		s.Stage = v1alpha1.StageReserve
	}
}

// fix writes size and price into a contract, every key of the slice explicit:
// Liqo fills in its own default for one that is missing. A key that it had
// stays, with nothing. It takes the place of was on the offer, nil for none.
func (r contractWriter) fix(w *match.Request, o *inventory.Offer, s *v1alpha1.ContractSpec, size quantity.Vector, q match.Quote, was *v1alpha1.Contract) {
	res := inventory.Slice(r.Names, size, o.Flavor)
	for i := range quantity.GPU {
		name := r.Names.Name(i)
		if _, ok := res[name]; !ok {
			res[name] = v1alpha1.Amount{}
		}
	}
	for name := range s.Resources {
		if _, ok := res[name]; !ok {
			res[name] = v1alpha1.Amount{}
		}
	}
	s.Resources = res
	s.Nodes = layout.Lay(r.Match, &r.Draft, w, o, size, s, was, nodesFor(r.Placer, r.job, r.how, o))
	var had []v1alpha1.CardUnits
	if s.GPUs != nil {
		had = s.GPUs.Cards
	}
	s.GPUs = nil
	if g := o.Flavor.Spec.GPU; g != nil && size.At(quantity.GPU) > 0 {
		s.GPUs = &v1alpha1.ContractGPU{
			Count: size.At(quantity.GPU), Model: g.Model, Memory: g.Memory, Tier: g.Tier, ResourceName: o.GPUName, UnitsPerGPU: g.UnitsPerGPU,
			Cards: r.Match.LayOut(w, o, size, s.Nodes, had),
		}
	}
	s.NodeSelector = nil
	if s.ByHand() {
		s.NodeSelector = o.Flavor.Spec.NodeSelector
	}
	s.Price = r.Match.ContractPrice(o, q, size)
}

// decision records why a candidate was chosen.
func (r contractWriter) decision(s *match.Class, c *match.Candidate, next []*match.Candidate) v1alpha1.Decision {
	d := v1alpha1.Decision{
		Rules: r.RulesRecorded(), Market: r.W.Market, Offer: r.Inventory.Figures(c.Offer),
		Considered: len(r.Inventory.Offers()), Rejected: s.Rejected(),
	}
	scarce := r.Scarce.For(s.Request)
	d.Score, d.Scores = scarce.Told(s.Request, c)
	if len(d.Rejected) == 0 {
		d.Rejected = nil
	}
	d.Transfer = r.Match.TransferEstimate(s.Request, c.Offer)
	d.Scaled = r.Inventory.Scaled(c.Offer, c.Size, nil)
	if x := s.MostExpensiveBut(c); x != nil {
		d.Dearest = &v1alpha1.DearestOffer{Flavor: x.Offer.Ref, Hourly: x.Quote.Now.Decimal()}
	}
	d.RunnersUp = scarce.RunnersUp(s.Request, next)
	return d
}

// termOf is when a contract ends that has a size of an offer from now on, and whether that
// is because others have booked it; except are contracts that it takes the place of.
func (r contractWriter) termOf(o *inventory.Offer, size quantity.Vector, q match.Quote, except map[string]bool) (end v1alpha1.Time, cut bool) {
	end = r.endOf(q)
	if u := untilBookedFor(r.Placer, r.job, r.how); u != nil && yields(r.job) && draft.OnAxis(&r.Placer.Draft).HasBookings(o) {
		if at, short := u.short(o, size, q, except); short {
			return at, true
		}
	}
	return end, false
}

// PlacedLine is a new contract as the plan shows it.
func (r *Placer) PlacedLine(c *v1alpha1.Contract, s *match.Class, at *match.Candidate) draft.ContractLine {
	line := r.Line(c, draft.Place)
	if now := r.Books.HourlyAt(c.Spec.Price, r.Now); now.Cmp(line.Hourly) != 0 {
		line.HourlyNow = &now
	}
	if next := line.RunnerUp; next != nil && s.Request.Weights.ByCostAlone() && next.Score < line.Score && next.Hourly.Cmp(at.Quote.Current().Decimal()) < 0 {
		line.Left = next.Flavor
	}
	line.Unpriced = r.Match.Unpriced(at.Offer, at.Quote.Class, at.Size)
	if asked := s.Request.Asked(at.Offer); !asked.Equal(at.Size) {
		line.Asked = inventory.Slice(r.Names, asked, at.Offer.Flavor)
	}
	return line
}
