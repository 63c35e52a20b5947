package view

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// ProviderRow is a cluster of the fleet in a list: one that gives, gets, or both.
type ProviderRow struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
	// State is Ready, Cordoned, Draining, Silent, Lost, Elsewhere, Unreported, or Unreachable
	// where nothing of its contracts is seen in it as their consumer.
	State string `json:"state"`
	// Since when it is Silent or Lost; until when it is Draining.
	Since v1alpha1.Time `json:"since,omitzero"`
	// Reported is when its agent last reported; absent when it has not since the daemon's
	// start, and where only files describe it (Static).
	Reported   v1alpha1.Time       `json:"reported,omitzero"`
	Static     bool                `json:"static,omitempty"`
	Location   v1alpha1.Location   `json:"location,omitzero"`
	Delivery   string              `json:"delivery,omitempty"`
	Flavors    int                 `json:"flavors"`
	GPUs       *Share              `json:"gpus,omitempty"`
	Gives      int                 `json:"gives"`
	Gets       int                 `json:"gets"`
	Conditions []planner.Condition `json:"conditions,omitempty"`
}

// States of a cluster that are not its offers'.
const (
	stateReady      = "Ready"
	stateCordoned   = "Cordoned"
	stateDraining   = "Draining"
	stateUnreported = "Unreported"
	// stateUnreachable is a consumer's in which nothing of its contracts is seen.
	stateUnreachable = "Unreachable"
)

func (m *Model) providerRows() []ProviderRow {
	by := map[string]*ProviderRow{}
	for name, c := range m.Fleet.Clusters {
		r := &ProviderRow{Name: name, Roles: c.Spec.Roles, State: stateReady, Location: c.Spec.Location, Gives: len(m.Ledger.HeldBy(name)), Gets: len(m.Ledger.Consumer(name))}
		if m.snap.Heard != nil {
			if at := m.snap.Heard(name); !at.IsZero() {
				r.Reported = v1alpha1.TimeOf(at)
			}
		}
		if c.HasRole(v1alpha1.RoleConsumer) {
			r.Delivery = CurrencyOr(c.Spec.Delivery, m.Fleet.Policy.Defaults.Delivery)
		}
		by[name] = r
	}
	m.stateOfOffers(by)
	for i := range m.flavors {
		f := &m.flavors[i]
		r := by[f.Provider]
		if r == nil {
			continue
		}
		r.Flavors++
		if f.GPUs != nil {
			if r.GPUs == nil {
				r.GPUs = &Share{}
			}
			r.GPUs.add(f.GPUs)
		}
	}
	for _, c := range m.snap.Plan.Conditions {
		if r := by[c.Provider]; r != nil {
			r.Conditions = append(r.Conditions, c)
		}
	}
	unseen := m.unseen()
	out := make([]ProviderRow, 0, len(by))
	for _, name := range sortedNames(by) {
		r := by[name]
		c := m.Fleet.Clusters[name]
		switch {
		case r.State != stateReady:
		case unseen[name]:
			r.State = stateUnreachable
		case !c.Spec.Drain.IsZero():
			r.State, r.Since = stateDraining, c.Spec.Drain
		case c.Spec.Cordon:
			r.State = stateCordoned
		case c.HasRole(v1alpha1.RoleProvider) && r.Reported.IsZero() && !r.Static && r.Flavors == 0:
			r.State = stateUnreported
		}
		out = append(out, *r)
	}
	slices.SortStableFunc(out, func(a, b ProviderRow) int { return providerRank(&a) - providerRank(&b) })
	return out
}

// unseen are the consumers that could not be looked into for one of their contracts.
func (m *Model) unseen() map[string]bool {
	out := map[string]bool{}
	for i := range m.contracts {
		c := &m.contracts[i]
		seen := m.snap.World.Observed.Of(c.Name).Consumer
		if c.Held && (c.Reason == ledger.DegradedConsumerUnreachable || !seen.Reachable && seen.Message != "") {
			out[c.Consumer] = true
		}
	}
	return out
}

// stateOfOffers takes over what is known of providers by their offers.
func (m *Model) stateOfOffers(by map[string]*ProviderRow) {
	for _, o := range m.Offers {
		r := by[o.Flavor.Metadata.Namespace]
		if r == nil {
			continue
		}
		r.Static = r.Static || o.Static
		switch o.State {
		case model.Silent, model.Lost, model.Elsewhere:
			r.State, r.Since = o.State.String(), o.Since
		}
		if r.Location == (v1alpha1.Location{}) {
			r.Location = o.Location
		}
	}
	for _, s := range m.snap.Plan.Silent {
		if r := by[s.Name]; r != nil && r.State == stateReady {
			r.State, r.Since = model.Silent.String(), s.Since
			if s.Lost {
				r.State = model.Lost.String()
			}
		}
	}
}

