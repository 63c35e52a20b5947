package anchor

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// commits by letters: each names its parents, whether it is ours, its number and
// its inputs.
type story map[byte]struct {
	parents string
	ours    bool
	number  uint64
	inputs  byte
}

func name(b byte) (h tree.Hash) {
	if b != 0 {
		h[0] = b
	}
	return h
}

func (s story) history() History {
	var within func(a, b tree.Hash) (bool, error)
	within = func(a, b tree.Hash) (bool, error) {
		if a == b {
			return true, nil
		}
		for _, p := range []byte(s[b[0]].parents) {
			if in, err := within(a, name(p)); in || err != nil {
				return in, err
			}
		}
		return false, nil
	}
	return History{Within: within, Commit: func(h tree.Hash) (Commit, error) {
		c := s[h[0]]
		out := Commit{Ours: c.ours, Number: c.number, Inputs: name(c.inputs)}
		for _, p := range []byte(c.parents) {
			out.Parents = append(out.Parents, name(p))
		}
		return out, nil
	}}
}

func TestInputs(t *testing.T) {
	for what, c := range map[string]struct {
		story story
		want  byte
	}{
		"of the newest":            {story{'a': {ours: true, number: 1, inputs: 'x'}, 'b': {parents: "a", ours: true, number: 2, inputs: 'y'}, 'h': {parents: "b"}}, 'y'},
		"the old one merged first": {story{'a': {ours: true, number: 1, inputs: 'x'}, 'b': {parents: "a", ours: true, number: 2, inputs: 'y'}, 'h': {parents: "ab"}}, 'y'},
		"two without an order":     {story{'a': {ours: true, number: 1, inputs: 'x'}, 'b': {ours: true, number: 2, inputs: 'y'}, 'h': {parents: "ab"}}, 0},
		"not of others":            {story{'a': {ours: true, number: 1, inputs: 'x'}, 'h': {parents: "a", number: 7, inputs: 'z'}}, 'x'},
		"of an offer above":        {story{'a': {ours: true, number: 1}, 'b': {parents: "a", ours: true, inputs: 'y'}, 'h': {parents: "b"}}, 'y'},
		"from before numbers":      {story{'a': {ours: true, inputs: 'x'}, 'b': {parents: "a", ours: true, inputs: 'y'}, 'h': {parents: "b"}}, 'y'},
		"of nobody":                {story{'h': {inputs: 'z'}}, 0},
	} {
		got, err := c.story.history().Inputs(t.Context(), name('h'))
		if err != nil || got != name(c.want) {
			t.Errorf("%s: got %q, %v, want %q", what, got[0], err, c.want)
		}
	}
}
