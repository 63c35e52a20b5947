package quality

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
)

// A mix is an instance of a family: what is sold, and intents that ask for more than one
// replica on one offer in whole cards. Money is in millionths of the fleet's currency.
type mix struct {
	sold     []sold
	asked    []asked
	tenants  []tenancy
	moving   map[[2]string]int64 // of a GiB from region to region
	currency string
}

// sold is an offer.
type sold struct {
	name, provider, region, zone string
	model                        string
	cardGi                       int64
	// units that are sold, so many of which make a card.
	units, perCard int64
	milli, mebi    int64
	perUnit        int64
	perCore, perGi int64
	pool           string
}

// asked is an intent.
type asked struct {
	replicas      int64
	gpus          int64
	quarters      int64 // of one card, in place of gpus
	milli, mebi   int64
	models        []string
	tenant        int
	by            string // domain over which the replicas are spread
	minDomains    int64
	maxSkew       int64
	together      []int // intents that must have its provider
	apart         []int
	maxHourly     int64
	parts         int64 // it may be put together from so many
	from          string
	sizeGi        int64
	perHourGi     int64
	inOneProvider bool
}

// tenancy is what a tenant may take; 0 is no limit.
type tenancy struct{ gpus, hourly int64 }

// scale is how big the mixes of a size are.
type scale struct{ intents, offers int }

func (s scale) String() string { return fmt.Sprintf("%dx%d", s.intents, s.offers) }

var scales = []scale{{20, 16}, {60, 50}, {200, 150}}

// family makes mixes of one kind.
type family struct {
	name string
	make func(g *generator)
}

// generator makes one mix.
type generator struct {
	*mix
	*rand.Rand
	scale
	kinds        []offer
	one, several []request
}

var families = []family{
	{name: "dimensions", make: func(g *generator) { g.sell(sale{}); g.ask(demand{tight: true}) }},
	{name: "priceparts", make: func(g *generator) { g.sell(sale{parts: true}); g.ask(demand{tight: true}) }},
	{name: "data", make: func(g *generator) { g.sell(sale{parts: true}); g.ask(demand{}); g.data() }},
	{name: "cpumix", make: func(g *generator) { g.sell(sale{parts: true, processors: 40}); g.ask(demand{processors: 50}) }},
	{name: "spread", make: func(g *generator) { g.sell(sale{}); g.ask(demand{replicas: 50}); g.spread() }},
	{name: "split", make: func(g *generator) { g.sell(sale{}); g.ask(demand{large: 25}); g.split() }},
	{name: "together", make: func(g *generator) { g.sell(sale{}); g.ask(demand{}); g.relate() }},
	{name: "gangs", make: func(g *generator) { g.sell(sale{}); g.ask(demand{replicas: 40}); g.gangs() }},
	{name: "tenants", make: func(g *generator) { g.sell(sale{}); g.ask(demand{}); g.limit() }},
	{name: "yen", make: func(g *generator) { g.sell(sale{rate: 150}); g.ask(demand{tight: true}); g.currency = "JPY" }},
	{name: "pools", make: func(g *generator) { g.sell(sale{pools: true}); g.ask(demand{tight: true}) }},
	{name: "shares", make: func(g *generator) { g.sell(sale{quarters: true}); g.ask(demand{shares: 45}) }},
}

// draw makes the mix of a seed. Its price list is its own: kinds of machine as they are
// sold, each provider at its own level, each offer off by some percent.
func (f *family) draw(t testing.TB, s scale, seed int64) *mix {
	t.Helper()
	g := &generator{mix: &mix{currency: "USD", tenants: make([]tenancy, 1)}, Rand: rand.New(rand.NewSource(seed)), scale: s, kinds: readOffers(t)}
	g.one, g.several = readPods(t)
	f.make(g)
	return g.mix
}

// sale is how offers of a family differ from the plainest.
type sale struct {
	parts, pools, quarters bool
	processors, rate       int64
}

// sell makes the offers: one or two machines of a kind, of some providers in four regions
// of two zones.
func (g *generator) sell(s sale) {
	providers := max(g.offers/6, 5)
	level := make([]float64, providers)
	for i := range level {
		level[i] = 0.8 + 0.4*g.Float64()
	}
	rate := max(s.rate, 1)
	byModel := map[string][]offer{}
	var names []string
	for _, k := range g.kinds {
		if byModel[k.model] == nil {
			names = append(names, k.model)
		}
		byModel[k.model] = append(byModel[k.model], k)
	}
	for i := range g.offers {
		p := i % providers
		of := byModel[names[g.Intn(len(names))]]
		k := of[g.Intn(len(of))]
		n := int64(1 + g.Intn(2))
		region := p % 4
		o := sold{
			name: fmt.Sprintf("o%03d", i), provider: fmt.Sprintf("p%02d", p), region: fmt.Sprintf("r%d", region), zone: fmt.Sprintf("r%d-z%d", region, p/4%2),
			model: k.model, cardGi: k.cardMemory.Int64() >> 30, units: k.gpus * n, perCard: 1, milli: k.milli * n, mebi: k.ram * n >> 20,
		}
		price := float64(k.microPerGPU*rate) * level[p] * (0.9 + 0.2*g.Float64())
		switch {
		case s.processors > 0 && g.Intn(100) < int(s.processors):
			o.model, o.units = "", 0
			o.perCore, o.perGi = int64((30_000+20_000*g.Float64())*level[p]), int64((3_000+3_000*g.Float64())*level[p])
		case s.parts:
			o.perCore, o.perGi = int64((20_000+20_000*g.Float64())*level[p]), int64((2_000+3_000*g.Float64())*level[p])
			// What goes with a card is no longer in its price.
			price = max(price-float64(o.perCore*o.milli/1000/o.units+o.perGi*o.mebi/1024/o.units), price/3)
			o.perUnit = int64(price)
		default:
			o.perUnit = int64(price)
		}
		if s.quarters && i%2 == 0 {
			o.perCard, o.units, o.perUnit = 4, o.units*4, o.perUnit/4
		}
		g.sold = append(g.sold, o)
	}
	if s.pools {
		g.pool(providers)
	}
}

