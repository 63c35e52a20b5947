package explain

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/rules"
)

// detail is, with numbers, how an offer fails a requirement, rules those of x.
func (r *Explainer) detail(j *draft.Job, x *place.Rules, w *match.Request, c *match.Candidate, req string) string {
	o := c.Offer
	if text := r.Match.Why(w, o, req); text != "" {
		return text
	}
	switch req {
	case match.ReqSelf, match.ReqRole, match.ReqSilent, match.ReqLost, match.ReqWithdrawn, match.ReqCordon, match.ReqDrain, match.ReqRefuses:
		return r.detailForSale(o, req)
	case match.ReqRemoteNamespace, match.ReqSecret:
		return rules.BarsOf(&r.Draft, j).Detail(o.Provider, req)
	case match.ReqDenied:
		return "it denied this intent a slice not long ago"
	case match.ReqTenantProviders:
		return "tenant " + j.TenantName + " may not use " + o.Provider
	case match.ReqAccelerators, match.ReqFlavorType, match.ReqPlacementProviders, match.ReqRegions, match.ReqZones, match.ReqArchitectures:
		return detailPlace(o, req)
	case match.ReqSpread, match.ReqWithin, match.ReqTogether, match.ReqApart:
		return x.Detail(o, req)
	case match.ReqBooked:
		return place.BookedDetail(&r.Placer, j, c)
	case match.ReqPartition:
		return "its next legal size is " + r.sizeText(c.Size)
	}
	if name, ok := strings.CutPrefix(req, match.ReqPolicy); ok {
		return detailPolicy(w, name)
	}
	if name, ok := strings.CutPrefix(req, match.ReqResource); ok {
		return "it has no " + name
	}
	if strings.HasPrefix(req, match.ReqCapacity) {
		return r.detailCapacity(w, c, req)
	}
	if strings.HasPrefix(req, "gpu") {
		return detailGPU(o, req)
	}
	return r.detailMoney(j, w, c, req)
}

// detailForSale is why an offer is for sale to nobody, or not to its own cluster.
func (r *Explainer) detailForSale(o *inventory.Offer, req string) string {
	switch req {
	case match.ReqSelf:
		return "it is the consumer itself"
	case match.ReqRole:
		if r.Frozen.Cluster(o.Provider) != "" {
			return "the file of cluster " + o.Provider + " cannot be read"
		}
		return "cluster " + o.Provider + " is unknown or no provider"
	case match.ReqSilent:
		return o.Provider + " is not heard since " + draft.Stamp(o.Since)
	case match.ReqLost:
		return o.Provider + " is lost since " + draft.Stamp(o.GraceEnds)
	case match.ReqWithdrawn:
		return "it is no longer offered"
	case match.ReqCordon:
		return "it sells nothing new"
	case match.ReqDrain:
		return "it is being emptied by " + draft.Stamp(o.LeaveBy)
	}
	return o.Provider + " denied contracts on what it advertised; it is asked again at " + draft.Stamp(r.OutOfMarket(o.Provider))
}

// detailPolicy is what a policy of the fleet has to say.
func detailPolicy(w *match.Request, name string) string {
	for i := range w.Policies {
		if w.Policies[i].Name == name && w.Policies[i].Message != "" {
			return w.Policies[i].Message
		}
	}
	return "the fleet's policy " + name + " forbids it"
}

