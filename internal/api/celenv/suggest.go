package celenv

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
)

// operand is what stands before the dot of a field: a path of names from a variable on.
var operand = regexp.MustCompile(`(?:^|[^.A-Za-z0-9_])((?:intent|flavor|cluster)(?:\.[A-Za-z]+)*)$`)

// suggestion is what was probably meant by an unknown field, "" where nothing is near: the
// path of a field of that name further down, else the closest field of the same object.
// before is the expression up to the field's dot. Fields of what is no plain path are
// compared with those of all objects.
func suggestion(before, name string) string {
	m := operand.FindStringSubmatch(before)
	if m == nil {
		return quoted(nearest.Of(name, fieldsOf(slices.Collect(maps.Values(objects))...)))
	}
	path := strings.Split(m[1], ".")
	o := map[string]*object{"intent": intentType, "flavor": flavorType, "cluster": clusterType}[path[0]]
	for _, step := range path[1:] {
		f, known := o.fields[step]
		if !known {
			return ""
		}
		if o = objects[f.conv.cel.TypeName()]; o == nil {
			return ""
		}
	}
	best := ""
	for _, n := range o.names(nil, m[1]) {
		if strings.HasSuffix(n.Path, "."+name) && (best == "" || len(n.Path) < len(best) || len(n.Path) == len(best) && n.Path < best) {
			best = n.Path
		}
	}
	if best != "" {
		return best
	}
	return quoted(nearest.Of(name, fieldsOf(o)))
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%q", name)
}

// fieldsOf are the names of fields of objects, sorted.
func fieldsOf(list ...*object) []string {
	known := map[string]bool{}
	for _, o := range list {
		for f := range o.fields {
			known[f] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}
