package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
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
		f := &j.Open[0]
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
	if r.By(draft.RulesAsked) { // of changes that would do, the cheapest first
		slices.SortStableFunc(list, func(a, b relaxation) int { return cmp.Compare(a.price, b.price) })
	}
	said := map[string]bool{}
	for i := range list {
		if len(j.Dec.Try) == tryShown {
			break
		}
		if list[i].text == "" || said[list[i].text] {
			continue
		}
		said[list[i].text] = true
		if !r.spare.Take(j.In, offers*int64(len(j.Alternatives()))) {
			break
		}
		made := r.Made
		if r.wouldPlace(j, list[i].spec) {
			j.Dec.Try = append(j.Dec.Try, list[i].suggestion(r.Books.Currency))
		}
		r.spare.Work -= settle.UnitsOfReplica * (r.Made - made)
	}
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
		c := match.Candidate{Offer: o}
		req := ""
		if known := s.Of(o); known != nil {
			c = *known
			req = c.Fails
		} else {
			req = r.Match.FailsFact(s.Request, o)
		}
		if req == "" {
			req = asked.Breaks(o)
		}
		if req == "" || looked[req] == nearOffers {
			continue
		}
		if c.Pricing == nil {
			c.Pricing = &match.Pricing{Size: s.Request.Size(o)}
		}
		if looked[req]++; isRule(asked, req) && s.Of(o) != nil {
			for _, x := range relaxRule(asked, &j.In.Spec, o, req, int(j.Replicas())) {
				x.price = priceOf(&c, s.Request)
				out = append(out, x)
			}
			continue
		}
		x := r.relax(j, s.Request, &c, req)
		if x == nil {
			continue
		}
		j.Far = false // whether it would do depends on what is free, too
		again := r.relaxedRequest(j, s.Request, x.spec)
		if r.Match.FailsFact(again, o) != "" {
			continue
		}
		now := r.Match.Priced(again, o, again.Size(o))
		if r.Match.FailsCapacity(again, o, now.Size) != "" || now.FailsMoney != "" {
			continue
		}
		x.offer, x.req, x.price = o, req, priceOf(&now, s.Request)
		out = append(out, *x)
	}
	slices.SortStableFunc(out, func(a, b relaxation) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), inventory.Compare(a.offer, b.offer))
	})
	return out
}

// priceOf is what all replicas of a request cost an hour on a candidate, unlimited where
// no price is known.
func priceOf(c *match.Candidate, w *match.Request) quantity.Micro {
	if c.Vague || c.Quote.Most() <= 0 {
		return quantity.Unlimited
	}
	return c.Quote.Most() * quantity.Micro(max(w.Replicas, 1))
}

// relaxedRequest is the request of a changed specification, for one replica.
func (r *Explainer) relaxedRequest(j *draft.Job, w *match.Request, spec v1alpha1.IntentSpec) *match.Request {
	return r.RequestBy(j, j.Asking(spec), w.Seconds)
}

// wouldPlace plans an intent with a changed specification after all others,
// and takes it back.
func (r *Explainer) wouldPlace(j *draft.Job, spec v1alpha1.IntentSpec) bool {
	k := r.CopyOf(j)
	k.In, k.Alts = j.Asking(spec), nil
	if n := int(k.Replicas()); n < int(j.Replicas()) && n < len(k.Tasks) {
		k.Tasks = k.Tasks[:n]
	}
	if len(k.Tasks) == 0 {
		return false
	}
	if _, why := r.Unfit(k); why != "" {
		return false
	}
	m := r.Mark()
	defer r.Rollback(m)
	r.LookOnly(k, place.Request{WithUnit: true, Unasked: true})
	return len(k.Tasks) == 0
}

// relax brings one requirement down to what an offer has; nil when no change of
// the intent would do.
func (r *Explainer) relax(j *draft.Job, w *match.Request, c *match.Candidate, req string) *relaxation {
	spec := j.In.Spec
	x := &relaxation{cost: 10}
	switch {
	case strings.HasPrefix(req, "gpu"):
		x.text, x.said = r.relaxGPU(&spec, c.Offer, req)
	case strings.HasPrefix(req, match.ReqCapacity):
		x.text, x.said = r.relaxCapacity(&spec, w, c, strings.TrimPrefix(req, match.ReqCapacity))
		x.cost = 2
	case strings.HasPrefix(req, "budget."), req == match.ReqPurchase, req == match.ReqPrice:
		x.text, x.said, x.cost = r.relaxMoney(&spec, w, c, req)
	default:
		x.text, x.said = r.relaxPlace(&spec, w, c.Offer, req)
	}
	if x.said == "" {
		return nil
	}
	x.spec = spec
	return x
}

