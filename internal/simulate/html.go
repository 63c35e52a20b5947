package simulate

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

//go:embed report.html.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": func(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + " %" },
	"number":  func(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") },
	"three":   func(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) },
	"span":    span,
	"count": func(n int, what string) string {
		if n != 1 {
			what += "s"
		}
		return strconv.Itoa(n) + " " + what
	},
	"unplaced": func(o Outcome) int { return o.Refused + o.Waiting },
	"penalty":  func(o Outcome) string { return money(o.Penalty()) },
	"money":    money,
	"date": func(start v1alpha1.Time, at int64) string {
		return start.Add(time.Duration(at) * time.Second).UTC().Format("2006-01-02 15:04")
	},
	"never":   func(o Outcome) []Never { return first(o.Never, mostRows) },
	"tenants": func(o Outcome) []TenantOutcome { return first(o.Fairness.Tenants, mostTenants) },
	"left":    func(n, most int) int { return max(n-most, 0) },
	"meter":   meter,
	"dict": func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1] //nolint:forcetypeassert // the template's own words
		}
		return out
	},
}).Parse(page))

// chartOf is a chart with its heading.
type chartOf struct {
	Title, Says string
	Drawing     template.HTML
}

// mostRows of flavors and of what was never placed that the report lists, mostTenants of
// tenants for each policy. -o json has all.
const (
	mostRows    = 60
	mostTenants = 100
	// mostPriced is of how many policies the tables of use have costs: more are too wide.
	mostPriced = 3
)

// HTML writes a report that needs nothing else: styles and charts are inside.
func HTML(w io.Writer, r *Result) error {
	data := struct {
		*Result
		Charts, GrowthCharts []chartOf
		Said                 []string
		Providers, Flavors   useTable
		Priced               bool
	}{Result: r, Charts: append(totals(r), courses(r)...), GrowthCharts: growthCharts(r), Said: Sentences(r), Priced: costly(r) && len(r.Policies) <= mostPriced}
	data.Providers = usesOf(r, func(o *Outcome) []Use { return o.Providers })
	data.Flavors = usesOf(r, func(o *Outcome) []Use { return o.Flavors })
	if err := pageTemplate.Execute(w, data); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// useTable is how full flavors or providers were, a row each, a column a policy.
type useTable struct {
	Rows []useRow
	// Left are rows that are not shown.
	Left int
}

type useRow struct {
	Use

	// Means and Costs by policy.
	Means []float64
	Costs []v1alpha1.Decimal
}

func usesOf(r *Result, of func(*Outcome) []Use) useTable {
	var t useTable
	for i := range r.Policies {
		list := of(&r.Policies[i])
		for k := range list {
			if i == 0 {
				t.Rows = append(t.Rows, useRow{Use: list[k]})
			}
			if k < len(t.Rows) {
				t.Rows[k].Means, t.Rows[k].Costs = append(t.Rows[k].Means, list[k].Mean), append(t.Rows[k].Costs, list[k].Cost)
			}
		}
	}
	if len(t.Rows) > mostRows { // the largest
		slices.SortStableFunc(t.Rows, func(a, b useRow) int { return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Cores, a.Cores)) })
		t.Left, t.Rows = len(t.Rows)-mostRows, t.Rows[:mostRows]
	}
	return t
}

// first are the first of a list, and how many are left out.
func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// totals are bars, a policy each.
func totals(r *Result) []chartOf {
	of := func(title, says string, value func(*Outcome) float64, text func(*Outcome) string) chartOf {
		var list []bar
		for i := range r.Policies {
			o := &r.Policies[i]
			list = append(list, bar{o.Policy, value(o), text(o)})
		}
		return chartOf{title, says, bars(list)}
	}
	charts := []chartOf{
		of("Never placed", "intents refused, or still waiting at the end",
			func(o *Outcome) float64 { return float64(o.Refused + o.Waiting) },
			func(o *Outcome) string { return strconv.Itoa(o.Refused + o.Waiting) }),
		of("Idle GPUs at the end", "of "+short(r.Supply.GPUs)+"; the table says how many of them no intent of this demand could use",
			func(o *Outcome) float64 { return o.GPU.UnallocatedEnd },
			func(o *Outcome) string { return short(o.GPU.UnallocatedEnd) }),
	}
	if costly(r) {
		charts = append(charts, of("Cost", r.Currency+" for what was placed; in brackets the penalty for what never was",
			func(o *Outcome) float64 { return o.Cost.Float() },
			func(o *Outcome) string {
				text := short(o.Cost.Float())
				if p := o.Penalty(); !p.IsZero() {
					text += " (+" + short(p.Float()) + ")"
				}
				return text
			}))
	}
	return append(charts,
		of("Wait", "90th percentile of those that were placed",
			func(o *Outcome) float64 { return float64(o.Wait.P90) },
			func(o *Outcome) string { return span(o.Wait.P90) }))
}