// pool cuts half of the providers' offers from one pool of nodes each, whose cores and
// memory are two thirds of their sum.
func (g *generator) pool(providers int) {
	for p := 0; p < providers; p += 2 {
		provider, milli, mebi := fmt.Sprintf("p%02d", p), int64(0), int64(0)
		for i := range g.sold {
			if o := &g.sold[i]; o.provider == provider {
				milli, mebi = milli+o.milli, mebi+o.mebi
			}
		}
		for i := range g.sold {
			if o := &g.sold[i]; o.provider == provider {
				o.pool, o.milli, o.mebi = "nodes", milli*2/3, mebi*2/3
			}
		}
	}
}

// demand is how intents of a family differ from the plainest; percentages of them.
type demand struct {
	tight                               bool
	processors, replicas, large, shares int
}

// ask makes the intents from the trace's pods, of which each would fit somewhere if
// nothing else was there. tight: cores and memory are so much that they bind as often as
// cards do.
func (g *generator) ask(d demand) {
	for range g.intents {
		a := g.drawOne(d)
		for tries := 0; tries < 100 && !g.somewhere(&a); tries++ {
			a = g.drawOne(d)
		}
		g.asked = append(g.asked, a)
	}
}

// somewhere reports whether any offer would hold a replica, or half of one in parts.
func (g *generator) somewhere(a *asked) bool {
	for j := range g.sold {
		if o := &g.sold[j]; a.fits(o) || a.gpus >= leastOfParts && a.suits(o) && a.holds(o, 1, 2) {
			return true
		}
	}
	return false
}

// leastOfParts is from how many cards on intents may be put together from parts, in the
// family of those.
const leastOfParts = 10

// drawOne makes one intent.
func (g *generator) drawOne(d demand) asked {
	from := g.one
	if g.Intn(100) < 35 {
		from = g.several
	}
	q := from[g.Intn(len(from))]
	a := asked{replicas: 1, gpus: q.gpus, milli: q.milli, mebi: q.ram >> 20, models: q.models}
	if d.tight {
		a.milli, a.mebi = a.milli*int64(2+g.Intn(3))/2, a.mebi*int64(2+g.Intn(3))/2
	}
	switch roll := g.Intn(100); {
	case roll < d.processors:
		a.gpus, a.models = 0, nil
	case roll < d.replicas:
		a.replicas = int64(2 + g.Intn(3))
		a.gpus, a.milli, a.mebi = (a.gpus+1)/2, (a.milli+1)/2, (a.mebi+1)/2
	case roll < d.large:
		a.gpus, a.models = int64(leastOfParts+g.Intn(7)), nil
		a.milli, a.mebi = a.gpus*1000*int64(2+g.Intn(5)), a.gpus<<10*int64(4+g.Intn(9)) // whole of a part, too
	case roll < d.shares:
		a.gpus, a.quarters = 0, int64(1+g.Intn(3))
		a.milli, a.mebi = min(a.milli, 4000), min(a.mebi, 16<<10)
	}
	return a
}

// data gives intents data, and each pair of regions a price.
func (g *generator) data() {
	g.moving = map[[2]string]int64{}
	for a := range 4 {
		for b := range 4 {
			if a != b {
				g.moving[[2]string{fmt.Sprintf("r%d", a), fmt.Sprintf("r%d", b)}] = int64(10_000 + g.Intn(100_000))
			}
		}
	}
	for i := range g.asked {
		if a := &g.asked[i]; g.Intn(100) < 60 {
			a.from, a.sizeGi, a.perHourGi = fmt.Sprintf("r%d", g.Intn(4)), int64(g.Intn(5000)), int64(g.Intn(20))
		}
	}
}

// spread spreads those of several replicas.
func (g *generator) spread() {
	for i := range g.asked {
		a := &g.asked[i]
		if a.replicas < 2 {
			continue
		}
		a.by = []string{"region", "zone", "provider"}[g.Intn(3)]
		a.maxSkew = int64(1 + g.Intn(2))
		if g.Intn(2) == 0 {
			a.minDomains = min(int64(2+g.Intn(2)), a.replicas)
		}
	}
}

