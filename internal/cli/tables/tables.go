package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// View is where a table is shown.
type View struct {
	// Terminal: aligned, with ages; else tabs and times.
	Terminal bool
	// Color paints states.
	Color bool
	// Wide shows the columns that are marked so, and cuts nothing.
	Wide bool
	// NoHeaders leaves the header out.
	NoHeaders bool
	// Width of the terminal in columns; 0 when it is not known: nothing is cut.
	Width int
	// Now is the clock for ages.
	Now func() time.Time
}

// Cell is one value of a row: as it is shown, and as data.
type Cell struct {
	Text string
	// Value is encoded as JSON; nil for what is not there.
	Value any
}

// column is one column of a header.
type column struct {
	name, key   string
	right, wide bool
}

// Table is a header and rows.
type Table struct {
	v       View
	columns []column
	rows    [][]Cell
}

// New is a table without rows. A column's text is its name, with ">" before it where
// it holds figures, "+" where only the wide form shows it, and "=key" after it where
// the key in JSON is not the name in camel case ("GPU MEMORY" is gpuMemory).
func New(v View, header ...string) *Table {
	t := &Table{v: v}
	for _, h := range header {
		c := column{}
		h, c.wide = strings.CutPrefix(h, "+")
		h, c.right = strings.CutPrefix(h, ">")
		c.name, c.key, _ = strings.Cut(h, "=")
		if c.key == "" {
			c.key = camel(c.name)
		}
		t.columns = append(t.columns, c)
	}
	return t
}

// camel is a column's name as a key: "GPU MEMORY" is gpuMemory.
func camel(name string) string {
	var b strings.Builder
	up := false
	for _, r := range strings.ToLower(name) {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = b.Len() > 0
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Row adds a row: strings, whole numbers and Cells, one for each column. "" and "-"
// are what is not there.
func (t *Table) Row(cells ...any) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case Cell:
			row[i] = c
		case string:
			row[i] = Cell{Dash(c), c}
			if row[i].Text == "-" {
				row[i].Value = nil
			}
		default:
			row[i] = Cell{fmt.Sprint(c), c}
		}
	}
	t.rows = append(t.rows, row)
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Age is how long ago a time was; the time itself in a pipe and as data.
func (t *Table) Age(at v1alpha1.Time) Cell { return t.moment(at, report.Age) }

// Until is how long until a time; the time itself in a pipe and as data.
func (t *Table) Until(at v1alpha1.Time) Cell {
	return t.moment(at, func(ago time.Duration) string {
		if ago > 0 {
			return "now"
		}
		return "in " + report.Age(-ago)
	})
}

// moment is a time in words that say how long ago it was.
func (t *Table) moment(at v1alpha1.Time, words func(ago time.Duration) string) Cell {
	switch {
	case at.IsZero():
		return Cell{Text: "-"}
	case !t.v.Terminal:
		return Cell{at.UTC().Format(time.RFC3339), at}
	}
	return Cell{words(t.v.Now().Sub(at.Time)), at}
}

// Money has two decimals for people and all of them elsewhere.
func (t *Table) Money(d v1alpha1.Decimal) Cell {
	if t.v.Terminal {
		return Cell{d.Text(), d}
	}
	return Cell{d.String(), d}
}

// Span is a length of time for people, or seconds in a pipe and as data.
func (t *Table) Span(seconds int64) Cell {
	switch {
	case !t.v.Terminal:
		return Cell{fmt.Sprint(seconds), seconds}
	case seconds == 0:
		return Cell{"0", seconds}
	}
	return Cell{report.Age(time.Duration(seconds) * time.Second), seconds}
}

// Columns are the rows as data: every column of the wide form by its key.
func (t *Table) Columns() []map[string]any {
	out := make([]map[string]any, len(t.rows))
	for i, r := range t.rows {
		out[i] = make(map[string]any, len(r))
		for j, c := range r {
			out[i][t.columns[j].key] = c.Value
		}
	}
	return out
}

// Listed are objects of a list, each with the columns of its row under "columns". There
// must be one for each row.
func Listed[T any](t *Table, objects []T) []any {
	out := make([]any, len(objects))
	for i, columns := range t.Columns() {
		out[i] = listed{objects[i], columns}
	}
	return out
}

