package simulate

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// colours are told apart by people who see few of them (Okabe and Ito, 2008).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// line is one series of a chart.
type line struct {
	name   string
	x, y   []float64
	dashed bool
	// colour is a number that a policy has in every chart, however many lines are one here.
	colour int
	// steps: the value holds until the next point.
	steps bool
}

// together makes one line of those that are equal everywhere: the last would hide the
// others.
func together(lines []line) []line {
	var out []line
	for _, l := range lines {
		same := slices.IndexFunc(out, func(o line) bool { return slices.Equal(o.x, l.x) && slices.Equal(o.y, l.y) })
		if same >= 0 {
			out[same].name += " = " + l.name
			continue
		}
		out = append(out, l)
	}
	return out
}

// Lines that run on each other for a while are told apart: the first is the widest, and
// those above it have gaps through which it shows.
var (
	widths = []float64{3.4, 2.6, 2.2, 1.8, 1.6, 1.6}
	dashes = []string{"", "10 6", "3 5", "14 5 3 5", "6 8", "2 8"}
)

// Size of a chart in its own units, and the room for its axes.
const (
	chartW, chartH = 640, 260
	padL, padR     = 64, 22
	padT, padB     = 12, 36
)

// axis is one of a chart.
type axis struct {
	name string
	// whole: there is nothing between two whole numbers.
	whole bool
	// dates: values are seconds, shown as the instants that they are; nil for numbers.
	dates func(float64) time.Time
}

// tick is where an axis has a figure.
type tick struct {
	at   float64
	text string
}

// steps of time between ticks, in seconds.
var timeSteps = []int64{60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 28 * 86400, 91 * 86400, 182 * 86400, 365 * 86400}

// ticks are round figures from one value to another, at most some seven.
func (a axis) ticks(from, to float64) []tick {
	const most = 6
	var out []tick
	if a.dates == nil {
		step := niceStep((to-from)/most, a.whole)
		for at := math.Ceil(from/step) * step; at <= to+step/1e6; at += step {
			out = append(out, tick{at, short(at)})
		}
		return out
	}
	step := timeSteps[len(timeSteps)-1]
	for _, s := range slices.Backward(timeSteps) {
		if (to-from)/float64(s) <= most {
			step = s
		}
	}
	layout := "2 Jan"
	switch {
	case step < 86400 && to-from > 86400:
		layout = "2 Jan 15:04"
	case step < 86400:
		layout = "15:04"
	case to-from > 300*86400:
		layout = "Jan 2006"
	}
	begin := a.dates(from).Unix()
	for at := (begin + step - 1) / step * step; float64(at-begin) <= to-from; at += step {
		x := from + float64(at-begin)
		out = append(out, tick{x, a.dates(x).Format(layout)})
	}
	return out
}

// niceStep is the least 1, 2 or 5 times a power of ten that is no less than a value.
func niceStep(v float64, whole bool) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*(1-1e-9) {
			if whole {
				return max(m*p, 1)
			}
			return m * p
		}
	}
	return 10 * p
}

