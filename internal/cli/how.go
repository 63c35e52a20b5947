package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/howto"
)

var howForms = []string{"text", "json", "yaml", "manifest"}

func newCmdHow(s Streams) *cobra.Command {
	o := explainOptions{streams: s}
	kind := ""
	cmd := &cobra.Command{
		Use:   "how INTENT",
		Short: "Show how to use what an intent holds: namespace, manifest, logs, cost, end",
		Long: `Show what to do after an intent was merged: in which namespace of which cluster to
deploy, a manifest to start from, how to see it run, what it costs and how it ends.
No cluster is asked.`,
		Example: `  fleetbroker how vision/train
  fleetbroker how vision/train --kind Deployment -o manifest > train.yaml`,
		Args: exactly(1, "one argument: an intent, as TENANT/NAME or, where it is unique, NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.intent = args[0]
			if err := oneOf("output", o.output, howForms...); err != nil {
				return err
			}
			if err := oneOf("kind", kind, howto.Kinds()...); err != nil {
				return err
			}
			return howRun(cmd.Context(), o, kind)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&kind, "kind", howto.Job, "kind of the manifest: "+strings.Join(howto.Kinds(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(howto.Kinds(), cobra.ShellCompDirectiveNoFileComp))
	outputFlag(cmd, &o.output, howForms...)
	cmd.ValidArgsFunction = completeNames(intentNames)
	return cmd
}

func howRun(ctx context.Context, o explainOptions, kind string) error {
	_, in, tenant, name, err := o.find(ctx)
	if err != nil {
		return err
	}
	g := in.facts().HowTo(tenant, name, kind)
	if o.output == "manifest" {
		if g.Manifest == "" {
			why := g.Missing()
			return hinted(fmt.Errorf("%s has no manifest yet: %s", g.Intent, strings.TrimSuffix(why.Text, ".")), why.Commands...)
		}
		_, err := fmt.Fprint(o.streams.Out, g.Manifest)
		return err
	}
	return printOutcome(o.streams.Out, o.output, g, howto.Text(g))
}
