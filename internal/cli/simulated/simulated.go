package simulated

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

// Print prints a simulation as text: what met, a line a policy, why things were not
// placed, and, with wide, what each tenant got.
func Print(w io.Writer, v tables.View, r *simulate.Result, wide bool) error {
	if v.Terminal {
		fmt.Fprintf(w, "offers   %s of %s: %s GPUs, %s CPU, %s memory\n", tables.Count(r.Supply.Flavors, "flavor"), tables.Count(r.Supply.Clusters, "cluster"), number(r.Supply.GPUs), r.Supply.CPU, r.Supply.Memory)
		fmt.Fprintf(w, "demand   %s of %s for %s GPUs (%s)\n\n", tables.Count(r.Demand.Intents, "intent"), tables.Count(r.Demand.Tenants, "tenant"), number(r.Demand.GPUs), r.Demand.Kinds())
	}
	if err := outcomes(v, r.Currency, r.Policies).Print(w); err != nil {
		return err
	}
	if v.Terminal {
		for _, o := range r.Policies {
			if len(o.Why) > 0 {
				fmt.Fprintf(w, "\n%s did not place %d: %s\n", o.Policy, o.Refused+o.Waiting, whyText(o.Why))
			}
		}
	}
	if len(r.Growth) > 0 {
		fmt.Fprintln(w)
		if err := growthTable(v, r).Print(w); err != nil {
			return err
		}
	}
	if wide {
		fmt.Fprintln(w)
		return tenantsTable(v, r).Print(w)
	}
	return nil
}

func outcomes(v tables.View, currency string, list []simulate.Outcome) *tables.Table {
	t := tables.New(v, "POLICY", ">PLACED", ">REFUSED", ">WAITING", ">WAIT P50", ">P90", ">P99", ">COST "+currency, ">PENALTY", ">GPU MEAN", ">GPU END", ">IDLE", ">FRAGMENTED", ">FAIR")
	for i := range list {
		t.Row(append([]any{list[i].Policy}, outcomeCells(t, &list[i])...)...)
	}
	return t
}

func outcomeCells(t *tables.Table, o *simulate.Outcome) []any {
	return []any{
		strconv.Itoa(o.Placed), strconv.Itoa(o.Refused), strconv.Itoa(o.Waiting),
		t.Span(o.Wait.P50), t.Span(o.Wait.P90), t.Span(o.Wait.P99),
		t.Money(o.Cost), t.Money(o.Penalty()),
		percent(o.GPU.AllocationMean), percent(o.GPU.AllocationEnd), number(o.GPU.UnallocatedEnd), number(o.GPU.FragmentedEnd),
		strconv.FormatFloat(o.Fairness.JainService, 'f', 3, 64),
	}
}

func growthTable(v tables.View, r *simulate.Result) *tables.Table {
	t := tables.New(v, ">CLUSTERS", ">FLAVORS", ">GPUS", ">INTENTS", "POLICY", ">PLACED", ">REFUSED", ">WAITING", ">WAIT P50", ">P90", ">P99", ">COST "+r.Currency, ">PENALTY", ">GPU MEAN", ">GPU END", ">IDLE", ">FRAGMENTED", ">FAIR")
	for _, g := range r.Growth {
		for i := range g.Policies {
			head := []any{strconv.Itoa(g.Clusters), strconv.Itoa(g.Supply.Flavors), number(g.Supply.GPUs), strconv.Itoa(g.Demand.Intents), g.Policies[i].Policy}
			t.Row(append(head, outcomeCells(t, &g.Policies[i])...)...)
		}
	}
	return t
}

func tenantsTable(v tables.View, r *simulate.Result) *tables.Table {
	t := tables.New(v, "POLICY", "TENANT", ">ARRIVED", ">PLACED", ">WAIT P50", ">P90", ">ASKED GPU-H", ">GOT GPU-H", ">SERVICE", ">DOMINANT SHARE")
	for _, o := range r.Policies {
		for _, f := range o.Fairness.Tenants {
			service := "-" // no GPU was asked for
			if f.Service != nil {
				service = percent(*f.Service)
			}
			t.Row(o.Policy, f.Tenant, strconv.Itoa(f.Arrived), strconv.Itoa(f.Placed), t.Span(f.Wait.P50), t.Span(f.Wait.P90),
				number(f.AskedGPUHours), number(f.GotGPUHours), service, percent(f.DominantShare))
		}
	}
	return t
}

func percent(f float64) string { return strconv.FormatFloat(f*100, 'f', 1, 64) + "%" }

// number has up to one decimal.
func number(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

func whyText(list []simulate.Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.Words())
	}
	return strings.Join(parts, ", ")
}