type listed struct {
	object  any
	columns map[string]any
}

// MarshalJSON implements json.Marshaler: the object with one field more.
func (l listed) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(l.object)
	if err != nil {
		return nil, err
	}
	columns, err := json.Marshal(l.columns)
	if err != nil {
		return nil, err
	}
	if len(object) < 2 || object[0] != '{' {
		return nil, errors.New("what is listed is no object")
	}
	head := object[:len(object)-1]
	if len(head) > 1 {
		head = append(head, ',')
	}
	return slices.Concat(head, []byte(`"columns":`), columns, []byte("}")), nil
}

// shown are the columns that the view shows, and the rows as text, the header first
// unless it is left out.
func (t *Table) shown() (columns []column, rows [][]string) {
	var header []string
	for _, c := range t.columns {
		if !c.wide || t.v.Wide {
			columns, header = append(columns, c), append(header, c.name)
		}
	}
	if !t.v.NoHeaders {
		rows = append(rows, header)
	}
	for _, r := range t.rows {
		var row []string
		for i, c := range r {
			if !t.columns[i].wide || t.v.Wide {
				row = append(row, escape.Line(c.Text))
			}
		}
		rows = append(rows, row)
	}
	return columns, rows
}

// Print writes the table for a terminal or a pipe, as the view says.
func (t *Table) Print(w io.Writer) error {
	columns, rows := t.shown()
	var b strings.Builder
	if !t.v.Terminal {
		for _, r := range rows {
			b.WriteString(strings.Join(r, "\t") + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	widths := make([]int, len(columns))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], cells(c))
		}
	}
	t.fit(columns, widths)
	for k, r := range rows {
		var line strings.Builder
		for i, c := range r {
			c = Cut(c, widths[i])
			gap := strings.Repeat(" ", widths[i]-cells(c))
			if t.v.Color && (k > 0 || t.v.NoHeaders) {
				c = paint(columns[i].name, c)
			}
			if columns[i].right {
				c = gap + c
			} else {
				c += gap
			}
			if i > 0 {
				line.WriteString(between)
			}
			line.WriteString(c)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// between are two columns on a terminal.
const between = "   "

// words are the columns that may be cut, and leastWords how much of them stays.
var words = []string{"REASON", "MESSAGE", "WHY", "WHAT"}

const leastWords = 12

// fit narrows the columns of words until lines have the terminal's width.
func (t *Table) fit(columns []column, widths []int) {
	if t.v.Wide || t.v.Width <= 0 {
		return
	}
	over := len(between)*(len(columns)-1) - t.v.Width
	for _, n := range widths {
		over += n
	}
	for i := len(columns) - 1; i >= 0 && over > 0; i-- {
		if !slices.Contains(words, columns[i].name) || widths[i] <= leastWords {
			continue
		}
		less := min(over, widths[i]-leastWords)
		widths[i] -= less
		over -= less
	}
}

// Cut is a text in at most so many cells, with an ellipsis where something is left out.
func Cut(s string, width int) string {
	if cells(s) <= width {
		return s
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n += runeCells(r); n > width-1 {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// cells is how many columns of a terminal a text takes.
func cells(s string) int {
	if utf8.RuneCountInString(s) == len(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

// Markdown prints the rows as a table for a comment or a page.
func (t *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	columns, _ := t.shown()
	rule, names := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		rule[i], names[i] = map[bool]string{true: "-:", false: "-"}[c.right], c.name
	}
	fmt.Fprintf(&b, "| %s |\n|%s|\n", strings.ToLower(strings.Join(names, " | ")), strings.Join(rule, "|"))
	for _, r := range t.rows {
		var row []string
		for i, c := range r {
			if t.columns[i].wide && !t.v.Wide {
				continue
			}
			text := c.Text
			if text != Dash("") {
				text = escape.Markdown(text)
			}
			row = append(row, text)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Dash stands for what is empty.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count is "1 noun" or "2 nouns".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Resources are amounts by name, as "cpu=4,memory=8Gi".
func Resources(r v1alpha1.Resources) string {
	var parts []string
	for _, n := range r.Names() {
		parts = append(parts, n+"="+r[n].Canonical(n))
	}
	return strings.Join(parts, ",")
}
