package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
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
  fleetbroker audit replay 4f1c2ab   # would it be decided so again?`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdAuditLog(s), newCmdAuditVerify(s), newCmdAuditReplay(s))
	return cmd
}

type verifyOptions struct {
	sourceFlags
	streams Streams
	args    []string
	from    string
	all     bool
	output  string
}

var verifyForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdAuditVerify(s Streams) *cobra.Command {
	o := verifyOptions{streams: s, sourceFlags: sourceFlags{offers: true}}
	cmd := &cobra.Command{
		Use:   "verify [DIR|URL]",
		Short: "Derive every commit of the ledger again",
		Long: `Walk the whole history of the ledger and derive it again: signatures, who wrote
generated files, that each contract follows from an intent in the inputs, that no
commit sells more than the figures it records leave, phases, cost, and that the
manifests are what the contracts render to. The first commit that breaks a rule
is told with the file, the rule and the figures.

Manifests are rendered by this program. Where another version of it rendered
otherwise, begin with the first commit after it: --from takes a commit as it
stands.

Exit code 0: everything follows; 1: it does not.`,
		Example: `  fleetbroker audit verify
  fleetbroker audit verify --all -o json https://git.example.org/acme/fleet.git
  fleetbroker audit verify --from v1.0     # only what came after`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, verifyForms...); err != nil {
				return err
			}
			return verifyRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.from, "from", "", "revision of the ledger that is taken as it stands")
	cmd.Flags().BoolVar(&o.all, "all", false, "go on after the first commit that breaks a rule")
	outputFlag(cmd, &o.output, verifyForms...)
	return cmd
}

func verifyRun(ctx context.Context, o *verifyOptions) error {
	src, f, err := o.openFleet(ctx, o.args)
	if err != nil {
		return err
	}
	opts, end, err := src.history(f, o.streams, "commits verified")
	if err != nil {
		return err
	}
	opts.All = o.all
	if o.from != "" {
		if opts.From, err = src.named(o.from); err != nil {
			return hinted(fmt.Errorf("--from: %w", err), "name a commit of the ledger: git log "+f.Policy.WriteBack.Branch)
		}
	}
	rep, err := audit.Verify(ctx, src.objects, opts)
	end()
	if err != nil {
		return err
	}
	if err := printVerified(o, &rep); err != nil {
		return err
	}
	if len(rep.Violations) > 0 {
		if f.Policy.WriteBack.Mode == "pull-request" && len(opts.Offers) == 0 {
			fmt.Fprintln(o.streams.Err, "hint: a squash of the daemon's pull request is told by the pull request's head: git fetch origin '+refs/pull/*/head:refs/pull/*/head' (GitLab: refs/merge-requests)")
		}
		return errFindings
	}
	return nil
}

func printVerified(o *verifyOptions, rep *audit.Report) error {
	switch o.output {
	case "json":
		return indented(o.streams.Out, rep)
	case "yaml":
		return printYAML(o.streams.Out, rep)
	case "markdown", "wide":
		t := newTable(o.streams, "COMMIT", "RULE", "PATH", "WHAT")
		for _, v := range rep.Violations {
			t.row(v.Commit, v.Rule, dash(v.Path), v.Message)
		}
		if o.output == "markdown" {
			return t.markdown(o.streams.Out)
		}
		return t.print(o.streams.Out)
	}
	for _, v := range rep.Violations {
		if _, err := fmt.Fprintln(o.streams.Out, printable(v.String())); err != nil {
			return err
		}
	}
	done := fmt.Sprintf("%s up to %.7s, of which %d changed the ledger: %s made", count(rep.Commits, "commit"), rep.Head, rep.Decisions, count(rep.Contracts, "contract"))
	if len(rep.Violations) > 0 {
		fmt.Fprintf(o.streams.Err, "fleetbroker: %s in %s\n", count(len(rep.Violations), "violation"), done)
		return nil
	}
	_, err := fmt.Fprintf(o.streams.Out, "everything follows: %s\n", done)
	return err
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
	p := newProgress(streams)
	tell := func(n, all int) { p.tell(done, n, all) }
	return audit.Options{Ledger: h.ledger, Inputs: h.inputs, Offers: s.offers(), Progress: tell}, p.end, nil
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
		return h, hinted(fmt.Errorf("there is no branch %s: nothing was reserved yet, or it was not fetched", branch), "git fetch origin "+branch)
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
