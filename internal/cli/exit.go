package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/hints"
)

// Exit codes of every command.
const (
	exitOK      = 0
	exitProblem = 1
	exitChanges = 2
	exitUnknown = 3
)

// errChanges is what `plan` ends with when there are changes: not an error to
// print, only a code.
var errChanges = errors.New("the plan has changes")

// errFindings is what `validate` ends with when it has printed problems.
var errFindings = errors.New("there are problems")

// errUnknown is what `audit verify` ends with when nothing breaks a rule, and a part
// of the ledger is of numbers that this program cannot judge.
var errUnknown = errors.New("a part of the ledger was not judged")

// hinted adds what to type next to an error.
func hinted(err error, next ...string) error { return hints.On(err, next...) }

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode is the process's exit code for how a command ended.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errChanges):
		return exitChanges
	case errors.Is(err, errUnknown):
		return exitUnknown
	}
	return exitProblem
}

// complain prints an error for people, unless everything has been said.
func complain(w io.Writer, command string, err error) {
	if err == nil || errors.Is(err, errChanges) || errors.Is(err, errFindings) || errors.Is(err, errUnknown) {
		return
	}
	fmt.Fprintf(w, "fleetbroker: %s\n", escape.Lines(err.Error()))
	for _, line := range hints.Of(err) {
		fmt.Fprintf(w, "hint: %s\n", escape.Line(line))
	}
	var u *usageError
	if errors.As(err, &u) {
		fmt.Fprintf(w, "hint: %s --help\n", strings.TrimSpace(command))
	}
}
