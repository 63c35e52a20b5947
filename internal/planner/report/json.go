package report

import (
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// document is `plan -o json`: names and shapes are fixed, fields may be added.
type document struct {
	Commit  string    `json:"commit"`
	Market  string    `json:"market"`
	Summary summary   `json:"summary"`
	Intents []intent  `json:"intents"`
	Errors  []Problem `json:"errors"`
	// HeldBack is why ends were not made; absent when nothing was held back.
	HeldBack string `json:"heldBack,omitempty"`
	// Budgets of tenants that have one.
	Budgets []budget `json:"budgets,omitempty"`
	// Signatures is what the signatures of the inputs were held to.
	Signatures string `json:"signatures,omitempty"`
	// Bookings are what is booked ahead after the plan, by flavor and start.
	Bookings []booking `json:"bookings,omitempty"`
	// Notes name fields that are not acted on yet.
	Notes []string `json:"notes,omitempty"`
}

// budget is a tenant's budget after the plan.
type budget struct {
	Tenant     string            `json:"tenant"`
	Month      string            `json:"month"`
	Accrued    v1alpha1.Decimal  `json:"accrued"`
	Held       v1alpha1.Decimal  `json:"held"`
	Forecast   v1alpha1.Decimal  `json:"forecast"`
	MaxMonthly *v1alpha1.Decimal `json:"monthly,omitempty"`
	Hourly     v1alpha1.Decimal  `json:"hourly"`
	MaxHourly  *v1alpha1.Decimal `json:"maxHourly,omitempty"`
	AtLimit    string            `json:"atLimit"`
	Warning    string            `json:"warning,omitempty"`
	Currency   string            `json:"currency"`
}

type summary struct {
	Place        int              `json:"place"`
	Keep         int              `json:"keep"`
	Resize       int              `json:"resize"`
	Move         int              `json:"move"`
	Release      int              `json:"release"`
	Preempt      int              `json:"preempt"`
	Queue        int              `json:"queue"`
	Refuse       int              `json:"refuse"`
	Suspend      int              `json:"suspend"`
	Done         int              `json:"done"`
	Frozen       int              `json:"frozen"`
	Find         int              `json:"find"`
	HourlyBefore v1alpha1.Decimal `json:"hourlyBefore"`
	HourlyAfter  v1alpha1.Decimal `json:"hourlyAfter"`
	Currency     string           `json:"currency"`
}

type intent struct {
	Tenant      string         `json:"tenant"`
	Name        string         `json:"name"`
	Path        string         `json:"path,omitempty"`
	Action      string         `json:"action"`
	Contracts   []contract     `json:"contracts"`
	Reason      string         `json:"reason"`
	Code        string         `json:"code,omitempty"`
	Rejected    map[string]int `json:"rejected"`
	Considered  int            `json:"considered"`
	Fitting     int            `json:"fitting"`
	Near        []string       `json:"near,omitempty"`
	Try         []string       `json:"try,omitempty"`
	Alternative int            `json:"alternative"`
	// Proposals are moves to better offers that are not made, or not yet.
	Proposals []v1alpha1.Proposal `json:"proposals,omitempty"`
	Since     *v1alpha1.Time      `json:"since,omitempty"`
	GivesUp   *v1alpha1.Time      `json:"givesUp,omitempty"`
	// Position in the queue, from 1.
	Position int `json:"position,omitempty"`
	// Expected is when it is expected to be served, "unknown" when what is known to end does not show it.
	Expected string `json:"expected,omitempty"`
}

type contract struct {
	Name      string             `json:"name"`
	Action    string             `json:"action,omitempty"`
	Provider  string             `json:"provider"`
	Flavor    string             `json:"flavor"`
	From      string             `json:"from,omitempty"`
	Consumer  string             `json:"consumer,omitempty"`
	Resources v1alpha1.Resources `json:"resources"`
	// Nodes of the provider on which it lies, where the flavor tells them.
	Nodes    []v1alpha1.ContractNode `json:"nodes,omitempty"`
	Hourly   v1alpha1.Decimal        `json:"hourly"`
	Currency string                  `json:"currency"`
	Transfer *v1alpha1.Decimal       `json:"transfer,omitempty"`
	Score    float64                 `json:"score"`
	Phase    string                  `json:"phase,omitempty"`
}

// JSON writes the plan for programs; money is exact.
func JSON(w io.Writer, p *planner.Plan, m Meta) error { return escape.WriteJSON(w, encode(p, m)) }

// YAML writes what JSON writes, as YAML.
func YAML(w io.Writer, p *planner.Plan, m Meta) error { return writeYAML(w, encode(p, m)) }

func encode(p *planner.Plan, m Meta) document {
	doc := document{Commit: p.Inputs, Market: p.Market, Intents: []intent{}, Errors: []Problem{}, HeldBack: p.HeldBack, Notes: p.Notes, Signatures: m.Signatures, Bookings: bookingsOf(p.Calendar)}
	n := p.Summary()
	doc.Summary = summary{
		Place: n[planner.Place], Keep: n[planner.Keep], Resize: n[planner.Resize], Move: n[planner.Move],
		Release: n[planner.Release], Preempt: n[planner.Preempt], Queue: n[planner.Queued], Refuse: n[planner.Refuse],
		Suspend: n[planner.Suspend], Done: n[planner.Done], Frozen: n[planner.Frozen], Find: n[planner.Find],
		HourlyBefore: p.HourlyBefore, HourlyAfter: p.HourlyAfter, Currency: p.Currency,
	}
	v := newView(p)
	for i := range p.Intents {
		doc.Intents = append(doc.Intents, encodeIntent(v, p.Intents[i]))
	}
	for i := range p.Budgets {
		b := &p.Budgets[i]
		doc.Budgets = append(doc.Budgets, budget{
			Tenant: b.Tenant, Month: b.Month, Accrued: b.Accrued, Held: b.Held, Forecast: b.Forecast, MaxMonthly: b.MaxMonthly,
			Hourly: b.Hourly, MaxHourly: b.MaxHourly, AtLimit: b.AtLimit, Warning: b.Warning, Currency: p.Currency,
		})
	}
	doc.Errors = append(doc.Errors, m.Errors...)
	return doc
}

func encodeIntent(v *view, d *planner.Decision) intent {
	a := v.accountOf(d)
	out := intent{
		Tenant: d.Tenant, Name: d.Name, Path: d.Path, Action: string(d.Action), Contracts: []contract{},
		Reason: v.why(d), Code: d.Code, Rejected: map[string]int{}, Considered: a.considered, Fitting: a.fitting,
		Near: d.Near, Try: d.Try, Alternative: d.Alternative, Proposals: d.Proposals,
	}
	for name, count := range a.rejected {
		out.Rejected[name] = count
	}
	if !d.Since.IsZero() {
		out.Since = &d.Since
	}
	if !d.GivesUp.IsZero() {
		out.GivesUp = &d.GivesUp
	}
	out.Position = d.Position
	switch {
	case !d.Expected.IsZero():
		out.Expected = d.Expected.UTC().Format(time.RFC3339)
	case d.Estimated:
		out.Expected = "unknown"
	}
	for i := range d.Contracts {
		c := &d.Contracts[i]
		var transfer *v1alpha1.Decimal
		if !c.Transfer.IsZero() {
			transfer = &c.Transfer
		}
		out.Contracts = append(out.Contracts, contract{
			Transfer: transfer,
			Name:     c.Name, Action: string(c.Action), Provider: c.Provider, Flavor: c.Flavor, From: c.From, Consumer: c.Consumer,
			Resources: c.Resources, Nodes: c.Nodes, Hourly: c.Hourly, Currency: currency(v.plan, c), Score: c.Score, Phase: string(c.Phase),
		})
	}
	return out
}

func writeYAML(w io.Writer, v any) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(b)
	return err
}
