package letgo

import (
	"errors"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Entry is the acceptance of one rewritten head.
type Entry struct {
	// Branch as a full ref; "" for any.
	Branch string
	// Commit that the branch's head is, or contains.
	Commit tree.Hash
	// Drops is the head that had been accepted; zero: nothing is let go of.
	Drops tree.Hash
}

// On reports whether the entry is about a branch, by its full ref; "" is any.
func (e Entry) On(branch string) bool { return e.Branch == "" || branch == "" || e.Branch == branch }

// Source is where a daemon's entries come from, and what it reports of them.
type Source interface {
	// Entries are those of now. The caller does not change them.
	Entries() []Entry
	// Accepted is told that a branch was accepted at a commit that an entry names.
	Accepted(branch string, commit tree.Hash)
	// Unreached is told, once, of an entry whose commit no branch contains.
	Unreached(e Entry)
}

// errNot is what lets returns for a commit that no entry lets go of.
var errNot = errors.New("not let go of")

// Within reports whether a commit is another or an ancestor of it; a commit that is not
// there is neither.
type Within func(a, b tree.Hash) (bool, error)

// Reached are the entries about a branch that count at its head.
func Reached(list []Entry, branch string, head tree.Hash, within Within) ([]Entry, error) {
	var out []Entry
	for _, e := range list {
		if !e.On(branch) {
			continue
		}
		in, err := within(e.Commit, head)
		if err != nil {
			return nil, err
		}
		if in {
			out = append(out, e)
		}
	}
	return out, nil
}

// Dropped are the heads that the entries about a branch let go of which count at its head.
func Dropped(list []Entry, branch string, head tree.Hash, within Within) ([]tree.Hash, error) {
	reached, err := Reached(list, branch, head, within)
	var out []tree.Hash
	for _, e := range reached {
		if !e.Drops.IsZero() {
			out = append(out, e.Drops)
		}
	}
	return out, err
}

// Take is at which commit a branch is accepted whose head does not contain some that
// stood: the newest that the entries name which let go of those. It is zero where one of
// them is not let go of.
func Take(reached []Entry, stood []tree.Hash, within Within) (tree.Hash, error) {
	var at tree.Hash
	for _, s := range stood {
		e, err := lets(reached, s, within)
		if errors.Is(err, errNot) {
			return tree.Hash{}, nil
		} else if err != nil {
			return tree.Hash{}, err
		}
		if at, err = newer(at, e.Commit, within); err != nil {
			return tree.Hash{}, err
		}
	}
	return at, nil
}

// Stands is what is accepted of a branch that an entry has accepted at a commit: what was
// accepted before, if the head contains that and the commit does not. Who has a standing
// entry count again lets go of nothing that came after it.
func Stands(commit, was, head tree.Hash, within Within) (tree.Hash, error) {
	in, err := within(was, head)
	if err != nil || !in {
		return commit, err
	}
	if in, err = within(was, commit); err != nil || in {
		return commit, err
	}
	return was, nil
}

// Gone reports whether entries let go of a commit that is not in the head.
func Gone(reached []Entry, h, head tree.Hash, within Within) (bool, error) {
	if in, err := within(h, head); err != nil || in {
		return false, err
	}
	at, err := Take(reached, []tree.Hash{h}, within)
	return !at.IsZero(), err
}

// lets is the entry that lets go of a commit.
func lets(reached []Entry, s tree.Hash, within Within) (Entry, error) {
	for _, e := range slices.Backward(reached) { // what was written last is looked at first
		if e.Drops.IsZero() {
			continue
		}
		in, err := within(s, e.Drops)
		if err != nil {
			return Entry{}, err
		}
		if in || s == e.Drops {
			return e, nil
		}
	}
	return Entry{}, errNot
}

// newer is the one of two that contains the other; the first where neither does.
func newer(a, b tree.Hash, within Within) (tree.Hash, error) {
	if a.IsZero() {
		return b, nil
	}
	in, err := within(a, b)
	if err != nil || !in {
		return a, err
	}
	return b, nil
}
