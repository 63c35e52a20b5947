package top

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// Picture is the fleet at one moment.
type Picture struct {
	view.Head

	Data view.FleetPage `json:"data"`
	// From is where it comes from, for people.
	From string `json:"from"`
}

// Read is what a daemon answered at /api/ui/fleet.
func Read(answer []byte, from string) (*Picture, error) {
	p := &Picture{}
	if err := json.Unmarshal(answer, p); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", from, err)
	}
	if p.At.IsZero() {
		return nil, fmt.Errorf("read the answer of %s: it is no page of a dashboard", from)
	}
	p.From = from
	return p, nil
}

// Of is what a fleet repo and its ledger show; said is what reading them had to say of
// them, a line each.
func Of(s *view.Snapshot, now time.Time, from, said string) (*Picture, error) {
	m, err := view.Make(s, now)
	if err != nil {
		return nil, fmt.Errorf("count what is held: %w", err)
	}
	all := view.Viewer{All: true}.Sight(s.Fleet)
	p := &Picture{Head: m.Head(all), Data: m.FleetPage(all), From: from}
	for line := range strings.Lines(said) {
		n := view.Notice{Level: "warning", Text: strings.TrimPrefix(strings.TrimSpace(line), "fleetbroker: ")}
		if strings.HasPrefix(n.Text, "hint: ") {
			n.Level = "info"
		}
		p.Notices = append(p.Notices, n)
	}
	return p, nil
}

// waiting is how many of those that wait a terminal is shown.
const waiting = 10

// Print draws it: a line a subject, then GPUs by model and region, and the queue.
func (p *Picture) Print(w io.Writer, v tables.View) error {
	line := func(name, format string, args ...any) {
		text := fmt.Sprintf("%-10s %s", escape.Line(name), escape.Line(fmt.Sprintf(format, args...)))
		if v.Terminal && v.Width > 0 && !v.Wide { // a line that wraps would push the rest off the screen
			text = tables.Cut(text, v.Width)
		}
		fmt.Fprintln(w, text)
	}
	name := func(text string) string { return named(v, text) }
	d := &p.Data
	line("Fleet:", "%s, from %s", p.Fleet, p.From)
	for _, n := range p.Notices {
		line(levelName(n.Level), "%s", n.Text)
	}
	g := d.GPUs
	line("GPUs:", "%d free, %d held, %d used by providers, of %d", g.Free, g.Held, g.Used, g.Capacity)
	line("Spend:", "%s", p.spend())
	line("Contracts:", "%s", counts(d.Contracts))
	line("Intents:", "%s", counts(d.Intents))
	line("Waiting:", "%d", d.Waiting)
	fmt.Fprintln(w)
	t := tables.New(v, "MODEL", "REGION", ">FREE", ">HELD", ">USED", ">OF", ">FROM "+tables.Cut(escape.Line(p.Currency), 6)+"/H")
	for i := range d.Capacity {
		c := &d.Capacity[i]
		model := tables.Dash(c.Model)
		if c.Profile != "" {
			model += " " + c.Profile
		}
		from := any("-")
		if c.From != nil {
			from = t.Money(*c.From)
		}
		t.Row(name(model), name(tables.Dash(c.Region)), c.Free, c.Held, c.Used, c.Capacity, from)
	}
	if err := t.Print(w); err != nil {
		return err //nolint:wrapcheck // of the writer
	}
	if len(d.Queue) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	q := tables.New(v, "QUEUE", "GPUS", ">SINCE", ">EXPECTED", "WHY")
	for i := range d.Queue[:min(len(d.Queue), waiting)] {
		r := &d.Queue[i]
		expected := any("-") // nobody has estimated it
		switch {
		case !r.Expected.IsZero():
			expected = q.Until(r.Expected)
		case r.Unknown:
			expected = "unknown"
		}
		q.Row(name(r.Tenant+"/"+r.Name), name(tables.Dash(r.GPU)), q.Age(r.Waits), expected, r.Why)
	}
	return q.Print(w) //nolint:wrapcheck // of the writer
}

// named is a name in a column: on a terminal at most a fifth of it, so that one long name
// pushes nothing off the screen.
func named(v tables.View, text string) string {
	text = escape.Line(text)
	if v.Terminal && v.Width > 0 && !v.Wide {
		return tables.Cut(text, max(v.Width/5, 12))
	}
	return text
}

// levelName is a notice's level as a line begins with it.
func levelName(level string) string {
	switch level {
	case "error":
		return "Error:"
	case "warning":
		return "Warning:"
	}
	return "Notice:"
}

func (p *Picture) spend() string {
	m := &p.Data.Money
	text := fmt.Sprintf("%s %s an hour; %s in %s, %s with what is held until it ends", m.Hourly.Text(), m.Currency, m.Spent.Text(), m.Month, m.Forecast.Text())
	if m.Budget != nil {
		text += fmt.Sprintf("; budgets of %d of %s: %s", m.Budgets, tables.Count(m.Tenants, "tenant"), m.Budget.Text())
	}
	if m.NoRate > 0 {
		text += fmt.Sprintf("; without %s whose rate of exchange is missing", tables.Count(m.NoRate, "tenant"))
	}
	return text
}

func counts(list []view.Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.N))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// Snapshot is a fleet without a daemon: nothing was reported, and nothing decided.
func Snapshot(s view.Snapshot) *view.Snapshot {
	s.Heard = func(string) time.Time { return time.Time{} }
	return &s
}
