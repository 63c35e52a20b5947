package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// costLine is what one contract cost in one calendar month, in the fleet's currency.
type costLine struct {
	tenant, intent, provider, contract, month string
	amount, list                              v1alpha1.Decimal
	norate                                    bool
}

// costLines are what all contracts cost, those that have left the tree too: the ledger
// keeps their sums by month.
func (m *Model) costLines() []costLine {
	var out []costLine
	add := func(l costLine, amount, list v1alpha1.Decimal, currency string) {
		var err error
		if l.amount, err = m.Books.Convert(amount, currency, m.Now); err == nil {
			l.list, err = m.Books.Convert(list, currency, m.Now)
		}
		l.norate = err != nil
		out = append(out, l)
	}
	for _, tenant := range m.Ledger.Tenants() {
		for _, s := range m.Ledger.Spends(tenant) {
			for i := range s.Entries {
				e := &s.Entries[i]
				add(costLine{tenant: tenant, intent: e.Intent, provider: e.Provider, contract: e.Contract, month: s.Metadata.Name}, e.Amount, e.List, e.Currency)
			}
		}
	}
	for c := range m.Ledger.Contracts() {
		for month, cost := range m.Books.CostByMonth(c, m.Now) {
			add(costLine{tenant: c.Metadata.Namespace, intent: c.Spec.Intent.Name, provider: c.Spec.Provider, contract: c.Metadata.Name, month: month}, cost.Amount, cost.List, c.Spec.Price.Currency)
		}
	}
	return out
}

// CostRow is what one tenant, intent, provider, month or contract cost.
type CostRow struct {
	Name string `json:"name"`
	// Cost that has accrued, List what it would have been at list price, Saved the
	// difference.
	Cost  v1alpha1.Decimal `json:"cost"`
	List  v1alpha1.Decimal `json:"list"`
	Saved v1alpha1.Decimal `json:"saved"`
	// Ahead is what contracts will cost until the month or their term ends; for the
	// present month only.
	Ahead *v1alpha1.Decimal `json:"ahead,omitempty"`
	// Idle are contracts that are Active and have no pod now, IdleHourly what they cost an
	// hour; Unreported are those of which no agent says. For the present month only.
	Idle       int              `json:"idle,omitempty"`
	IdleHourly v1alpha1.Decimal `json:"idleHourly"`
	Unreported int              `json:"unreported,omitempty"`
	// Missing are months of contracts that are not counted: their currency has no rate.
	Missing int `json:"missing,omitempty"`
}

// CostPage is costs added up.
type CostPage struct {
	// By is tenant, intent, provider, month, contract or label:KEY.
	By string `json:"by"`
	// Labels of intents that costs can be added up by, as label:KEY.
	Labels []string `json:"labels,omitempty"`
	// Month that is counted, "" for all. Months are those that have costs, newest first.
	Month  string   `json:"month,omitempty"`
	Months []string `json:"months"`

	// Present: it is the month of now, whose rows tell what is idle and still to come.
	Present bool `json:"present"`

	Rows  List[CostRow] `json:"rows"`
	Total CostRow       `json:"total"`
}

// CostKeys are what costs can be added up by, besides LabelPrefix with a label of intents.
var CostKeys = []string{"tenant", "intent", "provider", "month", "contract"}

// LabelPrefix comes before the label of intents that costs are added up by.
const LabelPrefix = "label:"

// Names of costs that no value of a label has.
const (
	noLabel  = "(without the label)"
	noIntent = "(intent is gone)"
	maxKeys  = 50
)

// labelled is the value of a label that a line's intent has now.
func (m *Model) labelled(l *costLine, label string) string {
	it := m.Fleet.Intent(l.tenant, l.intent)
	switch {
	case it == nil:
		return noIntent
	case it.Metadata.Labels[label] == "":
		return noLabel
	}
	return it.Metadata.Labels[label]
}

// labelKeys are the labels of intents that are seen, the first ones by name.
func (m *Model) labelKeys(s Sight) []string {
	keys := map[string]bool{}
	for _, it := range m.Fleet.Intents {
		if s.Of(it.Metadata.Namespace) {
			for k := range it.Metadata.Labels {
				keys[LabelPrefix+k] = true
			}
		}
	}
	out := sortedNames(keys)
	return out[:min(len(out), maxKeys)]
}

// keys is what lines are added to.
func (m *Model) keys(by string) func(*costLine) string {
	if label, ok := strings.CutPrefix(by, LabelPrefix); ok {
		known := map[[2]string]string{}
		return func(l *costLine) string {
			key := [2]string{l.tenant, l.intent}
			value, ok := known[key]
			if !ok {
				value = m.labelled(l, label)
				known[key] = value
			}
			return value
		}
	}
	switch by {
	case "intent":
		return func(l *costLine) string { return l.tenant + "/" + l.intent }
	case "provider":
		return func(l *costLine) string { return l.provider }
	case "month":
		return func(l *costLine) string { return l.month }
	case "contract":
		return func(l *costLine) string { return l.contract }
	}
	return func(l *costLine) string { return l.tenant }
}

