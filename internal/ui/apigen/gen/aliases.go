package gen

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// aliases are the types and constants of the aliased packages: all of the kinds', and what
// is used of the others.
func (w *writer) aliases(all string, others ...string) (string, error) {
	var b strings.Builder
	taken := map[string]bool{}
	for _, pkg := range append([]string{all}, others...) {
		source, err := w.sources.of(pkg)
		if err != nil {
			return "", err
		}
		base := path.Base(pkg)
		if pkg == all {
			base = kindsName
		}
		for _, name := range source.names {
			if pkg != all && !w.used[base+"."+name] {
				continue
			}
			if taken[name] {
				return "", fmt.Errorf("two packages have a type %s", name)
			}
			taken[name] = true
			comment(&b, "", source.types[name].doc)
			fmt.Fprintf(&b, "type %s = %s.%s\n\n", name, base, name)
		}
		fmt.Fprintf(&b, "// Constants of these types.\nconst (\n")
		for _, name := range source.consts {
			public := name
			if pkg != all {
				public = publicConst(name)
			}
			if public == "" || taken[public] {
				continue
			}
			taken[public] = true
			fmt.Fprintf(&b, "\t%s = %s.%s\n", public, base, name)
		}
		b.WriteString(")\n\n")
	}
	return b.String(), nil
}

// kindsName is what the package of the kinds is called in a file of the same name.
const kindsName = "kinds"

// publicConst is what a constant of the wire is called, "" for those that stay inside:
// phases of a reservation are fewer than a contract's.
func publicConst(name string) string {
	switch {
	case strings.HasPrefix(name, "Phase"):
		return "Reservation" + name
	case slices.ContainsFunc([]string{"Header", "Reason"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
		return name
	}
	return ""
}
