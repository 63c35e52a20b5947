package howto

import (
	"fmt"
	"strings"
)

// Text is a guide for a terminal: the steps with their commands, then the manifest.
func Text(g *Guide) string {
	w := &strings.Builder{}
	fmt.Fprintln(w, g.Intent)
	for _, s := range g.Steps {
		fmt.Fprintf(w, "\n%s\n  %s\n", s.Title, wrap(s.Text, 78, "  "))
		for _, command := range s.Commands {
			fmt.Fprintf(w, "    %s\n", command)
		}
	}
	if g.Manifest != "" {
		fmt.Fprintf(w, "\nManifest\n%s", indent(g.Manifest))
	}
	return w.String()
}

// wrap breaks a text at blanks into lines of at most so many bytes, where words let it.
func wrap(text string, width int, begin string) string {
	var out strings.Builder
	line := len(begin)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case line+1+len(word) > width:
			out.WriteString("\n" + begin)
			line = len(begin)
		default:
			out.WriteByte(' ')
			line++
		}
		out.WriteString(word)
		line += len(word)
	}
	return out.String()
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
