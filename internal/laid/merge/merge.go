package merge

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"
)

// hunk is what one of the two made of lines of the base: those from start up to, and
// without, end. An insertion has none.
type hunk struct {
	start, end int
	lines      []string
}

// Text merges mine and theirs, which were both made from base. clean is false where they
// changed the same lines, or neighbouring ones, differently; there is no text then.
func Text(base, mine, theirs string) (merged string, clean bool) {
	lines := split(base)
	sides := [2][]hunk{hunks(base, mine), hunks(base, theirs)}
	var out []string
	for at := 0; ; {
		start, end, taken := next(&sides)
		if len(taken[0])+len(taken[1]) == 0 {
			return strings.Join(append(out, lines[at:]...), ""), true
		}
		out = append(out, lines[at:start]...)
		region := made(lines, taken[0], start, end)
		if other := made(lines, taken[1], start, end); len(taken[0]) == 0 {
			region = other
		} else if len(taken[1]) > 0 && !slices.Equal(region, other) {
			return "", false
		}
		out, at = append(out, region...), end
	}
}

// next takes the first hunk of both sides, with all that overlap it or touch it.
func next(sides *[2][]hunk) (start, end int, taken [2][]hunk) {
	first := 0
	if len(sides[0]) == 0 || len(sides[1]) > 0 && sides[1][0].start < sides[0][0].start {
		first = 1
	}
	if len(sides[first]) == 0 {
		return 0, 0, taken
	}
	start, end = sides[first][0].start, sides[first][0].end
	for grown := true; grown; {
		grown = false
		for i := range sides {
			if len(sides[i]) > 0 && sides[i][0].start <= end {
				end = max(end, sides[i][0].end)
				taken[i], sides[i] = append(taken[i], sides[i][0]), sides[i][1:]
				grown = true
			}
		}
	}
	return start, end, taken
}

// made is what a side's hunks make of a region of the base.
func made(lines []string, of []hunk, start, end int) []string {
	var out []string
	for _, h := range of {
		out = append(append(out, lines[start:h.start]...), h.lines...)
		start = h.end
	}
	return append(out, lines[start:end]...)
}

// hunks are the changes from base to text, in order; between two of them is a line that
// stayed.
func hunks(base, text string) []hunk {
	var out []hunk
	at, open := 0, false
	for _, d := range diff.Do(base, text) {
		lines := split(d.Text)
		if d.Type == diffmatchpatch.DiffEqual {
			at, open = at+len(lines), false
			continue
		}
		if !open {
			out, open = append(out, hunk{start: at, end: at}), true
		}
		h := &out[len(out)-1]
		if d.Type == diffmatchpatch.DiffDelete {
			at += len(lines)
			h.end = at
		} else {
			h.lines = append(h.lines, lines...)
		}
	}
	return out
}

// split are a text's lines, each with its end.
func split(text string) []string {
	return slices.Collect(strings.Lines(text))
}
