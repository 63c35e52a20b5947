package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// fleetRefs is where the refs are that the daemon alone writes.
const fleetRefs = "refs/fleetbroker/"

// strayPause is how long refs that could not be deleted are left, before it is
// tried again.
const strayPause = 10 * time.Minute

// ErrBranchInTheWay means that a branch of people has a name next to which git
// cannot keep one of ours. It is not deleted: it is theirs.
type ErrBranchInTheWay struct{ Branch, Of string }

// Error implements error.
func (e *ErrBranchInTheWay) Error() string {
	return fmt.Sprintf("cannot create the branch %q: the branch %q exists, and git cannot keep both names; rename it, or delete it: git push origin --delete %s", e.Of, e.Branch, e.Branch)
}

// conflicts reports whether git cannot keep both refs: one is a directory of the
// other.
func conflicts(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// blocks is the ref of ours that a ref's name does not allow, empty for none.
func (r *Repo) blocks(ref string) string {
	for _, own := range []string{r.ledgerRef, offerRef, acceptedInputsRef, acceptedLedgerRef, offeredRef} {
		if conflicts(ref, own) {
			return own
		}
	}
	day := strings.TrimPrefix(ref, MarketPrefix)
	switch name, _, below := strings.Cut(day, "/"); {
	case ref == strings.TrimSuffix(MarketPrefix, "/"):
		return MarketPrefix + "*"
	case day != ref && below:
		if _, err := time.Parse("20060102", name); err == nil {
			return MarketPrefix + name
		}
	}
	return ""
}

// strays are the refs below fleetRefs in the way of ours.
func (r *Repo) strays() []string {
	var out []string
	for _, ref := range slices.Sorted(maps.Keys(r.refs)) {
		if (strings.HasPrefix(ref, fleetRefs) || ref == strings.TrimSuffix(fleetRefs, "/")) && r.blocks(ref) != "" {
			out = append(out, ref)
		}
	}
	return out
}

func (r *Repo) strayAlarms() []string {
	var out []string
	for _, ref := range r.strays() {
		out = append(out, fmt.Sprintf("%s stands where git cannot keep %s next to it: another account wrote that ref. It is deleted; see who may push refs", ref, r.blocks(ref)))
	}
	return out
}

// deleteStrays deletes the refs in the way of ours, in a push of its own: git
// does not create a ref in the push that deletes the one in its way.
func (r *Repo) deleteStrays(ctx context.Context) error {
	var cmds []Command
	for _, ref := range r.strays() {
		cmds = append(cmds, Command{Ref: ref, Old: r.refs[ref]})
	}
	if len(cmds) == 0 || r.opts.Now().Before(r.strayRetry) {
		return nil
	}
	if err := r.moveRefs(ctx, cmds); err != nil {
		r.strayRetry = r.opts.Now().Add(strayPause)
		return fmt.Errorf("delete refs in the way of the fleet's: %w", err)
	}
	return nil
}

// clear makes way for commands. Those whose way stays blocked are left out where
// they are hints, for a hint never stops the ledger; a branch is an error.
func (r *Repo) clear(ctx context.Context, cmds []Command) ([]Command, error) {
	var blocked []Command
	for _, c := range cmds {
		if r.blocker(r.refs, c) != "" {
			blocked = append(blocked, c)
		}
	}
	if len(blocked) == 0 {
		return cmds, nil
	}
	_ = r.deleteStrays(ctx) // the alarm stays as long as they do, and PutRight reports why
	var out []Command
	for _, c := range cmds {
		by := r.blocker(r.refs, c)
		switch {
		case by == "":
			out = append(out, c)
		case !strings.HasPrefix(c.Ref, fleetRefs):
			return nil, &ErrBranchInTheWay{Branch: strings.TrimPrefix(by, "refs/heads/"), Of: strings.TrimPrefix(c.Ref, "refs/heads/")}
		}
	}
	return out, nil
}

// blocker is the first ref that does not allow a command, empty for none.
func (r *Repo) blocker(refs map[string]tree.Hash, c Command) string {
	first := ""
	if c.New.IsZero() {
		return first
	}
	for ref := range refs {
		if conflicts(ref, c.Ref) && (first == "" || ref < first) {
			first = ref
		}
	}
	return first
}

// anyBlocked reports whether refs do not allow one of the commands.
func (r *Repo) anyBlocked(refs map[string]tree.Hash, cmds []Command) bool {
	return slices.ContainsFunc(cmds, func(c Command) bool { return r.blocker(refs, c) != "" })
}
