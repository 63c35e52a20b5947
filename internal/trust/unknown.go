package trust

import (
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// revocation is an entry that revokes a key after a commit.
type revocation struct {
	list, principal string
	after           tree.Hash
	line, column    int
}

// Unknown is a revocation after a commit that a repository does not have: a mistyped one,
// or one of another repository. The key signs nothing then, whatever came before.
type Unknown struct {
	Line, Column int
	// What is wrong, in a sentence without its end, and Remedy.
	What, Remedy string
}

// String is both, by line of the file.
func (u Unknown) String() string {
	return fmt.Sprintf("%d:%d: %s: %s", u.Line, u.Column, u.What, u.Remedy)
}

// Unknown are the revocations whose commit is not there, in the order of the file. Of a
// shallow clone that says nothing yet.
func (r *Root) Unknown(has func(commit tree.Hash) bool, shallow bool) (out []Unknown) {
	if r == nil {
		return nil
	}
	for _, e := range r.revoked {
		if has(e.after) {
			continue
		}
		u := Unknown{
			Line: e.line, Column: e.column,
			What:   fmt.Sprintf("the key of %s in the list %s is revoked after %s, which is no commit here, so that nothing that it signed counts, be it older or newer", e.principal, e.list, e.after),
			Remedy: fmt.Sprintf("write the 40 digits of the newest commit that this key has surely signed (git log of the branch of the %s), or fetch it if it is of a branch that was not fetched; revoked: {} says that nothing counts", branchOf[e.list]),
		}
		if shallow {
			u.What = fmt.Sprintf("whether %s is a commit, after which the key of %s in the list %s is revoked, is not known: this clone is shallow, and its history is cut off", e.after, e.principal, e.list)
			u.Remedy = "fetch the rest: git fetch --unshallow (in CI: fetch-depth: 0, or GIT_DEPTH: 0)"
		}
		out = append(out, u)
	}
	return out
}

// branchOf is what the keys of a list sign.
var branchOf = map[string]string{"policy": "inputs", "ledger": "ledger"}
