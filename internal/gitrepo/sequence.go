package gitrepo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/letgo"
)

// Trailers of ledger commits that this package and the trust root go by
// (schemas/LEDGER.md).
const (
	LedgerTrailer = "Ledger"
	FleetTrailer  = "Fleet"
	RootTrailer   = "Root"
	// DroppedTrailer names a head that an operator let go of: `<branch> <commit>`.
	DroppedTrailer = "Dropped"
)

// mark is what a ledger commit hands on to the next.
type mark struct {
	seq  uint64
	root string
}

// numbered is a message with the trailers that depend on the parent: the number
// of the commit, and the trust root where another one stood before. Where the commit
// states which head of the ledger was let go of, its number is above that one's too:
// agents that were told of it take no lower one.
func (r *Repo) numbered(message string, parent tree.Hash) (string, error) {
	m, err := r.markAt(parent)
	if err != nil {
		return "", err
	}
	branch := strings.TrimPrefix(r.ledgerRef, "refs/heads/")
	for _, gone := range letgo.Heads(r.accepted.Dropped, branch) {
		if r.store.has(gone) {
			was, err := r.markAt(gone)
			if err != nil {
				return "", err
			}
			m.seq = max(m.seq, was.seq)
		}
	}
	id := r.identity.Load()
	lines := []string{fmt.Sprintf("%s: %s %d", LedgerTrailer, branch, m.seq+1)}
	if id.Root != "" && id.Root != m.root {
		lines = append(lines, RootTrailer+": "+id.Root)
	}
	for _, d := range letgo.List(r.accepted.Dropped) {
		lines = append(lines, DroppedTrailer+": "+d)
	}
	return gitobj.WithTrailers(message, lines), nil
}

// Sequence is the number of the newest ledger commit of ours that a head contains,
// itself included; zero for none.
func (r *Repo) Sequence(head tree.Hash) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, err := r.markAt(head)
	return m.seq, err
}

// sequenceOf is the number that a commit of ours has on this ledger, zero for
// none.
func (r *Repo) sequenceOf(c Commit) (uint64, error) {
	branch, number, ok := strings.Cut(c.Trailer(LedgerTrailer), " ")
	if !ok || Branch(branch) != r.ledgerRef {
		return 0, nil
	}
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, nil // another hand
	}
	ours, err := r.byUs(*r.identity.Load(), c.Hash)
	if err != nil || !ours {
		return 0, err
	}
	return seq, nil
}

// markAt is the highest number, and the newest root, among a commit and its
// ancestors. What it finds out once is remembered for the next commit.
func (r *Repo) markAt(head tree.Hash) (mark, error) {
	if head.IsZero() {
		return mark{}, nil
	}
	var best mark
	seen := map[tree.Hash]bool{head: true}
	queue := []tree.Hash{head}
	var at uint64 // number of the commit that named best.root
	for len(queue) > 0 {
		h := queue[0]
		queue = queue[1:]
		if m, ok := r.marks[h]; ok {
			if m.seq >= best.seq {
				best.seq = m.seq
			}
			if m.root != "" && m.seq >= at {
				best.root, at = m.root, m.seq
			}
			continue
		}
		c, err := r.info(h)
		if err != nil {
			return mark{}, fmt.Errorf("number the commit: %w", err)
		}
		seq, err := r.sequenceOf(c)
		if err != nil {
			return mark{}, fmt.Errorf("number the commit: %w", err)
		}
		best.seq = max(best.seq, seq)
		if root := c.Trailer(RootTrailer); seq > 0 && root != "" && seq >= at {
			best.root, at = root, seq
		}
		if seq > 0 && (best.root != "" || r.identity.Load().Root == "") {
			continue
		}
		for _, p := range c.Parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	if len(r.marks) > 16 {
		clear(r.marks)
	}
	r.marks[head] = best
	return best, nil
}
