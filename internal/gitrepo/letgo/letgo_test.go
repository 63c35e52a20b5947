package letgo_test

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// parents of commits by letters; one that is not named is not there.
var parents = map[byte]string{
	'a': "", 'b': "a", 'c': "b", 'd': "c", // what stood, d last
	'x': "b", 'y': "x", // another line from b on
	'z': "y", // and what came after
}

func name(b byte) (h tree.Hash) {
	if b != '-' {
		h[0] = b
	}
	return h
}

func within(a, b tree.Hash) (bool, error) {
	if _, is := parents[a[0]]; !is {
		return false, nil
	}
	if a == b {
		return true, nil
	}
	for _, p := range []byte(parents[b[0]]) {
		if in, err := within(a, name(p)); in || err != nil {
			return in, err
		}
	}
	return false, nil
}

// An entry is written commit, drops, and where it has one, a branch.
func TestTake(t *testing.T) {
	for what, c := range map[string]struct {
		entries     string
		head        byte
		stood, want string
	}{
		"the head that is named":                    {"yd", 'y', "d", "y"},
		"one below the head":                        {"yd", 'z', "d", "y"},
		"a branch that was set back":                {"bd", 'b', "d", "b"},
		"what a slower replica had accepted":        {"yd", 'y', "c", "y"},
		"all that contradicts":                      {"yd", 'y', "dc", "y"},
		"not what came later":                       {"bd", 'b', "z", "-"},
		"not where one of them came later":          {"yc", 'y', "cd", "-"},
		"not where the commit is not contained":     {"xd", 'c', "d", "-"},
		"not without what is let go of":             {"y-", 'y', "d", "-"},
		"not on another branch":                     {"ydm", 'y', "d", "-"},
		"on the branch that is named":               {"ydl", 'y', "d", "y"},
		"the newest of two that count":              {"xc yd", 'y', "cd", "y"},
		"each lets go of its own":                   {"yd yq", 'y', "dq", "y"},
		"a commit that is let go of and not there":  {"yq", 'y', "q", "y"},
		"no commit that is not there is below one":  {"yq", 'y', "r", "-"},
		"nothing stood":                             {"yd", 'y', "", "-"},
		"an old entry next to one for this rewrite": {"bd yd", 'z', "d", "y"},
	} {
		var list []letgo.Entry
		for _, e := range strings.Fields(c.entries) {
			entry := letgo.Entry{Commit: name(e[0]), Drops: name(e[1])}
			if len(e) > 2 {
				entry.Branch = e[2:]
			}
			list = append(list, entry)
		}
		reached, err := letgo.Reached(list, "l", name(c.head), within)
		if err != nil {
			t.Fatal(err)
		}
		var stood []tree.Hash
		for _, s := range []byte(c.stood) {
			stood = append(stood, name(s))
		}
		if got, err := letgo.Take(reached, stood, within); err != nil || got != name(c.want[0]) {
			t.Errorf("%s: got %q, %v, want %s", what, got[0], err, c.want)
		}
	}
}

// Of a head z, an entry for y never lowers what was accepted above y.
func TestStands(t *testing.T) {
	for was, want := range map[byte]byte{'z': 'z', 'y': 'y', 'b': 'y', 'd': 'y', '-': 'y', 'q': 'y'} {
		if got, err := letgo.Stands(name('y'), name(was), name('z'), within); err != nil || got != name(want) {
			t.Errorf("%q was accepted: got %q, %v, want %q", was, got[0], err, want)
		}
	}
}

// A commit that is in the head was not let go of, whatever an entry names.
func TestGone(t *testing.T) {
	entries := []letgo.Entry{{Commit: name('y'), Drops: name('d')}}
	for h, want := range map[byte]bool{'d': true, 'c': true, 'b': false, 'a': false, 'z': false, 'q': false} {
		if got, err := letgo.Gone(entries, name(h), name('z'), within); err != nil || got != want {
			t.Errorf("%q: got %t, %v, want %t", h, got, err, want)
		}
	}
}
