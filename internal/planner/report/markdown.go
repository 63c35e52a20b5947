package report

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// Marker is the first line of a plan in markdown: CI finds its older comment
// by it and replaces it.
const Marker = "<!-- fleetbroker:plan -->"

// CommentLimit is how many bytes a comment may have on the strictest forge:
// GitHub refuses a body over 65,536 characters.
const CommentLimit = 65536

// MarkdownOptions bound a comment.
type MarkdownOptions struct {
	// Limit in bytes; 0 is CommentLimit.
	Limit int
}

// Markdown writes the plan as a comment on a pull request: the sum first, a
// table with the problems on top, and the full text folded. Past the limit
// whole intents go, the least troubled first, and a line states how many.
func Markdown(w io.Writer, p *planner.Plan, m Meta, o MarkdownOptions) error {
	limit := o.Limit
	if limit == 0 {
		limit = CommentLimit
	}
	list := items(p, m, false)
	pn := newPen(p, list, Options{})
	entries := make([]entry, len(list))
	for i, it := range list {
		entries[i] = entry{at: i, group: it.group(), row: pn.row(it), block: pn.block(it)}
	}
	head, foot := heading(p, m), foot(p, m)
	frame := len(head) + len(foot) + 512
	kept := fit(entries, limit-frame-len(sum(p, m)))
	_, err := io.WriteString(w, comment(p, m, kept, len(entries)-len(kept), head, foot))
	return err
}

// ExplainMarkdown writes an explanation for a comment: the text, fenced.
func ExplainMarkdown(w io.Writer, e *planner.Explanation, o ExplainOptions) error {
	var text strings.Builder
	o.Color = false
	if err := ExplainText(&text, e, o); err != nil {
		return err
	}
	fence := fenceFor(text.String())
	_, err := fmt.Fprintf(w, "%s\n%s%s\n", fence, text.String(), fence)
	return err
}

// entry is one item in both forms.
type entry struct {
	at         int
	group      group
	row, block string
}

// fit keeps whole entries within budget bytes, the most troubled groups first,
// and returns them in the text's order.
func fit(entries []entry, budget int) []entry {
	byTrouble := append([]entry{}, entries...)
	sort.SliceStable(byTrouble, func(i, j int) bool { return byTrouble[i].group > byTrouble[j].group })
	var kept []entry
	for _, e := range byTrouble {
		if budget -= len(e.row) + len(e.block); budget < 0 {
			break
		}
		kept = append(kept, e)
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].at < kept[j].at })
	return kept
}

func comment(p *planner.Plan, m Meta, kept []entry, left int, head, foot string) string {
	var b, text strings.Builder
	diff := p.HourlyAfter.Sub(p.HourlyBefore)
	fmt.Fprintf(&b, "%s\n**Plan: %s (%s %s/h)**\n", Marker, sum(p, m), signed(diff), p.Currency)
	if p.HeldBack != "" {
		fmt.Fprintf(&b, "\n**Held back:** %s\n", escape.Markdown(p.HeldBack))
	}
	if len(kept) > 0 {
		b.WriteString("\n| | intent | where | EUR/h | why |\n|-|-|-|-:|-|\n")
	}
	table := append([]entry{}, kept...)
	sort.SliceStable(table, func(i, j int) bool { return table[i].group > table[j].group })
	for _, e := range table {
		b.WriteString(e.row)
	}
	omitted := ""
	if left > 0 {
		omitted = fmt.Sprintf("%s left out: the comment would be too long. `fleetbroker plan` shows all.", plural(left, "intent"))
		fmt.Fprintf(&b, "\n%s\n", omitted)
	}
	text.WriteString(head + "\n\n")
	for _, e := range kept {
		text.WriteString(e.block)
	}
	if len(kept) > 0 {
		text.WriteByte('\n')
	}
	text.WriteString(foot)
	at := short(p.Inputs)
	if at == "" {
		at = "the files as they are"
	}
	fence := fenceFor(text.String())
	fmt.Fprintf(&b, "\n<details><summary>Full plan at %s</summary>\n\n%sdiff\n%s%s\n\n</details>\n", at, fence, text.String(), fence)
	return strings.Replace(b.String(), "| EUR/h |", "| "+p.Currency+"/h |", 1)
}

// row is an item in the table.
func (pn *pen) row(it item) string {
	if it.decision == nil {
		e := it.problems[0]
		return fmt.Sprintf("| x refuse | %s | `%s` | | %s |\n", escape.Markdown(intentOf(e.File)), escape.Code(e.Place()), escape.Markdown(e.Message))
	}
	d := it.decision
	where, cost := escape.Markdown(strings.Join(pn.places(d), ", ")), ""
	if diff := total(d); !diff.Round(2).IsZero() {
		cost = signed(diff)
	}
	reason := pn.why(d)
	if len(it.problems) > 0 {
		where, reason = "`"+escape.Code(it.problems[0].Place())+"`", it.problems[0].Message
	}
	if n := len(kept(d)); d.Action == planner.Queued && n > 0 {
		reason = strings.TrimSuffix("holds "+plural(n, "contract")+"; "+reason, "; ")
	}
	action := strings.TrimSpace(lookOf(d).symbol + " " + string(d.Action))
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n",
		action, escape.Markdown(d.Tenant+"/"+d.Name), where, cost, escape.Markdown(reason))
}

// places is where a decision's contracts are, for the table.
func (pn *pen) places(d *planner.Decision) []string {
	if d.Action == planner.Move {
		return []string{route(d.Contracts)}
	}
	var out []string
	seen := map[string]bool{}
	for i := range d.Contracts {
		c := &d.Contracts[i]
		s := ref(c)
		if c.Consumer != "" {
			s += " -> " + c.Consumer
		}
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// intentOf guesses "<tenant>/<intent>" from the path of an intent's file, for
// a file that could not be read.
func intentOf(file string) string {
	rest, ok := strings.CutPrefix(file, "intents/")
	if !ok {
		return file
	}
	return strings.TrimSuffix(strings.TrimSuffix(rest, ".yaml"), ".yml")
}

// Counts is the sum of a plan's decisions: "1 place, 41 keep".
func Counts(p *planner.Plan, m Meta) string { return sum(p, m) }

// Signed is a difference of money with its sign and two decimals.
func Signed(d v1alpha1.Decimal) string { return signed(d) }

// fenceFor is a fence that the text does not contain.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
