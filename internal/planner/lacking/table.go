package lacking

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Table is which fact each offer fails.
type Table struct {
	// At is, by an offer's index, its number among the candidates, -1-n for one that
	// fails fact n of Facts.
	At []int32
	// Candidates are the indexes of the offers that fail none, in order.
	Candidates []int32
	// Facts that offers fail, in the order in which they were found.
	Facts []string
	// Counts of offers by the fact that they fail. It must not be modified.
	Counts map[string]int
	// Version of the counts.
	Version uint64
	// Dead: other offers are candidates now.
	Dead bool

	versions *uint64
	// sum is a copy of Counts of that version, seen how far into the alterations it has
	// looked, users how many use it.
	sum     map[string]int
	sumOf   uint64
	seen    int
	users   int
	private bool
	key     string
}

// Share is how many offers of the table fall to each of those who use it.
func (t *Table) Share() int { return len(t.At) / max(t.users, 1) }

// Lack is how At records that an offer fails a fact.
func (t *Table) Lack(fact string) int32 {
	n := slices.Index(t.Facts, fact)
	if n < 0 {
		n, t.Facts = len(t.Facts), append(t.Facts, fact)
	}
	return int32(-1 - n) //nolint:gosec // a few dozen
}

// FactOf is the fact that an offer fails, "" for none.
func (t *Table) FactOf(offer int32) string {
	if at := t.At[offer]; at < 0 {
		return t.Facts[-1-at]
	}
	return ""
}

// Count counts what At states, which was just filled in: alterations up to seen are in it.
func (t *Table) Count(seen int) {
	counts := make([]int, len(t.Facts))
	for i, at := range t.At {
		if at < 0 {
			counts[-1-at]++
		} else {
			t.Candidates = append(t.Candidates, int32(i)) //nolint:gosec // their number
		}
	}
	t.Counts = make(map[string]int, len(counts))
	for n, fact := range t.Facts {
		t.Counts[fact] = counts[n]
	}
	t.seen = seen
	t.changed()
}

func (t *Table) changed() {
	*t.versions++
	t.Version = *t.versions
}

// Change takes over the fact that an offer fails now, "" for none. It reports whether the
// offer is a candidate as before.
func (t *Table) Change(offer int32, fact string) bool {
	was := t.FactOf(offer)
	if was == fact {
		return true
	}
	if was == "" || fact == "" {
		t.Dead = true
		return false
	}
	if t.Counts[was]--; t.Counts[was] == 0 {
		delete(t.Counts, was)
	}
	t.At[offer] = t.Lack(fact)
	t.Counts[fact]++
	t.changed()
	return true
}

// Follow takes over the offers that are described otherwise since it last looked: fails is
// what one fails now. It reports whether the candidates are the same; what is only used
// otherwise changes no fact that is shared.
func (t *Table) Follow(in *inventory.Inventory, fails func(*inventory.Offer) string) bool {
	for _, a := range in.Altered(t.seen) {
		if t.Dead {
			break
		}
		if t.seen++; !a.UseOnly {
			t.Change(a.Offer, fails(in.Offers()[a.Offer]))
		}
	}
	return !t.Dead
}

// Sum is a copy of Counts, for all who ask until these change. It must not be modified.
func (t *Table) Sum() map[string]int {
	if t.sum == nil || t.sumOf != t.Version {
		t.sum, t.sumOf = maps.Clone(t.Counts), t.Version
	}
	return t.sum
}

// Bytes is about what the table takes.
func (t *Table) Bytes() int64 { return 4 * int64(cap(t.At)+cap(t.Candidates)) }

// Use counts one who uses the table, Leave one who no longer does. They return by how many
// bytes more or less there are: what is shared counts once.
func (t *Table) Use() int64 {
	if t.users++; t.users > 1 {
		return 0
	}
	return t.Bytes()
}

// Leave is described with Use.
func (t *Table) Leave() int64 {
	if t.users--; t.users > 0 {
		return 0
	}
	return t.Bytes()
}
