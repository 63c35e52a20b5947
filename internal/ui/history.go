package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// History is the commits of a repository. *gitrepo.Repo is one.
type History interface {
	Info(h tree.Hash) (gitrepo.Commit, error)
	Tree(commit tree.Hash) (tree.Tree, error)
}

// history keeps the commits that were read, newest first.
type history struct {
	of History

	mu      sync.Mutex
	commits []view.Commit
	hashes  []tree.Hash
	next    tree.Hash // the parent of the last one; zero at the end
}

// keeps is how many commits are kept in memory at most.
const keeps = looked

// newest are up to n commits from a head on. Only those are read that are not known yet:
// a new head stands on the former one.
func (h *history) newest(ctx context.Context, head tree.Hash, n int) ([]view.Commit, error) {
	if h.of == nil || head.IsZero() {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hashes) == 0 || h.hashes[0] != head {
		if err := h.advance(ctx, head); err != nil {
			return nil, err
		}
	}
	for len(h.commits) < n && !h.next.IsZero() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, parent, err := h.read(h.next)
		if err != nil {
			return nil, err
		}
		h.commits, h.hashes, h.next = append(h.commits, c), append(h.hashes, h.next), parent
	}
	return h.commits[:min(n, len(h.commits)):min(n, len(h.commits))], nil
}

// window is the commits that are known from a head on, and whether they are all there are.
func (h *history) window(head tree.Hash) (hashes []tree.Hash, whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hashes) == 0 || h.hashes[0] != head {
		return nil, false
	}
	return slices.Clone(h.hashes), h.next.IsZero()
}

// advance puts what is new before what is known.
func (h *history) advance(ctx context.Context, head tree.Hash) error {
	var commits []view.Commit
	var hashes []tree.Hash
	at := head
	for !at.IsZero() && len(commits) < keeps {
		if len(h.hashes) > 0 && at == h.hashes[0] {
			h.commits, h.hashes = append(commits, h.commits...), append(hashes, h.hashes...)
			if len(h.commits) > keeps {
				h.next = h.hashes[keeps]
				h.commits, h.hashes = h.commits[:keeps], h.hashes[:keeps]
			}
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, parent, err := h.read(at)
		if err != nil {
			return err
		}
		commits, hashes, at = append(commits, c), append(hashes, at), parent
		if len(h.hashes) == 0 && len(commits) >= recent { // the first time: no more than is asked for
			break
		}
	}
	h.commits, h.hashes, h.next = commits, hashes, at
	return nil
}

// read is one commit and its first parent.
func (h *history) read(at tree.Hash) (view.Commit, tree.Hash, error) {
	c, err := h.of.Info(at)
	if err != nil {
		return view.Commit{}, tree.Hash{}, fmt.Errorf("read the ledger's history: %w", err)
	}
	parent := tree.Hash{}
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	return view.NewCommit(at.String(), c.Subject(), c.Author.Name, c.Trailer("Inputs"), c.When(), c.Signed, c.Trailers("Contract")), parent, nil
}

// commits are up to n of the newest that the caller sees and that changed one of some
// contracts (nil: any), and among how many was searched.
func (c *call) commits(n int, names map[string]bool) ([]view.Commit, int, error) {
	depth := n
	if names != nil || !c.sight.All() {
		depth = looked
	}
	return c.filtered(n, depth, func(k *view.Commit) bool { return names == nil || k.Touches(names) })
}

// searched are a query's commits.
func (c *call) searched(q view.Query) ([]view.Commit, int, error) {
	text := strings.ToLower(q.Text)
	return c.filtered(q.Page*q.Size, looked, func(k *view.Commit) bool {
		if text == "" {
			return true
		}
		all := []string{k.Subject, k.Author, k.Hash, k.Inputs}
		for _, step := range k.Changes {
			all = append(all, step.Contract, step.To)
		}
		return strings.Contains(strings.ToLower(strings.Join(all, "\n")), text)
	})
}

func (c *call) filtered(n, depth int, wanted func(*view.Commit) bool) ([]view.Commit, int, error) {
	out := []view.Commit{}
	all, err := c.ui.history.newest(c.Context(), c.model.Snapshot().Ledger, depth)
	if err != nil && !errors.Is(err, context.Canceled) {
		c.ui.opts.Log.Warn("the ledger's history cannot be shown", "error", err)
		return out, 0, nil // a page without its history is better than none
	}
	for i := range all {
		if k, ok := c.model.Seen(c.sight, all[i]); ok && wanted(&k) {
			if out = append(out, k); len(out) >= n {
				return out, i + 1, nil
			}
		}
	}
	return out, len(all), nil
}
