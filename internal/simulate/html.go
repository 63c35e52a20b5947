package simulate

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
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
	"unplaced": func(o Outcome) int {
		return o.Refused + o.Waiting
	},
}).Parse(page))

// chartOf is a chart with its heading.
type chartOf struct {
	Title, Says string
	Drawing     template.HTML
}

// HTML writes a report that needs nothing else: styles and charts are inside.
func HTML(w io.Writer, r *Result) error {
	data := struct {
		*Result
		Charts, GrowthCharts []chartOf
	}{Result: r, Charts: append(totals(r), courses(r)...), GrowthCharts: growthCharts(r)}
	if err := pageTemplate.Execute(w, data); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

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
		of("Not placed", "intents refused, or waiting at the end",
			func(o *Outcome) float64 { return float64(o.Refused + o.Waiting) },
			func(o *Outcome) string { return strconv.Itoa(o.Refused + o.Waiting) }),
		of("Idle GPUs at the end", "of "+short(r.Supply.GPUs)+"; which of them no intent of this demand could use is in the table",
			func(o *Outcome) float64 { return o.GPU.UnallocatedEnd },
			func(o *Outcome) string { return short(o.GPU.UnallocatedEnd) }),
	}
	if costly(r) {
		charts = append(charts, of("Cost", r.Currency+", with the penalty for what was never placed",
			func(o *Outcome) float64 { return o.CostWithPenalty.Float() },
			func(o *Outcome) string { return short(o.CostWithPenalty.Float()) }))
	}
	return append(charts,
		of("Waiting", "90th percentile of what was placed",
			func(o *Outcome) float64 { return float64(o.Wait.P90) },
			func(o *Outcome) string { return span(o.Wait.P90) }))
}

// costly reports whether anything was paid for, or missed, by any policy.
func costly(r *Result) bool {
	return slices.ContainsFunc(r.Policies, func(o Outcome) bool { return !o.CostWithPenalty.IsZero() })
}

// courses are lines over virtual time.
func courses(r *Result) []chartOf {
	of := func(title, says string, value func(Point) float64, extra ...line) chartOf {
		var lines []line
		for i := range r.Policies {
			l := line{name: r.Policies[i].Policy, steps: true}
			for _, p := range r.Policies[i].Series {
				l.x, l.y = append(l.x, float64(p.At)), append(l.y, value(p))
			}
			lines = append(lines, l)
		}
		return chartOf{title, says, chart(append(lines, extra...), "time since the start", func(x float64) string { return span(int64(x)) })}
	}
	var from, to float64
	for _, o := range r.Policies {
		if n := len(o.Series); n > 0 {
			from, to = float64(o.Series[0].At), max(to, float64(o.Series[n-1].At))
		}
	}
	all := line{name: "all GPUs", x: []float64{from, to}, y: []float64{r.Supply.GPUs, r.Supply.GPUs}, dashed: true}
	charts := []chartOf{
		of("GPUs allocated", "cards, shares added up", func(p Point) float64 { return p.GPUs }, all),
		of("Waiting intents", "arrived and not placed yet", func(p Point) float64 { return float64(p.Waiting) }),
	}
	if slices.ContainsFunc(r.Policies, func(o Outcome) bool { return !o.HourlyPeak.IsZero() }) {
		charts = append(charts, of("Cost per hour", r.Currency+" of what is held", func(p Point) float64 { return p.Hourly.Float() }))
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
				lines[k].name = g.Policies[k].Policy
				lines[k].x, lines[k].y = append(lines[k].x, float64(g.Clusters)), append(lines[k].y, value(g, &g.Policies[k]))
			}
		}
		return chartOf{title, says, chart(lines, "clusters", short)}
	}
	return []chartOf{
		of("GPU allocation", "per cent of all GPUs, over time", func(_ *Growth, o *Outcome) float64 { return o.GPU.AllocationMean * 100 }),
		of("Placed", "per cent of what arrived", func(_ *Growth, o *Outcome) float64 { return float64(o.Placed) * 100 / float64(max(o.Arrived, 1)) }),
		of("Waiting", "90th percentile, hours", func(_ *Growth, o *Outcome) float64 { return float64(o.Wait.P90) / 3600 }),
		of("Cost per GPU", r.Currency+" with penalty, by GPU of the fleet", func(g *Growth, o *Outcome) float64 { return o.CostWithPenalty.Float() / max(g.Supply.GPUs, 1) }),
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
