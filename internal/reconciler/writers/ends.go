package writers

import (
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// maxEnds bounds how many contracts are remembered.
const maxEnds = 10_000

// Ends finds with which commit contracts began to end. The zero value knows none.
type Ends struct{ seq map[string]uint64 }

// Seq is the number on the ledger of the commit that made a contract Releasing: who
// was told of that or a later one knows. 0: it is not known, because the commit bears
// no number (it was merged from a proposal, or is from before numbering) or is too long
// ago. head is the ledger's.
func (e *Ends) Seq(repo Repo, head tree.Hash, c *v1alpha1.Contract) (uint64, error) {
	name := c.Metadata.Name
	if seq, known := e.seq[name]; known {
		return seq, nil
	}
	var seq uint64
	found := false
	oldest := c.Status.Since.Add(-time.Second) // commits bear whole seconds
	err := walk(repo, head, func(at gitrepo.Commit, ours bool) bool {
		if ours && !found && ends(at, name) {
			seq, found = numberOf(at), true
		}
		return !found && !at.When().Before(oldest)
	})
	if err != nil {
		return 0, err
	}
	if e.seq == nil || len(e.seq) >= maxEnds {
		e.seq = map[string]uint64{}
	}
	e.seq[name] = seq
	return seq, nil
}

// ends reports whether a commit makes a contract Releasing.
func ends(c gitrepo.Commit, contract string) bool {
	for _, line := range c.Trailers("Contract") {
		name, step, _ := strings.Cut(line, " ")
		from, to, _ := strings.Cut(step, " -> ")
		if name == contract && to == string(v1alpha1.PhaseReleasing) && from != to {
			return true
		}
	}
	return false
}

// numberOf is a commit's own number on the ledger, 0 for none.
func numberOf(c gitrepo.Commit) uint64 {
	_, number, _ := strings.Cut(c.Trailer(gitrepo.LedgerTrailer), " ")
	seq, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0
	}
	return seq
}
