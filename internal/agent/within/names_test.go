package within

import (
	"regexp"
	"strings"
	"testing"
)

// form is how package market has the name of a resource.
var form = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// What is a resource's name to brokers is one here, without an expression.
func FuzzIsResource(f *testing.F) {
	for _, name := range []string{
		"", "cpu", "a", "A", "-", "a-", "a.b", "a_b", "nvidia.com/gpu", "/x", "x/", "a/b/c", "Example.org/x", "a-/x", ".a/x", "x\n", "nvidia.com/mig-1g.10gb",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63), strings.Repeat("a", 254) + "/b", "é", "a\xff",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := isResource(name), form.MatchString(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	})
}