// chart draws lines over one axis, from nothing to beyond the greatest value.
func chart(lines []line, across, up axis) template.HTML {
	minX, maxX, maxY := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range lines {
		for i := range l.x {
			minX, maxX, maxY = min(minX, l.x[i]), max(maxX, l.x[i]), max(maxY, l.y[i])
		}
	}
	if minX > maxX {
		return ""
	}
	if maxX == minX {
		maxX = minX + 1
	}
	if maxY <= 0 {
		maxY = 1
	}
	const rows = 5
	step := niceStep(maxY/rows, up.whole)
	top := math.Ceil(maxY/step-1e-9) * step
	px := func(x float64) float64 { return padL + (x-minX)/(maxX-minX)*(chartW-padL-padR) }
	py := func(y float64) float64 { return chartH - padB - y/top*(chartH-padT-padB) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img">`, chartW, chartH)
	for y := 0.0; y <= top+step/2; y += step {
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, padL, chartW-padR, py(y), py(y))
		fmt.Fprintf(&b, `<text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`, padL-6, py(y)+4, short(y))
	}
	for _, t := range across.ticks(minX, maxX) {
		x, anchor := px(t.at), "middle"
		switch {
		case x < padL+12:
			anchor = "start"
		case x > chartW-padR-12:
			anchor = "end"
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, chartH-padB, chartH-padB+4)
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`, x, chartH-padB+16, anchor, template.HTMLEscapeString(t.text))
	}
	fmt.Fprintf(&b, `<text class="tick name" x="%d" y="%d" text-anchor="middle">%s</text>`, (chartW+padL-padR)/2, chartH-4, template.HTMLEscapeString(across.name))
	for _, l := range lines {
		var path strings.Builder
		for k := range l.x {
			switch {
			case k == 0:
				fmt.Fprintf(&path, "M%.1f %.1f", px(l.x[k]), py(l.y[k]))
			case l.steps:
				fmt.Fprintf(&path, "H%.1fV%.1f", px(l.x[k]), py(l.y[k]))
			default:
				fmt.Fprintf(&path, "L%.1f %.1f", px(l.x[k]), py(l.y[k]))
			}
		}
		style := fmt.Sprintf(`stroke="%s" stroke-width="%.1f"`, colours[l.colour%len(colours)], widths[l.colour%len(widths)])
		if dash := dashes[l.colour%len(dashes)]; dash != "" {
			style += fmt.Sprintf(` stroke-dasharray="%s"`, dash)
		}
		if l.dashed {
			style = `stroke="currentColor" stroke-width="1.4" stroke-dasharray="4 4"`
		}
		fmt.Fprintf(&b, `<path fill="none" %s d="%s"><title>%s</title></path>`, style, path.String(), template.HTMLEscapeString(l.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String() + legend(lines)) //nolint:gosec // names are escaped, the rest are numbers
}

func legend(lines []line) string {
	var b strings.Builder
	b.WriteString(`<p class="legend">`)
	for _, l := range lines {
		style := fmt.Sprintf(`stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"`, colours[l.colour%len(colours)], widths[l.colour%len(widths)], dashes[l.colour%len(dashes)])
		if l.dashed {
			style = `stroke="currentColor" stroke-width="1.4" stroke-dasharray="4 4"`
		}
		fmt.Fprintf(&b, `<span><svg class="swatch" viewBox="0 0 34 8" aria-hidden="true"><path fill="none" %s d="M0 4H34"/></svg>%s</span>`, style, template.HTMLEscapeString(l.name))
	}
	return b.String() + "</p>"
}

// meter is a small bar for a cell: a part of 1.
func meter(f float64) template.HTML {
	const w = 60
	return template.HTML(fmt.Sprintf(`<svg class="meter" viewBox="0 0 %d 8" aria-hidden="true"><rect width="%d" height="8" rx="2" class="track"/><rect width="%.1f" height="8" rx="2" fill="%s"/></svg>`, w, w, min(max(f, 0), 1)*w, colours[0])) //nolint:gosec // numbers
}

// bar is one bar of a chart of bars.
type bar struct {
	name  string
	value float64
	text  string
}

// bars draws horizontal bars from nothing to the greatest.
func bars(list []bar) template.HTML {
	const rowH, labelW, textW = 28, 150, 150
	top, same := 0.0, len(list) > 1
	for _, x := range list {
		top = max(top, x.value)
		same = same && x.text == list[0].text
	}
	if same { // bars of one length say nothing
		return template.HTML(fmt.Sprintf(`<p class="same"><strong>%s</strong> under each policy.</p>`, template.HTMLEscapeString(list[0].text))) //nolint:gosec // escaped
	}
	if top <= 0 {
		top = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img">`, chartW, rowH*len(list)+8)
	for i, x := range list {
		y := i * rowH
		w := x.value / top * (chartW - labelW - textW)
		fmt.Fprintf(&b, `<text class="label" x="%d" y="%d" text-anchor="end">%s</text>`, labelW-8, y+20, template.HTMLEscapeString(x.name))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s" rx="2"/>`, labelW, y+5, w, rowH-8, colours[i%len(colours)])
		fmt.Fprintf(&b, `<text class="label" x="%.1f" y="%d">%s</text>`, labelW+w+8, y+20, template.HTMLEscapeString(x.text))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped, the rest are numbers
}

// short is a number for an axis: 1.2k, 3M.
func short(v float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.of {
			return strconv.FormatFloat(math.Round(v/u.of*100)/100, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
