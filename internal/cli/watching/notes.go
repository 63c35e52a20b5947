package watching

import "strings"

// Notes are what a command that goes on has to say next to its picture.
type Notes struct{ last string }

// New is what of now the look before did not say, line by line.
func (n *Notes) New(now string) string {
	was := map[string]bool{}
	for line := range strings.Lines(n.last) {
		was[line] = true
	}
	n.last = now
	var fresh strings.Builder
	for line := range strings.Lines(now) {
		if !was[line] {
			was[line] = true
			fresh.WriteString(line)
		}
	}
	return fresh.String()
}
