package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Sentences are what a reader should know of a result first: what was placed and at what
// cost, and what fairness between tenants gives to whom, and takes from whom.
func Sentences(r *Result) []string {
	var out []string
	for i := range r.Policies {
		out = append(out, summary(r, &r.Policies[i]))
	}
	for i := range r.Policies {
		if o := &r.Policies[i]; o.Policy == Planner && len(o.Fairness.Tenants) > 1 {
			out = append(out, fairnessSaid(r, o)...)
		}
	}
	return out
}

// Kinds says how many intents ask for what.
func (a Asked) Kinds() string {
	var out []string
	for _, kind := range []struct {
		n    int
		what string
	}{{a.Whole, "cards"}, {a.Shares, "shares of a card"}, {a.NoGPU, "no GPU"}} {
		if kind.n > 0 {
			out = append(out, fmt.Sprintf("%d for %s", kind.n, kind.what))
		}
	}
	return "intents ask: " + strings.Join(out, ", ")
}

func summary(r *Result, o *Outcome) string {
	text := fmt.Sprintf("%s placed %d of %d intents", o.Policy, o.Placed, o.Arrived)
	switch {
	case o.Placed == 0:
	case o.Wait.Waited == 0:
		text += ", none of which waited"
	case o.Wait.P90 == 0:
		text += fmt.Sprintf("; nine in ten of them did not wait, the longest waited %s", span(o.Wait.Max))
	case o.Wait.P50 == 0:
		text += fmt.Sprintf("; at least half of them did not wait, one in ten waited %s or more", span(o.Wait.P90))
	default:
		text += fmt.Sprintf("; half of them waited %s or less, one in ten %s or more", span(o.Wait.P50), span(o.Wait.P90))
	}
	if !o.Cost.IsZero() {
		text += fmt.Sprintf("; they cost %s %s", money(o.Cost), r.Currency)
	}
	if o.GPU.Total > 0 {
		text += fmt.Sprintf("; %s of the GPU time was used", strconv.FormatFloat(o.GPU.AllocationMean*100, 'f', 1, 64)+" %")
	}
	if n := o.Refused + o.Waiting; n > 0 {
		text += fmt.Sprintf("; %d were never placed", n)
	}
	return text + "."
}

// change is by how much longer a tenant waits than under another policy.
type change struct {
	tenant    *TenantOutcome
	fair, not int64
}

// fairnessSaid explains what turns by shares cost and give, against the policy that shows
// it best: the planner without them, else the one with the shortest p90 wait.
func fairnessSaid(r *Result, o *Outcome) []string {
	against := unfair(r)
	out := []string{"Among intents of equal priority the planner gives the next turn to the tenant that holds the smallest share of the fleet (dominant resource fairness), so that a tenant that asks for much waits behind those that ask for little."}
	if against == nil {
		if o.Wait.Waited > 0 {
			out = append(out, "What that gives and takes is seen by comparison: --fair both runs the planner without it too.")
		}
		return out
	}
	var text string
	switch long, short := o.Wait.P90, against.Wait.P90; {
	case long == 0 && short == 0:
		text = "Nine in ten of those placed did not wait, nor did they under " + against.Policy
	case long == 0:
		text = fmt.Sprintf("Nine in ten of those placed did not wait, where one in ten waited %s or more under %s", span(short), against.Policy)
	case short == 0:
		text = fmt.Sprintf("One in ten of those placed waited %s or more, where nine in ten did not wait under %s", span(long), against.Policy)
	default:
		text = fmt.Sprintf("One in ten of those placed waited %s or more, against %s under %s", span(long), span(short), against.Policy)
	}
	switch {
	case o.Wait.P90 > against.Wait.P90:
		text += ": the price of fairness in this run"
	default:
		text += ": on the whole fairness cost no waiting in this run"
	}
	out = append(out, text+".")
	changes := changesOf(o, against)
	if len(changes) == 0 {
		return append(out, "No tenant's p90 wait differs.")
	}
	if best := changes[0]; best.fair < best.not {
		out = append(out, fmt.Sprintf("%s, which asked for %s GPU-hours, gains most: its p90 wait is %s and not %s.", best.tenant.Tenant, hours(best.tenant.AskedGPUHours), span(best.fair), span(best.not)))
	}
	if worst := changes[len(changes)-1]; worst.fair > worst.not {
		out = append(out, fmt.Sprintf("%s, which asked for %s GPU-hours, pays most: its p90 wait is %s and not %s.", worst.tenant.Tenant, hours(worst.tenant.AskedGPUHours), span(worst.fair), span(worst.not)))
	}
	if against.Policy != InOrder {
		out = append(out, "--fair both compares with the planner itself without fairness.")
	}
	return out
}

// unfair is the policy to compare with, nil where the planner ran alone.
func unfair(r *Result) *Outcome {
	var found *Outcome
	for i := range r.Policies {
		switch p := &r.Policies[i]; {
		case p.Policy == InOrder:
			return p
		case p.Policy != Planner && (found == nil || p.Wait.P90 < found.Wait.P90):
			found = p
		}
	}
	return found
}

// changesOf are the tenants that wait for longer or shorter, the greatest gain first.
func changesOf(o, against *Outcome) []change {
	var out []change
	for i := range o.Fairness.Tenants {
		t := &o.Fairness.Tenants[i]
		k := slices.IndexFunc(against.Fairness.Tenants, func(x TenantOutcome) bool { return x.Tenant == t.Tenant })
		if k < 0 || t.Placed == 0 || against.Fairness.Tenants[k].Placed == 0 {
			continue
		}
		if c := (change{t, t.Wait.P90, against.Fairness.Tenants[k].Wait.P90}); c.fair != c.not {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return cmp.Compare(a.fair-a.not, b.fair-b.not) })
	return out
}

func hours(f float64) string { return short(f) }