func providerRank(r *ProviderRow) int {
	switch r.State {
	case "Lost":
		return 0
	case "Silent":
		return 1
	case stateReady:
		return 3
	}
	return 2
}

// Providers is a page of the clusters. Their state is shown to everybody, conditions,
// which may name contracts, to those who see all.
func (m *Model) Providers(s Sight, q Query) List[ProviderRow] {
	text := strings.ToLower(q.Text)
	l := listOf(m.providers, q, func(r *ProviderRow) bool {
		return (q.State == "" || strings.EqualFold(q.State, allStates) || strings.EqualFold(q.State, r.State) || slices.Contains(r.Roles, strings.ToLower(q.State))) &&
			has(text, r.Name, r.Location.Region, r.Location.Country, r.State, strings.Join(r.Roles, " "))
	})
	if !s.All() {
		for i := range l.Items {
			l.Items[i].Conditions = nil
		}
	}
	return l
}

// ProviderPage is everything about one cluster.
type ProviderPage struct {
	ProviderRow

	Labels   map[string]string `json:"labels,omitempty"`
	Endpoint string            `json:"endpoint,omitempty"`
	Offers   []FlavorRow       `json:"offers"`
	// Given and Gotten are its contracts that are seen.
	Given  List[ContractRow] `json:"given"`
	Gotten List[ContractRow] `json:"gotten"`
	// Peerings that its held contracts need; for those who see all.
	Peerings []Peering `json:"peerings,omitempty"`
}

// Provider is a cluster's page; nil when there is none.
func (m *Model) Provider(s Sight, name string) *ProviderPage {
	at := slices.IndexFunc(m.providers, func(r ProviderRow) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	c := m.Fleet.Clusters[name]
	p := &ProviderPage{ProviderRow: m.providers[at], Labels: c.Spec.Labels, Endpoint: c.Spec.Endpoint, Offers: []FlavorRow{}}
	for i := range m.flavors {
		if m.flavors[i].Provider == name {
			p.Offers = append(p.Offers, m.flavors[i])
		}
	}
	p.Given = m.Contracts(s, Query{Provider: name, Page: 1})
	p.Gotten = m.Contracts(s, Query{Consumer: name, Page: 1})
	if s.All() {
		for _, pr := range m.Facts.Peerings() {
			if pr.Provider == name || pr.Consumer == name {
				p.Peerings = append(p.Peerings, pr)
			}
		}
	} else {
		p.Conditions = nil
	}
	return p
}

// PeeringPage is everything about one pair of clusters.
type PeeringPage struct {
	// Peering of the contracts that are seen.
	Peering

	// ConsumerState and ProviderState are the clusters'.
	ConsumerState string `json:"consumerState"`
	ProviderState string `json:"providerState"`
	// Messages are what the consumer cluster shows to be wrong with the pair.
	Messages []string          `json:"messages,omitempty"`
	Held     List[ContractRow] `json:"held"`
}

// Peering is a pair's page; nil when no contract between both is seen.
func (m *Model) Peering(s Sight, consumer, provider string) *PeeringPage {
	p := &PeeringPage{Peering: Peering{Consumer: consumer, Provider: provider, Currency: m.Currency()}, Held: m.Contracts(s, Query{Consumer: consumer, Provider: provider, Page: 1})}
	if p.Held.Total == 0 {
		return nil
	}
	for i := range m.contracts {
		c := &m.contracts[i]
		if !c.Held || c.Consumer != consumer || c.Provider != provider || !s.Of(c.Tenant) {
			continue
		}
		p.Contracts++
		if c.Phase == v1alpha1.PhaseActive {
			p.Active++
		}
		p.GPUs += c.GPUs
		if c.Phase.Charged() {
			p.Hourly = p.Hourly.Add(c.Hourly)
		}
		if text := m.snap.World.Observed.Of(c.Name).Consumer.PeeringMessage; text != "" && len(p.Messages) < 8 && !slices.Contains(p.Messages, text) {
			p.Messages = append(p.Messages, text)
		}
	}
	for i := range m.providers {
		switch r := &m.providers[i]; r.Name {
		case consumer:
			p.ConsumerState = r.State
		case provider:
			p.ProviderState = r.State
		}
	}
	return p
}

// PeeringsOf is a page of the peerings, for those who see all.
func (m *Model) PeeringsOf(s Sight, q Query) List[Peering] {
	text := strings.ToLower(q.Text)
	if !s.All() {
		return listOf([]Peering(nil), q, func(*Peering) bool { return false })
	}
	return listOf(m.Facts.Peerings(), q, func(p *Peering) bool {
		return (q.Provider == "" || q.Provider == p.Provider) && (q.Consumer == "" || q.Consumer == p.Consumer) && has(text, p.Consumer, p.Provider)
	})
}
