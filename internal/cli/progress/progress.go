package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Line shows how far something long is: on a terminal in one line that is written over,
// else a line now and then once it takes long.
type Line struct {
	to       io.Writer
	terminal bool
	now      func() time.Time
	last     time.Time
	// wide is how long the line on the terminal is.
	wide int
}

// How often progress is shown on a terminal and elsewhere.
const (
	onTerminal = 100 * time.Millisecond
	elsewhere  = 10 * time.Second
)

// To shows it on a stream, which may be a terminal, by a clock.
func To(w io.Writer, terminal bool, now func() time.Time) *Line {
	return &Line{to: w, terminal: terminal, now: now, last: now()}
}

// Show shows that done of all are done.
func (p *Line) Show(what string, done, all int) {
	every := elsewhere
	if p.terminal {
		every = onTerminal
	}
	now := p.now()
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s: %d of %d (%d %%)", what, done, all, done*100/max(all, 1))
	if !p.terminal {
		fmt.Fprintln(p.to, "fleetbroker: "+text)
		return
	}
	n := utf8.RuneCountInString(text)
	fmt.Fprint(p.to, "\r"+text+strings.Repeat(" ", max(p.wide-n, 0)))
	p.wide = n
}

// End clears the line.
func (p *Line) End() {
	if p.wide > 0 {
		fmt.Fprint(p.to, "\r"+strings.Repeat(" ", p.wide)+"\r")
	}
}