func (r *Explainer) relaxGPU(spec *v1alpha1.IntentSpec, o *inventory.Offer, req string) (text, said string) {
	have := o.Flavor.Spec.GPU
	if have == nil || spec.Resources.GPU == nil {
		return "", ""
	}
	g := *spec.Resources.GPU
	spec.Resources.GPU = &g
	set := func(field *string, name, value string) (string, string) {
		*field = value
		if value == "" {
			return "", "has no " + name
		}
		return "resources.gpu." + name + ": " + value, "has " + name + " " + value
	}
	switch req {
	case match.ReqGPUModel:
		models, same := r.modelsLike(g.Models, have)
		if !same {
			return "", ""
		}
		g.Models = append(models, have.Model)
		return "resources.gpu.models: [" + strings.Join(g.Models, ", ") + "]", "is " + have.Model
	case match.ReqGPUMemory:
		g.Memory = v1alpha1.MemoryRange{Min: have.Memory.Amount}
		size := have.Memory.Canonical(v1alpha1.Memory)
		return "resources.gpu.memory: " + size, "has " + size + " a GPU"
	case match.ReqGPUVendor: // what runs on one vendor's cards seldom runs on another's
		g.Vendor = have.Vendor
		return "", "has vendor " + have.Vendor
	case match.ReqGPUTier:
		return set(&g.Tier, "tier", have.Tier)
	case match.ReqGPUArchitecture:
		return set(&g.Architecture, "architecture", have.Architecture)
	case match.ReqGPUInterconnect:
		return set(&g.Interconnect, "interconnect", have.Interconnect)
	case match.ReqGPUCapability:
		return set(&g.ComputeCapability, "computeCapability", have.ComputeCapability)
	case match.ReqGPUProfile:
		return set(&g.Profile, "profile", have.Profile)
	case match.ReqGPUSharing:
		return set(&g.Sharing, "sharing", have.Sharing)
	}
	return "", ""
}

// modelsLike are those of the models that are asked for that there are, and whether a
// card is of the vendor of one of them: one that does not exist is taken for the
// vendor's whose model it resembles, and is not repeated.
func (r *Explainer) modelsLike(asked []string, have *v1alpha1.FlavorGPU) (known []string, same bool) {
	if !r.By(draft.RulesAsked) {
		return slices.Clone(asked), true
	}
	for _, m := range asked {
		vendor, _, _ := gpunames.Normalize(m, 0)
		switch {
		case gpunames.Known(m), r.offered(m):
			known = append(known, m)
		case vendor == "":
			if near := nearest.Of(m, gpunames.Models()); near != "" {
				vendor, _, _ = gpunames.Normalize(near, 0)
			}
		}
		same = same || vendor == "" || have.Vendor == "" || strings.EqualFold(vendor, have.Vendor)
	}
	return known, same || len(asked) == 0
}

// offered reports whether an offer has cards of a model.
func (r *Explainer) offered(model string) bool {
	return slices.ContainsFunc(r.Inventory.Offers(), func(o *inventory.Offer) bool {
		g := o.Flavor.Spec.GPU
		return g != nil && g.Model != "" && gpunames.Match(model, g.Model)
	})
}

func (r *Explainer) relaxCapacity(spec *v1alpha1.IntentSpec, w *match.Request, c *match.Candidate, name string) (text, said string) {
	if name == strings.TrimPrefix(match.ReqCard, match.ReqCapacity) {
		return relaxCard(spec, c)
	}
	if name == strings.TrimPrefix(match.ReqNode, match.ReqCapacity) {
		return r.relaxNode(spec, w, c)
	}
	i := r.Names.Of(name)
	free := c.Offer.Free().At(i)
	if free <= 0 || free >= c.Size.At(i) {
		return "", ""
	}
	have := v1alpha1.AmountOf(free)
	if name == v1alpha1.GPU {
		if spec.Resources.GPU == nil || spec.Resources.GPU.Share != nil {
			return "", ""
		}
		g := *spec.Resources.GPU
		said = fmt.Sprintf("has %d of %d GPUs free", free, c.Size.At(i))
		g.Count = int32(free)
		spec.Resources.GPU = &g
		return fmt.Sprintf("resources.gpu.count: %d", free), said
	}
	said = "has " + have.Canonical(name) + " of " + v1alpha1.AmountOf(c.Size.At(i)).Canonical(name) + " " + name + " free"
	spec.Resources.Named = spec.Resources.Named.Clone()
	spec.Resources.Named[name] = have
	return "resources." + name + ": \"" + have.Canonical(name) + "\"", said
}

