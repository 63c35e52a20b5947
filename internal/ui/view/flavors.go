package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// FlavorRow is an offer in a list.
type FlavorRow struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	// State is Fresh, Silent, Lost, Withdrawn, Elsewhere, Static or Cordoned.
	State string        `json:"state"`
	Since v1alpha1.Time `json:"since,omitzero"`
	Model string        `json:"model,omitempty"`
	// Profile of a part of a card; GPUs are then parts.
	Profile string `json:"profile,omitempty"`
	GPUs    *Share `json:"gpus,omitempty"`
	CPU     Share  `json:"cpu"`
	Memory  Share  `json:"memory"`
	// Oversold are GPUs that are used and held beyond what there is, Headroom those that may
	// still be sold beyond it (overcommit).
	Oversold int64 `json:"oversold,omitempty"`
	Headroom int64 `json:"headroom,omitempty"`
	// Growth is how many GPUs an autoscaler could add.
	Growth int64 `json:"growth,omitempty"`
	// Price of a GPU an hour, on demand and spot, in PriceCurrency; or Flat for all of it.
	Price         *v1alpha1.Decimal `json:"price,omitempty"`
	Spot          *v1alpha1.Decimal `json:"spot,omitempty"`
	Flat          bool              `json:"flat,omitempty"`
	PriceCurrency string            `json:"priceCurrency,omitempty"`
	// Reported: price or location are the agent's, and no file confirms them.
	PriceReported    bool              `json:"priceReported,omitempty"`
	LocationReported bool              `json:"locationReported,omitempty"`
	Location         v1alpha1.Location `json:"location,omitzero"`
	Contracts        int               `json:"contracts"`
}

// Share is how one resource of an offer is divided, in milli-CPU, bytes or units:
// Capacity (times overcommit) less Used by the provider's own pods and Held by contracts
// is Free, which is negative where an offer shrank below what it sold.
type Share struct {
	Capacity int64 `json:"capacity"`
	Used     int64 `json:"used"`
	Held     int64 `json:"held"`
	Free     int64 `json:"free"`
	// Sellable: the offer is open to new contracts. What is free of others cannot be had.
	Sellable bool `json:"sellable"`
}

// add sums shares. What cannot be sold counts as capacity, and not as free.
func (s *Share) add(o *Share) {
	s.Capacity, s.Used, s.Held = s.Capacity+o.Capacity, s.Used+o.Used, s.Held+o.Held
	if o.Sellable {
		s.Free, s.Sellable = s.Free+max(o.Free, 0), true
	}
}

// Rest is what is neither used, held nor free to be sold.
func (s Share) Rest() int64 {
	if !s.Sellable {
		return max(s.Capacity-s.Used-s.Held, 0)
	}
	return max(s.Capacity-s.Used-s.Held-max(s.Free, 0), 0)
}

// share of one resource.
func share(o v1alpha1.OfferFigures, free v1alpha1.Resources, name string, sellable bool) Share {
	return Share{
		Capacity: o.Capacity[name].Int64(), Used: o.Used[name].Int64(), Held: o.Held[name].Int64(),
		Free: free[name].Int64(), Sellable: sellable,
	}
}

// StateOf is how an offer stands, in a word.
func StateOf(o *model.Offer) string {
	switch {
	case o.Flavor.Spec.Cordon:
		return "Cordoned"
	case o.State != model.Fresh:
		return o.State.String()
	case o.Static:
		return "Static"
	}
	return model.Fresh.String()
}

func (m *Model) flavorRows() []FlavorRow {
	out := make([]FlavorRow, 0, len(m.Offers))
	for _, o := range m.Offers {
		out = append(out, m.flavorRow(o))
	}
	slices.SortFunc(out, func(a, b FlavorRow) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Name, b.Name))
	})
	return out
}

