package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// booking is one in `plan -o json`: capacity that is promised from start to end.
type booking struct {
	Flavor    string             `json:"flavor"`
	Start     v1alpha1.Time      `json:"start"`
	End       v1alpha1.Time      `json:"end"`
	Tenant    string             `json:"tenant"`
	Intent    string             `json:"intent"`
	Contract  string             `json:"contract"`
	Resources v1alpha1.Resources `json:"resources"`
	Hourly    v1alpha1.Decimal   `json:"hourly"`
	Currency  string             `json:"currency"`
	Reason    string             `json:"reason,omitempty"`
}

func bookingsOf(c *planner.Calendar) (out []booking) {
	if c == nil {
		return nil
	}
	for _, b := range c.Bookings {
		out = append(out, booking{
			Flavor: b.Spec.Provider + "/" + b.Spec.Flavor, Start: b.Spec.Term.Start, End: b.Spec.Term.End,
			Tenant: b.Metadata.Namespace, Intent: b.Spec.Intent.Name, Contract: b.Metadata.Name, Resources: b.Spec.Resources,
			Hourly: b.Spec.Price.Hourly, Currency: b.Spec.Price.Currency, Reason: b.Status.Why(),
		})
	}
	return out
}

// calendar is what is booked ahead, flavor by flavor, as text.
func calendar(c *planner.Calendar) string {
	if c == nil {
		return ""
	}
	zone, name := ZoneOf(c.Timezone)
	var b strings.Builder
	fmt.Fprintf(&b, "Booked ahead (times in %s):\n", name)
	last := ""
	for _, x := range c.Bookings {
		ref := escape.Line(x.Spec.Provider + "/" + x.Spec.Flavor)
		if ref != last {
			fmt.Fprintf(&b, "  %s\n", ref)
			last = ref
		}
		line := fmt.Sprintf("    %s  %s  %s", TermText(x.Spec.Term, zone), pad(SizeText(x), 12), escape.Line(x.Metadata.Namespace+"/"+x.Spec.Intent.Name))
		if why := x.Status.Why(); why != "" {
			line += "  " + escape.Line(why)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// ZoneOf is a fleet's timezone and its name; UTC where none is known by it.
func ZoneOf(name string) (*time.Location, string) {
	if zone, err := time.LoadLocation(name); err == nil && name != "" {
		return zone, name
	}
	return time.UTC, "UTC"
}

// TermText is a term in a timezone, with the offset of each instant, because that may
// change between them.
func TermText(t v1alpha1.Term, zone *time.Location) string {
	const layout = "2006-01-02 15:04Z07:00"
	return t.Start.In(zone).Format(layout) + " - " + t.End.In(zone).Format(layout)
}

// SizeText is what a contract takes: its cards, or else its cores.
func SizeText(c *v1alpha1.Contract) string {
	if g := c.Spec.GPUs; g != nil && g.Count > 0 {
		return fmt.Sprintf("%dx %s", g.Count, escape.Line(g.Model))
	}
	return c.Spec.Resources[v1alpha1.CPU].Canonical(v1alpha1.CPU) + " cores"
}
