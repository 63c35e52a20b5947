package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/verify"
)

// inputs is what the inputs of a commit say to the round: what was verified of
// them, the last good version of what is broken, and the requests that the
// ledger has with those that just came, and the copies of sources that the commit
// itself has.
func (r *Replayer) inputs(ctx context.Context, h tree.Hash, requests, copies tree.Tree, rec *Record, now time.Time) (*fleet.Fleet, error) {
	accepted := tree.Hash{}
	if rec.Accepted != "" {
		var err error
		if accepted, err = tree.ParseHash(rec.Accepted); err != nil {
			return nil, fmt.Errorf("what the round knew: accepted: %w", err)
		}
	}
	kept := tree.Tree{}
	if len(rec.Kept) > 0 {
		files := map[string][]byte{}
		for path, text := range rec.Kept {
			files[path] = []byte(text)
		}
		kept = tree.NewMemory().Build(files)
	}
	if r.reader == nil {
		r.reader, r.rights = fleet.NewReader(), fleet.NewReader()
	}
	verifier := verify.New(commits{r}, func() time.Time { return now }).Trust(r.Root).Reading(r.rights)
	listed, err := fleet.Recorded(requests)
	if err != nil {
		return nil, err
	}
	verifier.Without(append(listed, rec.Unread...))
	state, err := verifier.Verify(ctx, accepted, h, []tree.Tree{kept})
	if err != nil || state.Signed { // who might sign may stand in a file that is broken
		from := accepted
		if from.IsZero() {
			from = h
		}
		older, err := verifier.Older(from)
		if err != nil {
			return nil, err
		}
		if state, err = verifier.Verify(ctx, accepted, h, append([]tree.Tree{kept}, older...)); err != nil {
			return nil, fmt.Errorf("verify the inputs at %s: %w", h.Short(), err)
		}
	}
	f, err := r.reader.ReadAll(ctx, fleet.Sources{Inputs: state.Tree, Ledger: requests, Copies: copies, Older: []tree.Tree{kept}, Aside: rec.Unread})
	if err != nil {
		return nil, fmt.Errorf("read the inputs at %s: %w", h.Short(), err)
	}
	return f, nil
}

// withRequests is a ledger's tree with the files of a record.
func withRequests(t tree.Tree, texts map[string]string) (tree.Tree, error) {
	files := make(map[string][]byte, len(texts))
	for path, text := range texts {
		files[path] = []byte(text)
	}
	return tree.Overlay(t, files)
}

// commits is the history as the verifier reads it.
type commits struct{ r *Replayer }

// RawCommit implements verify.History.
func (c commits) RawCommit(h tree.Hash) ([]byte, error) { return c.r.History.Commit(h) }

// Tree implements verify.History.
func (c commits) Tree(h tree.Hash) (tree.Tree, error) { return c.r.tree(h) }
