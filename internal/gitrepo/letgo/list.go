package letgo

import (
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// A list of what was let go of and is not on record yet is a text: lines
// `<branch> <commit>`, joined by commas, the branch without refs/heads/.

// List are a list's lines.
func List(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' })
}

// Heads are the commits that a list has of a branch, given without refs/heads/. What is no
// commit is left out.
func Heads(text, branch string) []tree.Hash {
	var out []tree.Hash
	for _, line := range List(text) {
		if hash, on := strings.CutPrefix(line, branch+" "); on {
			if h, err := tree.ParseHash(hash); err == nil {
				out = append(out, h)
			}
		}
	}
	return out
}

// Add adds to a list those accepted heads of a branch, given as a full ref, that its head
// does not contain.
func Add(text, branch string, accepted []tree.Hash, head tree.Hash, within Within) (string, error) {
	list := List(text)
	for _, h := range accepted {
		if h.IsZero() {
			continue
		}
		held, err := within(h, head)
		if err != nil {
			return text, err
		}
		line := strings.TrimPrefix(branch, "refs/heads/") + " " + h.String()
		if !held && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return strings.Join(list, ","), nil
}
