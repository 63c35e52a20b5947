package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// provider is a cluster that gives, and its agent.
type provider struct {
	s       *sim
	name    string
	region  string
	flavors []*offered
	// grants are what Liqo has granted there, by slice.
	grants map[string]*grant
	// refused are the flavors of contracts that its agent does not honour.
	refused map[string]string
	lies    func(*v1alpha1.Flavor) // what its agent reports otherwise than it is
	refuses bool                   // whatever it is asked for
	down    bool                   // silent, and grants nothing
	gone    bool                   // for good
	// epoch of the agent's life and number of its list.
	epoch, n uint64
	listed   string // the list that n numbers
	sent     []message
	// Where daemons share a store: whom its agent reports to, what was acknowledged
	// last, and whether it is about to report again.
	at           *daemon
	acknowledged wire.Generation
	retries      bool
	enforcing    enforcing
}

// offered is one flavor of a provider.
type offered struct {
	name      string
	capacity  v1alpha1.Resources
	used      v1alpha1.Resources
	gpu       *v1alpha1.FlavorGPU
	price     v1alpha1.UnitPrices
	partition *v1alpha1.Partition
	pool      string
	class     string
	// nodes on which it lies, where its agent reports them.
	nodes []*node
	// squeezed: it shrank or its owner took more, so that it may be oversold
	// through nobody's fault.
	squeezed bool
}

type grant struct {
	flavor    string
	resources v1alpha1.Resources // in the flavor's names
	since     time.Duration
}

// message is a report under way.
type message struct {
	epoch, n uint64
	flavors  []v1alpha1.Flavor
	honoured uint64
	made     time.Duration
}

func newProvider(s *sim, i int) *provider {
	p := &provider{s: s, name: providerName(i), region: regions[i%len(regions)], grants: map[string]*grant{}, refused: map[string]string{}, epoch: 1000}
	r := s.rng
	for f := range 1 + r.IntN(3) {
		o := &offered{
			capacity: v1alpha1.Resources{
				v1alpha1.CPU:              v1alpha1.AmountOf(int64(32<<r.IntN(3)) * 1000),
				v1alpha1.Memory:           v1alpha1.AmountOf(int64(128<<r.IntN(3)) << 30),
				v1alpha1.Pods:             v1alpha1.AmountOf(220),
				v1alpha1.EphemeralStorage: v1alpha1.AmountOf(1 << 40),
			},
			used:  v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(int64(r.IntN(8)) * 1000), v1alpha1.Memory: v1alpha1.AmountOf(int64(r.IntN(16)) << 30)},
			price: v1alpha1.UnitPrices{"cpu": cents(1 + r.IntN(4)), "memoryGi": v1alpha1.MustDecimal("0.003")},
			class: pick(r, "fleetbroker", "default"),
		}
		if f == 0 || r.IntN(2) == 0 {
			o.addCards(r.IntN(len(models)), 2<<r.IntN(4), r.IntN(4) == 0)
			o.price["gpu"] = cents(50 + r.IntN(400))
		}
		if r.IntN(4) == 0 {
			o.partition = &v1alpha1.Partition{
				Min:  v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(2000), v1alpha1.Memory: v1alpha1.AmountOf(4 << 30)},
				Step: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(2000), v1alpha1.Memory: v1alpha1.AmountOf(4 << 30)},
			}
		}
		o.name = fmt.Sprintf("pool%d", f)
		p.flavors = append(p.flavors, o)
	}
	return p
}

func cents(n int) v1alpha1.Decimal { return v1alpha1.MustDecimal(fmt.Sprintf("%d.%02d", n/100, n%100)) }

// addCards gives a flavor cards of a model; shared ones are sold by halves.
func (o *offered) addCards(model, count int, shared bool) {
	m := models[model]
	o.gpu = &v1alpha1.FlavorGPU{
		Vendor: m.vendor, Model: m.name, Memory: v1alpha1.MemorySize{Amount: v1alpha1.Quantity(m.memory).Amount(v1alpha1.Memory)},
		ResourceName: "nvidia.com/gpu", UnitsPerGPU: 1, Sharing: "none",
	}
	if shared {
		o.gpu.UnitsPerGPU, o.gpu.Sharing = 2, "time-slicing"
		count *= 2
	}
	o.capacity[v1alpha1.GPU] = v1alpha1.AmountOf(int64(count))
}

// list is what the agent reports now.
func (p *provider) list() []v1alpha1.Flavor {
	var out []v1alpha1.Flavor
	for _, o := range p.flavors {
		f := v1alpha1.Flavor{
			TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
			Metadata: v1alpha1.Metadata{Name: o.name, Namespace: p.name},
			Spec: v1alpha1.FlavorSpec{
				Type: "K8Slice", Architecture: "amd64", Capacity: o.capacity.Clone(), Used: o.used.Clone(),
				Price:    &v1alpha1.Price{Currency: "EUR", PerHour: maps.Clone(o.price)},
				Location: v1alpha1.Location{Region: p.region}, Class: o.class, Pool: o.pool,
			},
		}
		if o.gpu != nil {
			gpu := *o.gpu
			f.Spec.GPU = &gpu
		}
		if o.partition != nil {
			f.Spec.Partition = &v1alpha1.Partition{Min: o.partition.Min.Clone(), Step: o.partition.Step.Clone()}
		}
		for _, name := range slices.Sorted(maps.Keys(p.grants)) {
			if g := p.grants[name]; g.flavor == o.name {
				if f.Spec.Held == nil {
					f.Spec.Held = map[string]v1alpha1.Resources{}
				}
				f.Spec.Held[name] = g.resources.Clone()
			}
		}
		for _, contract := range slices.Sorted(maps.Keys(p.refused)) {
			if p.refused[contract] == o.name {
				if f.Spec.Refused == nil {
					f.Spec.Refused = map[string]string{}
				}
				f.Spec.Refused[contract] = "other workloads came first"
			}
		}
		p.tellNodes(o, &f)
		if p.lies != nil {
			p.lies(&f)
		}
		out = append(out, f)
	}
	return out
}

