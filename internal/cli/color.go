package cli

import "github.com/spf13/pflag"

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
