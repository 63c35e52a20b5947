package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

type explainOptions struct {
	worldFlags
	streams Streams
	intent  string
	output  string
	all     bool
	why     string
}

func newCmdExplain(s Streams) *cobra.Command {
	o := explainOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "explain INTENT",
		Short: "Show every offer for an intent, with its score or why it was rejected",
		Long: `Show what was understood of an intent and every offer once: those that fit by
score, the others with the first requirement they fail.`,
		Example: `  fleetbroker explain vision/llm-finetune
  fleetbroker explain llm-finetune --why gpu.model
  fleetbroker explain vision/llm-finetune --all -C fleet`,
		Args: exactly(1, "one argument: an intent, as TENANT/NAME or, where it is unique, NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.intent = args[0]
			if err := oneOf("output", o.output, planForms...); err != nil {
				return err
			}
			return explainRun(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&o.all, "all", false, "show all offers")
	cmd.Flags().StringVar(&o.why, "why", "", "show the offers that fail this requirement, such as gpu.model")
	outputFlag(cmd, &o.output, planForms...)
	cmd.ValidArgsFunction = completeNames(intentNames)
	return cmd
}

// find opens the repo and finds the intent in what it and the market say.
func (o *explainOptions) find(ctx context.Context) (src *source, in *gathered, tenant, name string, err error) {
	if src, err = o.open(ctx, nil); err != nil {
		return nil, nil, "", "", err
	}
	if in, err = o.gather(ctx, src, o.streams); err != nil {
		return nil, nil, "", "", err
	}
	tenant, name, err = findIntent(in, o.intent)
	return src, in, tenant, name, err
}

func explainRun(ctx context.Context, o explainOptions) error {
	src, in, tenant, name, err := o.find(ctx)
	if err != nil {
		return err
	}
	w := in.world()
	for i := range w.Intents {
		it := w.Intents[i]
		if it.Metadata.Namespace == tenant && it.Metadata.Name == name {
			it.Commit, it.Author = src.lastChange(it.Path)
		}
	}
	e, err := planner.Explain(w, tenant, name)
	if err != nil {
		return err
	}
	switch o.output {
	case "json":
		return report.ExplainJSON(o.streams.Out, e)
	case "yaml":
		return report.ExplainYAML(o.streams.Out, e)
	}
	show := report.ExplainOptions{Color: o.streams.Color, All: o.all || o.output == "wide", Why: o.why, Accelerators: in.fleet.Policy.Accelerators}
	if o.output == "markdown" {
		return report.ExplainMarkdown(o.streams.Out, e, show)
	}
	return report.ExplainText(o.streams.Out, e, show)
}

// findIntent is the intent that TENANT/NAME or NAME means; a warm pool is one
// of the fleet's own.
func findIntent(in *gathered, arg string) (tenant, name string, err error) {
	var matches, all []string
	add := func(tenant, name string) {
		full := tenant + "/" + name
		all = append(all, full)
		if full == arg || name == arg {
			matches = append(matches, full)
		}
	}
	for _, it := range in.fleet.Intents {
		add(it.Metadata.Namespace, it.Metadata.Name)
	}
	for i := range in.fleet.Policy.WarmPools {
		add(v1alpha1.FleetTenant, in.fleet.Policy.WarmPools[i].Name)
	}
	switch {
	case len(matches) == 1:
		tenant, name, _ = strings.Cut(matches[0], "/")
		return tenant, name, nil
	case len(matches) > 1:
		return "", "", hinted(fmt.Errorf("%q is the name of %d intents", arg, len(matches)), "name one: "+strings.Join(matches, ", "))
	}
	for _, p := range problemsOf(in.fleet) {
		if strings.Contains(p.File, "/"+strings.TrimPrefix(arg, "/")+".") {
			return "", "", hinted(fmt.Errorf("%s cannot be read: %s", p.File, p), "fix it first: fleetbroker validate")
		}
	}
	hint := "list them: fleetbroker get intents"
	if near := nearest.Of(arg, all); near != "" {
		hint = "did you mean " + near + "?"
	}
	return "", "", hinted(fmt.Errorf("there is no intent %q in %s", arg, in.src.where), hint)
}
