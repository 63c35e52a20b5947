package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/booked"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

type releaseOptions struct {
	daemonFlags
	streams  Streams
	contract string
	force    bool
	output   string
}

func newCmdRelease(s Streams) *cobra.Command {
	o := releaseOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "release --force CONTRACT",
		Short: "End a contract whose provider is lost for good",
		Long: `End a contract that stays Releasing because its provider, or its consumer, is
lost for good and nobody can see its slice gone. It is committed as Failed, and
its capacity counts as free from then on: never do it for a provider that may
come back with the pods still running. To give capacity back in any other case,
delete the intent.

Give it the daemon's --trust-root and --signing-key, or --unsigned; a repository on
this machine whose ledger is not signed needs neither.`,
		Example: `  fleetbroker release --force vision-llm-finetune-0-k3f9q2ab \
    --repo https://git.example.org/acme/fleet.git --git-user broker --git-password-file token \
    --trust-root trust-root.yaml --signing-key ledger`,
		Args: exactly(1, "one argument: the name of the contract"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.contract = args[0]
			if !o.force {
				return hinted(usagef("release needs --force: it ends a contract without seeing its slice gone"),
					"to give capacity back, delete the intent's file instead")
			}
			return releaseRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&o.force, "force", false, "say that the provider is lost for good")
	outcomeFlag(cmd, &o.output)
	cmd.ValidArgsFunction = completeNames(heldNames) // of the checkout around
	return cmd
}

// releaseRun makes one round that takes the contract for gone.
func releaseRun(ctx context.Context, o *releaseOptions) error {
	log, err := o.logger(o.streams)
	if err != nil {
		return err
	}
	if err := o.root.asked(o.url, false); err != nil {
		return err
	}
	d, err := o.build(ctx, log, o.streams.Now, func(opts *reconciler.Options) {
		opts.ForceRelease = map[string]bool{o.contract: true}
		opts.Delivery = nil
	})
	if err != nil {
		return err
	}
	defer d.close()
	before, err := d.heldContract(ctx, o.contract)
	if err != nil {
		return err
	}
	lost := before.Status.Phase == v1alpha1.PhaseDegraded && before.Status.Reason == ledger.DegradedProviderLost
	if before.Status.Phase != v1alpha1.PhaseReleasing && !lost {
		return hinted(fmt.Errorf("contract %s is %s, and only one that is Releasing, or whose provider is lost, can be forced to its end", o.contract, before.Status.Phase),
			"delete the intent's file, or wait until its provider counts as lost")
	}
	if err := d.roundsUntilEnded(ctx, o.contract); err != nil {
		return err
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Contract string         `json:"contract"`
		Was      v1alpha1.Phase `json:"was"`
	}{o.contract, before.Status.Phase}, fmt.Sprintf("released %s\n", o.contract))
}

// forceRounds bounds the rounds of a forced release: a contract takes one step
// a second, so that one which has just taken another is waited for.
const forceRounds = 5

// roundsUntilEnded makes rounds until the ledger says that a contract has ended.
func (d *daemon) roundsUntilEnded(ctx context.Context, name string) error {
	for tries := 0; ; {
		out, err := d.loop.Round(ctx)
		if err != nil {
			return err
		}
		if out.Again {
			continue
		}
		after := d.loop.View().Contracts.Contract(name)
		if after == nil || !after.Status.Phase.Held() {
			return nil
		}
		if tries++; tries == forceRounds {
			return fmt.Errorf("contract %s is still %s (%s)", name, after.Status.Phase, after.Status.Why())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// heldContract is a contract that still keeps capacity, as the ledger has it.
func (d *daemon) heldContract(ctx context.Context, name string) (*v1alpha1.Contract, error) {
	heads, err := d.repo.Fetch(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch the fleet repo: %w", err)
	}
	led, _, err := ledger.Read(ctx, heads.Ledger.Tree, nil)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	c := led.Contract(name)
	switch {
	case c == nil:
		return nil, hinted(fmt.Errorf("there is no contract %q", name), "list them: fleetbroker get contracts")
	case !c.Status.Phase.Held():
		return nil, booked.HoldsNothing(c)
	}
	return c, nil
}
