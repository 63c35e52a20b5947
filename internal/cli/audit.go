package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/cli/progress"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

func newCmdAudit(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read the ledger's history as an auditor does",
		Long: `Who asked, what was decided and why, what it cost, and whether all of it follows
from the history alone.`,
		Example: `  fleetbroker audit log -t vision    # who asked, what was decided, what it cost
  fleetbroker audit verify           # does everything follow?
  fleetbroker audit export -o w.json # a head for a witness to keep
  fleetbroker audit replay 4f1c2ab   # would it be decided so again?`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdAuditLog(s), newCmdAuditVerify(s), newCmdAuditExport(s), newCmdAuditReplay(s))
	return cmd
}

// openFleet opens what is named and reads its fleet.
func (f *sourceFlags) openFleet(ctx context.Context, args []string) (*source, *fleet.Fleet, error) {
	src, err := f.open(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	read, err := src.readFleet(ctx)
	return src, read, err
}

// history is what a walk over the ledger's history begins with. Its progress is
// shown, as what it has done so far, until end is called.
func (s *source) history(f *fleet.Fleet, streams Streams, done string) (opts audit.Options, end func(), err error) {
	h, err := s.heads(f)
	if err != nil {
		return opts, nil, err
	}
	p := progress.To(streams.Err, streams.ErrTerminal, streams.Now)
	tell := func(n, all int) { p.Show(done, n, all) }
	return audit.Options{Ledger: h.ledger, Inputs: h.inputs, Branch: f.Policy.WriteBack.Branch, Offers: s.offers(), Root: s.root, Progress: tell}, p.End, nil
}

// offers are commits that may be the daemon's pull requests: what forges keep as
// their heads, as far as it was fetched.
func (s *source) offers() []tree.Hash {
	refs, err := s.repo.References()
	if err != nil {
		return nil
	}
	defer refs.Close()
	var out []tree.Hash
	_ = refs.ForEach(func(ref *plumbing.Reference) error { // it ends with no error
		name := ref.Name().String()
		if ref.Type() == plumbing.HashReference && mayBeOffer(name) {
			out = append(out, tree.Hash(ref.Hash()))
		}
		return nil
	})
	return out
}

// mayBeOffer reports whether a ref may be the head of a pull request of ours.
func mayBeOffer(ref string) bool {
	return (strings.HasPrefix(ref, "refs/pull/") || strings.HasPrefix(ref, "refs/merge-requests/")) && strings.HasSuffix(ref, "/head") ||
		ref == "refs/fleetbroker/offered" || strings.HasSuffix(ref, "/"+gitrepo.OfferBranch)
}

// heads are the newest commits of both branches.
type heads struct{ inputs, ledger tree.Hash }

// noLedgerError is a repository without the ledger's branch.
type noLedgerError struct{ branch, remote string }

func (e *noLedgerError) Error() string {
	return fmt.Sprintf("there is no branch %s: nothing was reserved yet, or it was not fetched", e.branch)
}

// heads finds the branches as the remote had them when last fetched, else the
// local ones.
func (s *source) heads(f *fleet.Fleet) (heads, error) {
	var h heads
	if s.repo == nil || s.commit.IsZero() {
		return h, hinted(fmt.Errorf("%s has no history: it is no git repository with commits", s.where), "name a clone of the fleet repo, or its URL")
	}
	branch := f.Policy.WriteBack.Branch
	var found bool
	if h.ledger, found = s.branchHead(branch); !found {
		return h, hinted(&noLedgerError{branch, s.remote()}, watching.Command(s.remote(), branch))
	}
	if h.inputs, found = s.branchHead(f.Policy.WriteBack.Inputs); !found {
		h.inputs = s.commit
	}
	return h, nil
}

func (s *source) branchHead(branch string) (tree.Hash, bool) {
	for _, ref := range s.ledgerRefs(branch) {
		if h, err := s.repo.ResolveRevision(plumbing.Revision(ref)); err == nil {
			return tree.Hash(*h), true
		}
	}
	return tree.Hash{}, false
}

// named is the commit that a name stands for.
func (s *source) named(rev string) (tree.Hash, error) {
	h, err := s.repo.ResolveRevision(plumbing.Revision(rev))
	if err != nil {
		return tree.Hash{}, fmt.Errorf("no such revision in %s: %s", s.where, rev)
	}
	return tree.Hash(*h), nil
}
