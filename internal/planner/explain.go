package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// probe is the intent that Explain asks about.
type probe struct {
	tenant, name string
	// lines of its offers, as they stood when its turn came.
	lines []OfferLine
	done  bool
}

func (p *probe) is(tenant, name string) bool { return p != nil && p.tenant == tenant && p.name == name }

// Explain says everything about one intent: what was understood, and every
// offer once with its score or the requirement it fails, as they stood when
// the intent's turn came in the very decision that Decide makes. An intent
// that holds contracts is explained as if it were to be placed now.
func Explain(w World, tenant, name string) (*Explanation, error) {
	r := newRound(&w)
	in := r.find(tenant, name)
	if in == nil {
		return nil, fmt.Errorf("explain %s/%s: there is no such intent: see `fleetbroker get intents`", tenant, name)
	}
	r.probe = &probe{tenant: tenant, name: name}
	r.decide()
	out := &Explanation{Intent: *in, Offers: r.probe.lines}
	for i := range r.plan.Intents {
		if d := r.plan.Intents[i]; d.Tenant == tenant && d.Name == name {
			out.Decision = *d
		}
	}
	for _, c := range w.Ledger.ByIntent(tenant, name) {
		if c.Status.Phase.Held() && c.Status.Reason != "" {
			out.Troubled = append(out.Troubled, c)
		}
	}
	j := r.jobOf(tenant, name)
	out.Wants = r.wants(j)
	for i := range out.Offers {
		l := &out.Offers[i]
		l.Chosen = slices.ContainsFunc(out.Decision.Contracts, func(c ContractLine) bool {
			return c.Action != Release && c.Provider+"/"+c.Flavor == l.Flavor.Ref()
		})
	}
	if out.Decision.Rejected == nil {
		out.Decision.Rejected = map[string]int{}
		for i := range out.Offers {
			if !out.Offers[i].Fits {
				out.Decision.Rejected[out.Offers[i].Requirement]++
			}
		}
	}
	out.Decision.Considered, out.Decision.Fitting = len(out.Offers), 0
	for i := range out.Offers {
		if out.Offers[i].Fits {
			out.Decision.Fitting++
		}
	}
	return out, nil
}

// capture notes how every offer stands towards the probed intent, the first
// time that it is asked.
func (r *round) capture(j *job, s *match.Class, l *limits) {
	if r.probe == nil || r.probe.done || l.only != nil || !r.probe.is(j.tenantName, j.name) {
		return
	}
	r.probe.done = true
	for _, o := range r.inventory.Offers() {
		line := OfferLine{Flavor: o.Flavor, Free: v1alpha1.Resources{}, Sources: o.Sources}
		for k, n := range o.Free() {
			if _, listed := o.Flavor.Spec.Capacity[r.names.Name(k)]; listed || o.Growth.At(k) > 0 {
				line.Free[r.names.Name(k)] = v1alpha1.AmountOf(max(n, 0))
			}
		}
		line.LatencyMs, line.LatencyKnown = r.match.Latency(j.consumer, o)
		var c match.Candidate
		if known := s.Of(o); known != nil {
			c = *known
			line.Requirement = c.Fails
			if c.Fails == "" {
				line.Requirement = l.breaks(&c)
			}
		} else {
			c = r.match.Priced(s.Request, o, s.Request.Size(o))
			line.Requirement = r.match.FailsFact(s.Request, o)
		}
		line.Priced = r.match.TariffOf(o).Why() == "" && c.FailsMoney != match.ReqPurchase
		line.Hourly, line.Transfer = c.Quote.Now.Decimal(), c.Quote.Transfer.Decimal()
		if line.Fits = line.Requirement == ""; line.Fits {
			line.Score, line.Scores = match.Round4(c.Score), s.Request.Weights.Record(&c)
			line.Scaled = r.scaled(o, c.Size, nil)
			if len(line.Scaled) > 0 {
				line.Detail = "its autoscaler would add " + amountsText(line.Scaled)
			}
		} else {
			line.Detail = r.detail(j, l.rules, s.Request, &c, line.Requirement)
		}
		r.probe.lines = append(r.probe.lines, line)
	}
	slices.SortStableFunc(r.probe.lines, func(a, b OfferLine) int {
		if a.Fits != b.Fits {
			if a.Fits {
				return -1
			}
			return 1
		}
		if a.Fits {
			return cmp.Or(cmp.Compare(min(len(a.Scaled), 1), min(len(b.Scaled), 1)), cmp.Compare(b.Score, a.Score), a.Hourly.Cmp(b.Hourly))
		}
		return cmp.Or(cmp.Compare(tier(a.Requirement), tier(b.Requirement)), strings.Compare(a.Requirement, b.Requirement), strings.Compare(a.Flavor.Ref(), b.Flavor.Ref()))
	})
}

