package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/cli/clonedir"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// trusted is what a page says of signatures: what the ledger's newest commit
// bears, and what a daemon says that was asked.
type trusted struct {
	// Ledger is nil where there is no ledger branch.
	Ledger *ledgerTrust `json:"ledger,omitempty"`
	Daemon *wire.Trust  `json:"daemon,omitempty"`
}

// ledgerTrust is what the newest commit of the ledger says of itself, and whose
// signature it bears. The history before it is for `audit verify`.
type ledgerTrust struct {
	Commit string `json:"commit"`
	// Signed: by a key in force of the trust root, that of By.
	Signed bool   `json:"signed"`
	By     string `json:"by,omitempty"`
	// Why a signature that it has does not count, or is not judged; "" where it has
	// none, and where it counts.
	Why      string `json:"why,omitempty"`
	Fleet    string `json:"fleet,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
}

// trusted reads it. Where people write the branch too, a head of theirs says nothing.
func (g *gathered) trusted(ctx context.Context) trusted {
	out := trusted{Daemon: g.market.trust}
	if g.src.repo == nil {
		return out
	}
	branch := g.fleet.Policy.WriteBack.Branch
	for _, ref := range g.src.ledgerRefs(branch) {
		h, err := g.src.repo.ResolveRevision(plumbing.Revision(ref))
		if err != nil {
			continue
		}
		c, raw, err := g.src.commitAt(tree.Hash(*h))
		if err != nil {
			return out
		}
		t := gitrepo.Commit{Message: c.Message}
		if wb := g.fleet.Policy.WriteBack; t.Trailer("Plan") == "" && (branch == wb.Inputs || wb.Mode == "pull-request") {
			return out
		}
		_, number, _ := strings.Cut(t.Trailer(gitrepo.LedgerTrailer), " ")
		seq, _ := strconv.ParseUint(number, 10, 63)
		out.Ledger = &ledgerTrust{Commit: h.String(), Fleet: t.Trailer(gitrepo.FleetTrailer), Sequence: seq}
		if c.Signature != "" {
			out.Ledger.judge(ctx, g, tree.Hash(*h), raw, c.Committer.When)
		}
		return out
	}
	return out
}

// unknownRevocations are those of the trust root after commits that are not here.
func (s *source) unknownRevocations() (list []trust.Unknown, shallow bool) {
	if s.repo == nil {
		return nil, false
	}
	has := func(h tree.Hash) bool { _, err := s.objects.Commit(h); return err == nil }
	shallow = clonedir.Shallow(s.objects.storage)
	return s.root.Unknown(has, shallow), shallow
}

// judge finds out by whose key the commit is signed.
func (t *ledgerTrust) judge(ctx context.Context, g *gathered, h tree.Hash, raw []byte, when time.Time) {
	root := g.src.root
	switch {
	case root == nil:
		t.Why = "signature not judged: no trust root was given (--trust-root FILE)"
		return
	case !root.Signed():
		t.Why = "signature not judged: the trust root asks for none"
		return
	}
	chain := g.fleet.Policy.WriteBack.Signers
	if g.src.baseless != "" {
		chain = nil // nobody of the root has signed what names them
	}
	keys, err := gitrepo.NewKeys(root.Ledger(chain))
	if err != nil {
		t.Why = "signature not judged: " + err.Error()
		return
	}
	by, err := keys.SignedCommit(h, raw, when, func(a, b tree.Hash) (bool, error) { return audit.Holds(ctx, g.src.objects, b, a) })
	if err != nil {
		t.Why = "signed by NO key of the trust root: " + err.Error()
		return
	}
	t.Signed, t.By = true, by.Principal
}

// words say whose signature the commit bears.
func (t *ledgerTrust) words() string {
	switch {
	case t.Signed:
		return "signed by " + t.By
	case t.Why != "":
		return t.Why
	}
	return "UNSIGNED"
}

// line is the ledger's in a few words.
func (t *ledgerTrust) line() string {
	what, _, _ := strings.Cut(t.words(), ": ")
	words := "ledger " + what
	if t.Sequence > 0 {
		words += fmt.Sprintf(", commit %d", t.Sequence)
	}
	return words
}

// head is what the head line of a plan says.
func (t trusted) head() string {
	var parts []string
	if t.Ledger != nil {
		parts = append(parts, t.Ledger.line())
	}
	if d := t.Daemon; d != nil {
		word := "daemon with root " + d.Root
		if d.Unsigned {
			word = "daemon UNSIGNED"
		}
		if n := d.Raised(); n > 0 {
			word += ", " + tables.Count(n, "alarm")
		}
		parts = append(parts, word)
	}
	return strings.Join(parts, "   ")
}

// lines are the first of `status`.
func (t trusted) lines() (out []string) {
	if d := t.Daemon; d != nil {
		for _, why := range d.Alarms {
			out = append(out, "ALARM: "+why)
		}
		if n := d.Raised() - len(d.Alarms); n > 0 {
			out = append(out, "ALARM: "+tables.Count(n, "alarm")+" not shown: see the daemon's log, or show an operator's certificate")
		}
		out = append(out, "Daemon:    "+d.Line())
	}
	if l := t.Ledger; l != nil {
		line := "Ledger:    " + shortCommit(l.Commit)
		if l.Sequence > 0 {
			line += fmt.Sprintf(", commit %d", l.Sequence)
		}
		if l.Fleet != "" {
			line += " of fleet " + l.Fleet
		}
		out = append(out, line+", "+escape.Line(l.words()))
	}
	return out
}
