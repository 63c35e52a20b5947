package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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
	// Name is how the program was called, where that is not fleetbroker.
	Name string
	// Process says that the process runs this command and nothing else, so that
	// what its libraries log goes where the command's own log goes.
	Process bool
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
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Color: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Now:   time.Now, Name: calledAs(os.Args[0]), Process: true,
	}
}