// Penalty is what unplaced GPU-hours count, which is no cost.
func (o *Outcome) Penalty() v1alpha1.Decimal { return o.CostWithPenalty.Sub(o.Cost) }

// costly reports whether anything was paid for by any policy.
func costly(r *Result) bool {
	return slices.ContainsFunc(r.Policies, func(o Outcome) bool { return !o.Cost.IsZero() })
}

// courses are lines over virtual time.
func courses(r *Result) []chartOf {
	at := func(x float64) time.Time { return r.Start.Add(time.Duration(x) * time.Second).UTC() }
	of := func(title, says string, whole bool, value func(Point) float64, extra ...line) chartOf {
		var lines []line
		for i := range r.Policies {
			l := line{name: r.Policies[i].Policy, steps: true, colour: i}
			for _, p := range r.Policies[i].Series {
				l.x, l.y = append(l.x, float64(p.At)), append(l.y, value(p))
			}
			lines = append(lines, l)
		}
		return chartOf{title, says, chart(append(together(lines), extra...), axis{name: "date, UTC", dates: at}, axis{whole: whole})}
	}
	var from, to float64
	for _, o := range r.Policies {
		if n := len(o.Series); n > 0 {
			from, to = float64(o.Series[0].At), max(to, float64(o.Series[n-1].At))
		}
	}
	all := line{name: "all GPUs", x: []float64{from, to}, y: []float64{r.Supply.GPUs, r.Supply.GPUs}, dashed: true}
	charts := []chartOf{
		of("GPUs allocated", "cards; shares of cards are added up", false, func(p Point) float64 { return p.GPUs }, all),
		of("Waiting intents", "arrived and not placed yet", true, func(p Point) float64 { return float64(p.Waiting) }),
	}
	if slices.ContainsFunc(r.Policies, func(o Outcome) bool { return !o.HourlyPeak.IsZero() }) {
		charts = append(charts, of("Cost per hour", r.Currency+" of what is held", false, func(p Point) float64 { return p.Hourly.Float() }))
	}
	return charts
}

// growthCharts are lines over the size of the fleet.
func growthCharts(r *Result) []chartOf {
	if len(r.Growth) < 2 {
		return nil
	}
	of := func(title, says string, value func(*Growth, *Outcome) float64) chartOf {
		lines := make([]line, len(r.Growth[0].Policies))
		for i := range r.Growth {
			g := &r.Growth[i]
			for k := range g.Policies {
				lines[k].name, lines[k].colour = g.Policies[k].Policy, k
				lines[k].x, lines[k].y = append(lines[k].x, float64(g.Clusters)), append(lines[k].y, value(g, &g.Policies[k]))
			}
		}
		return chartOf{title, says, chart(together(lines), axis{name: "clusters", whole: true}, axis{})}
	}
	return []chartOf{
		of("GPU allocation", "per cent of all GPUs, over time", func(_ *Growth, o *Outcome) float64 { return o.GPU.AllocationMean * 100 }),
		of("Placed", "per cent of what arrived", func(_ *Growth, o *Outcome) float64 { return float64(o.Placed) * 100 / float64(max(o.Arrived, 1)) }),
		of("Waiting", "90th percentile, hours", func(_ *Growth, o *Outcome) float64 { return float64(o.Wait.P90) / 3600 }),
		of("Cost per GPU", r.Currency+" by GPU of the fleet, without penalty", func(g *Growth, o *Outcome) float64 { return o.Cost.Float() / max(g.Supply.GPUs, 1) }),
	}
}

// span is a length of time for people.
func span(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 2*86400:
		return fmt.Sprintf("%.1fh", float64(seconds)/3600)
	}
	return fmt.Sprintf("%.1fd", float64(seconds)/86400)
}

// money is an amount with two decimals and commas between thousands, as people read sums.
func money(d v1alpha1.Decimal) string {
	text := d.Text()
	whole, cents, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole + "." + cents
}
