package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// table prints rows: on a terminal with a header, aligned; in a pipe without
// one, separated by tabs, for cut and awk.
type table struct {
	s      Streams
	header []string
	rows   [][]string
	// right says which columns hold figures.
	right map[int]bool
}

func newTable(s Streams, header ...string) *table {
	t := &table{s: s, header: header, right: map[int]bool{}}
	for i, h := range header {
		if strings.HasPrefix(h, ">") {
			t.header[i], t.right[i] = h[1:], true
		}
	}
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// age is how long ago a time was, or the time itself in a pipe.
func (t *table) age(at v1alpha1.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case !t.s.Terminal:
		return at.UTC().Format(time.RFC3339)
	}
	return report.Age(t.s.Now().Sub(at.Time))
}

// money has two decimals for people and all of them in a pipe.
func (t *table) money(d v1alpha1.Decimal) string {
	if t.s.Terminal {
		return d.Text()
	}
	return d.String()
}

func (t *table) print(w io.Writer) error {
	var b strings.Builder
	if !t.s.Terminal {
		for _, r := range t.rows {
			b.WriteString(strings.Join(lines(r), "\t") + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	rows := [][]string{t.header}
	for _, r := range t.rows {
		rows = append(rows, lines(r))
	}
	widths := make([]int, len(t.header))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for k, r := range rows {
		var line strings.Builder
		for i, c := range r {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if t.s.Color && k > 0 {
				c = paint(t.header[i], c)
			}
			if t.right[i] {
				c = gap + c
			} else {
				c += gap
			}
			if i > 0 {
				line.WriteString("   ")
			}
			line.WriteString(c)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lines are a row's cells, each as one line.
func lines(row []string) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = escape.Line(c)
	}
	return out
}

// dash stands for what is empty.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// until is how long until a time, or the time itself in a pipe.
func (t *table) until(at v1alpha1.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case !t.s.Terminal:
		return at.UTC().Format(time.RFC3339)
	case at.Before(t.s.Now()):
		return "now"
	}
	return "in " + report.Age(at.Sub(t.s.Now()))
}

// markdown prints the rows as a table for a comment or a page.
func (t *table) markdown(w io.Writer) error {
	var b strings.Builder
	rule := make([]string, len(t.header))
	for i := range rule {
		rule[i] = map[bool]string{true: "-:", false: "-"}[t.right[i]]
	}
	fmt.Fprintf(&b, "| %s |\n|%s|\n", strings.ToLower(strings.Join(t.header, " | ")), strings.Join(rule, "|"))
	for _, r := range t.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			if cells[i] = c; c != dash("") {
				cells[i] = escape.Markdown(c)
			}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
