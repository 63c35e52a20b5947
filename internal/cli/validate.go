package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli/findings"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
)

type validateOptions struct {
	sourceFlags
	streams Streams
	args    []string
	base    string
	output  string
}

func newCmdValidate(s Streams) *cobra.Command {
	o := validateOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "validate [DIR|URL]",
		Short: "Check everything people write in a fleet repo",
		Long: `Check syntax, schema and cross-references of everything people write, and with
--base that nothing was changed that the daemon alone writes, and, where the
fleet's verification.mode is signed, that every commit since is signed by
an account that may change what it changes. Each problem is file:line:col: message.

Exit code 0: fine (warnings are fine); 1: problems.`,
		Example: `  fleetbroker validate
  fleetbroker validate --base origin/main          # in CI, for a pull request
  fleetbroker validate -o sarif > findings.sarif`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, findings.Forms...); err != nil {
				return err
			}
			return validateRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.base, "base", "", "revision to compare with: files that the daemon writes may not differ, and what is new must be signed where the fleet asks for it")
	cmd.Flags().StringVar(&o.proposal, "source", "", "NAME=DIR: a source of fleet.yaml, with a checkout of what is proposed there")
	outputFlag(cmd, &o.output, findings.Forms...)
	return cmd
}

func validateRun(ctx context.Context, o validateOptions) error {
	src, err := o.open(ctx, o.args)
	if err != nil {
		return err
	}
	f, err := src.readFleet(ctx)
	if err != nil {
		return err
	}
	var list []findings.Finding
	for _, d := range f.Diagnostics {
		list = append(list, findings.Of(d))
	}
	unknown, _ := src.unknownRevocations()
	list = append(list, findings.Unknown(src.root, unknown)...)
	if o.base != "" {
		guarded, err := guardGenerated(src, o.base)
		if err != nil {
			return err
		}
		unsigned, err := src.unsigned(ctx, o.base)
		if err != nil {
			return err
		}
		list = append(append(list, guarded...), unsigned...)
	}
	if err := findings.Print(o.streams.Out, o.output, list); err != nil {
		return err
	}
	problems := 0
	for _, l := range list {
		if l.IsError() {
			problems++
		}
	}
	if problems > 0 {
		in := ""
		if src.where != "." {
			in = " in " + src.where
		}
		fmt.Fprintf(o.streams.Err, "fleetbroker: %s%s\n", tables.Count(problems, "problem"), in)
		return errFindings
	}
	if o.output == "text" && o.streams.Terminal {
		fmt.Fprintf(o.streams.Out, "fine: %s, %s, %s, %s\n", tables.Count(len(f.Clusters), "cluster"), tables.Count(len(f.Tenants), "tenant"),
			tables.Count(len(f.Intents), "intent"), tables.Count(len(f.Flavors), "flavor"))
	}
	return nil
}

// guardGenerated finds files of the daemon that were changed since base.
func guardGenerated(src *source, base string) ([]findings.Finding, error) {
	before, err := src.base(base)
	if err != nil {
		return nil, err
	}
	list, err := findings.Generated(before, src.inputs)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", base, err)
	}
	return list, nil
}
