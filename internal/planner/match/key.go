package match

import (
	"maps"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

func (b *keyBuffer) request(q *v1alpha1.ResourceRequest) {
	b.resources(q.Named)
	if p := q.PerPod; p != nil {
		b.int(-2, p.GPUs)
		b.resources(p.Named)
	}
	g := q.GPU
	if g == nil {
		b.int(-1)
		return
	}
	b.int(int64(g.Count), g.Memory.Min.Int64(), g.Memory.Max.Int64())
	b.decimal(g.Share)
	b.texts(g.Models)
	b.text(g.Vendor, g.Architecture, g.Tier, g.Interconnect, g.ComputeCapability, g.Profile, g.Sharing)
}

func (b *keyBuffer) placement(p *v1alpha1.Placement) {
	for _, list := range [...][]string{p.Providers.Allow, p.Providers.Deny, p.Regions, p.Zones, p.Architectures, p.Together, p.Apart} {
		b.texts(list)
	}
	b.int(flag(p.AllowAccelerators))
}

// Key holds everything that newClass looks at: intents with equal keys
// share a class, in this round and in later ones. What is added to an intent
// and changes which offers fit, at what size, price or score, belongs in here
// (TestKey_AsksForEveryField asks for every field). The result is valid until the next
// call.
func (m *Matcher) Key(a *Ask) []byte {
	b := m.key[:0]
	s := &a.Intent.Spec
	b.text(a.Intent.Metadata.Namespace, a.Consumer, s.FlavorType, string(s.Objective))
	b.request(a.Request)
	b.placement(&s.Placement)
	b.int(int64(len(s.Purchase)))
	for _, c := range s.Purchase {
		b.text(string(c))
	}
	p := &a.Money
	b.int(a.Replicas, int64(p.Hourly), int64(p.HourlySpot), int64(p.PerGPU), int64(p.Total), a.Seconds)
	b.int(flag(p.Limited), flag(s.Weights != nil), flag(s.Data != nil), flag(s.Split != nil))
	if w := s.Weights; w != nil {
		for t := range terms {
			b.int(int64(math.Float64bits(terms[t].stated(w)))) //nolint:gosec // the bits, whatever they mean
		}
	}
	if d := s.Data; d != nil {
		b.text(d.Region)
		b.int(d.SizeGi, d.EgressGiPerHour, a.Units, a.Of)
	}
	if d := s.Split; d != nil {
		b.int(int64(d.MaxParts), int64(d.MinGPU))
	}
	m.keyRequirements(&b, a.Intent)
	m.conditions(a, &b)
	m.key = b
	return b
}

// conditions adds what conditions written in CEL may look at.
func (m *Matcher) conditions(a *Ask, b *keyBuffer) {
	reads := a.Intent.Where != nil && readsIntent(a.Intent.Where)
	any := a.Intent.Where != nil
	for i := range m.facts.Policies {
		if p := &m.facts.Policies[i]; p.Binds(a.Intent.Metadata.Namespace) {
			any, reads = true, reads || readsIntent(p.Predicate)
		}
	}
	if any {
		b.request(&a.Intent.Spec.Resources) // flavor.price.hourly is the price of that
	}
	if reads {
		// Two intents that ask for the same may still differ.
		d := &a.Intent.Metadata
		b.text(d.Name, a.Intent.Digest)
		for _, k := range slices.Sorted(maps.Keys(d.Annotations)) {
			b.text(k, d.Annotations[k])
		}
	}
}
