package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Streams is what a command reads and writes, and the clock it goes by.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says that Out is one: tables get headers and ages.
	Terminal bool
	// ErrTerminal says that Err is one: progress is shown there.
	ErrTerminal bool
	// Color says that Out shows colours.
	Color bool
	// Now is the clock.
	Now func() time.Time
}

// System is the process's own streams.
func System() Streams {
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Now:   time.Now,
	}
}
