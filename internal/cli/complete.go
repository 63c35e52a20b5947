package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// completeNames completes the names of things of a fleet repo. A shell that
// asks must never see an error: without a fleet repo nothing is offered.
func completeNames(flags *sourceFlags, dir *string, names func(f *fleet.Fleet, l *ledger.Ledger, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		src, err := flags.open(cmd.Context(), dirArgs(*dir))
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
