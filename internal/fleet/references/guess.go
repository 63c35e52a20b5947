package references

import (
	"regexp"
	"slices"
	"strings"
)

// item is an entry of a list on a line of its own, flow a list on one line.
var (
	item = regexp.MustCompile(`(?m)^[ \t]*-[ \t]+["']?([^\s"'#,\[\]{}:]+)`)
	flow = regexp.MustCompile(`(?m)^[ \t]*(?:resources|bases|components)[ \t]*:[ \t]*\[([^\]\n]*)`)
)

// guess is what a text that cannot be parsed seems to name, in order, at most MaxRefs. What
// it names as a base would else stand for itself, and what it had made there would begin.
func guess(content []byte) []string {
	seen := map[string]bool{}
	for _, m := range item.FindAllSubmatch(content, MaxRefs) {
		seen[string(m[1])] = true
	}
	for _, m := range flow.FindAllSubmatch(content, MaxRefs) {
		for name := range strings.SplitSeq(string(m[1]), ",") {
			if name = strings.Trim(name, " \t\r\"'"); name != "" && len(seen) < MaxRefs {
				seen[name] = true
			}
		}
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
