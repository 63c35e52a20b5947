package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// ContractRow is a contract in a list: as it is seen now, which may be ahead of the
// ledger (Committed).
type ContractRow struct {
	wire.ContractState

	// Held: it keeps capacity.
	Held bool `json:"held"`
	// GPUs and their Model; 0 and "" for none.
	GPUs  int64  `json:"gpus,omitempty"`
	Model string `json:"model,omitempty"`
	// Hourly price now, in Currency.
	Hourly   v1alpha1.Decimal    `json:"hourly"`
	Currency string              `json:"currency"`
	Class    v1alpha1.PriceClass `json:"class,omitempty"`
	Start    v1alpha1.Time       `json:"start"`
	// End of the term; absent for none.
	End      v1alpha1.Time `json:"end,omitzero"`
	Expiring bool          `json:"expiring,omitempty"`
	// Usage as agents report it; absent where none does.
	Usage *Usage `json:"usage,omitempty"`

	ahead v1alpha1.Decimal // what it will cost until the month or its term ends
	cpu   int64            // milli-CPU
}

// contractRow is a contract's row.
func (m *Model) contractRow(c *v1alpha1.Contract) ContractRow {
	r := ContractRow{
		ContractState: wire.ContractState{
			Name: c.Metadata.Name, Tenant: c.Metadata.Namespace, Intent: c.Spec.Intent.Name,
			Consumer: c.Spec.Consumer, Provider: c.Spec.Provider, Flavor: c.Spec.Flavor,
			Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message, Since: c.Status.Since,
		},
		Hourly: m.Hourly(c), Currency: m.Currency(), Class: c.Spec.Price.Class, Start: c.Spec.Term.Start, End: c.Spec.Term.End,
		Expiring: ledger.Expiring(c, m.Now), Usage: m.usage(c), ahead: m.ahead(c), cpu: c.Spec.Resources[v1alpha1.CPU].Int64(),
	}
	if now := m.states[r.Name]; now != nil {
		r.ContractState = *now
	}
	r.Held = r.Phase.Held()
	if g := c.Spec.GPUs; g != nil {
		r.GPUs, r.Model = g.Count, g.Model
	}
	if _, err := m.Books.Convert(r.Hourly, c.Spec.Price.Currency, m.Now); err != nil {
		r.Currency = c.Spec.Price.Currency
	}
	return r
}

