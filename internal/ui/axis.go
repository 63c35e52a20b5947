package ui

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// tick is a time on an axis, with its word.
type tick struct {
	at   v1alpha1.Time
	word string
}

// ticks are round times between two: hours, days, Mondays, every other Monday or firsts of
// the month, so that there are about 4 to 13 of them. They are in UTC, as all times on pages.
func ticks(from, to v1alpha1.Time) []tick {
	const day = 24 * time.Hour
	midnight := from.UTC().Truncate(day)
	at, format := midnight, "Mon 2"
	next := func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	switch whole := to.Sub(from.Time); {
	case whole <= 0:
		return nil
	case whole <= 2*day:
		format, next = "15:04", func(t time.Time) time.Time { return t.Add(6 * time.Hour) }
	case whole <= 10*day:
	case whole <= 120*day:
		weeks := 1
		if whole > 45*day {
			weeks = 2
		}
		at, format = midnight.AddDate(0, 0, -(int(midnight.Weekday())+6)%7), "2 Jan"
		next = func(t time.Time) time.Time { return t.AddDate(0, 0, 7*weeks) }
	default:
		at, format = time.Date(midnight.Year(), midnight.Month(), 1, 0, 0, 0, 0, time.UTC), "Jan"
		next = func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
	}
	var out []tick
	for ; at.Before(to.Time); at = next(at) {
		if !at.After(from.Time) {
			continue
		}
		word := at.Format(format)
		if format == "Jan" && at.Month() == time.January {
			word = at.Format("2006")
		}
		out = append(out, tick{v1alpha1.TimeOf(at), word})
	}
	return out
}

// grid are the lines of an axis through a chart that is so high, of 100 width.
func grid(b *strings.Builder, from, to v1alpha1.Time, high int) {
	for _, t := range ticks(from, to) {
		fmt.Fprintf(b, `<path class="b-tick" d="M%.2f 0V%d"/>`, along(t.at, from, to), high)
	}
}

// axis are the words of an axis below a chart. The first one's place is at its left end, and
// none is written over another: every second one makes room where it is narrow (style.css).
// Who does not see it has the times in the chart's text and in the list below.
func axis(from, to v1alpha1.Time) template.HTML {
	var b strings.Builder
	b.WriteString(`<svg class="axis" aria-hidden="true"><text x="0" y="12">now</text>`)
	all := ticks(from, to)
	for i, t := range all {
		x := along(t.at, from, to)
		class, anchor := "even", "middle"
		if x < 12 || i%2 == 1 && len(all) > 5 { // beside "now", or beside the one before
			class = "odd"
		}
		switch {
		case x < 5:
			continue
		case x > 94:
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text class="%s" x="%.2f%%" y="12" text-anchor="%s">%s</text>`, class, x, anchor, t.word)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers and dates alone
}
