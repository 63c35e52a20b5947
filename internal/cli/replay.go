package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/replay"
)

type replayOptions struct {
	sourceFlags
	streams Streams
	args    []string
	output  string
}

var replayForms = []string{"text", "wide", "json", "yaml"}

func newCmdAuditReplay(s Streams) *cobra.Command {
	o := replayOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "replay COMMIT [DIR|URL]",
		Short: "Replay a past decision",
		Long: `Plan again the round that a commit of the ledger carries, with the planner of
the daemon, from what that round knew: the inputs and the ledger at their commits,
the market snapshot and the record of all else that were stored with it. What
differs from what was committed is printed, file by file: - as committed, + as
decided now. -o wide prints the plan, too.

A clone is enough: snapshots that it does not have are fetched from its remote.
They are kept for spec.retention.market of fleet.yaml. What lower rules of the
planner decided (trailer Rules) is decided again by those; what rules decided that
this program does not know is not made again, and said so.

Exit code 0: the decision comes out the same, or is not made again; 1: it does
not, or cannot be made.`,
		Example: `  fleetbroker audit replay 4f1c2ab
  fleetbroker audit replay origin/ledger -o wide
  fleetbroker audit replay 4f1c2ab -o json https://git.example.org/acme/fleet.git`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("want a commit of the ledger, and one directory or URL at most: fleetbroker audit replay COMMIT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, replayForms...); err != nil {
				return err
			}
			return replayRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	outputFlag(cmd, &o.output, replayForms...)
	return cmd
}

func replayRun(ctx context.Context, o *replayOptions) error {
	src, f, err := o.openFleet(ctx, o.args[1:])
	if err != nil {
		return err
	}
	if err := src.sayUnverified(ctx, f, o.streams); err != nil {
		return err
	}
	h, err := src.heads(f)
	if err != nil {
		return err
	}
	head := h.ledger.Short()
	commit, err := src.named(o.args[0])
	if err != nil {
		return hinted(err, "name a commit of the ledger: git log "+head)
	}
	var decided time.Time
	r := replay.Replayer{History: src.objects, Root: src.root, Published: func(ctx context.Context, when time.Time) (gitrepo.Published, error) {
		decided = when
		return src.published(ctx, o.auth, when)
	}}
	res, err := r.Replay(ctx, commit)
	switch {
	case errors.Is(err, replay.ErrNoDecision):
		return hinted(err, "it notes what was seen, or was made before decisions were recorded: those that can be made again have a trailer "+replay.Trailer+
			" (git log --grep '^"+replay.Trailer+": ' "+head+")")
	case errors.Is(err, gitrepo.ErrPruned):
		return notThere(err, decided, f.Policy.Retention.Market.Duration, o.streams.Now())
	case err != nil:
		return err
	}
	raw, err := src.objects.Commit(commit)
	if err != nil {
		return err
	}
	data, err := gitobj.ParseCommit(raw)
	if err != nil {
		return err
	}
	if err := printReplayed(o, res, gitobj.Subject(data.Message)); err != nil {
		return err
	}
	if !res.Same && res.NotMadeAgain == "" {
		return errFindings
	}
	return nil
}

// notThere explains that a snapshot of a decision is not there: its retention is
// over, or another account deleted or replaced it before.
func notThere(err error, decided time.Time, retention time.Duration, now time.Time) error {
	if until := decided.Add(retention); now.Before(until) {
		return hinted(fmt.Errorf("%w, though retention.market keeps it until %s: another account deleted or replaced %s", err,
			until.UTC().Format(time.DateOnly), gitrepo.MarketDay(decided)),
			"the daemon's log and `fleetbroker status` have an alarm that names the ref; see who may push refs", "`fleetbroker audit verify` needs no snapshot")
	}
	return hinted(fmt.Errorf("%w: its retention is over", err), "to keep them longer, raise spec.retention.market in fleet.yaml", "`fleetbroker audit verify` needs no snapshot")
}