// contractRows are all contracts of the tree: the held ones first, those that need a
// look before the others, then by name.
func (m *Model) contractRows() []ContractRow {
	out := make([]ContractRow, 0, m.Ledger.Len())
	for c := range m.Ledger.Contracts() {
		out = append(out, m.contractRow(c))
	}
	slices.SortFunc(out, func(a, b ContractRow) int {
		return cmp.Or(cmp.Compare(contractRank(&a), contractRank(&b)), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	return out
}

func contractRank(r *ContractRow) int {
	switch {
	case r.Phase == v1alpha1.PhaseDegraded:
		return 0
	case r.Phase == v1alpha1.PhaseReleasing && len(r.Blockers) > 0:
		return 1
	case NeedsLook(r.Phase, r.Reason):
		return 2
	case r.booked():
		return 4
	case !r.Held:
		return 5
	}
	return 3
}

// NeedsLook reports whether people should look at a contract: it is charged and has a
// reason why it is not well, not Active yet or cannot be reached, or it is being released.
func NeedsLook(p v1alpha1.Phase, reason string) bool {
	return p == v1alpha1.PhaseDegraded || p == v1alpha1.PhaseReleasing || p.Charged() && reason != ""
}

// booked: its term has not begun, and its capacity is sold from then on.
func (r *ContractRow) booked() bool { return r.Phase == v1alpha1.PhaseBooked }

// Contracts is a page of the contracts: held and booked ones by default, `state=all` those too that
// have ended and are still in the tree.
func (m *Model) Contracts(s Sight, q Query) List[ContractRow] {
	text := strings.ToLower(q.Text)
	return listOf(m.contracts, q, func(r *ContractRow) bool {
		return s.Of(r.Tenant) && (strings.EqualFold(q.State, allStates) || q.State == "" && (r.Held || r.booked()) || strings.EqualFold(q.State, string(r.Phase))) &&
			(q.Tenant == "" || q.Tenant == r.Tenant) && (q.Provider == "" || q.Provider == r.Provider) && (q.Consumer == "" || q.Consumer == r.Consumer) &&
			has(text, r.Name, r.Tenant, r.Intent, r.Provider+"/"+r.Flavor, r.Consumer, r.Model, string(r.Phase), r.Reason)
	})
}

// Named are the names of the contracts that match, of all that are in the ledger's tree.
func (m *Model) Named(match func(*ContractRow) bool) map[string]bool {
	out := map[string]bool{}
	for i := range m.contracts {
		if match(&m.contracts[i]) {
			out[m.contracts[i].Name] = true
		}
	}
	return out
}

// ContractPage is everything about one contract.
type ContractPage struct {
	ContractRow

	// Contract as it is in the ledger.
	Contract *v1alpha1.Contract `json:"contract"`
	// Accrued is what it has cost since it was reserved, Ahead what it will until the
	// month or its term ends, both in the currency of its price.
	Accrued v1alpha1.Decimal `json:"accrued"`
	Ahead   v1alpha1.Decimal `json:"ahead"`
	// Breach is how it breaks its intent's sla at present, "" when it does not.
	Breach string `json:"slaBreach,omitempty"`
	// Rejected are the offers that were not considered further, by requirement.
	Rejected []Count `json:"rejected,omitempty"`
	// Terms of the score.
	Terms []Term `json:"terms,omitempty"`
	// History is its last phases, the newest first.
	History []v1alpha1.PhaseChange `json:"history,omitempty"`
	// Seen is its objects as the consumer cluster shows them; absent when nobody looked.
	Seen *Seen `json:"seen,omitempty"`
}

// Seen is what a consumer cluster shows of a contract.
type Seen struct {
	// Slice, VirtualNode and Node are present, absent or unknown.
	Slice       string `json:"slice"`
	VirtualNode string `json:"virtualNode"`
	Node        string `json:"node"`
	NodeReady   bool   `json:"nodeReady"`
	// Offloading is ready in all namespaces of the contract.
	Offloading  bool               `json:"offloading"`
	Allocatable v1alpha1.Resources `json:"allocatable,omitempty"`
	// Messages say what is wrong.
	Messages []string `json:"messages,omitempty"`
}

func seenOf(o v1alpha1.ConsumerObservation) *Seen {
	if !o.Reachable && o.Message == "" {
		return nil
	}
	word := func(p v1alpha1.Presence) string {
		return [...]string{"unknown", "absent", "present"}[min(p, v1alpha1.Present)]
	}
	s := &Seen{Slice: word(o.Slice), VirtualNode: word(o.VirtualNode), Node: word(o.Node), NodeReady: o.NodeReady, Offloading: o.Offloading, Allocatable: o.Allocatable}
	for _, text := range []string{o.Message, o.PeeringMessage, o.ProviderMessage, o.SliceDenied, o.NodeMessage, o.OffloadingMessage} {
		if text != "" && !slices.Contains(s.Messages, text) {
			s.Messages = append(s.Messages, text)
		}
	}
	return s
}

// Count is how many of one thing there are.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Term is one part of a score.
type Term struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Contract is a contract's page; nil when there is none, or it is not seen.
func (m *Model) Contract(s Sight, name string) *ContractPage {
	c := m.Ledger.Contract(name)
	if c == nil || !s.Of(c.Metadata.Namespace) {
		return nil
	}
	p := &ContractPage{ContractRow: m.contractRow(c), Contract: c, Accrued: m.Books.Accrued(c, m.Now), Rejected: Counts(c.Decision.Rejected)}
	_, p.Breach = m.breach(&p.ContractRow)
	if c.Status.Phase.Charged() {
		p.Ahead = m.Books.HoldMonthly(c, m.Now)
	}
	for _, name := range sortedNames(c.Decision.Scores) {
		p.Terms = append(p.Terms, Term{name, c.Decision.Scores[name]})
	}
	p.History = slices.Clone(c.Status.History)
	slices.Reverse(p.History)
	p.Seen = seenOf(m.snap.World.Observed.Of(name).Consumer)
	return p
}

// Counts are the entries of a map, the largest first.
func Counts(by map[string]int) []Count {
	out := make([]Count, 0, len(by))
	for name, n := range by {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name)) })
	return out
}
