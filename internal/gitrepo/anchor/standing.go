package anchor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/ancestry"
)

// Of the commits that nobody accepted, maxOthers are counted and maxNames who made them
// are named.
const (
	maxOthers = 4096
	maxNames  = 3
)

// Standing is what an operator should know of a head before accepting any of it.
type Standing struct {
	// Newest is the newest commit of ours that the head contains; zero: there is none, or
	// it is not known which.
	Newest tree.Hash
	// Others is how many commits nobody answers for: of the head, and neither of what was
	// accepted nor of ours. By are who say that they made them, without control characters.
	Others int
	By     []string
}

// Standing tells of a head of which old was accepted, zero for nothing. Where signed is
// false no commit is ours, whatever it says.
func (h History) Standing(ctx context.Context, head, old tree.Hash, signed bool) (s Standing, err error) {
	if head.IsZero() {
		return s, nil
	}
	if signed {
		list, plain, err := h.Below(ctx, head)
		if len(list) == 0 {
			list = plain
		}
		if err == nil && len(list) > 0 {
			s.Newest, _, err = h.Newest(list)
		}
		if err != nil {
			return s, err
		}
	}
	by := map[string]bool{}
	err = ancestry.Walk(ctx, head, func(at tree.Hash) ([]tree.Hash, bool, error) {
		for _, known := range []tree.Hash{old, s.Newest} {
			if in, err := h.Within(at, known); err != nil || in {
				return nil, false, err
			}
		}
		c, err := h.Commit(at)
		if err == nil && !(signed && c.Ours) {
			s.Others++
			by[escape.Line(c.By)] = true
		}
		return c.Parents, s.Others == maxOthers, err
	})
	s.By = slices.Sorted(maps.Keys(by))
	return s, err
}

// Accept says how an operator accepts of a branch, in place of old, what is right. A line
// that can be taken as it is names only what keys in force have signed.
func (s Standing) Accept(ref string, old tree.Hash) string {
	which, commit, drops := "the one up to which they are right", "…", ""
	if !s.Newest.IsZero() {
		which, commit = "the newest that a key of the list ledger signed, after which all is judged", s.Newest.String()
	}
	if !old.IsZero() {
		drops = ", drops: " + old.String()
	}
	return fmt.Sprintf("look at each commit that was not accepted (%s), and accept %s: for all replicas by the trust root, `accept: [{branch: %s, commit: %s%s}]`, or, where that is the head, here with `fleetbroker reconcile --once --accept-rewrite …`",
		s, which, strings.TrimPrefix(ref, "refs/heads/"), commit, drops)
}

// String counts the commits that nobody answers for, and names who made them.
func (s Standing) String() string {
	switch {
	case s.Others == 0:
		return "no commit of others"
	case s.Others == 1:
		return "1 commit by " + s.By[0]
	}
	count, by, more := fmt.Sprint(s.Others), s.By, ""
	if s.Others == maxOthers {
		count += " and more"
	}
	if len(by) > maxNames {
		by, more = by[:maxNames], " and others"
	}
	return count + " commits by " + strings.Join(by, ", ") + more
}
