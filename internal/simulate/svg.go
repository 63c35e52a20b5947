package simulate

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// colours are told apart by people who see few of them (Okabe and Ito, 2008).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// line is one series of a chart.
type line struct {
	name   string
	x, y   []float64
	dashed bool
	// steps: the value holds until the next point.
	steps bool
}

// Size of a chart in its own units, and the room for its axes.
const (
	chartW, chartH = 640, 260
	padL, padR     = 64, 16
	padT, padB     = 12, 36
)

// chart draws lines over one axis, from nothing to the greatest value.
func chart(lines []line, xName string, xText func(float64) string) template.HTML {
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
	top := niceTop(maxY)
	px := func(x float64) float64 { return padL + (x-minX)/(maxX-minX)*(chartW-padL-padR) }
	py := func(y float64) float64 { return chartH - padB - y/top*(chartH-padT-padB) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img">`, chartW, chartH)
	for i := range 5 {
		y := top * float64(i) / 4
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, padL, chartW-padR, py(y), py(y))
		fmt.Fprintf(&b, `<text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`, padL-6, py(y)+4, short(y))
		x := minX + (maxX-minX)*float64(i)/4
		anchor := map[int]string{0: "start", 4: "end"}[i]
		if anchor == "" {
			anchor = "middle"
		}
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%d" text-anchor="%s">%s</text>`, px(x), chartH-padB+16, anchor, template.HTMLEscapeString(xText(x)))
	}
	fmt.Fprintf(&b, `<text class="tick" x="%d" y="%d" text-anchor="middle">%s</text>`, (chartW+padL-padR)/2, chartH-4, template.HTMLEscapeString(xName))
	for i, l := range lines {
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
		style := fmt.Sprintf(`stroke="%s"`, colours[i%len(colours)])
		if l.dashed {
			style = `stroke="currentColor" stroke-dasharray="4 4"`
		}
		fmt.Fprintf(&b, `<path fill="none" stroke-width="1.8" %s d="%s"><title>%s</title></path>`, style, path.String(), template.HTMLEscapeString(l.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String() + legend(lines)) //nolint:gosec // names are escaped, the rest are numbers
}

func legend(lines []line) string {
	var b strings.Builder
	b.WriteString(`<p class="legend">`)
	for i, l := range lines {
		colour := colours[i%len(colours)]
		if l.dashed {
			colour = "currentColor"
		}
		fmt.Fprintf(&b, `<span><i style="background:%s"></i>%s</span>`, colour, template.HTMLEscapeString(l.name))
	}
	return b.String() + "</p>"
}

// bar is one bar of a chart of bars.
type bar struct {
	name  string
	value float64
	text  string
}

// bars draws horizontal bars from nothing to the greatest.
func bars(list []bar) template.HTML {
	const rowH, labelW, textW = 28, 130, 110
	top := 0.0
	for _, x := range list {
		top = max(top, x.value)
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

// niceTop is the least 1, 2, 2.5 or 5 times a power of ten that holds a value.
func niceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*p >= v {
			return m * p
		}
	}
	return 10 * p
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
