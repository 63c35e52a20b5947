package market

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// makeView is what a provider offers: what its agent reports, what it has
// withdrawn, and what files say of names that the agent does not report. What is
// as it was in the view before keeps its address, so that whoever compares sees
// at once what has changed, and nothing is kept twice; the view before is
// returned when all is. nil: the provider offers nothing.
func (m *Market) makeView(name string, state ProviderState, before *view) *view {
	offers := map[string]*model.Offer{}
	files := map[string]*v1alpha1.Flavor{}
	for _, f := range m.files[name] {
		files[f.Metadata.Name] = f
	}
	// Two that say the same are one: a file that is given as the market too.
	twice := func(f *v1alpha1.Flavor) bool {
		file := files[f.Metadata.Name]
		return file != nil && !reflect.DeepEqual(file.Spec, f.Spec)
	}
	add := func(f *v1alpha1.Flavor, static bool, withdrawn v1alpha1.Time) *v1alpha1.Flavor {
		if o := offers[f.Metadata.Name]; o != nil {
			return f
		}
		o := m.offer(f, static && !m.inputs.Reported[f.Ref()], before.offer(f.Metadata.Name))
		o.Sources.Shadows = !static && files[f.Metadata.Name] != nil
		switch o.Static = static; {
		case static:
		case state.State != model.Fresh:
			o.State, o.Since, o.GraceEnds = state.State, state.Since, state.GraceEnds
		case !withdrawn.IsZero():
			o.State, o.Since = model.Withdrawn, withdrawn
		}
		if was := before.offer(f.Metadata.Name); was != nil && *was == *o {
			o = was
		}
		offers[f.Metadata.Name] = o
		return o.Flavor
	}
	p := m.providers[name]
	if p != nil {
		for k, f := range p.reported {
			if shown := m.stated(p.lingering.on(f), twice(f)); shown != f {
				add(shown, false, v1alpha1.Time{})
				continue
			}
			p.reported[k] = add(f, false, v1alpha1.Time{})
		}
	}
	for _, f := range m.files[name] {
		switch c := m.inputs.Clusters[name]; {
		case m.inputs.Reported[f.Ref()]:
			f = m.stated(f, false)
		case c != nil && !c.Spec.Properties.IsZero():
			own := *f
			own.Spec.Properties = f.Spec.Properties.Over(c.Spec.Properties)
			f = &own
		}
		add(f, true, v1alpha1.Time{})
	}
	if p != nil {
		for _, w := range p.withdrawn {
			add(w.flavor, false, w.at)
		}
	}
	if len(offers) == 0 {
		return nil
	}
	v := &view{provider: name, offers: slices.SortedFunc(maps.Values(offers), func(a, b *model.Offer) int {
		return strings.Compare(a.Flavor.Metadata.Name, b.Flavor.Metadata.Name)
	})}
	if before != nil {
		if slices.Equal(v.offers, before.offers) {
			return before
		}
		v.newest.Store(before.newest.Load())
	}
	v.blob = sync.OnceValue(func() *written {
		w := writeBlob(v.offers, v.newest.Load())
		v.newest.Store(w)
		return w
	})
	return v
}

// offer is a flavor with what the inputs say of its price and place, made of
// parts of what the offer was before (which may be nil) where they say the same.
// reviewed: the flavor is a file's, not an agent's.
func (m *Market) offer(f *v1alpha1.Flavor, reviewed bool, was *model.Offer) *model.Offer {
	o := &model.Offer{Flavor: f, Sources: v1alpha1.Sources{Agent: !reviewed}}
	o.Location = m.place(f, reviewed, &o.Sources)
	price := m.windowed(f, m.price(f, reviewed, &o.Sources))
	if was != nil {
		o.Flavor = carried(f, was.Flavor)
		if reflect.DeepEqual(price, was.Price) {
			o.Price = was.Price
			return o
		}
	}
	o.Price = m.onePrice(price)
	return o
}

// keptPrices bounds the prices that are remembered in order to be shared.
const keptPrices = 10_000

// onePrice is one value for equal prices: a fleet has few, and whoever works
// something out of a price (the planner's tariffs) need not do it for each
// flavor. When too many have come they are forgotten; those in use stay.
func (m *Market) onePrice(p *v1alpha1.Price) *v1alpha1.Price {
	if p == nil {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("market: write a price: " + err.Error()) // every field of it can be written
	}
	if one := m.prices[string(text)]; one != nil {
		return one
	}
	if len(m.prices) >= keptPrices {
		clear(m.prices)
	}
	m.prices[string(text)] = p
	return p
}

// carried is a flavor, as it was before where nothing of it differs, and made of
// what it was before where only its use does.
func carried(f, was *v1alpha1.Flavor) *v1alpha1.Flavor {
	switch {
	case f == was:
		return was
	case !f.SameButUse(was):
		return f
	case sameUse(&f.Spec, &was.Spec):
		return was
	}
	y := *was
	y.Spec.Used, y.Spec.Held, y.Spec.HeldOn, y.Spec.Refused, y.Spec.Usage = f.Spec.Used, f.Spec.Held, f.Spec.HeldOn, f.Spec.Refused, f.Spec.Usage
	return &y
}

func sameUse(a, b *v1alpha1.FlavorSpec) bool {
	return a.Used.Equal(b.Used) && maps.Equal(a.Refused, b.Refused) &&
		maps.EqualFunc(a.Usage, b.Usage, v1alpha1.Resources.Equal) && maps.EqualFunc(a.Held, b.Held, v1alpha1.Resources.Equal) &&
		v1alpha1.SameOnNodes(a.HeldOn, b.HeldOn)
}

// currency names the fleet's currency where a price names none.
func (m *Market) currency(p v1alpha1.Price) *v1alpha1.Price {
	if p.Currency == "" {
		p.Currency = m.fleetCurrency()
	}
	return &p
}

func (m *Market) fleetCurrency() string {
	if c := m.inputs.Fleet.Currency; c != "" {
		return c
	}
	return "EUR"
}

// normalised is flavors of files with their GPUs under the names that agents
// report, sorted.
func normalised(flavors []*v1alpha1.Flavor) []*v1alpha1.Flavor {
	out := make([]*v1alpha1.Flavor, 0, len(flavors))
	for _, f := range flavors {
		c := *f
		normaliseGPU(&c)
		out = append(out, &c)
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Flavor) int {
		return slices.Compare([]string{a.Metadata.Namespace, a.Metadata.Name}, []string{b.Metadata.Namespace, b.Metadata.Name})
	})
	return out
}

// normaliseGPU brings model and vendor to the table's names. The size stays
// when one is given: it is the size of a sellable unit, which may be a part of
// a card.
func normaliseGPU(f *v1alpha1.Flavor) {
	if f.Spec.GPU == nil {
		return
	}
	g := *f.Spec.GPU
	vendor, model, memory := gpunames.Normalize(g.Model, 0)
	if vendor != "" {
		g.Vendor = vendor
	}
	g.Model = model
	if g.Memory.IsZero() && g.UnitsPerGPU <= 1 {
		g.Memory.Amount = memory
	}
	f.Spec.GPU = &g
}
