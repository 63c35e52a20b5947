package remedies

import (
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// Of is what to do about violations, a line for each kind in the order of its first. root is the
// trust root that the history was held to, nil without one.
func Of(found []audit.Violation, root *trust.Root) []string {
	var out []string
	said := map[string]bool{}
	for _, v := range found {
		if line := of(v, root); v.Undone == "" && !said[line] {
			said[line] = true
			out = append(out, line)
		}
	}
	return out
}

func of(v audit.Violation, root *trust.Root) string {
	switch v.Rule {
	case "signature":
		switch {
		case root != nil && strings.Contains(v.Message, "which is not in the repository"):
			return "correct revoked.after in " + root.File + ": the 40 digits of the newest commit that this key has surely signed, of a branch that this clone has (docs/signing.md)"
		case strings.Contains(v.Message, ": it is not signed; "):
			return "see in the log of pushes of the git server which account brought the commit: the daemon's must sign (--signing-key, docs/signing.md); another's needs no right to push to the ledger, and what it changed is put back by the daemon's next round (docs/runbook.md, Foreign edits are undone)"
		case root == nil:
			return "name the fleet's trust root, which says whose signatures count: --trust-root FILE (docs/signing.md)"
		}
		return "a commit of the daemon's needs a key of the list ledger in " + root.File + ", also one that is out of use (with revoked: {after: <its last commit>}); where the key is none of yours, see docs/runbook.md, A signing key is lost or stolen"
	case "foreign":
		return "see who may push to the ledger; a daemon that runs puts it back with its next round (docs/runbook.md, Foreign edits are undone)"
	case "sequence":
		switch {
		case strings.Contains(v.Message, "the trust root is that of"):
			return "trust root and ledger are of two fleets: take the file of this fleet from its platform team, or name its repository"
		case strings.Contains(v.Message, "was set back or rewritten"):
			return "stop the daemons, and put the branch back from a clone or a daemon's state directory that has that commit; where an operator let go of it: docs/runbook.md, The history was rewritten"
		}
		return "the ledger is another fleet's, another branch's, or was put together of two: look at the commit and the one before it with git show (docs/runbook.md, The history was rewritten)"
	case "inputs":
		return "see docs/runbook.md: An input is not verified, where the commit says more than was verified; else The history was rewritten"
	case "readable", "tree":
		return "put the file back as it stood before the commit: docs/runbook.md, The ledger cannot be read"
	}
	return "look at the commit with git show; where the daemon's key signed it, compare with audit replay, and keep a clone: the daemon is at fault, or its key is stolen (docs/runbook.md, A signing key is lost or stolen)"
}
