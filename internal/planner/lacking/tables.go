package lacking

import (
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
)

// Tables are those that somebody uses, by what is demanded. The zero value is ready.
type Tables struct {
	shared   map[string]*Table
	versions uint64
	// spare are tables of one user that has none any more.
	spare []*Table
}

// New is an empty table of so many offers, to be filled in, which others find by a key;
// by none with "".
func (s *Tables) New(key string, offers int) *Table {
	t := &Table{versions: &s.versions, private: key == "", key: key}
	if n := len(s.spare); n > 0 && key == "" {
		was := s.spare[n-1]
		s.spare, t.At, t.Candidates = s.spare[:n-1], was.At[:0], was.Candidates[:0]
	}
	t.At = slices.Grow(t.At, offers)[:offers]
	if key != "" {
		if s.shared == nil {
			s.shared = map[string]*Table{}
		}
		s.shared[key] = t
	}
	return t
}

// Find is the table of a key that has followed the offers, nil for none.
func (s *Tables) Find(key string, in *inventory.Inventory, fails func(*inventory.Offer) string) *Table {
	t := s.shared[key]
	if t == nil || !t.Follow(in, fails) {
		return nil
	}
	return t
}

// Recycle takes a table back, if nobody uses it any more.
func (s *Tables) Recycle(t *Table) {
	switch {
	case t.private:
		s.spare = append(s.spare, t)
	case t.users <= 0 && s.shared[t.key] == t:
		delete(s.shared, t.key)
	}
}

// Shared reports whether others may use a table, too.
func (t *Table) Shared() bool { return !t.private }

// Rewind makes tables that have followed all alterations look from the first on: these are
// forgotten. Those that have not are dead.
func (s *Tables) Rewind(in *inventory.Inventory) {
	for _, t := range s.shared {
		t.Dead = t.Dead || len(in.Altered(t.seen)) > 0
		t.seen = 0
	}
}

// Recount forgets how many use each table; Drop then forgets those that nobody uses.
func (s *Tables) Recount() {
	for _, t := range s.shared {
		t.users = 0
	}
}

// Drop is described with Recount.
func (s *Tables) Drop() {
	maps.DeleteFunc(s.shared, func(_ string, t *Table) bool { return t.users == 0 || t.Dead })
	s.spare = nil
}
