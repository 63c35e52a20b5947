package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// progress shows how far something long is, on standard error: on a terminal in
// one line that is written over, else a line now and then once it takes long.
type progress struct {
	s    Streams
	last time.Time
	// wide is how long the line on the terminal is.
	wide int
}

// How often progress is shown on a terminal and elsewhere.
const (
	progressTerminal = 100 * time.Millisecond
	progressElse     = 10 * time.Second
)

func newProgress(s Streams) *progress { return &progress{s: s, last: s.Now()} }

// tell shows that done of all are done.
func (p *progress) tell(what string, done, all int) {
	every := progressElse
	if p.s.ErrTerminal {
		every = progressTerminal
	}
	now := p.s.Now()
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s: %d of %d (%d %%)", what, done, all, done*100/max(all, 1))
	if !p.s.ErrTerminal {
		fmt.Fprintln(p.s.Err, "fleetbroker: "+text)
		return
	}
	n := utf8.RuneCountInString(text)
	fmt.Fprint(p.s.Err, "\r"+text+strings.Repeat(" ", max(p.wide-n, 0)))
	p.wide = n
}

// end clears the line.
func (p *progress) end() {
	if p.wide > 0 {
		fmt.Fprint(p.s.Err, "\r"+strings.Repeat(" ", p.wide)+"\r")
	}
}
