package report

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// view is a plan with its contracts by name.
type view struct {
	plan          *planner.Plan
	before, after map[string]*v1alpha1.Contract
}

func newView(p *planner.Plan) *view {
	v := &view{plan: p, before: map[string]*v1alpha1.Contract{}, after: map[string]*v1alpha1.Contract{}}
	for i := range p.Contracts {
		if c := p.Contracts[i].Before; c != nil {
			v.before[c.Metadata.Name] = c
		}
		if c := p.Contracts[i].After; c != nil {
			v.after[c.Metadata.Name] = c
		}
	}
	return v
}

// afterName is what the head line shows after the name: where it was, where
// it goes, or how long it waits. Placements have it on a line of their own.
func (pn *pen) afterName(d *planner.Decision) string {
	switch d.Action {
	case planner.Move:
		return route(d.Contracts)
	case planner.Resize, planner.Preempt:
		return strings.Join(flavors(d.Contracts), ", ")
	case planner.Queued:
		return waiting(pn.plan, d)
	case planner.Frozen:
		if n := len(d.Contracts); n > 0 {
			return "keeps " + plural(n, "contract")
		}
	}
	return ""
}

// route is "oslo/l40s -> milan/l40s", each once.
func route(lines []planner.ContractLine) string {
	var out []string
	seen := map[string]bool{}
	for i := range lines {
		c := &lines[i]
		if c.From == "" {
			continue
		}
		if r := c.From + " -> " + ref(c); !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return strings.Join(out, ", ")
}

// flavors of contracts, each once, in order.
func flavors(lines []planner.ContractLine) []string {
	var out []string
	seen := map[string]bool{}
	for i := range lines {
		if r := ref(&lines[i]); !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	sort.Strings(out)
	return out
}

func ref(c *planner.ContractLine) string { return c.Provider + "/" + c.Flavor }

// kept are the contracts that an intent has after a decision.
func kept(d *planner.Decision) []planner.ContractLine {
	var out []planner.ContractLine
	for i := range d.Contracts {
		if a := d.Contracts[i].Action; a != planner.Release && a != planner.Preempt {
			out = append(out, d.Contracts[i])
		}
	}
	return out
}

// waiting is "for 12m, gives up in 23h48m", and before it what the intent holds while it
// waits for the rest.
func waiting(p *planner.Plan, d *planner.Decision) string {
	var parts []string
	if n := len(kept(d)); n > 0 {
		parts = append(parts, "holds "+plural(n, "contract"))
	}
	if waited := p.Now.Sub(d.Since.Time); !d.Since.IsZero() && waited > 0 {
		parts = append(parts, "for "+Age(waited))
	} else {
		parts = append(parts, "from now on")
	}
	if d.Position > 1 {
		parts = append(parts, fmt.Sprintf("number %d in line", d.Position))
	}
	switch {
	case d.Expected.After(p.Now.Time):
		parts = append(parts, "expected in "+Age(d.Expected.Sub(p.Now.Time)))
	case !d.Expected.IsZero():
		parts = append(parts, "expected soon")
	case d.Estimated:
		parts = append(parts, "no end in sight")
	}
	if !d.GivesUp.IsZero() {
		parts = append(parts, "gives up in "+Age(d.GivesUp.Sub(p.Now.Time)))
	}
	return strings.Join(parts, ", ")
}

// where lists the contracts of a placement or a resize, equal ones together.
func (pn *pen) where(d *planner.Decision) []string {
	switch d.Action {
	case planner.Place, planner.Find, planner.Resize, planner.Move, planner.Queued:
	default:
		if !pn.o.Wide {
			return nil
		}
	}
	var out []clause
	times := map[clause]int{}
	for i := range d.Contracts {
		line := pn.contract(d, &d.Contracts[i])
		if line == (clause{}) {
			continue
		}
		if times[line]++; times[line] == 1 {
			out = append(out, line)
		}
	}
	lines := make([]string, len(out))
	for i, c := range out {
		if n := times[c]; n > 1 {
			c.what = fmt.Sprintf("%d replicas, each %s", n, c.what)
		}
		lines[i] = c.where + strings.Repeat(" ", 4*min(len(c.where), 1)*min(len(c.what), 1)) + c.what
	}
	return lines
}

// clause is where a contract is and what it gives.
type clause struct{ where, what string }

// contract is one contract of a decision; empty when the head line shows
// all there is.
func (pn *pen) contract(d *planner.Decision, c *planner.ContractLine) clause {
	what := amounts(c, pn.o.Wide) + onNodes(c)
	if t := term(c.Term); t != "" {
		what += ", " + t
	}
	switch {
	case c.Phase == v1alpha1.PhaseBooked && c.Action == planner.Place:
		what += ", booked from " + c.Term.Start.UTC().Format(time.RFC3339)
	case c.Term.Yields && !c.Term.End.IsZero():
		what += " until " + c.Term.End.UTC().Format(time.RFC3339) + ", booked"
	}
	where := ref(c)
	if c.Consumer != "" {
		where += " -> " + c.Consumer
	}
	if pn.o.Wide && len(c.Unpriced) > 0 {
		what += ", costs nothing: " + strings.Join(c.Unpriced, ", ")
	}
	switch {
	case pn.o.Wide:
		if c.Phase != "" {
			where += "  " + string(c.Phase)
		}
		return clause{c.Name + "  " + where, what}
	case d.Action == planner.Move && c.From != "":
		return clause{}
	case d.Action == planner.Resize && c.Action == planner.Resize:
		return clause{"", pn.was(c) + what}
	case c.Action == planner.Keep && d.Action == planner.Queued:
		return clause{where, what} // it waits for the rest
	case c.Action == planner.Keep || c.Action == planner.Release:
		return clause{}
	}
	return clause{where, what}
}

// was is what a resized contract gave before, "2x nvidia-l4, 8 cpu -> ".
func (pn *pen) was(c *planner.ContractLine) string {
	before := pn.before[c.Name]
	if before == nil {
		return ""
	}
	old := planner.ContractLine{Resources: before.Spec.Resources, GPUs: before.Spec.GPUs}
	if s := amounts(&old, false); s != amounts(c, false) {
		return s + " -> "
	}
	return ""
}

// why is the reason of a decision in one sentence.
func (v *view) why(d *planner.Decision) string {
	text, _ := v.reason(d)
	return text
}

// reason is why, and whether that counts the offers by what they fail.
func (v *view) reason(d *planner.Decision) (text string, counts bool) {
	a := v.accountOf(d)
	if d.Action == planner.Queued && d.Reason == "" && len(a.rejected) > 0 {
		return planner.NothingFits(a.considered, a.rejected), true
	}
	best := ""
	if d.Action == planner.Place || d.Action == planner.Find {
		best = v.bestOf(d, a)
	}
	switch {
	case best == "":
		return d.Reason, d.Counts()
	case d.Also != "":
		return best + "; " + d.Also, false
	case d.Reason == "" || d.Code == "":
		// A placement that needs no explaining has no code, and its sentence
		// is made here.
		return best, false
	}
	return best + "; " + d.Reason, d.Counts()
}

// account is what became of the offers that a decision looked at: considered =
// fitting + all rejected.
type account struct {
	rejected            map[string]int
	considered, fitting int
}

// accountOf is the decision's own, or for a placement that of its first
// contract, which records it for the ledger.
func (v *view) accountOf(d *planner.Decision) account {
	a := account{d.Rejected, d.Considered, d.Fitting}
	if a.fitting > 0 || len(a.rejected) > 0 {
		return a
	}
	c := newest(d)
	if c == nil {
		return a
	}
	after := v.after[c.Name]
	if after == nil || after.Decision.Considered == 0 {
		return a
	}
	a = account{after.Decision.Rejected, after.Decision.Considered, after.Decision.Considered}
	for _, n := range a.rejected {
		a.fitting -= n
	}
	return a
}

// newest is the first contract that the decision places.
func newest(d *planner.Decision) *planner.ContractLine {
	for i := range d.Contracts {
		if a := d.Contracts[i].Action; a == planner.Place || a == planner.Find || a == planner.Move {
			return &d.Contracts[i]
		}
	}
	return nil
}

// bestOf is "best of 12 that fit, score 0.87; next lyon/h100 0.81, +1.30 EUR/h".
func (v *view) bestOf(d *planner.Decision, a account) string {
	c := newest(d)
	if c == nil || a.fitting <= 0 {
		return ""
	}
	var s string
	switch {
	case c.Part:
		s = fmt.Sprintf("put together from parts, score %.2f", c.Score)
	case a.considered == 1:
		s = fmt.Sprintf("the only offer, score %.2f", c.Score)
	case a.fitting == 1:
		s = fmt.Sprintf("the only one of %d that fits, score %.2f", a.considered, c.Score)
	default:
		s = fmt.Sprintf("best of %d that fit, score %.2f", a.fitting, c.Score)
	}
	if d.Alternative > 0 {
		s = fmt.Sprintf("alternative %d; %s", d.Alternative, s)
	}
	hourly := c.Hourly
	if c.HourlyNow != nil {
		hourly = *c.HourlyNow
		s += fmt.Sprintf("; %s %s/h at the moment, by a price window", hourly.Text(), currency(v.plan, c))
	}
	if !c.Transfer.IsZero() {
		s += fmt.Sprintf("; moving its data costs %s %s/h more", c.Transfer.Text(), currency(v.plan, c))
	}
	if c.RunnerUp != nil {
		s += fmt.Sprintf("; next %s %.2f, %s %s/h", c.RunnerUp.Flavor, c.RunnerUp.Score, signed(c.RunnerUp.Hourly.Sub(hourly.Add(c.Transfer))), currency(v.plan, c))
	}
	if c.Left != "" {
		s += ", which is left to those who usually come and can use little else"
	}
	return s
}

func currency(p *planner.Plan, c *planner.ContractLine) string {
	if c.Currency != "" {
		return c.Currency
	}
	return p.Currency
}

// notShown is the counts on a line of their own; "" where the sentence has them
// already (nothing fits) or they do not belong.
func (v *view) notShown(d *planner.Decision) string {
	switch d.Action {
	case planner.Place, planner.Find, planner.Resize, planner.Refuse, planner.Queued:
	default:
		return ""
	}
	if _, counts := v.reason(d); counts {
		return ""
	}
	return reasons(v.accountOf(d).rejected)
}

// total is the decision's hourly cost after, minus before.
func total(d *planner.Decision) v1alpha1.Decimal { return d.HourlyAfter.Sub(d.HourlyBefore) }
