package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/ahead"
	"github.com/fleetbroker/fleetbroker/internal/planner/contend"
	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
	"github.com/fleetbroker/fleetbroker/internal/planner/match"
	"github.com/fleetbroker/fleetbroker/internal/planner/place"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
	"github.com/fleetbroker/fleetbroker/internal/planner/said"
	"github.com/fleetbroker/fleetbroker/internal/planner/settle"
)

// Explainer writes what people read.
type Explainer struct {
	contend.Contest
	// Probe is the intent that Explain asks about.
	Probe *Probe
	// spare is what is left of the round's work for what only people read.
	spare settle.Spare
}

// Probe is the intent that Explain asks about.
type Probe struct {
	Tenant, Name string
	// Lines of its offers, as they were when its turn came.
	Lines []draft.OfferLine
	// done: they are known, and borrows: from the turn in which it might borrow.
	done, borrows bool
}

// Is reports whether it asks about an intent; nil asks about none.
func (p *Probe) Is(tenant, name string) bool { return p != nil && p.Tenant == tenant && p.Name == name }

// Again is the same question to another round; nil asks nothing.
func (p *Probe) Again() *Probe {
	if p == nil {
		return nil
	}
	return &Probe{Tenant: p.Tenant, Name: p.Name}
}

// Capture notes how every offer relates to the probed intent, the first
// time that it is asked, and again in the first turn in which it may borrow.
func (r *Explainer) Capture(j *draft.Job, s *match.Class, l *place.Limits) {
	r.CaptureAhead(j, s, l, nil)
}

// CaptureAhead is Capture with what an offer is, and why, during the term of a booking; nil
// is as it is now.
func (r *Explainer) CaptureAhead(j *draft.Job, s *match.Class, l *place.Limits, look func(*match.Candidate) (match.Candidate, string)) {
	if r.Probe == nil || r.Probe.done && (r.Probe.borrows || !l.Borrows) || l.Only != nil || !r.Probe.Is(j.TenantName, j.Name) {
		return
	}
	r.Probe.done, r.Probe.borrows, r.Probe.Lines = true, l.Borrows, nil
	for _, o := range r.Inventory.Offers() {
		line := draft.OfferLine{Flavor: o.Flavor, Free: v1alpha1.Resources{}, Sources: o.Sources}
		for k, n := range o.Free() {
			if _, listed := o.Flavor.Spec.Capacity[r.Names.Name(k)]; listed || o.Growth.At(k) > 0 {
				line.Free[r.Names.Name(k)] = v1alpha1.AmountOf(max(n, 0))
			}
		}
		line.LatencyMs, line.LatencyKnown = r.Match.Latency(j.Consumer, o)
		var c match.Candidate
		if known := s.Of(o); known != nil && look != nil {
			c, line.Detail = look(known)
			line.Requirement = c.Fails
		} else if known != nil {
			c = *known
			line.Requirement = c.Fails
			if c.Fails == "" {
				line.Requirement = l.Rejects(&c)
			}
		} else {
			c = r.Match.Priced(s.Request, o, s.Request.Size(o))
			line.Requirement = r.Match.FailsFact(s.Request, o)
		}
		line.Priced = r.Match.TariffOf(o).Why() == "" && c.FailsMoney != match.ReqPurchase
		line.Hourly, line.Transfer = c.Quote.Now.Decimal(), c.Quote.Transfer.Decimal()
		if line.Fits = line.Requirement == ""; line.Fits {
			line.Score, line.Scores = r.Scarce.For(s.Request).Told(s.Request, &c)
			if look == nil {
				line.Scaled = r.Inventory.Scaled(o, c.Size, nil)
			}
			if len(line.Scaled) > 0 {
				line.Detail = "its autoscaler would add " + AmountsText(line.Scaled)
			}
		} else if line.Detail == "" {
			line.Detail = r.detail(j, l.Rules, s.Request, &c, line.Requirement)
		}
		r.Probe.Lines = append(r.Probe.Lines, line)
	}
	slices.SortStableFunc(r.Probe.Lines, func(a, b draft.OfferLine) int {
		if a.Fits != b.Fits {
			if a.Fits {
				return -1
			}
			return 1
		}
		if a.Fits {
			return cmp.Or(cmp.Compare(min(len(a.Scaled), 1), min(len(b.Scaled), 1)), cmp.Compare(b.Score, a.Score), a.Hourly.Cmp(b.Hourly))
		}
		return cmp.Or(cmp.Compare(said.Tier(a.Requirement), said.Tier(b.Requirement)), strings.Compare(a.Requirement, b.Requirement), strings.Compare(a.Flavor.Ref(), b.Flavor.Ref()))
	})
}

// CaptureKept asks about an intent that needed nothing: as if what it holds
// were free. It asks again about one that was placed with others as one: its turn
// came on a provider that was tried, and where all of them are is known now.
func (r *Explainer) CaptureKept() {
	if r.Probe == nil {
		return
	}
	j := r.JobOf(r.Probe.Tenant, r.Probe.Name)
	if j == nil || !j.Tenant.Known {
		return
	}
	if r.Probe.done && len(j.Live) > 0 && len(j.Tasks) == 0 && len(r.Relations().Together[draft.KeyOfJob(j)]) > 0 {
		r.Probe.done, r.Probe.Lines = false, nil
	}
	if r.Probe.done {
		return
	}
	r.Try(func() bool {
		var how place.Request
		for _, c := range j.Live {
			how.MayBorrow = how.MayBorrow || len(c.Spec.Borrowed) > 0
			r.Put(c, nil)
		}
		r.EditJob(j)
		j.Live = nil
		if len(j.Booked) > 0 {
			ahead.Look(&r.Placer, j)
			return false
		}
		q := r.For(j, how, int(j.Replicas()))
		s := r.ClassFor(j, q, 0)
		r.Capture(j, s, r.LimitsFor(j, q, s, match.SpendLimits{}, 0))
		return false
	})
}

// Wants is what was understood, in one line.
func (r *Explainer) Wants(j *draft.Job) string {
	if j == nil {
		return ""
	}
	s := &j.In.Spec
	var parts []string
	for _, alt := range j.Alternatives()[:1] {
		if n := j.Replicas(); n > 1 {
			parts = append(parts, fmt.Sprintf("%d replicas of", n))
		}
		parts = append(parts, r.requestText(alt))
	}
	text := strings.Join(parts, " ") + " in " + j.Consumer
	for i, alt := range j.Alternatives()[1:] {
		if len(s.Alternatives[i].Named) > 0 {
			text += ", or else " + r.requestText(alt)
			continue
		}
		text += ", or else " + gpuText(alt.GPU)
	}
	if b := s.Budget; b != nil {
		currency := cmp.Or(b.Currency, r.Books.Currency)
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
	return text + "; " + objective + fmt.Sprintf("; priority %d", j.Priority)
}

// requestText is one alternative in words.
func (r *Explainer) requestText(q v1alpha1.ResourceRequest) string {
	var parts []string
	if q.GPU != nil {
		parts = append(parts, gpuText(q.GPU))
	}
	v := r.Defaults.Clone().Max(nil)
	for name, n := range q.Named {
		v = v.Set(r.Names.Of(name), n.Int64())
	}
	parts = append(parts, v1alpha1.AmountOf(v.At(quantity.CPU)).Canonical(v1alpha1.CPU)+" cpu", v1alpha1.AmountOf(v.At(quantity.Memory)).Canonical(v1alpha1.Memory))
	for _, name := range q.Named.Names() {
		if r.Names.Of(name) >= quantity.Extended {
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
