package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/version"
	"github.com/fleetbroker/fleetbroker/internal/cli/completing"
)

// constructors make the commands, in the order of the help. A command that is
// not listed does not exist.
func constructors() []func(Streams) *cobra.Command {
	return []func(Streams) *cobra.Command{
		newCmdInit,
		newCmdInstall,
		newCmdKubeconfig,
		newCmdValidate,
		newCmdPlan,
		newCmdRun,
		newCmdReconcile,
		newCmdAccept,
		newCmdExplain,
		newCmdHow,
		newCmdRender,
		newCmdGet,
		newCmdStatus,
		newCmdTop,
		newCmdDoctor,
		newCmdRelease,
		newCmdAudit,
		newCmdCost,
		newCmdPrices,
		newCmdSimulate,
		newCmdPKI,
		newCmdDemo,
		newCmdVersion,
	}
}

// NewRoot is the fleetbroker command.
func NewRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "fleetbroker",
		Short: "Reserve GPU capacity across clusters from a git repository",
		Long: `fleetbroker turns what teams ask for in a fleet repo (GPU needs, budgets,
placement wishes) into reserved capacity on other clusters, and keeps the repo
as the ledger of what is reserved, for whom, why there and at what price.`,
		Example: `  fleetbroker init fleet && cd fleet     # a fleet repo to start from
  fleetbroker validate                   # is everything well written?
  fleetbroker plan                       # what would happen, and why
  fleetbroker explain vision/notebook    # every offer, and why it was rejected`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		Version:       version.Text(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetVersionTemplate(versionLine())
	if s.Name != "" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: s.Name}
	}
	var color string
	root.PersistentFlags().StringVar(&color, "color", "auto", "colours: "+strings.Join(colorForms, ", ")+" (auto: on a terminal, unless NO_COLOR is set)")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorForms, cobra.ShellCompDirectiveNoFileComp))
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return oneOf("color", color, colorForms...) }
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	s.noHeaders = new(bool)
	root.PersistentFlags().BoolVar(s.noHeaders, "no-headers", false, "print tables without their headers")
	for _, make := range constructors() {
		root.AddCommand(make(s))
	}
	completing.Apply(root, knownFlags)
	return root
}

// Run runs one command line and returns the process's exit code.
func Run(ctx context.Context, s Streams, args []string) int {
	s.Color = colored(s, args)
	root := NewRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		if near := nearest.Of(firstWord(args), names); near != "" {
			err = fmt.Errorf("%w (did you mean %q?)", err, near)
		}
		err = &usageError{err}
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	complain(s.Err, cmd.CommandPath(), err)
	return exitCode(err)
}

// firstWord is the first argument that is no flag.
func firstWord(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// atMost is cobra's MaximumNArgs with a sentence that names the arguments.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("too many arguments: %s takes %s", "the command", what)
		}
		return nil
	}
}

// exactly is cobra's ExactArgs with a sentence that names the arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("the command takes %s", what)
		}
		return nil
	}
}

// oneOf is an error unless value is one of the allowed.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usagef("--%s %q: want one of %s", flag, value, strings.Join(allowed, ", "))
}

// outputFlag is -o on a command that can print in these forms; the first is the
// default.
func outputFlag(cmd *cobra.Command, into *string, forms ...string) {
	cmd.Flags().StringVarP(into, "output", "o", forms[0], fmt.Sprintf("form of the output: %s", strings.Join(forms, ", ")))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}
