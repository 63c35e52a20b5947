package planner

import (
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// wish is one alternative of an intent, made ready for comparing it with many
// offers.
type wish struct {
	in       *v1alpha1.ResourceIntent
	tenant   *v1alpha1.TenantSpec
	consumer string
	// need of one replica before rounding up; its GPU units depend on the offer.
	need quantity.Vector
	// extended resources among need, in order of name.
	extended []int
	gpu      *gpuWish
	where    model.Predicate
	policies []model.Policy
	purchase []v1alpha1.PriceClass
	// replicas that are still to be placed, and the money for them.
	replicas int64
	money    purse
	// term in seconds, 0 when open-ended.
	seconds int64
	weights weights
	// units of of that a part of a split replica is, none for a whole one.
	units, of int64
	// cards remembers which fact each kind of card lacks, sizes what is taken of
	// offers without a partition, by units a card.
	cards []string
	sizes map[int64]quantity.Vector
}

// gpuWish is what an intent wants of cards.
type gpuWish struct {
	count int64
	// share of one card in millionths, 0 when whole units are counted.
	share  int64
	models []string
	memory v1alpha1.MemoryRange
	vendor, architecture, tier, interconnect,
	profile, sharing string
	capability int
}

// purse is what an intent may still spend: an hour in each price class, an
// hour and GPU, and over its whole life; unlimited where nothing was said.
type purse struct {
	hourly, hourlySpot, perGPU, total quantity.Micro
	// limited says that there is any limit, the tenant's included: such an
	// intent takes no unpriced offer.
	limited bool
}

// weights of a score's terms, normalised to a sum of 1.
type weights struct {
	resources, cost, latency, reliability, performance, energy float64
	// work: the cost term compares what the same work costs (objective
	// performance), not an hour.
	work bool
}

// alternatives lists the requests of an intent in order of preference. An
// alternative's gpu replaces the whole gpu; other quantities replace their own.
func alternatives(s *v1alpha1.IntentSpec) []v1alpha1.ResourceRequest {
	out := []v1alpha1.ResourceRequest{s.Resources}
	for _, a := range s.Alternatives {
		out = append(out, a.Over(s.Resources))
	}
	return out
}

// wishOf makes one alternative ready.
func (r *round) wishOf(j *job, alt v1alpha1.ResourceRequest) *wish {
	s := &j.in.Spec
	w := &wish{
		in: j.in.ResourceIntent, tenant: j.tenant.Spec, consumer: j.consumer,
		where: j.in.Where, purchase: s.Purchase, weights: r.weightsOf(s),
	}
	w.units, w.of = j.units, j.of
	if len(w.purchase) == 0 {
		w.purchase = []v1alpha1.PriceClass{v1alpha1.OnDemand}
	}
	for _, p := range r.w.Policies {
		if p.Binds(j.in.Metadata.Namespace) {
			w.policies = append(w.policies, p)
		}
	}
	if w.need = r.defaults.Clone(); !lifecycle.Sliced(s.FlavorType) {
		w.need = make(quantity.Vector, quantity.Extended) // Liqo's defaults are for slices
	}
	for _, name := range alt.Named.Names() {
		i := r.names.Of(name)
		w.need = w.need.Set(i, alt.Named[name].Int64())
		if i >= quantity.Extended && alt.Named[name].Int64() > 0 {
			w.extended = append(w.extended, i)
		}
	}
	if alt.GPU != nil {
		w.gpu = gpuWishOf(alt.GPU)
	}
	return w
}

func gpuWishOf(g *v1alpha1.GPURequest) *gpuWish {
	out := &gpuWish{
		count: max(int64(g.Count), 1), memory: g.Memory,
		vendor: strings.ToLower(g.Vendor), architecture: strings.ToLower(g.Architecture), tier: strings.ToLower(g.Tier),
		interconnect: strings.ToLower(g.Interconnect), profile: strings.ToLower(g.Profile), sharing: strings.ToLower(g.Sharing),
		capability: capability(g.ComputeCapability),
	}
	if g.Share != nil {
		out.share = max(g.Share.Micro(), 1)
	}
	for _, m := range g.Models {
		m = strings.ToLower(strings.TrimSpace(m))
		if m == "any" {
			out.models = nil
			break
		}
		out.models = append(out.models, m)
	}
	return out
}

// units is how many of a flavor's sellable units the wish comes to: a share of
// a card is rounded up to units.
func (g *gpuWish) units(perCard int64) int64 {
	if g.share == 0 {
		return g.count
	}
	return (g.share*perCard + 999_999) / 1_000_000
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
func (g *gpuWish) matchesModel(have *v1alpha1.FlavorGPU) bool {
	for _, want := range g.models {
		if !gpunames.Match(want, have.Model) {
			continue
		}
		if size := gpunames.Named(want); size.IsZero() || have.UnitsPerGPU > 1 || have.Memory.IsZero() || size == have.Memory.Amount {
			return true
		}
	}
	return len(g.models) == 0
}

// size is what one replica takes of an offer: the need rounded up to the next
// legal size, minimum and then steps. It must not be modified.
func (w *wish) size(o *inventory.Offer) quantity.Vector {
	if len(o.Min)+len(o.Step) == 0 {
		v, ok := w.sizes[o.UnitsPerCard]
		if !ok {
			if w.sizes == nil {
				w.sizes = map[int64]quantity.Vector{}
			}
			v = w.asked(o)
			w.sizes[o.UnitsPerCard] = v
		}
		return v
	}
	v := w.need.Clone()
	if w.gpu != nil {
		v = v.Set(quantity.GPU, w.gpu.units(o.UnitsPerCard))
	}
	for i := range max(len(o.Min), len(o.Step)) {
		if o.Min.At(i) == 0 && o.Step.At(i) == 0 {
			continue
		}
		if v.At(i) == 0 && o.Min.At(i) == 0 {
			continue
		}
		n := v1alpha1.AmountOf(v.At(i)).RoundUp(v1alpha1.AmountOf(o.Min.At(i)), v1alpha1.AmountOf(o.Step.At(i)))
		v = v.Set(i, n.Int64())
	}
	return v
}

// asked is what one replica asks of an offer before rounding up.
func (w *wish) asked(o *inventory.Offer) quantity.Vector {
	v := w.need.Clone()
	if w.gpu != nil {
		v = v.Set(quantity.GPU, w.gpu.units(o.UnitsPerCard))
	}
	return v
}
