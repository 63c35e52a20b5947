package verify

import (
	"errors"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
)

// Broken is a commit that says nothing: git refuses its tree, or its tree is too
// large to be walked.
type Broken struct {
	Commit tree.Hash
	// Author is who its author claims to be.
	Author string
	// Path of the directory that is broken; "": the whole tree.
	Path string
	Why  string
	// Said is the commit whose content stays in force; zero: none.
	Said tree.Hash
}

// String says what is wrong, who did it, and what to do.
func (b Broken) String() string {
	stays := "nothing is in force"
	if !b.Said.IsZero() {
		stays = "what stands at " + b.Said.Short() + " stays in force"
	}
	return fmt.Sprintf("commit %s by %s is not acted on: its tree is broken: %s; %s. "+
		"Push a commit whose tree git accepts (git fsck --strict names what it refuses): one made from a checkout of %s does, and let the server check what it takes (git config receive.fsckObjects true)",
		b.Commit.Short(), b.Author, b.Why, stays, orItsParent(b.Said))
}

// Silent is why nothing of the inputs is in force: all their commits say nothing,
// and the newest is named. It is nil where one says something.
func (s *State) Silent() error {
	if len(s.Broken) == 0 || !s.Said.IsZero() {
		return nil
	}
	return errors.New(s.Broken[0].Diagnostic().String())
}

func orItsParent(h tree.Hash) string {
	if h.IsZero() {
		return "whole files"
	}
	return h.Short()
}

// CodeBroken marks broken commits among the diagnostics of inputs.
const CodeBroken = "BrokenTree"

// Diagnostic is the commit among the diagnostics of the inputs' reader.
func (b Broken) Diagnostic() fleet.Diagnostic {
	at := b.Path
	if at == "" {
		at = "."
	}
	return fleet.Diagnostic{File: at, Line: 1, Column: 1, Message: b.String(), Severity: fleet.Error, Code: CodeBroken}
}

// whole is why a commit says nothing, nil when it may speak.
func (cs *commits) whole(c *commit) (*tree.BrokenError, error) {
	if c.vetted {
		return c.broken, nil
	}
	if why := tree.CheckParents(len(c.parents)); why != nil {
		c.vetted, c.broken = true, why
		return why, nil
	}
	t, err := cs.history.Tree(c.hash)
	if err == nil {
		_, err = cs.vet().Whole(t, inputNames)
	}
	var broken *tree.BrokenError
	if err != nil && !errors.As(err, &broken) {
		return nil, fmt.Errorf("verify: %w", err)
	}
	c.vetted, c.broken = true, broken
	return broken, nil
}

// parent is the one that a commit which says nothing leaves as it is: that of
// the branch's own line, as far as that is known, else the first.
func (cs *commits) parent(c *commit) tree.Hash {
	if p, ok := cs.main[c.hash]; ok {
		return p
	}
	if len(c.parents) == 0 {
		return tree.Hash{}
	}
	return c.parents[0]
}

// said is the commit whose tree a commit says: its own, or the newest whole one
// that it stands on; zero when there is none.
func (cs *commits) said(h tree.Hash) (tree.Hash, error) {
	var passed []*commit // many may lie on top of each other
	for !h.IsZero() {
		c, err := cs.get(h)
		if err != nil {
			return h, err
		}
		broken, err := cs.whole(c)
		if err != nil {
			return h, err
		}
		if broken == nil {
			break
		}
		h = cs.parent(c)
		if c.said.lines == cs.lines && c.said.known {
			h = c.said.at
			break
		}
		passed = append(passed, c)
	}
	for _, c := range passed {
		c.said.at, c.said.lines, c.said.known = h, cs.lines, true
	}
	return h, nil
}

// tree is what a commit says.
func (cs *commits) tree(h tree.Hash) (tree.Tree, error) {
	at, err := cs.said(h)
	if err != nil || at.IsZero() {
		return tree.Tree{}, err
	}
	t, err := cs.bounded(at)
	if err != nil {
		return t, fmt.Errorf("verify: %w", err)
	}
	return t, nil
}

// bounded is the tree of a commit without what is too large of tenants.
func (cs *commits) bounded(h tree.Hash) (tree.Tree, error) {
	t, err := cs.history.Tree(h)
	if err != nil {
		return t, err
	}
	return cs.vet().Bounded(t)
}

// vet is the history's own Vetter, or a new one.
func (cs *commits) vet() *tree.Vetter {
	if cs.vetter == nil {
		cs.vetter = tree.NewVetter(tree.DefaultBounds)
		if s, ok := cs.history.(interface{ Vetter() *tree.Vetter }); ok {
			cs.vetter = s.Vetter()
		}
	}
	return cs.vetter
}

// brokenAt are the commits that say nothing from a head back to the one whose
// tree is in force, newest first.
func (cs *commits) brokenAt(head tree.Hash) ([]Broken, error) {
	said, err := cs.said(head)
	if err != nil {
		return nil, err
	}
	var out []Broken
	for h := head; h != said; {
		c, err := cs.get(h)
		if err != nil {
			return nil, err
		}
		out = append(out, Broken{h, c.author, c.broken.Path, c.broken.Why, said})
		h = cs.parent(c)
	}
	return out, nil
}
