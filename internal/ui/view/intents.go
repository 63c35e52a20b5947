package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/howto"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// States of an intent that the ledger does not know.
const (
	stateNew    = "New"
	stateFrozen = "Frozen"
)

// IntentRow is an intent in a list.
type IntentRow struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// State is the ledger's; New before the ledger has one, Frozen while its file cannot
	// be read.
	State string        `json:"state"`
	Since v1alpha1.Time `json:"since,omitzero"`
	// Reason as a code, Message for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Held contracts that are charged, of so many Replicas.
	Held     int    `json:"held"`
	Replicas string `json:"replicas,omitempty"`
	// GPU request in short, "" for none.
	GPU string `json:"gpu,omitempty"`
	// Resources other than GPUs that a replica asks for.
	Resources v1alpha1.Resources `json:"resources,omitempty"`

	Consumer string `json:"consumer,omitempty"`
	Priority int32  `json:"priority"`
	// Hourly price of its charged contracts, in the fleet's currency.
	Hourly v1alpha1.Decimal `json:"hourly"`
	// FirstSeen is when it came.
	FirstSeen v1alpha1.Time `json:"firstSeen,omitzero"`
	// Removed: its file is gone, and contracts are being released.
	Removed bool `json:"removed,omitempty"`
}

// Asks is what a replica asks for, in words: GPUs, or the resources where there are none.
func (r IntentRow) Asks() string {
	if r.GPU != "" {
		return r.GPU
	}
	return strings.Join(inWords(r.Resources), ", ")
}

