// Package naming says what things in a fleet repo may be called. It is pure; the reader
// of a fleet calls it.
package naming

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	labelForm  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	branchForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9_-]$|^[A-Za-z0-9_]$`)
)

// Branch reports whether a branch may be called so.
func Branch(name string) bool {
	return branchForm.MatchString(name) && !strings.Contains(name, "..") && !strings.HasSuffix(name, ".lock") && !strings.HasPrefix(name, "refs/")
}

// Bad says why a name is not a DNS-1123 label, "" when it is.
func Bad(what, name string) string {
	switch {
	case name == "":
		return what + " is missing"
	case len(name) > 63:
		return fmt.Sprintf("%s %q is longer than 63 characters", what, name)
	case !labelForm.MatchString(name):
		fixed := strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			}
			return '-'
		}, name), "-")
		if fixed == "" {
			return fmt.Sprintf("%s %q: only lower-case letters, digits and '-' are allowed", what, name)
		}
		return fmt.Sprintf("%s %q: only lower-case letters, digits and '-' are allowed (write %s)", what, name, fixed)
	}
	return ""
}