func detailPlace(o *inventory.Offer, req string) string {
	switch req {
	case match.ReqAccelerators:
		return "it has accelerators, and the intent asks for none"
	case match.ReqFlavorType:
		return o.Flavor.Spec.Type
	case match.ReqPlacementProviders:
		return o.Provider + " is not among those to use"
	case match.ReqRegions:
		return orNone(o.Location.Region)
	case match.ReqZones:
		return orNone(o.Location.Zone)
	}
	return orNone(o.Flavor.Spec.Architecture)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func detailGPU(o *inventory.Offer, req string) string {
	g := o.Flavor.Spec.GPU
	if g == nil || req == match.ReqGPU {
		return "it has no GPUs"
	}
	switch req {
	case match.ReqGPUVendor:
		return orNone(g.Vendor)
	case match.ReqGPUModel:
		return orNone(g.Model)
	case match.ReqGPUMemory:
		return g.Memory.Canonical(v1alpha1.Memory)
	case match.ReqGPUTier:
		return orNone(g.Tier)
	case match.ReqGPUArchitecture:
		return orNone(g.Architecture)
	case match.ReqGPUInterconnect:
		return orNone(g.Interconnect)
	case match.ReqGPUCapability:
		return orNone(g.ComputeCapability)
	case match.ReqGPUProfile:
		return orNone(g.Profile)
	}
	return orNone(g.Sharing) + ": only whole cards are given unless share, profile or sharing is asked for"
}

func (r *Explainer) detailCapacity(w *match.Request, c *match.Candidate, req string) string {
	switch req {
	case match.ReqCard:
		return detailCard(c.Offer, c.Size)
	case match.ReqNode:
		return r.freeOnNodes(w, c)
	}
	name := strings.TrimPrefix(req, match.ReqCapacity)
	i := r.Names.Of(name)
	have, want := v1alpha1.AmountOf(max(c.Offer.Free().At(i), 0)), v1alpha1.AmountOf(c.Size.At(i))
	label := name
	if name == v1alpha1.GPU {
		label = "GPUs"
	}
	if c.Offer.Risky(i) {
		label += " within overcommit.maxRisk"
	}
	return fmt.Sprintf("%s of %s %s free", have.Canonical(name), want.Canonical(name), label)
}

func (r *Explainer) detailMoney(j *draft.Job, w *match.Request, c *match.Candidate, req string) string {
	cur := r.Books.Currency
	b := w.Intent.Spec.Budget
	total := c.Quote.Most() * quantity.Micro(max(w.Replicas, 1))
	if name, ok := strings.CutPrefix(req, match.ReqPriceOf); ok {
		return "it names no price for " + name
	}
	switch req {
	case match.ReqPrice:
		return r.Match.TariffOf(c.Offer).Why()
	case match.ReqTransfer:
		return match.TransferWhy(w, c.Offer)
	case match.ReqPurchase:
		return "it is sold in none of the acceptable classes for that long"
	case match.ReqMaxHourly, match.ReqMaxHourlySpot:
		if b == nil {
			break
		}
		limit := w.Money.Hourly
		if req == match.ReqMaxHourlySpot {
			limit = w.Money.HourlySpot
		}
		return fmt.Sprintf("%s > %s %s/h", total.Text(), max(limit, 0).Text(), cur)
	case match.ReqMaxHourlyPerGPU:
		n := max(c.Size.At(quantity.GPU), 1)
		return fmt.Sprintf("%s > %s %s/h a GPU", (c.Quote.Peak / quantity.Micro(n)).Text(), w.Money.PerGPU.Text(), cur)
	case match.ReqMaxTotal:
		return fmt.Sprintf("%s > %s %s in all", total.ForSeconds(max(w.Seconds, 60)).Text(), max(w.Money.Total, 0).Text(), cur)
	}
	return r.Accounts.Text(j.Tenant, req)
}

// sizeText is a size in words, for people.
func (r *Explainer) sizeText(v quantity.Vector) string {
	var parts []string
	for _, i := range [...]int{quantity.GPU, quantity.CPU, quantity.Memory} {
		if n := v.At(i); n > 0 {
			parts = append(parts, v1alpha1.AmountOf(n).Canonical(r.Names.Name(i))+" "+r.Names.Name(i))
		}
	}
	return strings.Join(parts, ", ")
}

// detailCard is how an offer's cards do not hold a size.
func detailCard(o *inventory.Offer, size quantity.Vector) string {
	whole, part := size.At(quantity.GPU)/o.Cards().PerCard(), size.At(quantity.GPU)%o.Cards().PerCard()
	if part == 0 || whole > o.Cards().Empty() {
		return fmt.Sprintf("%d of %d cards are whole; the %s GPUs free lie on several", o.Cards().Empty(), whole, partText(o, o.Free().At(quantity.GPU)))
	}
	return fmt.Sprintf("no card has %s free: at most %s; the %s GPUs free lie on several", partText(o, part), partText(o, o.Cards().Spare()), partText(o, o.Free().At(quantity.GPU)))
}

// partText is so many units in cards.
func partText(o *inventory.Offer, units int64) string {
	return v1alpha1.DecimalFromInt(units).DivInt(o.Cards().PerCard(), 3).String()
}
