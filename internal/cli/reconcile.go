package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	process "github.com/fleetbroker/fleetbroker/internal/daemon"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

// settleTime bounds how long a single round waits for the clusters: longer than
// the Lease of a daemon that was killed takes to run out.
const settleTime = 45 * time.Second

type reconcileOptions struct {
	daemonFlags
	streams                  Streams
	once                     bool
	allowEnds, acceptRewrite string
	lift                     []string
	market, certPath         string
	output                   string
	done                     reconciled
}

// reconciled is what a round did, as data.
type reconciled struct {
	// Accepted is the rewritten head that was accepted first.
	Accepted string          `json:"accepted,omitempty"`
	Commits  []reconciledAs  `json:"commits"`
	Plan     json.RawMessage `json:"plan"`
	// Elsewhere are clusters that were left to the daemon that holds their Lease.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

type reconciledAs struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
}

// say prints a line of what is done, where people read it.
func (o *reconcileOptions) say(format string, args ...any) {
	if o.output == outcomeForms[0] {
		fmt.Fprintf(o.streams.Out, format, args...)
	}
}

func newCmdReconcile(s Streams) *cobra.Command {
	o := reconcileOptions{streams: s, done: reconciled{Commits: []reconciledAs{}}}
	cmd := &cobra.Command{
		Use:   "reconcile --once",
		Short: "Make one full round and stop",
		Long: `Make one full round: read, plan, commit, deliver. Next to a running daemon it is
how an operator lets through what the daemon holds back: many ends at once
(--allow-ends), a piece of the inputs that is set aside because it twice ended the
process reading it (--lift), or, where no trust root accepts it for all replicas, a
history that was rewritten (--accept-rewrite).
Give it the daemon's --trust-root and --signing-key; a repository on this machine
whose ledger is not signed needs neither.`,
		Example: `  fleetbroker reconcile --once --repo https://git.example.org/acme/fleet.git --market https://broker:8443/market \
    --trust-root trust-root.yaml --signing-key ledger
  fleetbroker reconcile --once --repo ... --market ... --allow-ends 4f1c2ab0…   # the inputs commit that was looked at
  fleetbroker reconcile --once --repo ... --accept-rewrite 8c02e11f…            # the new head that was looked at`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !o.once {
				return usagef("reconcile makes a single round: say --once, or use `fleetbroker run` for the daemon")
			}
			return reconcileRun(cmd.Context(), &o)
		},
	}
	fs := cmd.Flags()
	o.register(fs)
	o.registerMarket(fs)
	fs.BoolVar(&o.once, "once", false, "make one round and stop (required)")
	fs.StringVar(&o.allowEnds, "allow-ends", "", "inputs commit (40 digits) on which more contracts may end than safety.maxEnds, and after which no others do")
	fs.StringVar(&o.acceptRewrite, "accept-rewrite", "", "rewritten head (40 digits) that is accepted first")
	fs.StringSliceVar(&o.lift, "lift", nil, "path of a piece of the inputs that is set aside and shall be tried again")
	outcomeFlag(cmd, &o.output)
	return cmd
}

// reconcileRun makes rounds until nothing is left to do at once.
func reconcileRun(ctx context.Context, o *reconcileOptions) error {
	log, err := o.logger(o.streams)
	if err != nil {
		return err
	}
	var allow tree.Hash
	if o.allowEnds != "" {
		if allow, err = tree.ParseHash(o.allowEnds); err != nil {
			return usagef("--allow-ends: %v", err)
		}
	}
	if err := o.root.asked(o.url, false); err != nil {
		return err
	}
	known, err := readMarket(ctx, o.market, o.certPath)
	if err != nil {
		return err
	}
	d, err := o.build(ctx, log, o.streams.Now, func(opts *reconciler.Options) {
		opts.AllowEnds, opts.Lift = allow, o.lift
		opts.Pushes.Eager()
	})
	if err != nil {
		return err
	}
	defer d.close()
	if o.acceptRewrite != "" {
		head, err := tree.ParseHash(o.acceptRewrite)
		if err != nil {
			return usagef("--accept-rewrite: %v", err)
		}
		if err := d.repo.AcceptRewrite(ctx, head); err != nil {
			return err
		}
		o.done.Accepted = head.String()
		o.say("accepted %s\n", head.Short())
	}
	if err := process.ReportAll(d.market, known.flavors); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	err = o.rounds(ctx, d)
	if d.loop.View().Fleet != nil { // a cluster that does not answer hides no head that was not accepted
		err = errors.Join(o.sources.Accepted(d.sources.Status()), err)
	}
	return err
}

