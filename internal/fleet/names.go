package fleet

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

var (
	labelForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	qualified    = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	labelValue   = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)
	userForm     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9:._@/]{0,252}$`)
	branchForm   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9_-]$|^[A-Za-z0-9_]$`)
)

// badName says why a name is not a DNS-1123 label, "" when it is.
func badName(what, name string) string {
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

// forbiddenNamespace: namespaces that no tenant may ever offload.
func forbiddenNamespace(name string) bool {
	return v1alpha1.SystemNamespace(name)
}
