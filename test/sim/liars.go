package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/lifecycle"
)

// liars reports whether providers lie and old offers are replayed: in every third
// of the seeds with hostile people.
func (s *sim) liars() bool { return s.seed%6 == 5 }

// liarStep is what providers' owners and Mallory do in such seeds. They draw from
// a source of their own.
func (s *sim) liarStep() {
	if s.healed {
		return
	}
	p := s.providers[s.liar.IntN(len(s.providers))]
	switch s.liar.IntN(4) {
	case 0:
		p.lieAboutPlace()
	case 1:
		s.providers[stated].lieAboutPrice()
	case 2:
		p.refuseAll()
	default:
		s.replayOffer()
	}
	s.after(span(s.liar, 10*time.Second, 2*time.Minute), s.liarStep)
}

// stated is the provider whose Cluster file states its price, in seeds with liars.
const stated = 1

// statedPrice is what it states: more than an intent may cost that waits for a lie.
var statedPrice = v1alpha1.UnitPrices{"cpu": cents(2), "memoryGi": v1alpha1.MustDecimal("0.003"), "gpu": cents(200)}

// stateThePrice makes the agent of that provider honest.
func (s *sim) stateThePrice() {
	for _, o := range s.providers[stated].flavors {
		o.price = maps.Clone(statedPrice)
		if o.gpu == nil {
			delete(o.price, "gpu")
		}
	}
}

// priceText is the price in a provider's Cluster file.
func (p *people) priceText(i int) string {
	if !p.s.liars() || i != stated {
		return ""
	}
	var list []string
	for _, unit := range slices.Sorted(maps.Keys(statedPrice)) {
		list = append(list, fmt.Sprintf("%s: %q", unit, statedPrice[unit]))
	}
	return "  price: {currency: EUR, perHour: {" + strings.Join(list, ", ") + "}}\n"
}

// lieAboutPlace lets an agent report a place that the Cluster file does not state,
// while an intent waits for that very place.
func (p *provider) lieAboutPlace() {
	p.lie("lie about place", "  placement: {regions: [atlantis]}\n", func(f *v1alpha1.Flavor) {
		f.Spec.Location = v1alpha1.Location{Region: "atlantis", Country: "IT"}
	})
}

// lieAboutPrice lets an agent report a price that the Cluster file does not state,
// while an intent waits for one as low.
func (p *provider) lieAboutPrice() {
	p.lie("lie about price", "  budget: {maxHourly: \"0.01\", currency: EUR}\n", func(f *v1alpha1.Flavor) {
		for unit := range f.Spec.Price.PerHour {
			f.Spec.Price.PerHour[unit] = v1alpha1.MustDecimal("0.00001")
		}
	})
}

// lie changes what an agent reports for a while, with a bait: checkEvil holds that
// nothing is placed for it.
func (p *provider) lie(kind, bait string, change func(*v1alpha1.Flavor)) {
	s := p.s
	if p.lies != nil || p.down {
		return
	}
	p.lies = change
	tenant, name, path := s.evilPath()
	s.litter(kind, kind+" by "+p.name, map[string]string{path: fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: ResourceIntent\n"+
		"metadata: {name: %s, namespace: %s}\nspec:\n  resources: {cpu: \"1\", memory: 1Gi, pods: \"10\", ephemeral-storage: 1Gi}\n%s", name, tenant, bait)})
	p.changed()
	s.after(span(s.liar, time.Minute, 5*time.Minute), p.honest)
}

// honest ends a lie.
func (p *provider) honest() {
	if p.lies != nil {
		p.lies = nil
		p.s.log("%s no longer lies", p.name)
		p.changed()
	}
}

// refuseAll lets a provider refuse whatever it is asked for, and offer what it
// refused under another name, for a while.
func (p *provider) refuseAll() {
	if p.refuses {
		return
	}
	p.refuses = true
	p.s.log("%s begins to refuse everything", p.name)
	p.s.after(span(p.s.liar, 5*time.Minute, 15*time.Minute), p.relent)
}

func (p *provider) relent() { p.refuses = false }

// rename gives a flavor on which nothing is granted another name: whoever counts
// denials by flavor does not know it again.
func (p *provider) rename(name string) {
	o := p.flavor(name)
	if o == nil {
		return
	}
	for _, g := range p.grants {
		if g.flavor == name {
			return
		}
	}
	for _, k := range p.s.books.contracts {
		if k.Spec.Provider == p.name && k.Spec.Flavor == name && k.Status.Phase.Held() && p.refused[k.Metadata.Name] == "" {
			return
		}
	}
	p.s.evils++
	o.name = fmt.Sprintf("new%d", p.s.evils)
	maps.DeleteFunc(p.refused, func(_, flavor string) bool { return flavor == name })
	p.s.log("%s names %s %s", p.name, name, o.name)
	p.changed()
}