// rounds makes rounds until the ledger is as planned and the clusters are as
// the ledger says, or are given up on.
func (o *reconcileOptions) rounds(ctx context.Context, d *daemon) error {
	deadline := o.streams.Now().Add(settleTime)
	for first := true; ; first = false {
		out, err := d.loop.Round(ctx)
		if err != nil {
			return err
		}
		for _, c := range out.Committed {
			o.done.Commits = append(o.done.Commits, reconciledAs{c.Commit.Hash.String(), c.Commit.Subject()})
			o.say("%s  %s\n", c.Commit.Hash.Short(), c.Commit.Subject())
		}
		for _, r := range out.Refused {
			return fmt.Errorf("the remote refuses %s: %w", r.Key, r.Cause)
		}
		if first && d.sources.ReadAll(ctx) { // the fleet names some
			d.loop.Reread()
			continue
		}
		if out.Again {
			continue
		}
		if out.Plan != nil && out.Plan.HeldBack != "" {
			return hinted(errors.New(out.Plan.HeldBack),
				fmt.Sprintf("look at what would end with `fleetbroker plan`, then: fleetbroker reconcile --once --allow-ends %s", out.Plan.Inputs))
		}
		if err := o.pushes.Err(); err != nil { // what was to be pushed was not
			return fmt.Errorf("push to the fleet repo: %w", err)
		}
		if d.settled() || !o.streams.Now().Before(deadline) {
			return o.conclude(d)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.delivery.Changed():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// settled reports whether every cluster that answers has what it shall have, or
// is served by another daemon that lives. The Lease of one that was killed runs
// out within settleTime, and is then taken over.
func (d *daemon) settled() bool {
	for _, st := range d.delivery.Status() {
		if st.Problem == "" && !st.Elsewhere && (!st.Reachable || st.Pending > 0) || st.Elsewhere && !st.Renewed {
			return false
		}
	}
	return true
}

// conclude prints the sum, and what is wrong with clusters.
func (o *reconcileOptions) conclude(d *daemon) error {
	v := d.loop.View()
	about := report.Meta{Fleet: v.Fleet.Name, Errors: problemsOf(v.Fleet)}
	o.say("%s", report.Sum(v.Plan, about))
	var errs []error
	status := d.delivery.Status()
	for _, name := range sortedNames(status) {
		st := status[name]
		if st.Elsewhere && st.Renewed {
			o.done.Elsewhere = append(o.done.Elsewhere, name)
			o.say("cluster %s is left to the daemon that holds its Lease\n", name)
		}
		switch {
		case st.Elsewhere && !st.Renewed:
			errs = append(errs, hinted(fmt.Errorf("cluster %s: another daemon holds the Lease, has not renewed it in %s, and it could not be taken over", name, settleTime),
				"see who holds it with `kubectl get leases -A`; if that daemon is no more, run this again"))
		case st.Problem != "":
			errs = append(errs, fmt.Errorf("cluster %s: %s", name, st.Problem))
		case !st.Reachable && !st.Elsewhere:
			errs = append(errs, fmt.Errorf("cluster %s did not report its state within %s", name, settleTime))
		}
		for _, trouble := range st.Troubles {
			errs = append(errs, fmt.Errorf("cluster %s: %s", name, trouble))
		}
	}
	if v.Deaf {
		errs = append(errs, hinted(errors.New("too few providers are known here: nothing was placed, moved, refused or queued"),
			"give the running daemon's market: --market https://BROKER:8443/market --cert-path DIR"))
	}
	if o.output != outcomeForms[0] {
		var plan bytes.Buffer
		if err := report.JSON(&plan, v.Plan, about); err != nil {
			return fmt.Errorf("write the plan: %w", err)
		}
		o.done.Plan = plan.Bytes()
		errs = append(errs, printOutcome(o.streams.Out, o.output, o.done, ""))
	}
	return errors.Join(errs...)
}

// registerMarket adds the flags that say what is free.
func (o *reconcileOptions) registerMarket(fs *pflag.FlagSet) {
	fs.StringVar(&o.market, "market", "", "what is free: a YAML stream of Flavors, a CSV file, or the URL of a daemon's /market")
	fs.StringVar(&o.certPath, "cert-path", "", "directory with tls.crt, tls.key and ca.crt, for an https --market")
}
