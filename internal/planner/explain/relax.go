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
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

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
		said = fmt.Sprintf("has %d of %d %s free", free, c.Size.At(i), r.unitText(c.Offer, i, c.Size.At(i)))
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
		d := need.RoundedUp()
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
	add := func(list *[]string, name, value string, of func(*inventory.Offer) string) (string, string) {
		if value == "" {
			return "", ""
		}
		*list = append(slices.DeleteFunc(slices.Clone(*list), func(v string) bool { // what nobody offers is not suggested again
			return !slices.ContainsFunc(r.Inventory.Offers(), func(o *inventory.Offer) bool { return of(o) == v })
		}), value)
		return "placement." + name + ": [" + strings.Join(*list, ", ") + "]", "is in " + value
	}
	switch req {
	case match.ReqRegions:
		return add(&p.Regions, "regions", o.Location.Region, func(o *inventory.Offer) string { return o.Location.Region })
	case match.ReqZones:
		return add(&p.Zones, "zones", o.Location.Zone, func(o *inventory.Offer) string { return o.Location.Zone })
	case match.ReqArchitectures:
		text, _ = add(&p.Architectures, "architectures", o.Flavor.Spec.Architecture, func(o *inventory.Offer) string { return o.Flavor.Spec.Architecture })
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
	case match.ReqAccelerators:
		p.AllowAccelerators = true
		return "placement.allowAccelerators: true", "has accelerators"
	case match.ReqEnforcement:
		spec.Enforcement = ""
		return "", "enforces " + cmp.Or(match.Enforced(o), "nothing")
	}
	return relaxStated(spec, o, req)
}

// relaxStated asks for no more than what a flavor states of itself.
func relaxStated(spec *v1alpha1.IntentSpec, o *inventory.Offer, req string) (text, said string) {
	p, carbon, reliability := &spec.Placement, o.Flavor.Spec.Properties.Carbon, o.Flavor.Spec.Properties.Reliability
	switch {
	case req == match.ReqCarbon && carbon != nil:
		p.MaxCarbon = carbon
		return fmt.Sprintf("placement.maxCarbon: %d", *carbon), fmt.Sprintf("has electricity of %d gCO2e/kWh", *carbon)
	case req == match.ReqReliability && reliability != nil:
		p.MinReliability = reliability
		return "placement.minReliability: \"" + reliability.String() + "\"", "is reliable " + reliability.String()
	case req == match.ReqAvailability && reliability != nil:
		percent, sla := reliability.MulInt(100), *spec.SLA
		sla.Availability, spec.SLA = &percent, &sla
		return "sla.availability: \"" + percent.String() + "\"", "is available " + percent.String() + " % of the time"
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
