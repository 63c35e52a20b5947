package gitrepo

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/anchor"
)

// ErrReplan means that the ledger or the inputs moved and what the request was
// planned on is no longer so: fetch and plan again. Commits that landed before
// it are in the Result.
type ErrReplan struct {
	// Head is the ledger's head now.
	Head tree.Hash
	// Inputs tells that the inputs changed.
	Inputs bool
	// Paths are those read or written by the request that differ.
	Paths []string
	// Foreign are edits of generated paths by others that came in between.
	Foreign []ForeignEdit
}

// Error implements error.
func (e *ErrReplan) Error() string {
	var why []string
	if e.Inputs {
		why = append(why, "the inputs changed")
	}
	if n := len(e.Paths); n > 0 {
		why = append(why, fmt.Sprintf("%d paths changed, first %s", n, e.Paths[0]))
	}
	if n := len(e.Foreign); n > 0 {
		why = append(why, fmt.Sprintf("%d generated paths were edited by others, first %s in %s", n, e.Foreign[0].Path, e.Foreign[0].Commit.Hash.Short()))
	}
	return fmt.Sprintf("plan again: the ledger moved to %s: %s", e.Head.Short(), strings.Join(why, "; "))
}

// ErrBusy means that others kept moving the refs for as long as Commit was
// willing to try. Nothing of what is missing from the Result landed.
type ErrBusy struct {
	Tries int
}

// Error implements error.
func (e *ErrBusy) Error() string {
	return fmt.Sprintf("commit to the ledger: others moved it %d times in a row; try again later", e.Tries)
}

// ErrHeld means that a push, or a read, was not sent: the repository's pushes are
// limited, or its server asks to be left alone. Nothing of it took effect.
type ErrHeld struct {
	// Until when it is held.
	Until time.Time
	// Why, "" for the fleet's own limit of pushes.
	Why string
}

// Error implements error.
func (e *ErrHeld) Error() string {
	why := cmp.Or(e.Why, "the fleet's limit of pushes (spec.writeBack.pushes of fleet.yaml)")
	return fmt.Sprintf("held until %s: %s", e.Until.UTC().Format(time.RFC3339), why)
}

// ErrRefused means that the remote refuses, not for being behind: a protected
// branch, a hook, a quota, missing permission, an error of its own. Nothing
// landed; should a push that got no answer be carried out after all, a later
// Fetch reports it under Heads.Settled.
type ErrRefused struct {
	Ref string
	// Cause carries the server's words.
	Cause error
}

// Error implements error.
func (e *ErrRefused) Error() string {
	more := ""
	if e.Ref == offerRef {
		more = "; it is replaced with each plan, so rules against force pushes and deletion must leave it out (on a server of your own: receive.denyNonFastForwards, receive.denyDeletes)"
	}
	return fmt.Sprintf("push %s: %v; allow this account to push to it (branch protection, hooks, quota)%s", e.Ref, e.Cause, more)
}

// Unwrap gives the cause.
func (e *ErrRefused) Unwrap() error { return e.Cause }

// ErrUnknown means that a push failed and the remote does not answer what
// became of it. The commit may land or have landed. Tell nobody anything about
// its items; the next Fetch that succeeds reports it under Heads.Settled.
type ErrUnknown struct {
	Commit tree.Hash
	Keys   []string
	Cause  error
}

// Error implements error.
func (e *ErrUnknown) Error() string {
	return fmt.Sprintf("push commit %s: the remote does not say whether it landed: %v", e.Commit.Short(), e.Cause)
}

// Unwrap gives the cause.
func (e *ErrUnknown) Unwrap() error { return e.Cause }

// ErrRewritten means that a branch's history was rewritten: its head does not
// descend from the head last accepted. Nothing is written until an operator
// accepts the new head with AcceptRewrite.
type ErrRewritten struct {
	Ref string
	// Old is the accepted head, New the present one; zero: the ref is gone.
	Old, New tree.Hash
	Standing anchor.Standing // of New
}

// Error implements error.
func (e *ErrRewritten) Error() string {
	if e.New.IsZero() {
		return fmt.Sprintf("%s is gone (it was at %s); nothing is written until it is restored, from a clone: `git push origin %[2]s:%[1]s`", e.Ref, e.Old)
	}
	return fmt.Sprintf("the history of %s was rewritten: %s does not descend from the accepted %s; nothing is written until you restore it, or %s", e.Ref, e.New, e.Old, e.Standing.Accept(e.Ref, e.Old))
}

// ErrClock means that our last commit on the ledger lies so far in the future that
// times planned by our clock would go backwards.
type ErrClock struct {
	Parent tree.Hash
	Ahead  time.Duration
}

// Error implements error.
func (e *ErrClock) Error() string {
	return fmt.Sprintf("the daemon's last commit on the ledger, %s, is %s ahead of this machine's clock; set the clocks of the machines that write it", e.Parent.Short(), e.Ahead)
}

// ErrLocal means that the local copy lacks or cannot read an object that it
// should have, or cannot be written (a zero Object). The next Fetch clones it
// again.
type ErrLocal struct {
	Object tree.Hash
	Cause  error
}

// Error implements error.
func (e *ErrLocal) Error() string {
	if e.Object.IsZero() {
		return fmt.Sprintf("local copy of the repository: %v; it is cloned again by the next fetch", e.Cause)
	}
	return fmt.Sprintf("local copy of the repository: object %s: %v; it is cloned again by the next fetch", e.Object, e.Cause)
}

// Unwrap gives the cause.
func (e *ErrLocal) Unwrap() error { return e.Cause }

// NoMemoryError is a branch of which nothing says how far it was accepted: the
// file is damaged, and the remote notes nothing.
type NoMemoryError struct {
	Ref  string
	Head tree.Hash
	Why  error
}

func (e *NoMemoryError) Error() string {
	return fmt.Sprintf("%v, and the remote does not note how far %s was accepted: nothing is written until you have looked at its history and accept it with `fleetbroker reconcile --once --accept-rewrite %s` on this state directory",
		e.Why, e.Ref, e.Head)
}

func (e *NoMemoryError) Unwrap() error { return e.Why }
