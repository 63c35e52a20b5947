package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/kubeconfig"
)

type kubeconfigOptions struct {
	sourceFlags
	streams           Streams
	file, context, to string
	kubeconfig.Options
}

func newCmdKubeconfig(s Streams) *cobra.Command {
	o := kubeconfigOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Make the kubeconfig by which the daemon reaches a cluster",
		Long: `Ask a cluster, with your own kubeconfig, for a token of the account that the install
bases made there, and write a kubeconfig with it for the daemon. The daemon renews the
token before it ends. An account that may do everything is refused.

With --program the kubeconfig has no token: the daemon runs that program for
credentials, such as a cloud's. It has to be one of the daemon's --kubeconfig-programs.`,
		Example: `  fleetbroker kubeconfig rome --context rome -o rome.kubeconfig
  fleetbroker kubeconfig paris --context paris --server https://paris.example.org:6443 -o paris.kubeconfig
  fleetbroker kubeconfig rome --program /usr/local/bin/aws-iam-authenticator --arg token --arg -i --arg rome`,
		Args: exactly(1, "one argument: a cluster of the fleet"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Cluster = args[0]
			if o.Duration < 10*time.Minute {
				return usagef("--duration %s: want 10m or more", o.Duration)
			}
			return kubeconfigRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVarP(&o.to, "output", "o", "", "file to write, for its owner alone (default: standard output)")
	cmd.Flags().StringVar(&o.file, "kubeconfig", "", "your kubeconfig (default: KUBECONFIG, else ~/.kube/config)")
	cmd.Flags().StringVar(&o.context, "context", "", "context of your kubeconfig (default: the current one)")
	cmd.Flags().StringVar(&o.Server, "server", "", "address by which daemon and peers reach the cluster (default: the context's)")
	cmd.Flags().DurationVar(&o.Duration, "duration", 90*24*time.Hour, "life of the token; the cluster may grant less")
	cmd.Flags().StringVar(&o.Program, "program", "", "program that makes credentials in place of a token, by its absolute path on the daemon's side")
	cmd.Flags().StringArrayVar(&o.Args, "arg", nil, "argument of the program; may be given several times")
	_ = cmd.MarkFlagFilename("output", "kubeconfig")
	_ = cmd.MarkFlagFilename("program")
	cmd.ValidArgsFunction = completeNames(clusterNames)
	return cmd
}

func kubeconfigRun(ctx context.Context, o kubeconfigOptions) error {
	src, err := o.open(ctx, nil)
	if err != nil {
		return err
	}
	f, err := src.readFleet(ctx)
	if err != nil {
		return err
	}
	if f.Clusters[o.Cluster] == nil {
		return hinted(fmt.Errorf("there is no cluster %q", o.Cluster), "list them: fleetbroker get clusters")
	}
	if o.Admin, err = kubeconfig.Admin(o.file, o.context); err != nil {
		return err
	}
	made, err := kubeconfig.Make(ctx, o.Options)
	if err != nil {
		return err
	}
	if o.to == "" {
		_, err = o.streams.Out.Write(made.Text)
	} else {
		err = statefile.ReplaceBy(o.to, 0o600, made.Text)
	}
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	switch {
	case made.Ends.IsZero():
	case made.Renewed:
		fmt.Fprintf(o.streams.Err, "its token ends at %s; the daemon renews it at half of its life\n", made.Ends.UTC().Format(time.RFC3339))
	default:
		fmt.Fprintf(o.streams.Err, "its token ends at %s, and nobody renews it: apply renew.yaml of what fleetbroker install writes\n", made.Ends.UTC().Format(time.RFC3339))
	}
	return nil
}
