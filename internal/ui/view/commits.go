package view

import (
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Commit is a commit of the ledger as a page shows it.
type Commit struct {
	Hash    string        `json:"hash"`
	At      v1alpha1.Time `json:"at"`
	Subject string        `json:"subject"`
	Author  string        `json:"author,omitempty"`
	// Inputs that it acted on.
	Inputs string `json:"inputs,omitempty"`
	// Signed tells that it carries a signature; `audit verify` checks whose.
	Signed bool `json:"signed"`
	// Changes are the contracts that it changed.
	Changes []PhaseStep `json:"changes,omitempty"`
	// Others is how many contracts of tenants it changed that are not seen.
	Others int `json:"others,omitempty"`
}

// PhaseStep is a contract's change of phase: From is "-" for a new one.
type PhaseStep struct {
	Contract string `json:"contract"`
	From     string `json:"from"`
	To       string `json:"to"`
}

// ParseStep reads the trailer "<name> <old phase|-> -> <phase>".
func ParseStep(trailer string) (PhaseStep, bool) {
	words := strings.Fields(trailer)
	if len(words) != 4 || words[2] != "->" {
		return PhaseStep{}, false
	}
	return PhaseStep{words[0], words[1], words[3]}, true
}

// NewCommit is a commit with its trailers `Contract:` read.
func NewCommit(hash, subject, author, inputs string, at time.Time, signed bool, trailers []string) Commit {
	c := Commit{Hash: hash, At: v1alpha1.TimeOf(at), Subject: subject, Author: author, Inputs: inputs, Signed: signed}
	for _, t := range trailers {
		if step, ok := ParseStep(t); ok {
			c.Changes = append(c.Changes, step)
		}
	}
	return c
}

// Seen is a commit as a viewer sees it; ok is false where nothing of it is theirs. Of
// one that changed other tenants' contracts too, the subject is not shown: it names them.
func (m *Model) Seen(s Sight, c Commit) (out Commit, ok bool) {
	if s.All() {
		return c, true
	}
	out = c
	out.Changes = nil
	for _, step := range c.Changes {
		if k := m.Ledger.Contract(step.Contract); k != nil && s.Of(k.Metadata.Namespace) {
			out.Changes = append(out.Changes, step)
		}
	}
	out.Others = len(c.Changes) - len(out.Changes)
	if out.Others > 0 {
		out.Subject, out.Author, out.Inputs = "changes contracts of several tenants", "", ""
	}
	return out, len(out.Changes) > 0
}

// Touches reports whether a commit changed one of some contracts.
func (c *Commit) Touches(names map[string]bool) bool {
	for _, step := range c.Changes {
		if names[step.Contract] {
			return true
		}
	}
	return false
}
