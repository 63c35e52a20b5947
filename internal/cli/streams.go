package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
)

// Streams is what a command reads and writes, and the clock it goes by.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says that Out is one: tables get headers and ages.
	Terminal bool
	// Width of the terminal that Out is, in columns; 0 is unknown.
	Width int
	// ErrTerminal says that Err is one: progress is shown there.
	ErrTerminal bool
	// Color says that Out shows colours.
	Color bool
	// Now is the clock.
	Now func() time.Time
	// Name is how the program was called, where that is not fleetbroker.
	Name string
	// Process says that the process runs this command and nothing else, so that
	// what its libraries log goes where the command's own log goes.
	Process bool

	noHeaders *bool // of --no-headers
}

// view is where tables are shown, for a form of -o.
func (s Streams) view(form string) tables.View {
	return tables.View{
		Terminal: s.Terminal, Color: s.Color, Width: s.Width, Now: s.Now,
		Wide: form == "wide", NoHeaders: s.noHeaders != nil && *s.noHeaders,
	}
}

// pluginFile is the name under which kubectl finds the program.
const pluginFile = "kubectl-fleetbroker"

// calledAs is how the user called a program of this file name: kubectl finds
// its plugins by their names, and shows them as its own commands.
func calledAs(file string) string {
	if strings.TrimSuffix(filepath.Base(file), ".exe") == pluginFile {
		return "kubectl fleetbroker"
	}
	return ""
}

// System is the process's own streams.
func System() Streams {
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	width := 0
	if terminal {
		width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 where it is not known
	}
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, Width: width, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Now:   time.Now, Name: calledAs(os.Args[0]), Process: true,
	}
}