func (m *Model) flavorRow(o *model.Offer) FlavorRow {
	f := o.Flavor
	figures := m.Figures(f)
	free := ledger.Available(figures)
	cluster := m.Fleet.Clusters[f.Metadata.Namespace]
	sellable := o.State == model.Fresh && !f.Spec.Cordon && (cluster == nil || !cluster.Spec.Cordon)
	r := FlavorRow{
		Provider: f.Metadata.Namespace, Name: f.Metadata.Name, State: StateOf(o), Since: o.Since,
		CPU: share(figures, free, v1alpha1.CPU, sellable), Memory: share(figures, free, v1alpha1.Memory, sellable),
		Location: o.Location, LocationReported: o.Sources.Location == v1alpha1.SourceReported, PriceReported: o.Sources.Price == v1alpha1.SourceReported,
		Contracts: len(m.Ledger.HeldOn(f.Metadata.Namespace, f.Metadata.Name)),
	}
	if o.State == model.Fresh && cluster != nil && cluster.Spec.Cordon {
		r.State = "Cordoned"
	}
	if g := f.Spec.GPU; g != nil {
		r.Model, r.Profile = g.Model, g.Profile
		s := share(figures, free, v1alpha1.GPU, sellable)
		r.GPUs = &s
		r.Oversold = max(s.Used+s.Held-s.Capacity, 0)
		if sellable {
			r.Headroom = max(s.Free-max(s.Capacity-s.Used-s.Held, 0), 0)
		}
		r.Growth = Growth(f, free[v1alpha1.GPU]).Int64()
	}
	if p := o.Price; p != nil {
		r.PriceCurrency = CurrencyOr(p.Currency, m.Currency())
		if p.Flat != nil {
			r.Price, r.Flat = p.Flat, true
		} else if d, ok := p.PerHour[v1alpha1.GPU]; ok {
			r.Price = &d
		}
		if d, ok := p.Spot[v1alpha1.GPU]; ok {
			r.Spot = &d
		}
	}
	return r
}

// Flavors is a page of the offers. They are shown to everybody.
func (m *Model) Flavors(q Query) List[FlavorRow] {
	text := strings.ToLower(q.Text)
	return listOf(m.flavors, q, func(r *FlavorRow) bool {
		return (q.State == "" || strings.EqualFold(q.State, allStates) || strings.EqualFold(q.State, r.State) || strings.EqualFold(q.State, "free") && r.GPUs != nil && r.GPUs.Sellable && r.GPUs.Free > 0) &&
			(q.Provider == "" || q.Provider == r.Provider) && has(text, r.Provider+"/"+r.Name, r.Model, r.Profile, r.Location.Region, r.Location.Country, r.State)
	})
}

// FlavorPage is everything about one offer.
type FlavorPage struct {
	FlavorRow

	// Flavor as it is offered, without who holds it.
	Flavor *v1alpha1.Flavor `json:"flavor"`
	// Terms is the whole price that holds for it.
	Terms *v1alpha1.Price `json:"terms,omitempty"`
	// Shares of all its resources.
	Shares []NamedShare `json:"shares"`
	// Held are the contracts on it that are seen, of so many.
	Held []ContractRow `json:"held"`
	// Conflicts are what its agent reports otherwise than files state.
	Conflicts []string `json:"conflicts,omitempty"`
}

// NamedShare is a share with its resource.
type NamedShare struct {
	Name string `json:"name"`

	Share
}

// Flavor is an offer's page; nil when there is none.
func (m *Model) Flavor(s Sight, provider, name string) *FlavorPage {
	for _, o := range m.Offers {
		f := o.Flavor
		if f.Metadata.Namespace != provider || f.Metadata.Name != name {
			continue
		}
		shown := *f
		shown.Spec.Held, shown.Spec.Refused, shown.Spec.Usage = nil, nil, nil
		p := &FlavorPage{FlavorRow: m.flavorRow(o), Flavor: &shown, Terms: o.Price, Held: []ContractRow{}}
		figures := m.Figures(f)
		free := ledger.Available(figures)
		for _, name := range figures.Capacity.Names() {
			p.Shares = append(p.Shares, NamedShare{name, share(figures, free, name, p.CPU.Sellable)})
		}
		for _, c := range m.Ledger.HeldOn(provider, name) {
			if s.Of(c.Metadata.Namespace) {
				p.Held = append(p.Held, m.contractRow(c))
			}
		}
		for _, text := range []string{o.Sources.LocationConflict, o.Sources.PriceConflict} {
			if text != "" {
				p.Conflicts = append(p.Conflicts, text)
			}
		}
		return p
	}
	return nil
}
