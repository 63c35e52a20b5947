package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// CalendarPage is what is sold when: the terms of contracts by flavor, and when intents
// with windows want capacity.
type CalendarPage struct {
	// From is now, To so many days later.
	From v1alpha1.Time `json:"from"`
	To   v1alpha1.Time `json:"to"`
	Days int           `json:"days"`

	Rows List[CalendarRow] `json:"rows"`
	// Windows of intents that are seen, of WindowsTotal intents that have some.
	Windows      []CalendarWindow `json:"windows,omitempty"`
	WindowsTotal int              `json:"windowsTotal"`
}

// CalendarRow is one flavor's.
type CalendarRow struct {
	Provider string `json:"provider"`
	Flavor   string `json:"flavor"`
	Model    string `json:"model,omitempty"`
	// Resource that is counted: gpu in units, or cpu in milli-CPU where there are none.
	Resource string `json:"resource"`
	// Capacity, and what of it is Used by the provider's own pods now.
	Capacity int64 `json:"capacity"`
	Used     int64 `json:"used"`
	// Steps are what contracts hold and have booked from a time on, by the terms agreed so far.
	Steps []CalendarStep `json:"steps"`
	// Terms that end within the days, and bookings that begin within them, of contracts that
	// are seen, the first to end first; TermsTotal is how many there are.
	Terms      []CalendarTerm `json:"terms,omitempty"`
	TermsTotal int            `json:"termsTotal"`
}

// CalendarStep is what is held from a time on, and Booked by contracts whose terms have not
// begun today.
type CalendarStep struct {
	At     v1alpha1.Time `json:"at"`
	Held   int64         `json:"held"`
	Booked int64         `json:"booked,omitempty"`
}

// CalendarTerm is a contract's.
type CalendarTerm struct {
	Contract string        `json:"contract"`
	Tenant   string        `json:"tenant"`
	Intent   string        `json:"intent"`
	Amount   int64         `json:"amount"`
	Start    v1alpha1.Time `json:"start"`
	End      v1alpha1.Time `json:"end"`
	// Booked: it has not begun.
	Booked bool `json:"booked,omitempty"`
}

// CalendarWindow is when an intent wants capacity.
type CalendarWindow struct {
	Tenant string `json:"tenant"`
	Intent string `json:"intent"`
	// Spans within the days, in order.
	Spans []Span `json:"spans"`
}

// Span of time.
type Span struct {
	From v1alpha1.Time `json:"from"`
	To   v1alpha1.Time `json:"to"`
}

// Bounds of the calendar.
const (
	defaultDays = 30
	maxTerms    = 20
	maxWindows  = 50
	maxSpans    = 100
)

