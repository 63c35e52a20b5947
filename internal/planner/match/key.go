package match

import (
	"maps"
	"math"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/keys"
)

func keyRequest(b *keys.Buffer, q *v1alpha1.ResourceRequest) {
	b.Resources(q.Named)
	b.Resources(q.PerPod.All())
	g := q.GPU
	if g == nil {
		b.Int(-1)
		return
	}
	b.Int(int64(g.Count), g.Memory.Min.Int64(), g.Memory.Max.Int64())
	b.Decimal(g.Share)
	b.Texts(g.Models)
	b.Text(g.Vendor, g.Architecture, g.Tier, g.Interconnect, g.ComputeCapability, g.Profile, g.Sharing)
}

func keyPlacement(b *keys.Buffer, p *v1alpha1.Placement) {
	for _, list := range [...][]string{p.Providers.Allow, p.Providers.Deny, p.Regions, p.Zones, p.Architectures, p.Together, p.Apart} {
		b.Texts(list)
	}
	b.Int(keys.Flag(p.AllowAccelerators))
}

// Key holds everything that newClass looks at: intents with equal keys
// share a class, in this round and in later ones. What is added to an intent
// and changes which offers fit, at what size, price or score, belongs in here
// (TestKey_AsksForEveryField asks for every field). The result is valid until the next
// call.
func (m *Matcher) Key(a *Ask) []byte {
	b := m.key[:0]
	s := &a.Intent.Spec
	b.Text(a.Intent.Metadata.Namespace, a.Consumer, s.FlavorType, string(s.Objective))
	keyRequest(&b, a.Request)
	b.Resources(s.PerPod.All())
	keyPlacement(&b, &s.Placement)
	b.Int(int64(len(s.Purchase)))
	for _, c := range s.Purchase {
		b.Text(string(c))
	}
	p := &a.Money
	b.Int(a.Replicas, int64(p.Hourly), int64(p.HourlySpot), int64(p.PerGPU), int64(p.Total), a.Seconds)
	b.Int(keys.Flag(p.Limited), keys.Flag(s.Weights != nil), keys.Flag(s.Data != nil), keys.Flag(s.Split != nil))
	if w := s.Weights; w != nil {
		for t := range terms {
			b.Int(int64(math.Float64bits(terms[t].stated(w)))) //nolint:gosec // the bits, whatever they mean
		}
	}
	if d := s.Data; d != nil {
		b.Text(d.Region)
		b.Int(d.SizeGi, d.EgressGiPerHour, a.Units, a.Of)
	}
	if d := s.Split; d != nil {
		b.Int(int64(d.MaxParts), int64(d.MinGPU))
	}
	m.keyRequirements(&b, a.Intent)
	m.conditions(a, &b)
	m.key = b
	return b
}

// conditions adds what conditions written in CEL may look at.
func (m *Matcher) conditions(a *Ask, b *keys.Buffer) {
	reads := a.Intent.Where != nil && readsIntent(a.Intent.Where)
	any := a.Intent.Where != nil
	for i := range m.facts.Policies {
		if p := &m.facts.Policies[i]; p.Binds(a.Intent.ResourceIntent, a.Consumer) {
			any, reads = true, reads || readsIntent(p.Predicate)
			if len(p.Match.Labels) > 0 { // tenant and consumer are in the key
				b.Int(int64(i))
			}
		}
	}
	if any {
		keyRequest(b, &a.Intent.Spec.Resources) // flavor.price.hourly is the price of that
	}
	if reads {
		// Two intents that ask for the same may still differ.
		d := &a.Intent.Metadata
		b.Text(d.Name, a.Intent.Digest)
		for _, k := range slices.Sorted(maps.Keys(d.Annotations)) {
			b.Text(k, d.Annotations[k])
		}
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
