package ui

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/ui/judge"
	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// What became of a commit that was to be audited.
const (
	verified = "Verified"
	violates = "Violates"
	unjudged = "NotJudged"
	taken    = "TakenAsItIs"
)

// AuditRow is a commit of the ledger with what the audit says of it.
type AuditRow struct {
	view.Commit

	// State is Verified (no rule is broken; Signed says whether by a signature or by the
	// committer's address alone), Violates, NotJudged (yet) or TakenAsItIs (where the audit began).
	State string `json:"state"`
	// Violations of the rules of `audit verify`; for those who see all tenants.
	Violations []audit.Violation `json:"violations,omitempty"`
}

// AuditAnswer is the searchable history with what the audit says of it.
type AuditAnswer struct {
	Rows view.List[AuditRow] `json:"rows"`
	// Looked is among how many of the newest commits.
	Looked int `json:"commitsSearched"`
	// Summary of the audit, for those who see all tenants.
	Summary *AuditSummary `json:"summary,omitempty"`
}

// AuditSummary is what the audit found in total.
type AuditSummary struct {
	// Running: commits are being judged now.
	Running bool `json:"running"`
	// Done of All the commits that are being judged now.
	Done int `json:"done,omitempty"`
	All  int `json:"all,omitempty"`
	// Head is the newest commit that was judged, From where it began, "" for the first.
	Head string        `json:"head,omitempty"`
	From string        `json:"from,omitempty"`
	At   v1alpha1.Time `json:"at,omitzero"`
	// Commits that were judged, Decisions those of them that changed the ledger, Unsigned
	// those that are taken for the daemon's without a signature.
	Commits   int `json:"commits"`
	Decisions int `json:"decisions"`
	Unsigned  int `json:"unsigned"`
	// Violating commits.
	Violating int          `json:"violating"`
	Signers   []string     `json:"signers"`
	Notes     []audit.Note `json:"notes,omitempty"`
	// Trouble is why the last run did not end.
	Trouble string `json:"trouble,omitempty"`
}

func auditPage(c *call) (any, error) {
	out := &AuditAnswer{}
	all, err := c.ui.history.newest(c.Context(), c.model.Snapshot().Ledger, looked)
	if err != nil && !errors.Is(err, context.Canceled) {
		c.ui.opts.Log.Warn("the ledger's history cannot be shown", "error", err)
	}
	out.Looked = len(all)
	var s judge.State
	if c.ui.judge != nil && !c.sight.None() {
		window, whole := c.ui.history.window(c.model.Snapshot().Ledger)
		s = c.ui.judge.Of(c.Context(), c.model.Fleet.Policy.WriteBack.Branch, c.model.Snapshot().Ledger, c.model.Snapshot().Inputs, window, whole)
	}
	text, rows, judged := strings.ToLower(c.query.Text), []AuditRow{}, false
	for i := range all {
		hash := all[i].Hash
		judged = judged || !s.Head.IsZero() && hash == s.Head.String()
		row := AuditRow{State: unjudged}
		switch {
		case !judged:
		case !s.From.IsZero() && hash == s.From.String():
			row.State, judged = taken, false
		case len(s.Violations[hash]) > 0:
			row.State = violates
		default:
			row.State = verified
		}
		k, ok := c.model.Seen(c.sight, all[i])
		if !ok || c.query.State != "" && !strings.EqualFold(c.query.State, "all") && !strings.EqualFold(c.query.State, row.State) {
			continue
		}
		row.Commit = k
		if c.sight.All() {
			row.Violations = s.Violations[hash]
		}
		if row.has(text) {
			rows = append(rows, row)
		}
	}
	out.Rows = view.Rows(rows, c.query)
	if c.sight.All() && c.ui.judge != nil {
		out.Summary = &AuditSummary{
			Running: s.Running, Done: s.Done, All: s.All, Head: hashOr(s.Head), From: hashOr(s.From), Commits: s.Commits, Decisions: s.Decisions, Unsigned: s.Unsigned,
			Violating: len(s.Violations), Signers: slices.Clone(s.Signers), Notes: s.Notes, Trouble: s.Trouble,
		}
		if !s.At.IsZero() {
			out.Summary.At = v1alpha1.TimeOf(s.At)
		}
	}
	return out, nil
}

func hashOr(h tree.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// has reports whether a row contains a text, which is in lower case.
func (r *AuditRow) has(text string) bool {
	all := []string{r.Subject, r.Author, r.Hash, r.Inputs}
	for _, step := range r.Changes {
		all = append(all, step.Contract, step.From, step.To)
	}
	for _, v := range r.Violations {
		all = append(all, v.Rule, v.Path, v.Message)
	}
	return strings.Contains(strings.ToLower(strings.Join(all, "\n")), text)
}
