package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/planner/report"
	"github.com/fleetbroker/fleetbroker/internal/simulate"
)

// simulateText prints a simulation: what met, a line a policy, why things were
// not placed, and, with wide, what each tenant got.
func simulateText(s Streams, r *simulate.Result, wide bool) error {
	if s.Terminal {
		fmt.Fprintf(s.Out, "offers   %s of %s: %s GPUs, %s CPU, %s memory\n", count(r.Supply.Flavors, "flavor"), count(r.Supply.Clusters, "cluster"), number(r.Supply.GPUs), r.Supply.CPU, r.Supply.Memory)
		fmt.Fprintf(s.Out, "demand   %s of %s for %s GPUs: %d for cards, %d for shares of one, %d for none\n\n", count(r.Demand.Intents, "intent"), count(r.Demand.Tenants, "tenant"), number(r.Demand.GPUs), r.Demand.Whole, r.Demand.Shares, r.Demand.NoGPU)
	}
	if err := outcomes(s, r.Currency, r.Policies).print(s.Out); err != nil {
		return err
	}
	if s.Terminal {
		for _, o := range r.Policies {
			if len(o.Why) > 0 {
				fmt.Fprintf(s.Out, "\n%s did not place %d: %s\n", o.Policy, o.Refused+o.Waiting, whyText(o.Why))
			}
		}
	}
	if len(r.Growth) > 0 {
		fmt.Fprintln(s.Out)
		if err := growthTable(s, r).print(s.Out); err != nil {
			return err
		}
	}
	if wide {
		fmt.Fprintln(s.Out)
		return tenantsTable(s, r).print(s.Out)
	}
	return nil
}

func outcomes(s Streams, currency string, list []simulate.Outcome) *table {
	t := newTable(s, "POLICY", ">PLACED", ">REFUSED", ">WAITING", ">WAIT P50", ">P90", ">P99", ">COST "+currency, ">+PENALTY", ">GPU MEAN", ">GPU END", ">IDLE", ">FRAGMENTED", ">FAIR")
	for i := range list {
		t.row(append([]string{list[i].Policy}, outcomeCells(t, &list[i])...)...)
	}
	return t
}

func outcomeCells(t *table, o *simulate.Outcome) []string {
	return []string{
		strconv.Itoa(o.Placed), strconv.Itoa(o.Refused), strconv.Itoa(o.Waiting),
		t.span(o.Wait.P50), t.span(o.Wait.P90), t.span(o.Wait.P99),
		t.money(o.Cost), t.money(o.CostWithPenalty),
		percent(o.GPU.AllocationMean), percent(o.GPU.AllocationEnd), number(o.GPU.UnallocatedEnd), number(o.GPU.FragmentedEnd),
		strconv.FormatFloat(o.Fairness.JainService, 'f', 3, 64),
	}
}

func growthTable(s Streams, r *simulate.Result) *table {
	t := newTable(s, ">CLUSTERS", ">FLAVORS", ">GPUS", ">INTENTS", "POLICY", ">PLACED", ">REFUSED", ">WAITING", ">WAIT P50", ">P90", ">P99", ">COST "+r.Currency, ">+PENALTY", ">GPU MEAN", ">GPU END", ">IDLE", ">FRAGMENTED", ">FAIR")
	for _, g := range r.Growth {
		for i := range g.Policies {
			head := []string{strconv.Itoa(g.Clusters), strconv.Itoa(g.Supply.Flavors), number(g.Supply.GPUs), strconv.Itoa(g.Demand.Intents), g.Policies[i].Policy}
			t.row(append(head, outcomeCells(t, &g.Policies[i])...)...)
		}
	}
	return t
}

func tenantsTable(s Streams, r *simulate.Result) *table {
	t := newTable(s, "POLICY", "TENANT", ">ARRIVED", ">PLACED", ">WAIT P50", ">P90", ">ASKED GPU-H", ">GOT GPU-H", ">SERVICE", ">DOMINANT SHARE")
	for _, o := range r.Policies {
		for _, f := range o.Fairness.Tenants {
			t.row(o.Policy, f.Tenant, strconv.Itoa(f.Arrived), strconv.Itoa(f.Placed), t.span(f.Wait.P50), t.span(f.Wait.P90),
				number(f.AskedGPUHours), number(f.GotGPUHours), percent(f.Service), percent(f.DominantShare))
		}
	}
	return t
}

// span is a time for people, or seconds in a pipe.
func (t *table) span(seconds int64) string {
	switch {
	case !t.s.Terminal:
		return strconv.FormatInt(seconds, 10)
	case seconds == 0:
		return "0"
	}
	return report.Age(time.Duration(seconds) * time.Second)
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
