package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/booked"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

// completeNames completes the names of things of the fleet repo that -C names, or of the
// one around. A shell that asks must never see an error: without a fleet repo nothing is
// offered.
func completeNames(names func(f *fleet.Fleet, l *ledger.Ledger, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var flags sourceFlags
		if dir := cmd.Flags().Lookup("dir"); dir != nil {
			flags.dir = dir.Value.String()
		}
		if isURL(flags.dir) {
			return nil, cobra.ShellCompDirectiveNoFileComp // a key is not worth a clone
		}
		src, err := flags.open(cmd.Context(), nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f, err := src.readFleet(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l := ledger.Empty()
		if t, found, err := src.ledger(f.Policy.WriteBack.Branch); err == nil && found {
			if read, _, err := ledger.Read(cmd.Context(), t, nil); err == nil {
				l = read
			}
		}
		return names(f, l, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// intentNames are all intents that can be read, as TENANT/NAME.
func intentNames(f *fleet.Fleet, _ *ledger.Ledger, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	var out []string
	for _, it := range f.Intents {
		out = append(out, it.Metadata.Namespace+"/"+it.Metadata.Name)
	}
	return out
}

// heldNames are the contracts that can be released.
func heldNames(_ *fleet.Fleet, l *ledger.Ledger, args []string) []string {
	var out []string
	for c := range l.Contracts() {
		if len(args) == 0 && c.Status.Phase.Held() {
			out = append(out, c.Metadata.Name)
		}
	}
	return out
}

// namesOfKind are what `get KIND` could name.
func namesOfKind(f *fleet.Fleet, l *ledger.Ledger, args []string) []string {
	if len(args) == 0 {
		return getKinds
	}
	var out []string
	switch pluralKind(args[0]) {
	case "intents":
		out = intentNames(f, l, nil)
	case "contracts":
		for c := range l.Contracts() {
			out = append(out, c.Metadata.Name)
		}
	case "bookings":
		out = booked.Names(l.Bookings())
	case "flavors":
		for _, fl := range f.Flavors {
			out = append(out, fl.Ref())
		}
	case "clusters", "peerings":
		out = sortedNames(f.Clusters)
	case "tenants":
		out = sortedNames(f.Tenants)
	}
	return slices.DeleteFunc(out, func(s string) bool { return slices.Contains(args[1:], s) })
}

// knownFlags complete what a fleet repo has, by the flag's name.
var knownFlags = map[string]cobra.CompletionFunc{
	"tenant": completeNames(func(f *fleet.Fleet, l *ledger.Ledger, _ []string) []string { return tenantNames(f, l) }),
	"provider": completeNames(func(f *fleet.Fleet, _ *ledger.Ledger, _ []string) []string {
		return slices.DeleteFunc(sortedNames(f.Clusters), func(name string) bool { return !f.Clusters[name].HasRole("provider") })
	}),
	"consumer": completeNames(func(f *fleet.Fleet, _ *ledger.Ledger, _ []string) []string {
		return slices.DeleteFunc(sortedNames(f.Clusters), func(name string) bool { return !f.Clusters[name].HasRole("consumer") })
	}),
	"contract": completeNames(func(_ *fleet.Fleet, l *ledger.Ledger, _ []string) []string {
		var out []string
		for c := range l.Contracts() {
			out = append(out, c.Metadata.Name)
		}
		return out
	}),
	"source": completeNames(func(f *fleet.Fleet, _ *ledger.Ledger, _ []string) []string {
		var out []string
		for i := range f.Policy.Sources {
			out = append(out, f.Policy.Sources[i].Name+"=")
		}
		return out
	}),
	"currency": completeNames(func(f *fleet.Fleet, _ *ledger.Ledger, _ []string) []string {
		out := []string{f.Policy.Currency}
		for _, r := range f.Policy.Rates {
			out = append(out, r.From, r.To)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}),
	"fair":   cobra.FixedCompletions(simulate.Fairnesses, cobra.ShellCompDirectiveNoFileComp),
	"policy": cobra.FixedCompletions(simulate.Policies(), cobra.ShellCompDirectiveNoFileComp),
	"model":  cobra.FixedCompletions(gpunames.Models(), cobra.ShellCompDirectiveNoFileComp),
	"why":    cobra.FixedCompletions(match.Requirements(), cobra.ShellCompDirectiveNoFileComp),
	"base":   completeRevisions, "branch": completeRevisions, "inputs": completeRevisions, "ledger": completeRevisions,
	"cost from": cobra.NoFileCompletions, "audit verify from": completeRevisions, "audit export from": completeRevisions,
}

// completeRevisions are the branches of the checkout around, those of its remotes too
// where the flag is a revision.
func completeRevisions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var flags sourceFlags
	if dir := cmd.Flags().Lookup("dir"); dir != nil {
		flags.dir = dir.Value.String()
	}
	if isURL(flags.dir) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	src, err := flags.open(cmd.Context(), nil)
	if err != nil || src.repo == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return src.branches(), cobra.ShellCompDirectiveNoFileComp
}

// tenantNames are the fleet's tenants, and those that the ledger has contracts of.
func tenantNames(f *fleet.Fleet, l *ledger.Ledger) []string {
	out := sortedNames(f.Tenants)
	for c := range l.Contracts() {
		out = append(out, c.Metadata.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// knownTenant is an error for the name of a tenant that is not among all; "" names all
// of them.
func knownTenant(all []string, name string) error {
	if name == "" || name == v1alpha1.FleetTenant || slices.Contains(all, name) {
		return nil
	}
	hint := "list them: fleetbroker get tenants"
	if near := nearest.Of(name, all); near != "" {
		hint = "did you mean " + near + "?"
	}
	return hinted(fmt.Errorf("there is no tenant %q", name), hint)
}