// checkDenials holds that a provider whose denials the ledger shows after a commit sells
// nothing new by it for as long as it must wait: 10 minutes after the second tenant or hour in
// which it denied something, 20 after the third, 40, an hour. Its flavors' names
// do not count.
func (s *sim) checkDenials(c string, now time.Time, before map[string]*v1alpha1.Contract, changes []change) {
	if !s.liars() {
		return
	}
	left := maps.Clone(before)
	// Where the server refuses a tenant's paths, that a denial is over could not be written.
	maps.DeleteFunc(left, func(_ string, k *v1alpha1.Contract) bool { return s.refused[k.Metadata.Namespace] })
	for _, ch := range changes {
		if ch.after == nil {
			delete(left, ch.before.Metadata.Name)
		} else {
			left[ch.after.Metadata.Name] = ch.after
		}
	}
	for _, ch := range changes {
		if ch.before != nil || ch.after.Spec.Slice == "" {
			continue
		}
		p := ch.after.Spec.Provider
		if until := waits(left, p); until.After(now) && !s.claims(ch.after, before) {
			s.fail("hostile", "commit %s places %s on %s, which denied so much that it sells nothing until %s", c, ch.after.Metadata.Name, p, until.Format(time.TimeOnly))
		}
	}
}

// claims reports whether a new contract takes a warm one's slice over.
func (s *sim) claims(k *v1alpha1.Contract, before map[string]*v1alpha1.Contract) bool {
	for _, other := range before {
		if other.Spec.Slice == k.Spec.Slice && other.Spec.Provider == k.Spec.Provider && s.ofPool(other) {
			return true
		}
	}
	return false
}

func denial(code string) bool {
	return code == lifecycle.CodeRefused || code == lifecycle.CodeSliceDenied
}

// deniedAt is since when a contract's provider denied it, by its phases, and when that was
// last so: zero while it is.
func deniedAt(k *v1alpha1.Contract) (began, last time.Time, denied bool) {
	code, began := k.Status.Reason, k.Status.Since.Time
	if k.Status.Phase != v1alpha1.PhaseDegraded {
		code = ""
		var was v1alpha1.PhaseChange
		for _, h := range k.Status.History {
			switch {
			case h.Phase != v1alpha1.PhaseReleasing:
			case was.Phase == v1alpha1.PhaseDegraded && (denial(was.Reason) || !denial(h.Reason)): // whatever it was released for
				code, began, last = was.Reason, was.At.Time, h.At.Time
			case denial(h.Reason):
				code, began, last = h.Reason, h.At.Time, h.At.Time
			}
			was = h
		}
	}
	return began, last, denial(code)
}

// keepsAway is until when an intent asks a provider for nothing that denied it something:
// ten minutes after that was last so, twice as long after each more.
func (s *sim) keepsAway(in *intent, provider string) (until time.Time) {
	n := 0
	for _, k := range s.books.contracts {
		_, last, denied := deniedAt(k)
		if !denied || k.Spec.Provider != provider || k.Metadata.Namespace != in.tenant || k.Spec.Intent.Name != in.name {
			continue
		}
		if last.IsZero() {
			last = s.wall()
		}
		if n++; last.After(until) {
			until = last
		}
	}
	if n == 0 {
		return time.Time{}
	}
	return until.Add(10 * time.Minute << min(n-1, 7))
}

// waits is until when a provider sells nothing new.
func waits(contracts map[string]*v1alpha1.Contract, provider string) time.Time {
	first := map[string]time.Time{}
	for _, k := range contracts {
		at, _, denied := deniedAt(k)
		if k.Spec.Provider != provider || !denied {
			continue
		}
		slot := fmt.Sprint(k.Metadata.Namespace, " ", at.Unix()/3600)
		if was, known := first[slot]; !known || at.Before(was) {
			first[slot] = at
		}
	}
	var last time.Time
	for _, at := range first {
		if at.After(last) {
			last = at
		}
	}
	if len(first) < 2 {
		return time.Time{}
	}
	return last.Add([]time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour}[min(len(first)-2, 3)])
}
