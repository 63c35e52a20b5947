package ui

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// part is one stretch of a bar.
type part struct {
	class string
	size  float64
}

// barOf is a bar as SVG, 100 wide, with its text for those who do not see it.
func barOf(label string, parts ...part) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="b-bg" width="100" height="10"/>`, template.HTMLEscapeString(label))
	at := 0.0
	for _, p := range parts {
		size := min(max(p.size, 0), 100-at)
		if size > 0 {
			fmt.Fprintf(&b, `<rect class="b-%s" x="%.2f" width="%.2f" height="10"/>`, p.class, at, size)
			at += size
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, classes of ours and an escaped label
}

// of is n as percent of all.
func of(n, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return 100 * float64(n) / float64(all)
}

// percent of n in all, "" of nothing.
func percent(n, all int64) string {
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", of(n, all))
}

// shareBar shows how an offer is divided.
func shareBar(v any) template.HTML {
	var s view.Share
	switch v := v.(type) {
	case view.Share:
		s = v
	case *view.Share:
		if v == nil {
			return ""
		}
		s = *v
	}
	all := max(s.Capacity, s.Held+s.Used+max(s.Free, 0), 1)
	free := max(s.Free, 0)
	label := fmt.Sprintf("%s held, %s used by the provider, %s free", percentOf(s.Held, all), percentOf(s.Used, all), percentOf(free, all))
	if !s.Sellable {
		free, label = 0, fmt.Sprintf("%s held, %s used by the provider, the rest is not sold", percentOf(s.Held, all), percentOf(s.Used, all))
	}
	return barOf(label, part{"held", of(s.Held, all)}, part{"used", of(s.Used, all)}, part{"free", of(free, all)})
}

func percentOf(n, all int64) string { return fmt.Sprintf("%.0f%%", of(n, all)) }

// meter shows what is spent, and will be, of a budget.
func meter(spent, forecast, budget *v1alpha1.Decimal) template.HTML {
	if spent == nil || budget == nil || budget.Sign() <= 0 {
		return ""
	}
	whole := budget.Float()
	used := 100 * spent.Float() / whole
	ahead := 0.0
	if forecast != nil {
		ahead = 100*forecast.Float()/whole - used
	}
	class := "held"
	if used+ahead > 100 {
		class = "over"
	}
	return barOf(fmt.Sprintf("%.0f%% spent, %.0f%% forecast", used, used+ahead), part{class, used}, part{"ahead", ahead})
}

// along is where a time lies between two, as percent.
func along(t, from, to v1alpha1.Time) float64 {
	whole := to.Sub(from.Time).Seconds()
	if whole <= 0 {
		return 0
	}
	return min(max(100*t.Sub(from.Time).Seconds()/whole, 0), 100)
}

// calendarChart draws what is held of a flavor over time.
func calendarChart(r view.CalendarRow, from, to v1alpha1.Time) template.HTML {
	top := max(r.Capacity, 1)
	for _, s := range r.Steps {
		top = max(top, s.Held+s.Booked+r.Used)
	}
	var b strings.Builder
	label := fmt.Sprintf("%s/%s: ", r.Provider, r.Flavor)
	for i, s := range r.Steps {
		if i == 0 {
			label += percentOf(s.Held, top) + " held now"
		} else if i < 8 {
			label += ", " + percentOf(s.Held, top) + " from " + s.At.UTC().Format(time.RFC3339)
		}
		if s.Booked > 0 && i < 8 {
			label += " with " + percentOf(s.Booked, top) + " booked"
		}
	}
	fmt.Fprintf(&b, `<svg class="calendar" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="b-free" width="100" height="20"/>`, template.HTMLEscapeString(escape.Line(label)))
	used := 20 * float64(r.Used) / float64(top)
	if used > 0 {
		fmt.Fprintf(&b, `<rect class="b-used" y="%.2f" width="100" height="%.2f"/>`, 20-used, used)
	}
	for i, s := range r.Steps {
		end := 100.0
		if i+1 < len(r.Steps) {
			end = along(r.Steps[i+1].At, from, to)
		}
		x, below := along(s.At, from, to), used
		for _, p := range []part{{"held", 20 * float64(s.Held) / float64(top)}, {"booked", 20 * float64(s.Booked) / float64(top)}} {
			if below += p.size; p.size > 0 && end > x {
				fmt.Fprintf(&b, `<rect class="b-%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, p.class, x, max(20-below, 0), end-x, p.size)
			}
		}
	}
	grid(&b, from, to, 20)
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, classes of ours and an escaped label
}

// windowsChart draws when an intent's windows are open.
func windowsChart(w view.CalendarWindow, from, to v1alpha1.Time) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="b-bg" width="100" height="10"/>`, template.HTMLEscapeString(escape.Line(fmt.Sprintf("%s/%s: open %d times", w.Tenant, w.Intent, len(w.Spans)))))
	for _, s := range w.Spans {
		x := along(s.From, from, to)
		fmt.Fprintf(&b, `<rect class="b-held" x="%.2f" width="%.2f" height="10"/>`, x, max(along(s.To, from, to)-x, 0.15))
	}
	grid(&b, from, to, 10)
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, classes of ours and an escaped label
}

// scoreBar shows a score from 0 to 1.
func scoreBar(f float64) template.HTML {
	return barOf(fmt.Sprintf("%.2f of 1", f), part{"held", 100 * f})
}

// useBar draws how much of what a contract holds of a resource is used.
func useBar(u view.UsedShare) template.HTML {
	return barOf(fmt.Sprintf("%d %% of %s used", u.Percent(), escape.Line(u.Resource)), part{"held", float64(u.Percent())})
}

// pods is how many there are, in words.
func pods(n *int64) string {
	if *n == 1 {
		return "1 pod"
	}
	return number(*n) + " pods"
}