// relaxMoney raises a limit to what all replicas cost on an offer.
func (r *Explainer) relaxMoney(spec *v1alpha1.IntentSpec, w *match.Request, c *match.Candidate, req string) (text, said string, cost float64) {
	if req == match.ReqPurchase {
		spec.Purchase = append(slices.Clone(w.Purchase), v1alpha1.OnDemand)
		if slices.Contains(w.Purchase, v1alpha1.OnDemand) {
			return "", "", 0
		}
		return "purchase: [" + joinClasses(spec.Purchase) + "]", "is sold on-demand only", 3
	}
	if spec.Budget == nil {
		return "", "", 0
	}
	b := *spec.Budget
	spec.Budget = &b
	all := c.Quote.Most() * quantity.Micro(max(w.Replicas, 1))
	raise := func(field **v1alpha1.Decimal, name string, need quantity.Micro, limit quantity.Micro) (string, string, float64) {
		added := min(float64(need-limit)/float64(max(limit, 1)), 1.9)
		if b.Currency != "" && b.Currency != r.Books.Currency { // what is in another currency is not ours to rewrite
			*field = nil
			cur := " " + r.Books.Currency
			return "", "costs " + need.Text() + cur + ", budget " + max(limit, 0).Text() + cur, added
		}
		d := need.Decimal().Round(2)
		if d.Cmp(need.Decimal()) < 0 {
			d = d.Add(v1alpha1.MustDecimal("0.01"))
		}
		*field, b.Currency = &d, r.Books.Currency
		return "budget." + name + ": \"" + d.Text() + "\"", "costs " + need.Text() + ", budget " + max(limit, 0).Text(), added
	}
	switch req {
	case match.ReqMaxHourly:
		return raise(&b.MaxHourly, "maxHourly", all, w.Money.Hourly)
	case match.ReqMaxHourlySpot:
		return raise(&b.MaxHourlySpot, "maxHourlySpot", all, w.Money.HourlySpot)
	case match.ReqMaxHourlyPerGPU:
		n := quantity.Micro(max(c.Size.At(quantity.GPU), 1))
		return raise(&b.MaxHourlyPerGPU, "maxHourlyPerGPU", (c.Quote.Peak+n-1)/n, w.Money.PerGPU)
	case match.ReqMaxTotal:
		return raise(&b.MaxTotal, "maxTotal", all.ForSeconds(max(w.Seconds, 60)), w.Money.Total)
	}
	return "", "", 0
}

func joinClasses(list []v1alpha1.PriceClass) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, string(c))
	}
	return strings.Join(parts, ", ")
}

func (r *Explainer) relaxPlace(spec *v1alpha1.IntentSpec, w *match.Request, o *inventory.Offer, req string) (text, said string) {
	p := &spec.Placement
	add := func(list *[]string, name, value string) (string, string) {
		if value == "" {
			return "", ""
		}
		*list = append(slices.Clone(*list), value)
		return "placement." + name + ": [" + strings.Join(*list, ", ") + "]", "is in " + value
	}
	switch req {
	case match.ReqRegions:
		return add(&p.Regions, "regions", o.Location.Region)
	case match.ReqZones:
		return add(&p.Zones, "zones", o.Location.Zone)
	case match.ReqArchitectures:
		text, _ = add(&p.Architectures, "architectures", o.Flavor.Spec.Architecture)
		return text, "is " + o.Flavor.Spec.Architecture
	case match.ReqLatency:
		ms, known := r.Match.Latency(w.Consumer, o)
		if !known {
			return "", ""
		}
		p.MaxLatency.Duration = draft.MsOf(ms)
		return fmt.Sprintf("placement.maxLatency: %dms", ms), fmt.Sprintf("is %dms away", ms)
	case match.ReqPlacementProviders:
		p.Providers = v1alpha1.ClusterLists{}
		return "", "is excluded by placement.providers"
	case match.ReqLabels:
		p.Labels = nil
		return "", "lacks " + match.MissingLabel(w, o)
	case match.ReqCarbon:
		have := o.Flavor.Spec.Properties.Carbon
		if have == nil {
			return "", ""
		}
		p.MaxCarbon = have
		return fmt.Sprintf("placement.maxCarbon: %d", *have), fmt.Sprintf("has electricity of %d gCO2e/kWh", *have)
	case match.ReqReliability:
		have := o.Flavor.Spec.Properties.Reliability
		if have == nil {
			return "", ""
		}
		p.MinReliability = have
		return "placement.minReliability: \"" + have.String() + "\"", "is reliable " + have.String()
	case match.ReqAvailability:
		have := o.Flavor.Spec.Properties.Reliability
		if have == nil {
			return "", ""
		}
		percent, sla := have.MulInt(100), *spec.SLA
		sla.Availability, spec.SLA = &percent, &sla
		return "sla.availability: \"" + percent.String() + "\"", "is available " + percent.String() + " % of the time"
	case match.ReqAccelerators:
		p.AllowAccelerators = true
		return "placement.allowAccelerators: true", "has accelerators"
	case match.ReqEnforcement:
		spec.Enforcement = ""
		return "", "enforces " + cmp.Or(match.Enforced(o), "nothing")
	}
	return "", ""
}

// relaxCard asks for no more of a card than the emptiest has.
func relaxCard(spec *v1alpha1.IntentSpec, c *match.Candidate) (text, said string) {
	d := c.Offer.Cards()
	if spec.Resources.GPU == nil || spec.Resources.GPU.Share == nil || d.Spare() == 0 {
		return "", ""
	}
	g := *spec.Resources.GPU
	share := v1alpha1.DecimalFromInt(d.Spare()*1000/d.PerCard()).DivInt(1000, 3)
	if share.Sign() <= 0 {
		return "", ""
	}
	g.Share = &share
	spec.Resources.GPU = &g
	return "resources.gpu.share: \"" + share.String() + "\"", "has " + share.String() + " of a GPU free on one card"
}
