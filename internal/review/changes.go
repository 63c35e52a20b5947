package review

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// MaxFiles bounds how many files of a pull request are looked at.
const MaxFiles = 5000

// Changes are the files that a pull request changes, by what they are.
type Changes struct {
	// Work is intents and their bases, Policy all else that people write,
	// Generated what the daemon alone writes, Other what it does not read.
	Work, Policy, Generated, Other []string
	// Removed are those of Work that are deleted.
	Removed []string
	// More than MaxFiles were changed; the lists are not complete.
	TooMany bool
}

// Inputs reports whether anything changes that the daemon reads.
func (c Changes) Inputs() bool { return len(c.Work)+len(c.Policy)+len(c.Generated) > 0 || c.TooMany }

// workDirs are the inputs that are taken from a pull request; policyNames stay
// the base's.
var (
	workDirs    = []string{"intents", "bases"}
	policyNames = []string{"fleet.yaml", "clusters", "tenants", "flavors", "prices", "pki", "overlays"}
)

var errEnough = errors.New("enough")

// ChangesOf compares a pull request's head with where it comes from.
func ChangesOf(base, head tree.Tree) (Changes, error) {
	var c Changes
	n := 0
	err := tree.Diff(base, head, func(path string, _, to tree.Entry) error {
		if n++; n > MaxFiles {
			c.TooMany = true
			return errEnough
		}
		top, _, _ := strings.Cut(path, "/")
		switch {
		case fleet.IsGenerated(path):
			c.Generated = append(c.Generated, path)
		case slices.Contains(workDirs, top):
			c.Work = append(c.Work, path)
			if to.Name == "" {
				c.Removed = append(c.Removed, path)
			}
		case slices.Contains(policyNames, top):
			c.Policy = append(c.Policy, path)
		default:
			c.Other = append(c.Other, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Changes{}, fmt.Errorf("compare the pull request with where it comes from: %w", err)
	}
	return c, nil
}

// ChangesOfSource compares what is taken of a source, by path in it, with what the head
// of a pull request has; ignored are paths of the head that are not taken. Paths are
// those on the ledger.
func ChangesOfSource(source string, base, head tree.Tree, ignored []string) (Changes, error) {
	c := Changes{Other: ignored}
	err := tree.Diff(base, head, func(path string, _, to tree.Entry) error {
		path = sourced.Dir(source) + "/" + path
		c.Work = append(c.Work, path)
		if to.Name == "" {
			c.Removed = append(c.Removed, path)
		}
		return nil
	})
	if err != nil {
		return Changes{}, fmt.Errorf("compare the pull request with where it comes from: %w", err)
	}
	return c, nil
}

// IsWork reports whether a path is taken from a pull request.
func IsWork(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return slices.Contains(workDirs, top)
}

// Inputs are the inputs with a pull request's work and the base's policy.
func Inputs(base, merged tree.Tree) (tree.Tree, error) {
	t, err := tree.Graft(base, merged, workDirs...)
	if err != nil {
		return t, err
	}
	return OnlyInputs(t)
}

// OnlyInputs is what people write of a tree.
func OnlyInputs(t tree.Tree) (tree.Tree, error) {
	return tree.Graft(tree.Tree{}, t, slices.Concat(workDirs, policyNames)...)
}
