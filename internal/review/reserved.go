package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// ReservedMarker begins the comment on a merged pull request.
const ReservedMarker = "<!-- fleetbroker:reserved -->"

// Reserved is the comment on a merged pull request: the contracts that the
// ledger holds for the intents it brought, and of the others why not. settled
// says that every intent has what it asks for, or an answer that waits for
// nobody; until then the comment is brought up to date. "" is nothing to say
// yet: the round that reads the merge is still to come. unverified are the
// inputs that are not acted on.
func Reserved(wanted []Wanted, l *ledger.Ledger, commit string, plan *planner.Plan, unverified []Unverified) (text string, settled bool) {
	decided := map[string]*planner.Decision{}
	for _, d := range plan.Intents {
		decided[d.Tenant+"/"+d.Name] = d
	}
	held := map[Wanted][]*v1alpha1.Contract{}
	for c := range l.Contracts() {
		w := Wanted{Tenant: c.Metadata.Namespace, Name: c.Spec.Intent.Name, Path: c.Spec.Intent.Path, Digest: c.Spec.Intent.Digest}
		if c.Status.Phase.Held() || c.Status.Phase == v1alpha1.PhaseBooked {
			held[w] = append(held[w], c)
		}
	}
	var b strings.Builder
	settled = true
	for _, w := range wanted {
		name := escape.Markdown(w.Tenant + "/" + w.Name)
		if i := slices.IndexFunc(unverified, func(f Unverified) bool { return f.Path == w.Path }); i >= 0 {
			settled = false
			fmt.Fprintf(&b, "| %s | not acted on | %s | |\n", name, fmt.Sprintf("commit %s by %s: %s", unverified[i].Commit.Short(), escape.Markdown(unverified[i].Author), escape.Markdown(unverified[i].Why)))
			continue
		}
		for _, c := range held[w] {
			fmt.Fprintf(&b, "| %s | `%s` | %s/%s -> %s | %s %s |\n", name, escape.Code(c.Metadata.Name),
				escape.Markdown(c.Spec.Provider), escape.Markdown(c.Spec.Flavor), escape.Markdown(c.Spec.Consumer), c.Spec.Price.Hourly.Text(), escape.Markdown(c.Spec.Price.Currency))
		}
		d := decided[w.Tenant+"/"+w.Name]
		switch {
		case len(held[w]) > 0 && (d == nil || d.Action == planner.Keep):
		case d == nil:
			settled = false // not read yet, or deleted since
		case d.Action == planner.Queued:
			settled = false
			fmt.Fprintf(&b, "| %s | in the queue | %s | |\n", name, escape.Markdown(d.Reason))
		case d.Action == planner.Refuse, d.Action == planner.Frozen, d.Action == planner.Suspend, d.Action == planner.Done, d.Action == planner.Find:
			fmt.Fprintf(&b, "| %s | %s | %s | |\n", name, d.Action, escape.Markdown(d.Reason))
		default:
			settled = false // decided, and not in the ledger yet
		}
	}
	if b.Len() == 0 {
		return "", settled
	}
	return fmt.Sprintf("%s\n**In the ledger at %s**\n\n| intent | contract | where | per hour |\n|-|-|-|-:|\n%s", ReservedMarker, short(commit), b.String()), settled
}
