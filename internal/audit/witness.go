package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Witness is a head of the ledger that somebody keeps elsewhere, so that a
// ledger that was set back behind it is seen.
type Witness struct {
	// FleetID, Branch and Seq as the commit has them.
	FleetID string `json:"fleetID"`
	Branch  string `json:"branch"`
	Seq     uint64 `json:"seq"`
	// Commit of the ledger, Inputs that it accepted.
	Commit string `json:"commit"`
	Inputs string `json:"inputs"`
	// Object is the commit's body as git stores it: its signature speaks for the
	// file.
	Object []byte `json:"object"`
}

// Known is a commit of the ledger that is said to have stood.
type Known struct {
	Commit tree.Hash
	// By says where that is written.
	By string
	// Hint: whoever may push can write it. With a trust root it counts only where
	// one of its keys signed the commit.
	Hint bool
	// object is the commit's body where the witness has it.
	object []byte
}

// maxWitness bounds the file, which is one commit.
const maxWitness = 4 << 20

// ReadWitness reads what Encode wrote. The error says what is wrong with the
// file itself; whether its signature holds is for Verify to say.
func ReadWitness(from io.Reader) (*Witness, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxWitness+1))
	if err != nil {
		return nil, fmt.Errorf("read the witness: %w", err)
	}
	if len(text) > maxWitness {
		return nil, fmt.Errorf("read the witness: it has more than %d bytes", maxWitness)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	w := &Witness{}
	if err := d.Decode(w); err != nil {
		return nil, fmt.Errorf("read the witness: it is no file of audit export: %w", err)
	}
	if d.More() {
		return nil, errors.New("read the witness: something follows it")
	}
	is, err := witnessOf(w.Object)
	if err != nil {
		return nil, fmt.Errorf("read the witness: %w", err)
	}
	if a, b := *is, *w; a.FleetID != b.FleetID || a.Branch != b.Branch || a.Seq != b.Seq || a.Commit != b.Commit || a.Inputs != b.Inputs {
		return nil, fmt.Errorf("read the witness: it says commit %s, %s %d of fleet %q, and its object is commit %s, %s %d of fleet %q",
			b.Commit, b.Branch, b.Seq, b.FleetID, a.Commit, a.Branch, a.Seq, a.FleetID)
	}
	return w, nil
}

// witnessOf is the witness of a commit's body.
func witnessOf(raw []byte) (*Witness, error) {
	data, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, fmt.Errorf("its object is no commit: %w", err)
	}
	c := &Commit{Hash: gitobj.Object{Type: gitobj.Commit, Data: raw}.Hash(), CommitData: data}
	w := &Witness{FleetID: c.Trailer("Fleet"), Commit: c.Hash.String(), Inputs: c.Trailer("Verified"), Object: raw}
	if w.Inputs == "" {
		w.Inputs = c.Trailer("Inputs")
	}
	branch, seq, _ := strings.Cut(c.Trailer("Ledger"), " ")
	if w.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return w, nil //nolint:nilerr // a ledger of the first form counts nothing
	}
	w.Branch = branch
	return w, nil
}

// Encode writes the file.
func (w *Witness) Encode(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(w)
}

// ErrViolations is a ledger that nobody should bear witness to.
var ErrViolations = errors.New("the ledger breaks its rules")

// Export is the witness of a ledger that verifies, or in which the daemon has
// undone what others changed: its newest commit of ours,
// the newest signed one where signatures are asked for.
func Export(ctx context.Context, h History, o Options) (*Witness, Report, error) {
	rep, err := Verify(ctx, h, o)
	if err != nil {
		return nil, rep, err
	}
	for _, bad := range rep.Violations {
		if bad.Undone == "" {
			return nil, rep, fmt.Errorf("%w: %s", ErrViolations, bad)
		}
	}
	if rep.last.IsZero() {
		return nil, rep, errors.New("the ledger has no commit of the daemon's yet")
	}
	raw, err := h.Commit(rep.last)
	if err != nil {
		return nil, rep, fmt.Errorf("read commit %s: %w", rep.last.Short(), err)
	}
	w, err := witnessOf(raw)
	return w, rep, err
}
