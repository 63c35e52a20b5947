package cli

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

type planOptions struct {
	worldFlags
	streams Streams
	args    []string
	base    string
	output  string
}

// planForms are the forms of `plan`.
var planForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdPlan(s Streams) *cobra.Command {
	o := planOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "plan [DIR|URL]",
		Short: "Show what would happen, at what cost, and why not",
		Long: `Show what the daemon would do with the fleet repo as it is: per intent what would
be placed where, at what price, and why offers were rejected. Nothing is changed.

What is free comes from --market (a YAML stream of Flavors, a CSV file, or the
address of a running daemon's /market) and from flavors/ of the repo. Contracts
are read from the ledger branch as last fetched.

Exit code 0: no change; 2: changes; 1: no plan could be made.`,
		Example: `  fleetbroker plan
  fleetbroker plan fleet --market offers.yaml
  fleetbroker plan --market https://broker.example.org:8443/market --cert-path ~/certs
  fleetbroker plan --base origin/main -o markdown      # what a pull request would change
  fleetbroker plan --at 2026-12-01T22:00:00Z           # as if it were then`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, planForms...); err != nil {
				return err
			}
			return planRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.base, "base", "", "show only what changed since this revision")
	cmd.Flags().StringVar(&o.proposal, "source", "", "NAME=DIR: a source of fleet.yaml, with a checkout of what is proposed there; --base is without it")
	outputFlag(cmd, &o.output, planForms...)
	return cmd
}

func planRun(ctx context.Context, o planOptions) error {
	src, err := o.open(ctx, o.args)
	if err != nil {
		return err
	}
	in, err := o.gather(ctx, src, o.streams)
	if err != nil {
		return err
	}
	plan := planner.Decide(in.world())
	if o.base != "" {
		src.proposal = ""
		before, err := src.base(o.base)
		if err != nil {
			return err
		}
		older, err := in.at(ctx, before)
		if err != nil {
			return err
		}
		plan = report.Since(planner.Decide(older.world()), plan)
	}
	if err := printPlan(o.streams, o.output, plan, in.meta(ctx)); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	if plan.Decides() {
		return errChanges
	}
	return nil
}

func printPlan(s Streams, form string, p *planner.Plan, m report.Meta) error {
	switch form {
	case "json":
		return report.JSON(s.Out, p, m)
	case "yaml":
		return report.YAML(s.Out, p, m)
	case "markdown":
		return report.Markdown(s.Out, p, m, report.MarkdownOptions{})
	case "wide":
		return report.Text(s.Out, p, m, report.Options{Color: s.Color, Wide: true, Width: -1})
	}
	return report.Text(s.Out, p, m, report.Options{Color: s.Color})
}

// problemsOf are the errors that the plan itself does not tell.
func problemsOf(f *fleet.Fleet) []report.Problem {
	var out []report.Problem
	for _, d := range f.Unread() {
		out = append(out, report.Problem{File: d.File, Line: d.Line, Column: d.Column, Message: d.Message})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].File < out[j].File })
	return out
}

// parseAt reads --at.
func parseAt(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return now, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, usagef("--at %q: want a time such as 2026-12-01T22:00:00Z", s)
	}
	return t, nil
}