func (m *Model) intentRows() []IntentRow {
	known := map[[2]string]bool{}
	out := make([]IntentRow, 0, len(m.Fleet.Intents))
	for _, it := range m.Fleet.Intents {
		known[it.Key()] = true
		r := m.intentRow(it.Metadata.Namespace, it.Metadata.Name)
		r.Replicas, r.GPU, r.Priority = Replicas(it.Spec.Replicas), Request(it.Spec.Resources.GPU), it.Spec.Priority
		r.Resources = it.Spec.Resources.Named
		r.Consumer = it.Spec.Consumer
		if t := m.Fleet.Tenants[r.Tenant]; t != nil {
			r.Consumer = t.Spec.ConsumerOf(&it.Spec)
		}
		if it.Problem != "" && r.State == stateNew {
			r.State, r.Reason, r.Message = string(v1alpha1.IntentRefused), it.ProblemCode, it.Problem
		}
		out = append(out, r)
	}
	for s := range m.Ledger.States() {
		if key := [2]string{s.Metadata.Namespace, s.Metadata.Name}; !known[key] {
			r := m.intentRow(key[0], key[1])
			r.Removed = s.Status.Frozen == nil && key[0] != v1alpha1.FleetTenant
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b IntentRow) int {
		return cmp.Or(cmp.Compare(intentRank(&a), intentRank(&b)), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	return out
}

func intentRank(r *IntentRow) int {
	switch r.State {
	case stateFrozen, string(v1alpha1.IntentRefused):
		return 0
	case string(v1alpha1.IntentQueued), stateNew:
		return 1
	case string(v1alpha1.IntentDone):
		return 3
	}
	return 2
}

// intentRow is what the ledger knows of an intent.
func (m *Model) intentRow(tenant, name string) IntentRow {
	r := IntentRow{Tenant: tenant, Name: name, State: stateNew}
	if s := m.Ledger.State(tenant, name); s != nil {
		r.State, r.Since, r.Reason, r.Message, r.FirstSeen = string(s.Status.State), s.Status.Since, s.Status.Reason, s.Status.Message, s.Status.FirstSeen.At
		if f := s.Status.Frozen; f != nil {
			r.State, r.Since, r.Reason, r.Message = stateFrozen, f.Since, "", f.Reason
		}
	}
	for _, c := range m.Ledger.ByIntent(tenant, name) {
		if c.Status.Phase.Charged() {
			r.Held++
			r.Hourly = r.Hourly.Add(m.Hourly(c))
		}
	}
	return r
}

// Intents is a page of the intents.
func (m *Model) Intents(s Sight, q Query) List[IntentRow] {
	text := strings.ToLower(q.Text)
	return listOf(m.intents, q, func(r *IntentRow) bool {
		return s.Of(r.Tenant) && (q.State == "" || strings.EqualFold(q.State, allStates) || strings.EqualFold(q.State, r.State)) && (q.Tenant == "" || q.Tenant == r.Tenant) &&
			(q.Consumer == "" || q.Consumer == r.Consumer) && has(text, r.Tenant+"/"+r.Name, r.State, r.Reason, r.Message, r.GPU, r.Consumer)
	})
}

// IntentPage is everything about one intent but the offers (Offers), which cost a plan.
type IntentPage struct {
	IntentRow

	// Path of its file, Author and Commit of the change that was acted on, Digest of what
	// it asks for; as far as known.
	Path   string `json:"path,omitempty"`
	Author string `json:"author,omitempty"`
	Commit string `json:"commit,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Spec as its file has it; absent for one without a file.
	Spec *v1alpha1.IntentSpec `json:"spec,omitempty"`
	// Decision of the newest round; absent where it made none.
	Decision *Decision `json:"decision,omitempty"`
	// Placements are why its held contracts are where they are, as it was decided then.
	Placements []Placement `json:"placements,omitempty"`
	// Contracts it holds or held.
	Contracts []ContractRow `json:"contracts"`
	// Spent so far, and Ahead until the month or the terms end; absent where a rate of
	// exchange is missing.
	Spent *v1alpha1.Decimal `json:"spent,omitempty"`
	Ahead v1alpha1.Decimal  `json:"ahead"`
	// How to use what it holds.
	How *howto.Guide `json:"how"`
}

// Placement is why a contract was placed where it is.
type Placement struct {
	Contract   string             `json:"contract"`
	Provider   string             `json:"provider"`
	Flavor     string             `json:"flavor"`
	Considered int                `json:"considered"`
	Score      float64            `json:"score"`
	Next       *v1alpha1.RunnerUp `json:"next,omitempty"`
}

// Decision is what the newest round did with an intent, and why.
type Decision struct {
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// Rejected offers by the first requirement they fail, of Considered; Fitting fit.
	Rejected   []Count `json:"rejected,omitempty"`
	Considered int     `json:"considered,omitempty"`
	Fitting    int     `json:"fitting,omitempty"`
	// Near are offers that fail one requirement, Try changes that place the intent.
	Near []string `json:"near,omitempty"`
	Try  []string `json:"try,omitempty"`
	// Position in the queue from 1, and when it is expected to be served, as far as known.
	Position  int                 `json:"position,omitempty"`
	Since     v1alpha1.Time       `json:"since,omitzero"`
	GivesUp   v1alpha1.Time       `json:"givesUp,omitzero"`
	Expected  v1alpha1.Time       `json:"expected,omitzero"`
	Estimated bool                `json:"estimated,omitempty"`
	Proposals []v1alpha1.Proposal `json:"proposals,omitempty"`
}

// DecisionOf is a decision as a page shows it; nil for none.
func DecisionOf(d *planner.Decision) *Decision {
	if d == nil {
		return nil
	}
	return &Decision{
		Action: string(d.Action), Reason: joined(d.Reason, d.Also), Code: d.Code, Rejected: Counts(d.Rejected), Considered: d.Considered, Fitting: d.Fitting,
		Near: d.Near, Try: d.Try, Position: d.Position, Since: d.Since, GivesUp: d.GivesUp, Expected: d.Expected, Estimated: d.Estimated, Proposals: d.Proposals,
	}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// Intent is an intent's page; nil when there is none, or it is not seen.
func (m *Model) Intent(s Sight, tenant, name string) *IntentPage {
	if !s.Of(tenant) {
		return nil
	}
	at := slices.IndexFunc(m.intents, func(r IntentRow) bool { return r.Tenant == tenant && r.Name == name })
	decision := m.decisions[[2]string{tenant, name}]
	if at < 0 && decision == nil {
		return nil
	}
	p := &IntentPage{IntentRow: IntentRow{Tenant: tenant, Name: name, State: stateNew}, Decision: DecisionOf(decision), Contracts: []ContractRow{}, How: m.HowTo(tenant, name, howto.Job)}
	if at >= 0 {
		p.IntentRow = m.intents[at]
	}
	if it := m.Fleet.Intent(tenant, name); it != nil {
		p.Path, p.Digest, p.Spec = it.Path, it.Digest, &it.Spec
	}
	if st := m.Ledger.State(tenant, name); st != nil {
		p.Path, p.Author, p.Commit = cmp.Or(p.Path, st.Status.Path), st.Status.FirstSeen.Author, st.Status.FirstSeen.Commit
	}
	for _, c := range m.Ledger.ByIntent(tenant, name) {
		p.Contracts = append(p.Contracts, m.contractRow(c))
		p.Ahead = p.Ahead.Add(m.ahead(c))
		if c.Status.Phase.Held() {
			p.Author, p.Commit = cmp.Or(c.Spec.Intent.Author, p.Author), cmp.Or(c.Spec.Intent.Commit, p.Commit)
			why := Placement{Contract: c.Metadata.Name, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor, Considered: c.Decision.Considered, Score: c.Decision.Score}
			if len(c.Decision.RunnersUp) > 0 {
				why.Next = &c.Decision.RunnersUp[0]
			}
			if why.Considered > 0 {
				p.Placements = append(p.Placements, why)
			}
		}
	}
	slices.SortFunc(p.Contracts, func(a, b ContractRow) int {
		return cmp.Or(cmp.Compare(contractRank(&a), contractRank(&b)), strings.Compare(a.Name, b.Name))
	})
	if spent, err := m.Books.IntentSpent(m.Ledger, tenant, name, m.Now); err == nil {
		p.Spent = &spent
	}
	return p
}