// split lets those be put together from parts that one offer hardly holds.
func (g *generator) split() {
	for i := range g.asked {
		if a := &g.asked[i]; a.gpus >= leastOfParts {
			a.parts = 2
		}
	}
}

// relate has a third of the intents be together with the one before, and a third apart.
func (g *generator) relate() {
	for i := 1; i < len(g.asked); i++ {
		switch g.Intn(6) {
		case 0, 1:
			if len(g.asked[i-1].together) == 0 && len(g.asked[i-1].apart) == 0 {
				g.asked[i].together = append(g.asked[i].together, i-1)
			}
		case 2, 3:
			if len(g.asked[i-1].together) == 0 {
				g.asked[i].apart = append(g.asked[i].apart, i-1)
			}
		}
	}
}

// gangs has all replicas be with one provider, half of them within a budget.
func (g *generator) gangs() {
	for i := range g.asked {
		a := &g.asked[i]
		if a.replicas < 2 {
			continue
		}
		a.inOneProvider = g.Intn(2) == 0
		if g.Intn(2) > 0 {
			continue
		}
		var prices []int64
		for j := range g.sold {
			if a.fits(&g.sold[j]) {
				prices = append(prices, g.price(i, j, 1))
			}
		}
		if slices.Sort(prices); len(prices) > 0 {
			a.maxHourly = prices[len(prices)/2] * a.replicas
		}
	}
}

// limit shares the intents out among three tenants, one with a quota, one with a budget.
func (g *generator) limit() {
	g.tenants = make([]tenancy, 3)
	var gpus, hourly [3]int64
	for i := range g.asked {
		a := &g.asked[i]
		a.tenant = i % 3
		least := int64(0)
		for j := range g.sold {
			if p := g.price(i, j, 1); a.fits(&g.sold[j]) && (least == 0 || p < least) {
				least = p
			}
		}
		gpus[a.tenant], hourly[a.tenant] = gpus[a.tenant]+a.gpus, hourly[a.tenant]+least
	}
	g.tenants[1].gpus, g.tenants[2].hourly = gpus[1]*2/3, hourly[2]*9/10
}

// fits reports whether an offer would do for a replica, if nothing else was there.
func (a *asked) fits(o *sold) bool { return a.suits(o) && a.holds(o, 1, 1) }

// suits reports whether an offer is of an acceptable kind.
func (a *asked) suits(o *sold) bool {
	if a.gpus+a.quarters == 0 {
		return o.units == 0
	}
	if o.units == 0 || a.gpus > 0 && o.perCard > 1 {
		return false // whole cards alone are whole
	}
	for _, m := range a.models {
		if size := gpunames.Named(m); gpunames.Match(m, o.model) && (size.IsZero() || o.perCard > 1 || size.Int64()>>30 == o.cardGi) {
			return true
		}
	}
	return len(a.models) == 0
}

// holds reports whether an offer holds a share of a replica.
func (a *asked) holds(o *sold, part, of int64) bool {
	u, milli, mebi := a.takes(o, part, of)
	return u <= o.units && milli <= o.milli && mebi <= o.mebi
}

// takes is what a share of a replica takes of an offer.
func (a *asked) takes(o *sold, part, of int64) (units, milli, mebi int64) {
	up := func(n int64) int64 { return (n*part + of - 1) / of }
	units = up(a.gpus) * o.perCard
	if a.quarters > 0 {
		units = (a.quarters*o.perCard + 3) / 4
	}
	return units, up(a.milli), up(a.mebi)
}

// price is what n whole replicas of an intent cost on an offer, an hour.
func (m *mix) price(intent, at int, n int64) int64 { return n * m.share(intent, at, 1, 1) }

// share is what a share of a replica costs.
func (m *mix) share(intent, at int, part, of int64) int64 {
	a, o := &m.asked[intent], &m.sold[at]
	units, milli, mebi := a.takes(o, part, of)
	sum := float64(units*o.perUnit) + float64(milli*o.perCore)/1000 + float64(mebi*o.perGi)/1024
	return int64(sum+0.5) + m.transfer(a, o)
}

// transfer is what moving an intent's data to an offer costs an hour: a month's part of
// what lies there, and what flows.
func (m *mix) transfer(a *asked, o *sold) int64 {
	if a.from == "" || a.from == o.region {
		return 0
	}
	perGi := m.moving[[2]string{a.from, o.region}]
	return perGi*a.perHourGi + (perGi*a.sizeGi+729)/730
}

// penalty is what a replica without a place counts for: each card 20 times the most
// expensive that is sold, each core of one without cards 20 times the most expensive core.
func (m *mix) penalty(intent int) int64 {
	card, core := int64(0), int64(0)
	for i := range m.sold {
		card, core = max(card, m.sold[i].perUnit*m.sold[i].perCard), max(core, m.sold[i].perCore)
	}
	switch a := &m.asked[intent]; {
	case a.quarters > 0:
		return 20 * card * a.quarters / 4
	case a.gpus == 0:
		return 20 * core * max(a.milli/1000, 1)
	default:
		return 20 * card * a.gpus
	}
}
