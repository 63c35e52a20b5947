package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/accelerators"
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// ExplainOptions shape an explanation.
type ExplainOptions struct {
	Color bool
	// All shows every offer; else a handful of those that fit and of those that do not.
	All bool
	// Why shows only the offers that fail this requirement.
	Why string
	// Shown of each kind unless All or Why; 0 is DefaultShown.
	Shown int
	// Accelerators are the fleet's own names of them (Fleet.accelerators).
	Accelerators []string
}

// DefaultShown offers of each kind are shown.
const DefaultShown = 10

// ExplainText writes what was understood, every offer once, and the sum.
func ExplainText(w io.Writer, e *planner.Explanation, o ExplainOptions) error {
	var b strings.Builder
	d := &e.Decision
	fmt.Fprintf(&b, "%s\n", escape.Line(strings.TrimRight(strings.Join([]string{
		d.Tenant + "/" + d.Name, source(&e.Intent), author(e.Intent.Author),
	}, "   "), " ")))
	if e.Wants != "" {
		for i, line := range wrap(escape.Line("wants "+e.Wants), DefaultWidth, DefaultWidth-6) {
			if i > 0 {
				line = "      " + line
			}
			b.WriteString(line + "\n")
		}
	}
	b.WriteByte('\n')
	if len(e.Offers) > 0 {
		offersTable(&b, e, o)
		b.WriteByte('\n')
	}
	for _, line := range wrap(explainSum(e), DefaultWidth, DefaultWidth) {
		b.WriteString(line + "\n")
	}
	if d.Also != "" && d.Code == "" {
		for i, line := range wrap(escape.Line("Also: "+d.Also+"."), DefaultWidth, DefaultWidth-6) {
			b.WriteString(strings.Repeat("      ", min(i, 1)) + line + "\n")
		}
	}
	for _, c := range e.Troubled {
		b.WriteString(escape.Line(fmt.Sprintf("%s is %s: %s", c.Metadata.Name, c.Status.Phase, c.Status.Why())) + "\n")
	}
	for _, near := range d.Near {
		b.WriteString("Near: " + escape.Line(near) + "\n")
	}
	for _, try := range d.Try {
		b.WriteString("Try: " + escape.Line(try) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func source(in *model.Intent) string {
	if in.Commit == "" {
		return in.Path
	}
	return in.Path + "@" + short(in.Commit)
}

// author is the name without the address.
func author(s string) string {
	if i := strings.Index(s, " <"); i > 0 {
		return s[:i]
	}
	return s
}

func explainSum(e *planner.Explanation) string {
	d := &e.Decision
	fits, total := 0, len(e.Offers)
	rejected := map[string]int{}
	for i := range e.Offers {
		if e.Offers[i].Fits {
			fits++
		} else {
			rejected[e.Offers[i].Requirement]++
		}
	}
	s := fmt.Sprintf("%d of %d fit.", fits, total)
	if total == 0 {
		s = "No offers."
	}
	if len(rejected) > 0 {
		s += " Not: " + reasons(rejected) + "."
	}
	var names []string
	for i := range d.Contracts {
		names = append(names, d.Contracts[i].Name)
	}
	if n := len(names); n > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", n-3))
	}
	if d.Alternative > 0 && len(names) > 0 {
		s += fmt.Sprintf(" Alternative %d fits.", d.Alternative)
	}
	if len(d.Contracts) > 0 && d.Contracts[0].Part {
		s += " Put together from parts."
	}
	lead := " "
	if d.Action == planner.Queued && len(kept(d)) > 0 {
		lead = " It holds " // and waits for the rest
	}
	switch {
	case len(names) == 1:
		s += lead + inSentence("Contract", lead) + names[0] + "."
	case len(names) > 1:
		s += lead + inSentence("Contracts", lead) + strings.Join(names, ", ") + "."
	}
	placed := len(names) > 0 && d.Code == "" && d.Action != planner.Queued && d.Action != planner.Refuse
	if !placed {
		s += " " + stateWord(d.Action)
		why := d.Reason
		if fits > 0 || e.Failed == nil || maps.Equal(e.Failed, rejected) {
			// The table and the counts have shown that already; of the replica that is
			// missing they would differ, and contradict that some fit.
			why = d.Uncounted()
		}
		if why != "" {
			s += ": " + strings.TrimSuffix(why, ".")
		}
		s += "."
	}
	return escape.Line(s)
}

// inSentence is a word, small where something is before it.
func inSentence(word, before string) string {
	if strings.TrimSpace(before) != "" {
		word = strings.ToLower(word)
	}
	return word + " "
}

// stateWord is how an intent is after an action.
func stateWord(a planner.Action) string {
	switch a {
	case planner.Queued:
		return "Queued"
	case planner.Refuse:
		return "Refused"
	case planner.Suspend:
		return "Suspended"
	case planner.Find:
		return "Only looked for"
	case planner.Keep:
		return "Kept"
	case planner.Release:
		return "Released"
	case planner.Preempt:
		return "Preempted"
	case planner.Move:
		return "Moved"
	}
	return strings.ToUpper(string(a[:1])) + string(a[1:])
}

// scoreColumns are the terms of the score that any offer has, in the order of
// the formula.
func scoreColumns(e *planner.Explanation) []string {
	have := map[string]bool{}
	for i := range e.Offers {
		for term := range e.Offers[i].Scores {
			have[term] = true
		}
	}
	return slices.DeleteFunc(planner.ScoreTerms(), func(term string) bool { return !have[term] })
}

// fixedColumns are before the scores: number, flavor, GPU, free, price,
// latency.
const fixedColumns = 6

// offersTable writes the offers: those that fit by rank, then the others with
// the first requirement they fail.
func offersTable(b *strings.Builder, e *planner.Explanation, o ExplainOptions) {
	terms := scoreColumns(e)
	header := []string{"#", "FLAVOR", "GPU", "FREE", strings.ToUpper(currencyOf(e)) + "/H", "LATENCY"}
	for _, t := range terms {
		if t == "latency" {
			t = "closeness" // the LATENCY column is the milliseconds
		}
		header = append(header, strings.ToUpper(t))
	}
	header = append(header, "SCORE")

	shown := o.Shown
	if shown == 0 {
		shown = DefaultShown
	}
	var fits, others [][]string
	moreFit, moreNot, rank := 0, 0, 0
	countWidth := gpuCountWidth(e)
	for i := range e.Offers {
		line := &e.Offers[i]
		switch {
		case line.Fits:
			rank++
			if o.Why != "" || (!o.All && len(fits) >= shown && !line.Chosen) {
				moreFit++
				continue
			}
			fits = append(fits, fitRow(line, rank, countWidth, terms, o.Accelerators))
		case o.Why != "" && line.Requirement != o.Why, o.Why == "" && !o.All && len(others) >= shown:
			moreNot++
		default:
			others = append(others, notRow(line, countWidth, o.Accelerators))
		}
	}
	widths := measure(header, fits, others)
	writeRow(b, header, widths, o.Color)
	for _, r := range fits {
		writeRow(b, r, widths, false)
	}
	if moreFit > 0 {
		fmt.Fprintf(b, " ...  %d more fit (--all)\n", moreFit)
	}
	for _, r := range others {
		writeRow(b, r, widths, false)
	}
	if moreNot > 0 {
		hint := "--all"
		if why := mostCommon(e); why != "" && o.Why == "" {
			hint += ", --why " + why
		}
		fmt.Fprintf(b, " ...  %d more do not (%s)\n", moreNot, hint)
	}
}

func currencyOf(e *planner.Explanation) string {
	for i := range e.Decision.Contracts {
		if c := e.Decision.Contracts[i].Currency; c != "" {
			return c
		}
	}
	for i := range e.Offers {
		if p := e.Offers[i].Flavor.Spec.Price; p != nil && p.Currency != "" && e.Offers[i].Fits {
			return p.Currency
		}
	}
	return "EUR"
}

func mostCommon(e *planner.Explanation) string {
	n := map[string]int{}
	best := ""
	for i := range e.Offers {
		if r := e.Offers[i].Requirement; !e.Offers[i].Fits {
			n[r]++
			if best == "" || n[r] > n[best] || (n[r] == n[best] && r < best) {
				best = r
			}
		}
	}
	return best
}

func gpuCountWidth(e *planner.Explanation) int {
	width := 0
	for i := range e.Offers {
		if f := e.Offers[i].Flavor; f.Spec.GPU != nil {
			width = max(width, len(f.Spec.Capacity[v1alpha1.GPU].Canonical(v1alpha1.GPU)))
		}
	}
	return width
}

// offerCells are the columns that every offer has.
func offerCells(number string, l *planner.OfferLine, countWidth int, more []string) []string {
	gpu, free := accelerators.Columns(l.Flavor.Spec.Capacity, l.Free, more)
	if gpu == "" {
		gpu, free = "-", l.Free[v1alpha1.CPU].Canonical(v1alpha1.CPU)+" cpu"
	}
	if g := l.Flavor.Spec.GPU; g != nil {
		model := g.Model
		if g.Profile != "" {
			model += " " + g.Profile
		}
		if model == "" {
			model = "gpu"
		}
		gpu = padLeft(l.Flavor.Spec.Capacity[v1alpha1.GPU].Canonical(v1alpha1.GPU), countWidth) + "x " + model
		free = l.Free[v1alpha1.GPU].Canonical(v1alpha1.GPU)
	}
	price, latency := "-", "-"
	if l.Priced {
		price = l.Hourly.Text()
		if !l.Transfer.IsZero() {
			price += "+" + l.Transfer.Text()
		}
	}
	if l.LatencyKnown {
		latency = fmt.Sprintf("%dms", l.LatencyMs)
	}
	return []string{number, escape.Line(l.Flavor.Ref()), escape.Line(gpu), free, price, latency}
}

func fitRow(l *planner.OfferLine, rank, countWidth int, terms, more []string) []string {
	row := offerCells(strconv.Itoa(rank), l, countWidth, more)
	for _, t := range terms {
		row = append(row, fmt.Sprintf("%.2f", l.Scores[t]))
	}
	row = append(row, fmt.Sprintf("%.2f", l.Score))
	var notes []string
	if l.Chosen {
		notes = append(notes, "chosen")
	}
	if l.Detail != "" {
		notes = append(notes, escape.Line(l.Detail))
	}
	if what := l.Sources.Unreviewed(); what != "" {
		notes = append(notes, what+" as reported")
	}
	if len(notes) > 0 {
		row = append(row, strings.Join(notes, "; "))
	}
	return row
}

func notRow(l *planner.OfferLine, countWidth int, more []string) []string {
	why := l.Requirement
	if l.Detail != "" {
		why += ": " + l.Detail
	}
	return append(offerCells("-", l, countWidth, more), escape.Line(why))
}

// measure is the width of each column; what follows the latency of an offer
// that does not fit is a sentence and has no width.
func measure(header []string, fits, others [][]string) []int {
	widths := make([]int, len(header))
	widths[0] = 2
	grow := func(row []string, n int) {
		for i := range row {
			if i < n {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			}
		}
	}
	grow(header, len(header))
	for _, r := range fits {
		grow(r, len(header))
	}
	for _, r := range others {
		grow(r, fixedColumns)
	}
	return widths
}

// writeRow aligns flavor and GPU to the left, figures to the right.
func writeRow(b *strings.Builder, row []string, widths []int, bold bool) {
	var line strings.Builder
	sentence := len(row) == fixedColumns+1 && row[0] == "-"
	for i, c := range row {
		if i > 0 {
			line.WriteString("  ")
		}
		switch {
		case i >= len(widths) || (sentence && i >= fixedColumns):
			line.WriteString(c)
		case i == 1 || i == 2:
			line.WriteString(pad(c, widths[i]))
		default:
			line.WriteString(padLeft(c, widths[i]))
		}
	}
	text := strings.TrimRight(line.String(), " ")
	if bold {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	b.WriteString(text + "\n")
}
