package cli

import "github.com/spf13/cobra"

func newCmdAccept(s Streams) *cobra.Command {
	o := reconcileOptions{streams: s, once: true, done: reconciled{Commits: []reconciledAs{}}}
	cmd := &cobra.Command{
		Use:   "accept --source NAME=COMMIT",
		Short: "Accept the rewritten history of a tenant's repository",
		Long: `Accept the head of a source (spec.sources of fleet.yaml) whose history was rewritten,
and make one full round. Give it the flags of reconcile --once.`,
		Example: `  fleetbroker accept --source vision=8c02e11f… --source-hosts git.example.org --repo ... --market ...`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.sources.Accept) == 0 {
				return usagef("say which head of which source was looked at: --source NAME=COMMIT")
			}
			return reconcileRun(cmd.Context(), &o)
		},
	}
	fs := cmd.Flags()
	o.register(fs)
	o.registerMarket(fs)
	fs.StringToStringVar(&o.sources.Accept, "source", nil, "source, with its new head (40 digits) that was looked at")
	outcomeFlag(cmd, &o.output)
	return cmd
}
