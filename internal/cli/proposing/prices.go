package proposing

import (
	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
)

// Prices is the change that puts a table, as it is written, to prices/NAME.yaml. notes are
// what was left out of it, in others' words.
func Prices(table *v1alpha1.PriceTable, content []byte, notes []string) Change {
	name := table.Metadata.Name
	out := Change{
		Path: "prices/" + name + ".yaml", Content: content, Prefix: "prices/" + name,
		Title: "Prices of " + name, Body: tables.Count(len(table.Spec.Prices), "price") + ", in " + table.Spec.Currency + ", as they are published now.\n",
	}
	if len(notes) > 0 {
		out.Body += "\nLeft out or ambiguous:\n\n"
		for _, n := range notes {
			out.Body += "- " + escape.Markdown(n) + "\n"
		}
	}
	return out
}
