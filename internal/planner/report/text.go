package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Columns of the text: details start under the intent's name, a sentence that
// goes on under its first word, and the cost of an intent ends in the 79th.
const (
	detailColumn = 11
	labelWidth   = 5
	costColumn   = 79
	// nameLimit keeps one long name from pushing every second column away.
	nameLimit = 30
)

// Text writes the plan as people read it at a terminal.
func Text(w io.Writer, p *planner.Plan, m Meta, o Options) error {
	var b strings.Builder
	b.WriteString(heading(p, m))
	b.WriteString("\n\n")
	list := items(p, m, o.Wide)
	pen := newPen(p, list, o)
	for _, it := range list {
		b.WriteString(pen.block(it))
	}
	if len(list) > 0 {
		b.WriteByte('\n')
	}
	if booked := calendar(p.Calendar); booked != "" {
		b.WriteString(booked + "\n")
	}
	b.WriteString(foot(p, m))
	_, err := io.WriteString(w, b.String())
	return err
}

// heading is what was looked at: inputs, offers, market, signatures.
func heading(p *planner.Plan, m Meta) string {
	from := m.Fleet
	if from == "" {
		from = "unnamed fleet" // its file cannot be read
	}
	switch {
	case p.Inputs == "":
		from += " (not committed)"
	case m.Branch != "":
		from += " " + m.Branch + "@" + short(p.Inputs)
	default:
		from += " " + short(p.Inputs)
	}
	if m.Changed {
		from += "+changes"
	}
	offers := plural(p.Offers, "flavor") + " on " + plural(p.Clusters, "cluster")
	var silent []string
	for _, s := range p.Silent {
		state := "silent"
		if s.Lost {
			state = "lost"
		}
		silent = append(silent, fmt.Sprintf("%s %s %s", s.Name, state, Age(p.Now.Sub(s.Since.Time))))
	}
	if len(silent) > 0 {
		offers += " (" + strings.Join(silent, ", ") + ")"
	}
	out := from + "   " + offers
	if p.Market != "" {
		out += "   market " + short(p.Market)
	}
	if m.Trust != "" {
		out += "   " + m.Trust
	}
	if m.Signatures != "" {
		return escape.Line(out) + "\nSignatures: " + escape.Line(m.Signatures)
	}
	return escape.Line(out)
}

// Sum is the last lines of Text alone: the sum, the cost, and what was held
// back.
func Sum(p *planner.Plan, m Meta) string { return foot(p, m) }

// foot is the sum, the cost, what was held back, and what is asked for in vain.
func foot(p *planner.Plan, m Meta) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan: %s.\n", sum(p, m))
	diff := p.HourlyAfter.Sub(p.HourlyBefore)
	fmt.Fprintf(&b, "Cost: %s -> %s %s/h (%s).\n", p.HourlyBefore.Text(), p.HourlyAfter.Text(), p.Currency, signed(diff))
	say := func(text string) {
		for i, line := range wrap(escape.Line(text), DefaultWidth, DefaultWidth-2) {
			b.WriteString(strings.Repeat("  ", min(i, 1)) + line + "\n")
		}
	}
	if p.HeldBack != "" {
		say("Held back: " + p.HeldBack)
	}
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.Warning != "" {
			say("Budget: tenant " + b.Tenant + " " + b.Warning + " (at the limit: " + b.AtLimit + ")")
		}
	}
	for _, note := range p.Notes {
		say("Note: " + note)
	}
	return b.String()
}

// pen draws blocks of one plan: it knows how wide names are.
type pen struct {
	*view
	o      Options
	second int // column of what follows a name
}

func newPen(p *planner.Plan, list []item, o Options) *pen {
	pn := &pen{view: newView(p), o: o}
	longest := 0
	for _, it := range list {
		if it.decision == nil || pn.afterName(it.decision) == "" {
			continue
		}
		if n := utf8.RuneCountInString(it.name()); n > longest && n <= nameLimit {
			longest = n
		}
	}
	pn.second = detailColumn + longest + 3
	return pn
}

// block is everything about one item.
func (pn *pen) block(it item) string {
	if it.decision == nil {
		return pn.fileBlock(it.problems[0])
	}
	d := it.decision
	var b strings.Builder
	b.WriteString(pn.headLine(d))
	label := ""
	if d.Action == planner.Queued && !pn.o.Wide {
		label = "has" // and waits for more
	}
	for _, line := range pn.where(d) {
		b.WriteString(pn.detail(label, line))
	}
	if why := pn.why(d); why != "" && len(it.problems) == 0 {
		b.WriteString(pn.detail("why", why))
	}
	for _, e := range it.problems {
		b.WriteString(pn.detail("why", e.String()))
	}
	if not := pn.notShown(d); not != "" {
		b.WriteString(pn.detail("not", not))
	}
	if len(d.Near) > 0 {
		b.WriteString(pn.detail("near", strings.Join(d.Near, "; ")))
	}
	for _, t := range d.Try {
		b.WriteString(pn.detail("try", t))
	}
	return b.String()
}

// headLine is symbol, action, name, what is next to it, and the cost.
func (pn *pen) headLine(d *planner.Decision) string {
	look := lookOf(d)
	head := look.symbol + " " + pad(string(d.Action), detailColumn-3) + " "
	name := escape.Line(d.Tenant + "/" + d.Name)
	if afterName := pn.afterName(d); afterName != "" {
		gap := pn.second - detailColumn - utf8.RuneCountInString(name)
		name += strings.Repeat(" ", max(gap, 3)) + escape.Line(afterName)
	}
	cost := ""
	if diff := d.HourlyAfter.Sub(d.HourlyBefore); !diff.Round(2).IsZero() {
		cost = signed(diff) + " " + pn.plan.Currency + "/h"
	}
	line := head + name
	if cost != "" {
		gap := costColumn - utf8.RuneCountInString(line) - utf8.RuneCountInString(cost)
		line += strings.Repeat(" ", max(gap, 3)) + cost
	}
	return pn.paint(look.symbol, line) + "\n"
}

// fileBlock is an unreadable file that no intent shows.
func (pn *pen) fileBlock(e Problem) string {
	lines := pn.wrap(escape.Line(e.String()), detailColumn, detailColumn)
	head := "x " + pad(string(planner.Refuse), detailColumn-3) + " " + lines[0]
	out := pn.paint("x", head) + "\n"
	for _, l := range lines[1:] {
		out += strings.Repeat(" ", detailColumn) + l + "\n"
	}
	return out
}

// detail is a labelled line under an intent, broken where it is too long.
func (pn *pen) detail(label, text string) string {
	indent := detailColumn
	lead := strings.Repeat(" ", detailColumn)
	if label != "" {
		lead += pad(label, labelWidth)
		indent += labelWidth
	}
	var b strings.Builder
	for i, line := range pn.wrap(escape.Line(text), indent, indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		b.WriteString(lead)
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func (pn *pen) wrap(s string, indentFirst, indentRest int) []string {
	width := pn.o.width()
	if width < 0 {
		return []string{s}
	}
	return wrap(s, max(width-indentFirst, 20), max(width-indentRest, 20))
}

// paint colours a head line as a diff would: green, yellow, red, cyan.
func (pn *pen) paint(symbol, line string) string {
	if !pn.o.Color {
		return line
	}
	code := map[string]string{"+": "32", "!": "33", "-": "31", "?": "36", "x": "1;31"}[symbol]
	if code == "" {
		return line
	}
	return "\x1b[" + code + "m" + line + "\x1b[0m"
}
