package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Replicas is how many replicas an intent asks for: a number, or 1..6.
func Replicas(r v1alpha1.Replicas) string {
	if r.Range && r.Max > max(r.Min, 1) {
		return fmt.Sprintf("%d..%d", max(r.Min, 1), r.Max)
	}
	return strconv.Itoa(int(max(r.Min, 1)))
}

// Request is a GPU request in short, "" for none.
func Request(g *v1alpha1.GPURequest) string {
	if g == nil {
		return ""
	}
	model := cmp.Or(strings.Join(g.Models, ","), g.Vendor, "any")
	switch {
	case g.Share != nil:
		return g.Share.String() + " of " + model
	case g.Profile != "":
		return fmt.Sprintf("%dx %s", max(g.Count, 1), g.Profile)
	}
	return fmt.Sprintf("%dx %s", max(g.Count, 1), model)
}

// inWords are resources as people say them, without what every pod has: "8 CPU".
func inWords(r v1alpha1.Resources) []string {
	var out []string
	for _, name := range r.Names() {
		switch n := r[name]; {
		case n.IsZero() || name == v1alpha1.Pods || name == v1alpha1.EphemeralStorage:
		case name == v1alpha1.CPU:
			out = append(out, n.Canonical(name)+" CPU")
		default:
			out = append(out, n.Canonical(name)+" "+name)
		}
	}
	return out
}

// Cards is GPUs with their fractions: "4", "0.29".
func Cards(t ledger.Totals) string {
	return v1alpha1.DecimalFromInt(t.MilliCards().Int64()).DivInt(1000, 2).String()
}

// CurrencyOr is a currency, or another where it is empty.
func CurrencyOr(c, other string) string { return cmp.Or(c, other) }
