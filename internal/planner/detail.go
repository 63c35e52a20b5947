package planner

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// detail says with numbers how an offer fails a requirement, rules those of x.
func (r *round) detail(j *job, x *rules, w *wish, c *candidate, req string) string {
	o := c.offer
	s := &o.Flavor.Spec
	switch req {
	case ReqSelf:
		return "it is the consumer itself"
	case ReqRole:
		return "cluster " + o.Provider + " is unknown or no provider"
	case ReqSilent:
		return o.Provider + " is not heard since " + stamp(o.Since)
	case ReqLost:
		return o.Provider + " is lost since " + stamp(o.GraceEnds)
	case ReqWithdrawn:
		return "it is no longer offered"
	case ReqCordon:
		return "it sells nothing new"
	case ReqDrain:
		return "it is being emptied by " + stamp(o.LeaveBy)
	case ReqRefuses:
		return o.Provider + " denied contracts on what it advertised; it is asked again at " + stamp(r.outOfMarket(o.Provider))
	case ReqRemoteNamespace, ReqSecret:
		return r.barsOf(j).detail(o.Provider, req)
	case ReqDenied:
		return "it denied this intent a slice not long ago"
	case ReqFlavorType:
		return s.Type
	case ReqTenantProviders:
		return "tenant " + j.tenantName + " may not use " + o.Provider
	case ReqPlacementProviders, ReqRegions, ReqZones, ReqArchitectures, ReqLabels, ReqLatency:
		return r.detailPlace(w, o, req)
	case ReqSpread, ReqTogether, ReqApart:
		if text := noDomain(w, o); text != "" && req == ReqSpread {
			return text
		}
		return x.detail(o, req)
	case ReqAvailability:
		if have := s.Properties.Reliability; have != nil {
			return have.MulInt(100).String() + "% < " + w.in.Spec.SLA.Availability.String() + "%"
		}
		return "its reliability is unknown"
	case ReqEnforcement:
		if level := enforced(o); level != "" {
			return "Liqo's limits enforcement there is " + level
		}
		return "its agent enforces nothing"
	case ReqWhere:
		return whereText(w, o)
	case ReqPartition:
		return "its next legal size is " + r.sizeText(c.size)
	case ReqPrice:
		return r.tariffOf(o).why
	case ReqTransfer:
		return r.transferWhy(w, o)
	case ReqPurchase:
		return "it is sold in none of the acceptable classes for that long"
	}
	if name, ok := strings.CutPrefix(req, ReqPolicy); ok {
		for i := range w.policies {
			if w.policies[i].Name == name && w.policies[i].Message != "" {
				return w.policies[i].Message
			}
		}
		return "the fleet's policy " + name + " forbids it"
	}
	if name, ok := strings.CutPrefix(req, ReqResource); ok {
		return "it has no " + name
	}
	if req == ReqCard {
		return detailCard(o, c.size)
	}
	if name, ok := strings.CutPrefix(req, ReqCapacity); ok {
		return r.detailCapacity(c, name)
	}
	if strings.HasPrefix(req, "gpu") {
		return detailGPU(o, req)
	}
	return r.detailMoney(j, w, c, req)
}

// whereText is why an offer does not meet placement.where: that the answer is
// no, or that there is none, because it looks for something the flavor lacks.
func whereText(w *wish, o *inventory.Offer) string {
	_, err := w.where.Eval(w.in, o.Resolved(), o.Cluster)
	if err == nil {
		return "it is not true of this flavor"
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return "it has no answer for this flavor: " + err.Error()
}

// enforced is the level at which Liqo enforces limits where an offer's agent
// grants slices, "" where it does not or does not say.
func enforced(o *inventory.Offer) string {
	if o.Flavor.Spec.Class != classEnforced {
		return ""
	}
	return o.Flavor.Spec.Labels[v1alpha1.LabelEnforcement]
}

func (r *round) detailPlace(w *wish, o *inventory.Offer, req string) string {
	switch req {
	case ReqPlacementProviders:
		return o.Provider + " is not among those to use"
	case ReqRegions:
		return orNone(o.Location.Region)
	case ReqZones:
		return orNone(o.Location.Zone)
	case ReqArchitectures:
		return orNone(o.Flavor.Spec.Architecture)
	case ReqLatency:
		if ms, known := r.latency(w.consumer, o); known {
			return fmt.Sprintf("%dms > %s", ms, w.in.Spec.Placement.MaxLatency)
		}
		return "its latency is unknown"
	}
	for _, k := range sortedNames(w.in.Spec.Placement.Labels) {
		if v := w.in.Spec.Placement.Labels[k]; !labelled(o, k, v) {
			return "it lacks " + k + "=" + v
		}
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func detailGPU(o *inventory.Offer, req string) string {
	g := o.Flavor.Spec.GPU
	if g == nil || req == ReqGPU {
		return "it has no GPUs"
	}
	switch req {
	case ReqGPUVendor:
		return orNone(g.Vendor)
	case ReqGPUModel:
		return orNone(g.Model)
	case ReqGPUMemory:
		return g.Memory.Canonical(v1alpha1.Memory)
	case ReqGPUTier:
		return orNone(g.Tier)
	case ReqGPUArchitecture:
		return orNone(g.Architecture)
	case ReqGPUInterconnect:
		return orNone(g.Interconnect)
	case ReqGPUCapability:
		return orNone(g.ComputeCapability)
	case ReqGPUProfile:
		return orNone(g.Profile)
	}
	return orNone(g.Sharing) + ": only whole cards are given unless share, profile or sharing is asked for"
}

func (r *round) detailCapacity(c *candidate, name string) string {
	i := r.names.Of(name)
	have, want := v1alpha1.AmountOf(max(c.offer.Free().At(i), 0)), v1alpha1.AmountOf(c.size.At(i))
	label := name
	if name == v1alpha1.GPU {
		label = "GPUs"
	}
	if c.offer.Risky(i) {
		label += " within overcommit.maxRisk"
	}
	return fmt.Sprintf("%s of %s %s free", have.Canonical(name), want.Canonical(name), label)
}

func (r *round) detailMoney(j *job, w *wish, c *candidate, req string) string {
	cur := r.books.Currency
	b := w.in.Spec.Budget
	total := c.quote.most() * quantity.Micro(max(w.replicas, 1))
	switch req {
	case ReqMaxHourly, ReqMaxHourlySpot:
		if b == nil {
			break
		}
		limit := w.money.hourly
		if req == ReqMaxHourlySpot {
			limit = w.money.hourlySpot
		}
		return fmt.Sprintf("%s > %s %s/h", total.Text(), max(limit, 0).Text(), cur)
	case ReqMaxHourlyPerGPU:
		n := max(c.size.At(quantity.GPU), 1)
		return fmt.Sprintf("%s > %s %s/h a GPU", (c.quote.peak / quantity.Micro(n)).Text(), w.money.perGPU.Text(), cur)
	case ReqMaxTotal:
		return fmt.Sprintf("%s > %s %s in all", total.ForSeconds(max(w.seconds, 60)).Text(), max(w.money.total, 0).Text(), cur)
	}
	return r.accounts.Text(j.tenant, req)
}

// sizeText is a size in words, for people.
func (r *round) sizeText(v quantity.Vector) string {
	var parts []string
	for _, i := range [...]int{quantity.GPU, quantity.CPU, quantity.Memory} {
		if n := v.At(i); n > 0 {
			parts = append(parts, v1alpha1.AmountOf(n).Canonical(r.names.Name(i))+" "+r.names.Name(i))
		}
	}
	return strings.Join(parts, ", ")
}

// detailCard says how an offer's cards do not hold a size.
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
