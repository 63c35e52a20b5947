package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// The forms of --color.
var colorForms = []string{"auto", "always", "never"}

// colored decides on colours before commands are made, because each gets a copy
// of the streams: a terminal has them unless --color or NO_COLOR says otherwise.
// A value that is none is the flag's own to refuse.
func colored(s Streams, args []string) bool {
	fs := pflag.NewFlagSet("color", pflag.ContinueOnError)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.Usage = func() {}
	form := fs.String("color", "auto", "")
	_ = fs.Parse(args)
	switch *form {
	case "always":
		return true
	case "never":
		return false
	}
	return s.Color
}

// What a state's colour says: all is well, somebody has to look, something is
// under way.
var stateColors = func() map[string]string {
	out := map[string]string{}
	for color, states := range map[string]string{
		"32": "Active Fresh Placed Ready yes",
		"31": "Degraded Failed Lost Preempted Refused Silent Withdrawn no",
		"33": "Cordoned Draining New Peering Queued Releasing Reserved Suspended",
	} {
		for _, s := range strings.Fields(states) {
			out[s] = color
		}
	}
	return out
}()

// paint colours a cell that holds a state, by its first word.
func paint(header, cell string) string {
	switch header {
	case "STATE", "PHASE", "READY":
	default:
		return cell
	}
	word, _, _ := strings.Cut(cell, " ")
	color := stateColors[strings.TrimSuffix(word, ",")]
	if color == "" {
		return cell
	}
	return "\x1b[" + color + "m" + cell + "\x1b[0m"
}
