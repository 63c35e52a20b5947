package match

import (
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/nodes"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Request is one alternative of an intent, made ready for comparing it with many
// offers.
type Request struct {
	Intent *v1alpha1.ResourceIntent
	tenant *v1alpha1.TenantSpec
	// Consumer is the cluster that the capacity is for.
	Consumer string
	// Need of one replica before rounding up; its GPU units depend on the offer.
	Need quantity.Vector
	// extended resources among need, in order of name.
	extended []int
	// GPU is nil where no cards are asked for, Where where there is no such condition.
	GPU   *CardRequest
	Where model.Predicate
	// Policies of the fleet that bind the tenant, and acceptable price classes.
	Policies []model.Policy
	Purchase []v1alpha1.PriceClass
	Spending
	Weights Weights
	// own are the requirements that the intent asks for; readsUse: some of it, or a
	// policy, looks at what of an offer is used or held.
	own      []*requirement
	readsUse bool
	// accelerated: accelerators are asked for. accelerator reports which resources are
	// some; nil by rules to which that is nothing.
	accelerated bool
	accelerator func(resource int) bool
	// units of of that a part of a split replica is, none for a whole one.
	units, of int64
	// pod is how a replica is made of pods.
	pod nodes.Ask
	// answers of each policy, and of Where (answers.go).
	answers []answers
	// cards remembers which fact each kind of card fails, sizes what is taken of
	// offers without a partition, by units a card.
	cards []string
	sizes map[int64]quantity.Vector
}

// CardRequest is what an intent wants of cards.
type CardRequest struct {
	// Count of units.
	Count int64
	// Share of one card in millionths, 0 when whole units are counted.
	Share  int64
	Models []string
	Memory v1alpha1.MemoryRange
	vendor, architecture, tier, interconnect,
	Profile, Sharing string
	// alike: 1g.10gb+me is 1g.10gb.me.
	alike      bool
	capability int
}

// SpendLimits is what an intent may still spend: an hour in each price class, an
// hour and GPU, and over its whole life; unlimited where nothing was stated.
type SpendLimits struct {
	Hourly, HourlySpot, PerGPU, Total quantity.Micro
	// Limited is whether there is any limit, the tenant's included: such an
	// intent takes no unpriced offer.
	Limited bool
}

// Spending is what is placed at once and what may be spent on it.
type Spending struct {
	// Replicas that are placed at once, and the money for all of them.
	Replicas int64
	Money    SpendLimits
	// Seconds of the term, 0 when open-ended.
	Seconds int64
}

// NoSpendLimits are those of an intent of which nothing was stated.
func NoSpendLimits() SpendLimits {
	return SpendLimits{Hourly: quantity.Unlimited, HourlySpot: quantity.Unlimited, PerGPU: quantity.Unlimited, Total: quantity.Unlimited}
}

// Alternatives lists the requests of an intent in order of preference. An
// alternative's gpu replaces the whole gpu; other quantities replace their own.
func Alternatives(s *v1alpha1.IntentSpec) []v1alpha1.ResourceRequest {
	whole := s.Resources
	if s.PerPod != nil {
		whole.PerPod = s.PerPod
	}
	out := []v1alpha1.ResourceRequest{whole}
	for _, a := range s.Alternatives {
		out = append(out, a.Over(whole))
	}
	return out
}

// Ask is one alternative of an intent, with what is known of who asks.
type Ask struct {
	Intent *model.Intent
	// Tenant is nil for one that nobody described.
	Tenant   *v1alpha1.TenantSpec
	Consumer string
	// Request is the alternative's.
	Request *v1alpha1.ResourceRequest
	Spending
	// Units of Of that a part of a split replica is, none for a whole one.
	Units, Of int64
}

// Request makes one alternative ready.
func (m *Matcher) Request(a *Ask) *Request {
	s, alt := &a.Intent.Spec, a.Request
	w := &Request{
		Intent: a.Intent.ResourceIntent, tenant: a.Tenant, Consumer: a.Consumer,
		Where: a.Intent.Where, Purchase: s.Purchase, Weights: m.WeightsOf(s),
		Spending: a.Spending, units: a.Units, of: a.Of,
	}
	if len(w.Purchase) == 0 {
		w.Purchase = []v1alpha1.PriceClass{v1alpha1.OnDemand}
	}
	for _, p := range m.facts.Policies {
		if p.Binds(a.Intent.ResourceIntent, a.Consumer) {
			w.Policies = append(w.Policies, p)
		}
	}
	w.asks(a.Intent)
	if w.Need = m.facts.Defaults.Clone(); inventory.TypeOf(s.FlavorType) != inventory.TypeOf("") {
		w.Need = make(quantity.Vector, quantity.Extended) // Liqo's defaults are for slices
	}
	for _, name := range alt.Named.Names() {
		i := m.facts.Names.Of(name)
		w.Need = w.Need.Set(i, alt.Named[name].Int64())
		if i >= quantity.Extended && alt.Named[name].Int64() > 0 {
			w.extended = append(w.extended, i)
		}
	}
	if alt.GPU != nil {
		w.GPU = CardRequestOf(alt.GPU)
		w.GPU.alike = m.facts.ProfilesAlike
	}
	m.AskPods(w, alt.PerPod)
	w.accelerated = m.asksAccelerators(w)
	if m.facts.Asked {
		w.accelerator = func(resource int) bool { return m.isAccelerator(m.facts.Names.Name(resource)) }
	}
	return w
}

// CardRequestOf is a request for cards made ready.
func CardRequestOf(g *v1alpha1.GPURequest) *CardRequest {
	out := &CardRequest{
		Count: max(int64(g.Count), 1), Memory: g.Memory,
		vendor: strings.ToLower(g.Vendor), architecture: strings.ToLower(g.Architecture), tier: strings.ToLower(g.Tier),
		interconnect: strings.ToLower(g.Interconnect), Profile: strings.ToLower(g.Profile), Sharing: strings.ToLower(g.Sharing),
		capability: capability(g.ComputeCapability),
	}
	if g.Share != nil {
		out.Share = max(g.Share.Micro(), 1)
	}
	for _, m := range g.Models {
		m = strings.ToLower(strings.TrimSpace(m))
		if m == "any" {
			out.Models = nil
			break
		}
		out.Models = append(out.Models, m)
	}
	return out
}

// Loose reports whether the units that a request comes to may lie on any cards. So may those
// of none (nil): a size of the offer brings them, unasked for.
func (g *CardRequest) Loose(have *v1alpha1.FlavorGPU) bool {
	return g == nil || g.Share == 0 && IsCut(have)
}

// IsCut reports whether the units of cards are instances of MIG, each of which lies by itself.
func IsCut(have *v1alpha1.FlavorGPU) bool { return have.Profile != "" || have.Sharing == "mig" }

// Units is how many of a flavor's sellable units the request comes to: a share of
// a card is rounded up to units.
func (g *CardRequest) Units(perCard int64) int64 {
	if g.Share == 0 {
		return g.Count
	}
	return (g.Share*perCard + 999_999) / 1_000_000
}

// capability makes "8.9" comparable; 0 is none.
func capability(s string) int {
	major, minor, _ := strings.Cut(s, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return a*1000 + b
}

// matchesModel reports whether a card is one of the models: without regard to
// case, with or without the vendor, by any of a model's names. A size in the
// name (A100-80GB) is asked for too, of whole cards.
func (g *CardRequest) matchesModel(have *v1alpha1.FlavorGPU) bool {
	for _, want := range g.Models {
		if !gpunames.Match(want, have.Model) {
			continue
		}
		if size := gpunames.Named(want); size.IsZero() || have.UnitsPerGPU > 1 || have.Memory.IsZero() || size == have.Memory.Amount {
			return true
		}
	}
	return len(g.Models) == 0
}

// Size is what one replica takes of an offer: the need rounded up to the next
// legal size, minimum and then steps. It must not be modified.
func (w *Request) Size(o *inventory.Offer) quantity.Vector {
	if len(o.Min)+len(o.Step) == 0 {
		v, ok := w.sizes[o.UnitsPerCard]
		if !ok {
			if w.sizes == nil {
				w.sizes = map[int64]quantity.Vector{}
			}
			v = w.Asked(o)
			w.sizes[o.UnitsPerCard] = v
		}
		return v
	}
	v := w.Need.Clone()
	if w.GPU != nil {
		v = v.Set(quantity.GPU, w.GPU.Units(o.UnitsPerCard))
	}
	for i := range max(len(o.Min), len(o.Step)) {
		if o.Min.At(i) == 0 && o.Step.At(i) == 0 {
			continue
		}
		if v.At(i) == 0 && (o.Min.At(i) == 0 || w.unsold(i)) {
			continue
		}
		n := v1alpha1.AmountOf(v.At(i)).RoundUp(v1alpha1.AmountOf(o.Min.At(i)), v1alpha1.AmountOf(o.Step.At(i)))
		v = v.Set(i, n.Int64())
	}
	return v
}

// Asked is what one replica asks of an offer before rounding up.
func (w *Request) Asked(o *inventory.Offer) quantity.Vector {
	v := w.Need.Clone()
	if w.GPU != nil {
		v = v.Set(quantity.GPU, w.GPU.Units(o.UnitsPerCard))
	}
	return v
}
