package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// trusted is what a page says of signatures: what the ledger's newest commit
// bears, and what a daemon says that was asked.
type trusted struct {
	// Ledger is nil where there is no ledger branch.
	Ledger *ledgerTrust `json:"ledger,omitempty"`
	Daemon *wire.Trust  `json:"daemon,omitempty"`
}

// ledgerTrust is what the newest commit of the ledger says of itself. Whether the
// signature counts is for `audit verify`, which has the trust root.
type ledgerTrust struct {
	Commit   string `json:"commit"`
	Signed   bool   `json:"signed"`
	Fleet    string `json:"fleet,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
}

// trusted reads it. A branch that the daemon has not written says nothing.
func (g *gathered) trusted() trusted {
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
		c, err := g.src.repo.CommitObject(*h)
		if err != nil {
			return out
		}
		t := gitrepo.Commit{Message: c.Message}
		if t.Trailer("Plan") == "" {
			return out
		}
		_, number, _ := strings.Cut(t.Trailer(gitrepo.LedgerTrailer), " ")
		seq, _ := strconv.ParseUint(number, 10, 63)
		out.Ledger = &ledgerTrust{Commit: c.Hash.String(), Signed: c.PGPSignature != "", Fleet: t.Trailer(gitrepo.FleetTrailer), Sequence: seq}
		return out
	}
	return out
}

// line is the ledger's in a few words.
func (t *ledgerTrust) line() string {
	words := "ledger UNSIGNED"
	if t.Signed {
		words = "ledger signed"
	}
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
		if n := len(d.Alarms); n > 0 {
			word += ", " + count(n, "alarm")
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
		out = append(out, "Daemon:    "+d.Line())
	}
	if l := t.Ledger; l != nil {
		line := "Ledger:    " + shortCommit(l.Commit) + ", signed"
		if !l.Signed {
			line = "Ledger:    " + shortCommit(l.Commit) + ", UNSIGNED"
		}
		if l.Sequence > 0 {
			line += fmt.Sprintf(", commit %d", l.Sequence)
		}
		if l.Fleet != "" {
			line += " of fleet " + l.Fleet
		}
		out = append(out, line)
	}
	return out
}