// refuse lets an agent that enforces say that it does not honour a contract,
// for a while.
func (p *provider) refuse(contract, flavor string) {
	if o := p.flavor(flavor); o == nil || o.class != "fleetbroker" || p.refused[contract] != "" {
		return
	}
	p.refused[contract] = flavor
	p.s.log("%s refuses %s", p.name, contract)
	p.changed()
	p.s.after(span(p.s.rng, 30*time.Second, 3*time.Minute), func() {
		delete(p.refused, contract)
		p.changed()
	})
}

// beat is the agent's regular report, for ever.
func (p *provider) beat() {
	if p.gone {
		return
	}
	p.report()
	p.s.after(p.s.knobs.report, p.beat)
}

// changed reports soon: agents do so within a second of a change.
func (p *provider) changed() { p.s.after(span(p.s.rng, 10*time.Millisecond, time.Second), p.report) }

// report sends the present list to every daemon. On its way it may be lost,
// come late, or come twice.
func (p *provider) report() {
	if p.down {
		return
	}
	p.hear()
	now, honoured := p.list(), p.honoured()
	if honoured > 0 {
		p.s.counts.Honoured++
	}
	if text := fmt.Sprint(now, honoured); text != p.listed || p.n == 0 {
		p.n++
		p.listed = text
	}
	m := message{p.epoch, p.n, now, honoured, p.s.tl.now}
	if p.sent = append(p.sent, m); len(p.sent) > 4 {
		p.sent = p.sent[1:]
	}
	if p.s.shared != nil {
		p.send(m)
		return
	}
	r, k := p.s.rng, &p.s.knobs
	for _, d := range p.s.daemons {
		if !p.s.healed && r.Float64() < k.lostReports {
			continue
		}
		life := d.life
		p.s.after(span(r, time.Millisecond, 200*time.Millisecond), func() { p.deliver(d, life, m) })
		if p.s.healed || r.Float64() >= k.lostReports/2 {
			continue
		}
		old := p.sent[r.IntN(len(p.sent))]
		p.s.after(span(r, time.Second, time.Minute), func() { p.deliver(d, life, old) })
	}
}

// restart begins a new life of the agent.
func (p *provider) restart() {
	p.epoch++
	p.n, p.listed = 0, ""
	p.enforcing.book, p.enforcing.standing = nil, nil // the number alone outlives it
	p.s.log("%s agent restarts, epoch %d", p.name, p.epoch)
}

// fail silences the provider for a while.
func (p *provider) fail(d time.Duration) {
	if p.down {
		return
	}
	p.down = true
	p.s.log("%s is silent for %s", p.name, d.Truncate(time.Second))
	p.s.after(d, p.back)
}

func (p *provider) back() {
	if p.gone || !p.down {
		return
	}
	p.down = false
	if p.s.rng.IntN(2) == 0 {
		p.restart()
	}
	p.s.log("%s is back", p.name)
	p.report()
}

// resize shrinks or grows a flavor, or what its owner uses of it.
func (p *provider) resize() {
	r := p.s.rng
	o := p.flavors[r.IntN(len(p.flavors))]
	if len(o.nodes) > 0 {
		p.resizeNodes(o)
		return
	}
	name := v1alpha1.CPU
	if o.gpu != nil && r.IntN(2) == 0 {
		name = v1alpha1.GPU
	}
	have := o.capacity[name].Int64()
	unit := int64(1)
	if name == v1alpha1.CPU {
		unit = 1000
	}
	switch r.IntN(3) {
	case 0:
		o.capacity[name] = v1alpha1.AmountOf(have / unit / 2 * unit)
		o.squeezed = true
	case 1:
		o.capacity[name] = v1alpha1.AmountOf(have * 2)
	default:
		o.used[name] = v1alpha1.AmountOf(r.Int64N(have/unit+1) * unit)
		o.squeezed = true
	}
	p.s.log("%s/%s %s: capacity %s, used %s", p.name, o.name, name, o.capacity[name].Canonical(name), o.used[name].Canonical(name))
	p.changed()
}

// give grants a slice what it asks for: Liqo has no inventory. It returns
// whether anything changed.
func (p *provider) give(slice, flavor string, asked v1alpha1.Resources) bool {
	o := p.flavor(flavor)
	in := v1alpha1.Resources{}
	for name, n := range asked {
		if o != nil && o.gpu != nil && name == o.gpu.ResourceName {
			name = v1alpha1.GPU
		}
		in[name] = n
	}
	if g := p.grants[slice]; g != nil && g.resources.Equal(in) && g.flavor == flavor {
		return false
	}
	p.grants[slice] = &grant{flavor, in, p.s.tl.now}
	p.changed()
	return true
}

// take ends a grant.
func (p *provider) take(slice string) {
	if p.grants[slice] == nil {
		return
	}
	delete(p.grants, slice)
	p.s.log("%s no longer runs anything for %s", p.name, slice)
	p.changed()
}

func (p *provider) flavor(name string) *offered {
	for _, o := range p.flavors {
		if o.name == name {
			return o
		}
	}
	return nil
}
