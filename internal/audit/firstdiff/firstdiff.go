// Package firstdiff says in which line two texts differ first. It is pure; the audit calls
// it.
package firstdiff

import (
	"fmt"
	"strings"
)

// Of is the first line in which a text differs from what it should be.
func Of(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		x, y := line(a, i), line(b, i)
		if x != y {
			return fmt.Sprintf("line %d is %q, want %q", i+1, x, y)
		}
	}
	return "they are equal"
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
