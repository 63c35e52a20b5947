package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// monthHours is a month of costs by the hour, as elsewhere.
const monthHours = 730

// comment is the plan in markdown with what a reviewer asks next: what it
// costs whom, what would make refused intents fit, and what it was made of.
func comment(in Input, before, after, since, whole *planner.Plan, m report.Meta, r Result) string {
	var extra strings.Builder
	writeUnverified(&extra, in, whole)
	writePolicy(&extra, in, after)
	writeCost(&extra, in, before, after)
	writeFit(&extra, whole)
	held := ""
	if in.Signatures != "" {
		held = escape.Markdown(in.Signatures) + "; "
	}
	fmt.Fprintf(&extra, "\n<sub>%s at %s with %s of %s; %smarket %s; plan `%s`. This comment is kept up to date.</sub>\n",
		verdictWords[r.Verdict], in.Head.Short(), in.Base.Short(), escape.Markdown(in.Branch), held, short(after.Market), r.Digest[:14])
	if len(since.Intents)+len(m.Errors) == 0 && since.HeldBack == "" {
		what := "nothing that is planned changes"
		switch {
		case len(in.Unverified) > 0:
			what = "what is not verified is not acted on"
		case !in.Changes.Inputs():
			what = "it changes nothing that fleetbroker reads"
		}
		return fmt.Sprintf("%s\n**Plan: no change** (%s)\n%s", report.Marker, what, extra.String())
	}
	since.Inputs = in.Head.String()
	m.Branch = "" // the head is no commit of the base's branch
	var b strings.Builder
	limit := report.CommentLimit - extra.Len()
	if err := report.Markdown(&b, since, m, report.MarkdownOptions{Limit: limit}); err != nil {
		panic(err) // a strings.Builder takes everything
	}
	return b.String() + extra.String()
}

var verdictWords = map[Verdict]string{Passed: "Passed", Failed: "**Failed**"}

// writePolicy names what is changed of policy, and what the pull request's own
// policy would decide.
func writePolicy(b *strings.Builder, in Input, after *planner.Plan) {
	if len(in.Changes.Policy) == 0 {
		return
	}
	var files []string
	for _, f := range in.Changes.Policy {
		files = append(files, "`"+escape.Code(f)+"`")
	}
	fmt.Fprintf(b, "\n**Policy changes:** %s. The plan is by the policy of %s; verdicts never go by a pull request's own.", some(files), escape.Markdown(in.Branch))
	if in.Own == nil {
		b.WriteString("\n")
		return
	}
	own := report.Since(after, planner.Decide(in.Own.World))
	if len(own.Intents) == 0 {
		b.WriteString(" By its own policy the same is planned.\n")
		return
	}
	fmt.Fprintf(b, " By its own policy, once merged, these are planned otherwise: %s (%s %s/h).\n",
		report.Counts(own, report.Meta{}), report.Signed(own.HourlyAfter.Sub(own.HourlyBefore)), own.Currency)
}

// writeCost is what tenants pay before and after, for those whose cost changes.
func writeCost(b *strings.Builder, in Input, before, after *planner.Plan) {
	was, is := hourly(before), hourly(after)
	tenants := map[string]bool{}
	for t := range is {
		tenants[t] = true
	}
	for t := range was {
		tenants[t] = true
	}
	var rows strings.Builder
	for _, t := range slices.Sorted(maps.Keys(tenants)) {
		if !in.shows(t) {
			continue
		}
		if was[t].Cmp(is[t]) != 0 {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", escape.Markdown(t), amounts(was[t], is[t]), left(after, t))
		}
	}
	if rows.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "\n| tenant | %[1]s/h | after | %[1]s/month while it runs | after | budget left |\n|-|-:|-:|-:|-:|-|\n%s", after.Currency, rows.String())
	if in.Source == "" {
		fmt.Fprintf(b, "| **fleet** | %s | |\n", amounts(before.HourlyAfter, after.HourlyAfter))
	}
	fmt.Fprintf(b, "\nA month is %d hours at the prices of now. What runs in windows, or for a term, costs less; what is left of a monthly budget is by the forecast, which knows them.\n", monthHours)
}

func amounts(before, after v1alpha1.Decimal) string {
	month := v1alpha1.DecimalFromInt(monthHours)
	return fmt.Sprintf("%s | %s | %s | %s", before.Text(), after.Text(), before.Mul(month).Text(), after.Mul(month).Text())
}

// hourly is the cost of each tenant's contracts after a plan.
func hourly(p *planner.Plan) map[string]v1alpha1.Decimal {
	out := map[string]v1alpha1.Decimal{}
	for _, d := range p.Intents {
		out[d.Tenant] = out[d.Tenant].Add(d.HourlyAfter)
	}
	return out
}

// left is what a tenant's budget leaves after a plan.
func left(p *planner.Plan, tenant string) string {
	for i := range p.Budgets {
		l := &p.Budgets[i]
		if l.Tenant != tenant {
			continue
		}
		var parts []string
		if l.MaxHourly != nil {
			parts = append(parts, fmt.Sprintf("%s of %s %s/h", l.MaxHourly.Sub(l.Hourly).Text(), l.MaxHourly.Text(), p.Currency))
		}
		if l.MaxMonthly != nil {
			parts = append(parts, fmt.Sprintf("%s of %s %s in %s, by the forecast", l.MaxMonthly.Sub(l.Forecast).Text(), l.MaxMonthly.Text(), p.Currency, l.Month))
		}
		if l.Warning != "" {
			parts = append(parts, "**"+escape.Markdown(l.Warning)+"**")
		}
		return strings.Join(parts, "; ")
	}
	return ""
}

// writeFit is what would make fit what is refused or waits.
func writeFit(b *strings.Builder, since *planner.Plan) {
	var lines []string
	for _, d := range since.Intents {
		if d.Action != planner.Refuse && d.Action != planner.Queued {
			continue
		}
		for _, t := range d.Try {
			change, price, priced := strings.Cut(t, "  # ")
			line := fmt.Sprintf("- %s/%s would be placed with `%s`", escape.Markdown(d.Tenant), escape.Markdown(d.Name), escape.Code(change))
			if priced {
				line += " (" + escape.Markdown(price) + ")"
			}
			lines = append(lines, line)
		}
		if len(d.Try) == 0 && len(d.Near) > 0 {
			lines = append(lines, fmt.Sprintf("- %s/%s nearly fits: %s", escape.Markdown(d.Tenant), escape.Markdown(d.Name), escape.Markdown(d.Near[0])))
		}
	}
	const most = 20
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n**What would fit**\n")
	for i, l := range lines {
		if i == most {
			fmt.Fprintf(b, "- and %d more\n", len(lines)-most)
			break
		}
		b.WriteString(l + "\n")
	}
}

func short(s string) string { return s[:min(7, len(s))] }
