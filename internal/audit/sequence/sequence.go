package sequence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Number is one that grows. The zero value has seen none.
type Number struct {
	most  int
	since time.Time
}

// Falls takes the number of a commit whose round began at some time and that was made
// at another. It reports the highest one before it, and since when, where that is
// higher and was written more than slack before the round began.
func (n *Number) Falls(is int, round, made time.Time, slack time.Duration) (most int, since time.Time, falls bool) {
	if is > n.most {
		n.most, n.since = is, made
	}
	return n.most, n.since, is < n.most && round.Sub(n.since) > slack
}

// Spans are numbers of commits in words, "" for none.
func Spans(list []uint64) string {
	slices.SortFunc(list, cmp.Compare)
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] <= list[j]+1 {
			j++
		}
		parts = append(parts, Span(list[i], list[j]))
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// Span is two numbers and all between in words.
func Span(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("number %d", from)
	}
	return fmt.Sprintf("numbers %d to %d", from, to)
}
