package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
)

// outcomeForms are the forms of what a command that changes something has done.
var outcomeForms = []string{"text", "json", "yaml"}

// outcomeFlag is -o on such a command; a form that is none is refused before
// anything is done.
func outcomeFlag(cmd *cobra.Command, into *string) { checkedOutput(cmd, into, outcomeForms...) }

func checkedOutput(cmd *cobra.Command, into *string, forms ...string) {
	outputFlag(cmd, into, forms...)
	cmd.PreRunE = func(*cobra.Command, []string) error { return oneOf("output", *into, forms...) }
}

// printOutcome prints what was done: as data, or in words.
func printOutcome(w io.Writer, form string, data any, words string) error {
	switch form {
	case "json":
		return escape.WriteJSON(w, data)
	case "yaml":
		return printYAML(w, data)
	}
	_, err := io.WriteString(w, words)
	return err
}