// published is what was published on a day: from the repository itself where
// it has the day's snapshots, else from its remote.
func (s *source) published(ctx context.Context, auth gitrepo.Auth, when time.Time) (gitrepo.Published, error) {
	url := s.where
	if !isURL(url) {
		if _, err := s.repo.Reference(plumbing.ReferenceName(gitrepo.MarketDay(when)), true); err == nil {
			return gitrepo.PublishedIn(s.objects), nil
		}
		remotes, err := s.repo.Remotes()
		if err != nil || len(remotes) == 0 || len(remotes[0].Config().URLs) == 0 {
			return gitrepo.Published{}, fmt.Errorf("%s: %w", gitrepo.MarketDay(when), gitrepo.ErrPruned)
		}
		url = remotes[0].Config().URLs[0]
	}
	remote, err := gitrepo.Dial(url, auth)
	if err != nil {
		return gitrepo.Published{}, err
	}
	return gitrepo.ReadPublished(ctx, remote, when)
}

func printReplayed(o *replayOptions, res *replay.Result, subject string) error {
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, res)
	case "yaml":
		return printYAML(o.streams.Out, res)
	case "wide":
		if res.Decided == nil {
			break
		}
		if err := report.Text(o.streams.Out, res.Decided, report.Meta{}, report.Options{Color: o.streams.Color, Wide: true, Width: -1}); err != nil {
			return fmt.Errorf("print the plan: %w", err)
		}
		fmt.Fprintln(o.streams.Out)
	}
	base := "an empty ledger"
	if res.Base != "" {
		base = fmt.Sprintf("the ledger at %.7s", res.Base)
	}
	var b strings.Builder
	if res.NotMadeAgain != "" {
		_, err := fmt.Fprintf(o.streams.Out, "%.7s %s\ndecided %s on inputs %.7s, market %.7s\n%s\n", res.Commit, escape.Line(subject), escape.Line(res.Now), res.Inputs, res.Market, escape.Line(res.NotMadeAgain))
		return err
	}
	fmt.Fprintf(&b, "%.7s %s\ndecided %s on inputs %.7s, %s, market %.7s\n", res.Commit, escape.Line(subject), res.Now, res.Inputs, base, res.Market)
	for _, d := range res.Differences {
		fmt.Fprintf(&b, "\n%s\n%s", escape.Line(d.Path), differing(d))
	}
	if len(res.Differences) > 0 {
		b.WriteByte('\n')
	}
	if res.Part != "" {
		fmt.Fprintf(&b, "the remote took the round in parts: this commit has %s, %s more went elsewhere\n", escape.Line(res.Part), tables.Count(len(res.Elsewhere), "file"))
	}
	switch {
	case res.Same:
		fmt.Fprintf(&b, "the decision comes out the same: %s of the ledger, %s\n", tables.Count(res.Files-len(res.Elsewhere), "file"), res.Replayed)
	case len(res.Differences) == 0:
		fmt.Fprintf(&b, "the commit holds what comes out, but states another digest: %s, it is %s\n", escape.Line(res.Plan), res.Replayed)
	default:
		fmt.Fprintf(&b, "the decision comes out otherwise: %s\n", differ(len(res.Differences)))
	}
	_, err := fmt.Fprint(o.streams.Out, b.String())
	return err
}

// differing are the lines of a file that are not the same, - as committed and
// + as decided now.
func differing(d replay.Difference) string {
	var b strings.Builder
	for _, part := range diff.Do(d.Committed, d.Replayed) {
		sign := "+ "
		switch {
		case part.Type == 0:
			continue
		case part.Type < 0:
			sign = "- "
		}
		for _, line := range strings.Split(strings.TrimSuffix(part.Text, "\n"), "\n") {
			b.WriteString(sign + escape.Line(line) + "\n")
		}
	}
	return b.String()
}

func differ(n int) string {
	if n == 1 {
		return "1 file differs"
	}
	return tables.Count(n, "file") + " differ"
}