// AllMonths in Query.Month counts all months.
const AllMonths = "all"

// Cost adds up what is seen: of the present month unless the query names another, all or
// asks for months. Who sees no tenant gets the total alone.
func (m *Model) Cost(s Sight, q Query) (CostPage, error) {
	p := CostPage{By: cmp.Or(q.By, "tenant"), Month: q.Month, Months: []string{}, Labels: m.labelKeys(s)}
	if label, ok := strings.CutPrefix(p.By, LabelPrefix); !slices.Contains(CostKeys, p.By) && (!ok || label == "" || len(label) > maxWords) {
		return p, fmt.Errorf("by: %.20q is not one of %s, %sKEY", q.By, strings.Join(CostKeys, ", "), LabelPrefix)
	}
	this := m.Books.Month(m.Now)
	switch {
	case p.Month == "" && p.By != "month":
		p.Month = this
	case p.Month == AllMonths:
		p.Month = ""
	}
	rows, open := map[string]*CostRow{}, s.None()
	lines, key := m.costs(), m.keys(p.By)
	p.Months = monthsOf(lines, this, func(l *costLine) bool { return open || s.Of(l.tenant) })
	if _, err := time.Parse("2006-01", p.Month); p.Month != "" && err != nil {
		return p, fmt.Errorf("month: %.20q is no month as 2026-11 is one; costs are known of %s, and %s counts them all", p.Month, strings.Join(p.Months, ", "), AllMonths)
	}
	for i := range lines {
		l := &lines[i]
		if !open && !s.Of(l.tenant) {
			continue
		}
		if p.Month != "" && l.month != p.Month {
			continue
		}
		name := key(l)
		r := rows[name]
		if r == nil {
			r = &CostRow{Name: name}
			rows[name] = r
		}
		r.add(l)
	}
	for _, r := range rows {
		r.Saved = r.List.Sub(r.Cost)
		p.Total.Cost, p.Total.List, p.Total.Missing = p.Total.Cost.Add(r.Cost), p.Total.List.Add(r.List), p.Total.Missing+r.Missing
	}
	p.Total.Saved = p.Total.List.Sub(p.Total.Cost)
	if p.Present = p.Month == this; p.Present {
		m.addAhead(s, key, rows, &p.Total)
		m.addIdle(s, key, rows, &p.Total)
	}
	if open {
		rows = nil
	}
	p.Rows = listOf(sortedRows(rows, p.By), q, func(r *CostRow) bool { return has(strings.ToLower(q.Text), r.Name) })
	return p, nil
}

// monthsOf are the months of the lines that are seen and the present one, the newest first.
func monthsOf(lines []costLine, this string, seen func(*costLine) bool) []string {
	months := map[string]bool{this: true}
	for i := range lines {
		if seen(&lines[i]) {
			months[lines[i].month] = true
		}
	}
	out := sortedNames(months)
	slices.Reverse(out)
	return out
}

func (r *CostRow) add(l *costLine) {
	if l.norate {
		r.Missing++
		return
	}
	r.Cost, r.List = r.Cost.Add(l.amount), r.List.Add(l.list)
}

// addAhead adds what the contracts that are seen will cost this month.
func (m *Model) addAhead(s Sight, key func(*costLine) string, rows map[string]*CostRow, total *CostRow) {
	sums := map[string]v1alpha1.Decimal{}
	for i := range m.contracts {
		c := &m.contracts[i]
		if !c.Phase.Charged() || !s.None() && !s.Of(c.Tenant) {
			continue
		}
		name := key(&costLine{tenant: c.Tenant, intent: c.Intent, provider: c.Provider, contract: c.Name, month: m.Books.Month(m.Now)})
		sums[name] = sums[name].Add(c.ahead)
	}
	if len(sums) == 0 {
		return
	}
	all := v1alpha1.Zero
	for name, sum := range sums {
		all = all.Add(sum)
		if r := rows[name]; r != nil {
			r.Ahead = &sum
		}
	}
	total.Ahead = &all
}

// sortedRows are months with the newest first, all else with the most expensive first.
func sortedRows(by map[string]*CostRow, key string) []CostRow {
	out := make([]CostRow, 0, len(by))
	for _, r := range by {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b CostRow) int {
		if key == "month" {
			return strings.Compare(b.Name, a.Name)
		}
		return cmp.Or(b.Cost.Cmp(a.Cost), strings.Compare(a.Name, b.Name))
	})
	return out
}