// captureKept asks about an intent that needed nothing: as if what it holds
// were free.
func (r *round) captureKept() {
	if r.probe == nil || r.probe.done {
		return
	}
	j := r.jobOf(r.probe.tenant, r.probe.name)
	if j == nil || !j.tenant.Known {
		return
	}
	m := r.mark()
	for _, c := range j.live {
		r.put(c, nil)
	}
	live := j.live
	j.live = nil
	j.budget(r, int(j.replicas()))
	s := r.shapeOf(j, 0)
	r.capture(j, s, r.limitsFor(j, request{}, s, match.SpendLimits{}, 0))
	j.live = live
	r.rollback(m)
}

// wants is what was understood, in one line.
func (r *round) wants(j *job) string {
	if j == nil {
		return ""
	}
	s := &j.in.Spec
	var parts []string
	for _, alt := range j.alternatives()[:1] {
		if n := j.replicas(); n > 1 {
			parts = append(parts, fmt.Sprintf("%d replicas of", n))
		}
		parts = append(parts, r.requestText(alt))
	}
	text := strings.Join(parts, " ") + " in " + j.consumer
	for i, alt := range j.alternatives()[1:] {
		if len(s.Alternatives[i].Named) > 0 {
			text += ", or else " + r.requestText(alt)
			continue
		}
		text += ", or else " + gpuText(alt.GPU)
	}
	if b := s.Budget; b != nil {
		currency := cmp.Or(b.Currency, r.books.Currency)
		if b.MaxHourly != nil {
			text += "; <= " + b.MaxHourly.Text() + " " + currency + "/h"
		}
		if b.MaxHourlyPerGPU != nil {
			text += "; <= " + b.MaxHourlyPerGPU.Text() + " " + currency + "/h a GPU"
		}
		if b.MaxTotal != nil {
			text += "; <= " + b.MaxTotal.Text() + " " + currency + " in all"
		}
	}
	if d := s.Schedule.Duration; d.Duration > 0 {
		text += "; for " + d.String()
	}
	objective := string(s.Objective)
	switch {
	case s.Weights != nil:
		objective = "own weights"
	case objective == "":
		objective = string(v1alpha1.Balanced)
	}
	return text + "; " + objective + fmt.Sprintf("; priority %d", j.priority)
}

// requestText is one alternative in words.
func (r *round) requestText(q v1alpha1.ResourceRequest) string {
	var parts []string
	if q.GPU != nil {
		parts = append(parts, gpuText(q.GPU))
	}
	v := r.defaults.Clone().Max(nil)
	for name, n := range q.Named {
		v = v.Set(r.names.Of(name), n.Int64())
	}
	parts = append(parts, v1alpha1.AmountOf(v.At(quantity.CPU)).Canonical(v1alpha1.CPU)+" cpu", v1alpha1.AmountOf(v.At(quantity.Memory)).Canonical(v1alpha1.Memory))
	for _, name := range q.Named.Names() {
		if r.names.Of(name) >= quantity.Extended {
			parts = append(parts, q.Named[name].Canonical(name)+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}

// gpuText is the GPUs of an alternative in words.
func gpuText(g *v1alpha1.GPURequest) string {
	if g == nil {
		return "no GPU"
	}
	what := "GPU"
	if len(g.Models) > 0 {
		models := make([]string, len(g.Models))
		for i, m := range g.Models {
			models[i] = cmp.Or(gpunames.Model(m), strings.ToLower(m))
		}
		what = strings.Join(models, " or ")
	} else if g.Vendor != "" {
		what = g.Vendor + " GPU"
	}
	text := fmt.Sprintf("%dx %s", max(g.Count, 1), what)
	if g.Share != nil {
		text = g.Share.String() + " of one " + what
	}
	if g.Profile != "" {
		text += " " + g.Profile
	}
	if !g.Memory.Min.IsZero() {
		text += " >= " + g.Memory.Min.Canonical(v1alpha1.Memory)
	}
	if !g.Memory.Max.IsZero() {
		text += " <= " + g.Memory.Max.Canonical(v1alpha1.Memory)
	}
	return text
}