// Calendar of the days to come. Amounts are of all contracts, names of those that are
// seen.
func (m *Model) Calendar(s Sight, q Query) CalendarPage {
	days := cmp.Or(q.Days, defaultDays)
	p := CalendarPage{From: m.Now, To: v1alpha1.TimeOf(m.Now.AddDate(0, 0, days)), Days: days}
	flavors := m.Flavors(q)
	p.Rows = List[CalendarRow]{Items: []CalendarRow{}, Total: flavors.Total, Page: flavors.Page, Pages: flavors.Pages, First: flavors.First, query: flavors.query}
	at := map[[2]string]int{}
	for i := range flavors.Items {
		f := &flavors.Items[i]
		row := CalendarRow{Provider: f.Provider, Flavor: f.Name, Model: f.Model, Resource: v1alpha1.GPU, Steps: []CalendarStep{}}
		if f.GPUs != nil {
			row.Capacity, row.Used = f.GPUs.Capacity, f.GPUs.Used
		} else {
			row.Resource, row.Capacity, row.Used = v1alpha1.CPU, f.CPU.Capacity, f.CPU.Used
		}
		at[[2]string{f.Provider, f.Name}] = len(p.Rows.Items)
		p.Rows.Items = append(p.Rows.Items, row)
	}
	changes := make([]map[int64]change, len(p.Rows.Items)) // by second
	for i := range m.contracts {
		c := &m.contracts[i]
		n, ok := at[[2]string{c.Provider, c.Flavor}]
		if !ok || !c.Held && !c.booked() {
			continue
		}
		row, amount := &p.Rows.Items[n], c.GPUs
		if row.Resource == v1alpha1.CPU {
			amount = c.cpu
		}
		if amount == 0 {
			continue
		}
		if changes[n] == nil {
			changes[n] = map[int64]change{}
		}
		from, end := c.Start.Time, c.End.Time
		if !s.Of(c.Tenant) { // what others hold is told by the day: no one's terms can be read off
			const day = 24 * time.Hour
			from, end = from.Truncate(day), end.Add(day-1).Truncate(day)
		}
		if from.Before(m.Now.Time) {
			from = m.Now.Time
		}
		if from.After(p.To.Time) {
			continue
		}
		changes[n][from.Unix()] = changes[n][from.Unix()].add(amount, c.booked())
		ends := !c.End.IsZero() && !end.After(p.To.Time)
		if s.Of(c.Tenant) && (ends || c.booked()) {
			row.Terms = append(row.Terms, CalendarTerm{c.Name, c.Tenant, c.Intent, amount, c.Start, c.End, c.booked()})
		}
		if !ends {
			continue
		}
		if end.Before(m.Now.Time) { // it is being released
			end = m.Now.Time
		}
		changes[n][end.Unix()] = changes[n][end.Unix()].add(-amount, c.booked())
	}
	for n := range p.Rows.Items {
		row := &p.Rows.Items[n]
		row.Steps = steps(changes[n], m.Now)
		slices.SortFunc(row.Terms, func(a, b CalendarTerm) int {
			return cmp.Or(a.End.Compare(b.End.Time), strings.Compare(a.Contract, b.Contract))
		})
		row.TermsTotal = len(row.Terms)
		row.Terms = row.Terms[:min(len(row.Terms), maxTerms)]
	}
	m.windows(s, q, &p)
	return p
}

// change is what is more or less held and booked from a time on.
type change struct{ held, booked int64 }

func (c change) add(amount int64, booked bool) change {
	if booked {
		c.booked += amount
	} else {
		c.held += amount
	}
	return c
}

// steps adds changes up, from now on.
func steps(changes map[int64]change, now v1alpha1.Time) []CalendarStep {
	out, sum := []CalendarStep{{At: now}}, change{}
	for _, t := range slices.Sorted(maps.Keys(changes)) {
		sum.held, sum.booked = sum.held+changes[t].held, sum.booked+changes[t].booked
		step := CalendarStep{v1alpha1.TimeOf(time.Unix(t, 0)), sum.held, sum.booked}
		if t <= now.Unix() {
			step.At = now
			out[0] = step
		} else {
			out = append(out, step)
		}
	}
	return out
}

// windows are those of intents that are seen.
func (m *Model) windows(s Sight, q Query, p *CalendarPage) {
	text := strings.ToLower(q.Text)
	for _, it := range m.Fleet.Intents {
		sched := it.Spec.Schedule
		if len(sched.Windows) == 0 || !s.Of(it.Metadata.Namespace) || !has(text, it.Metadata.Namespace+"/"+it.Metadata.Name) {
			continue
		}
		if p.WindowsTotal++; len(p.Windows) >= maxWindows {
			continue
		}
		w := CalendarWindow{Tenant: it.Metadata.Namespace, Intent: it.Metadata.Name, Spans: []Span{}}
		for at := p.From; at.Before(p.To.Time) && len(w.Spans) < maxSpans; {
			open, until, next := lifecycle.OpenAt(m.Books, sched.Windows, at)
			if !open {
				if next.IsZero() || !next.After(at.Time) {
					break
				}
				at = next
				continue
			}
			if until.IsZero() || until.After(p.To.Time) {
				until = p.To
			}
			w.Spans = append(w.Spans, Span{at, until})
			at = until
		}
		p.Windows = append(p.Windows, w)
	}
}
