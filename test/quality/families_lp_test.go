package quality

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// The exact models of the families. Each rule of an intent is a constraint:
//
//	y_i            intents of group i that are placed: 0 or 1, or their number where equal ones are one
//	n_i_j          replicas of them whole on offer j
//	z_i, k_i_j     1 where i is put together from two parts, and the units of it that are on j; s_i_j that there are any
//	v_i_d, m_i     1 where replicas of i are in domain d; the replicas in the least used one
//
//	min  Σ price_i_j·n_i_j + price of a unit·k_i_j − penalty_i·y_i   (and all penalties)
//
// The rule of parts (none where one offer holds the replica) goes by what is free next to
// the others: where z_i is 1, each offer that would hold i is short of something.

// program writes a mix as an integer program.
type program struct {
	*mix
	*bufio.Writer
	// groups are intents that are one variable; takes are terms of what is on each offer.
	groups [][]int
	terms  int
	rows   int
	ints   []string
	bools  []string
}

func (m *mix) writeLP(to io.Writer) error {
	x := &program{mix: m, Writer: bufio.NewWriter(to), groups: m.equals()}
	x.objective()
	fmt.Fprint(x, "\nSubject To\n")
	for g := range x.groups {
		x.whole(g)
		x.rules(g)
	}
	x.capacity()
	x.limits()
	for _, section := range []struct {
		name string
		vars []string
	}{{"General", x.ints}, {"Binary", x.bools}} {
		if len(section.vars) == 0 {
			continue
		}
		fmt.Fprintln(x, section.name)
		slices.Sort(section.vars)
		for _, v := range slices.Compact(section.vars) {
			fmt.Fprintln(x, " "+v)
		}
	}
	fmt.Fprint(x, "End\n")
	return x.Flush()
}

// equals are the intents by what they ask for: those that have nothing to do with others
// are one group.
func (m *mix) equals() (out [][]int) {
	at := map[string]int{}
	named := map[int]bool{}
	for i := range m.asked {
		for _, k := range append(m.asked[i].together, m.asked[i].apart...) {
			named[k] = true
		}
	}
	for i := range m.asked {
		a := &m.asked[i]
		key := fmt.Sprint(*a)
		if k, known := at[key]; known && a.replicas == 1 && a.parts == 0 && len(a.together)+len(a.apart) == 0 && !named[i] {
			out[k] = append(out[k], i)
			continue
		}
		if !named[i] {
			at[key] = len(out)
		}
		out = append(out, []int{i})
	}
	return out
}

func (x *program) term(by float64, name string) {
	if by == 0 {
		return
	}
	if x.terms++; x.terms%6 == 0 {
		fmt.Fprint(x, "\n")
	}
	sign := "+"
	if by < 0 {
		sign, by = "-", -by
	}
	fmt.Fprintf(x, " %s %s %s", sign, strconv.FormatFloat(by, 'f', -1, 64), name)
}

func (x *program) row() {
	x.rows++
	fmt.Fprintf(x, " c%d:", x.rows)
}

func (x *program) end(relation string, right float64) {
	fmt.Fprintf(x, " %s %s\n", relation, strconv.FormatFloat(right, 'f', -1, 64))
}

func (x *program) of(g int) *asked     { return &x.asked[x.groups[g][0]] }
func y(g int) string                   { return fmt.Sprintf("y_%d", g) }
func n(g, j int) string                { return fmt.Sprintf("n_%d_%d", g, j) }
func z(g int) string                   { return fmt.Sprintf("z_%d", g) }
func k(g, j int) string                { return fmt.Sprintf("k_%d_%d", g, j) }
func s(g, j int) string                { return fmt.Sprintf("s_%d_%d", g, j) }
func (x *program) holds(g, j int) bool { return x.of(g).fits(&x.sold[j]) }

// partly reports whether a part of a group's intent may be on an offer.
func (x *program) partly(g, j int) bool {
	a := x.of(g)
	return a.parts > 1 && a.suits(&x.sold[j]) && a.holds(&x.sold[j], 1, a.gpus)
}

func (x *program) objective() {
	fmt.Fprint(x, "Minimize\n obj:")
	for g, list := range x.groups {
		i := list[0]
		x.term(-float64(x.penalty(i)*x.of(g).replicas)/1e6, y(g))
		for j := range x.sold {
			if x.holds(g, j) {
				x.term(float64(x.price(i, j, 1))/1e6, n(g, j))
			}
			if x.partly(g, j) {
				x.term(float64(x.share(i, j, 1, x.of(g).gpus))/1e6, k(g, j))
			}
		}
	}
}

// penalties is what all intents come to without a place; the program's cost is less by it.
func (m *mix) penalties() (sum int64) {
	for i := range m.asked {
		sum += m.penalty(i) * m.asked[i].replicas
	}
	return sum
}

// whole places all of an intent or nothing.
func (x *program) whole(g int) {
	a := x.of(g)
	x.row()
	for j := range x.sold {
		if x.holds(g, j) {
			x.term(1, n(g, j))
			x.ints = append(x.ints, n(g, j))
		}
	}
	x.term(-float64(a.replicas), y(g))
	if a.parts > 1 {
		x.term(1, z(g))
		x.bools = append(x.bools, z(g))
	}
	x.end("=", 0)
	if len(x.groups[g]) == 1 {
		x.bools = append(x.bools, y(g))
	} else {
		x.ints = append(x.ints, y(g))
		x.row()
		x.term(1, y(g))
		x.end("<=", float64(len(x.groups[g])))
	}
	if a.parts > 1 {
		x.parts(g, a)
	}
}

// parts are two, on two offers.
func (x *program) parts(g int, a *asked) {
	for _, sum := range []struct {
		of func(g, j int) string
		to int64
	}{{k, a.gpus}, {s, 2}} {
		x.row()
		for j := range x.sold {
			if x.partly(g, j) {
				x.term(1, sum.of(g, j))
			}
		}
		x.term(-float64(sum.to), z(g))
		x.end("=", 0)
	}
	for j := range x.sold {
		if !x.partly(g, j) {
			continue
		}
		x.ints, x.bools = append(x.ints, k(g, j)), append(x.bools, s(g, j))
		x.row()
		x.term(1, k(g, j))
		x.term(-float64(a.gpus-1), s(g, j))
		x.end("<=", 0)
		x.row()
		x.term(1, k(g, j))
		x.term(-1, s(g, j))
		x.end(">=", 0)
		if x.holds(g, j) {
			x.short(g, j)
		}
	}
}

// short: an offer that would hold a replica whole has too little of something, next to the
// others, if the replica is in parts.
func (x *program) short(g, j int) {
	least := [...]float64{1, 0.001, 1.0 / 1024}
	var by []string
	for r := range dimensions {
		b := fmt.Sprintf("b_%d_%d_%d", g, j, r)
		by = append(by, b)
		x.bools = append(x.bools, b)
		most := room(&x.sold[j])[r]
		x.row()
		x.onOffer(j, r, g)
		right := most - x.size(g, j)[r] + least[r]
		x.term(-right, b)
		x.end(">=", 0)
	}
	x.row()
	for _, b := range by {
		x.term(1, b)
	}
	x.term(-1, z(g))
	x.end(">=", 0)
}

// Dimensions are units of cards, cores and GiB.
const dimensions = 3

func room(o *sold) [dimensions]float64 {
	return [...]float64{float64(o.units), float64(o.milli) / 1000, float64(o.mebi) / 1024}
}

func (x *program) size(g, j int) [dimensions]float64 {
	u, milli, mebi := x.of(g).takes(&x.sold[j], 1, 1)
	return [...]float64{float64(u), float64(milli) / 1000, float64(mebi) / 1024}
}

// onOffer writes what is taken of an offer, but for one group's.
func (x *program) onOffer(j, r, except int) {
	for g := range x.groups {
		if g == except {
			continue
		}
		if x.holds(g, j) {
			x.term(x.size(g, j)[r], n(g, j))
		}
		if x.partly(g, j) {
			x.term(x.size(g, j)[r]/float64(x.of(g).gpus), k(g, j))
		}
	}
}

// rules are those on where an intent's replicas are.
func (x *program) rules(g int) {
	a := x.of(g)
	if a.by != "" {
		x.spread(g, a)
	}
	if a.inOneProvider {
		x.row()
		for _, p := range x.domains(g, "provider") {
			w := fmt.Sprintf("w_%d_%s", g, p)
			x.bools = append(x.bools, w)
			x.term(1, w)
		}
		x.end("<=", 1)
		for _, p := range x.domains(g, "provider") {
			x.row()
			x.in(g, "provider", p, 1)
			x.term(-float64(a.replicas), fmt.Sprintf("w_%d_%s", g, p))
			x.end("<=", 0)
		}
	}
	for _, other := range a.together {
		with := x.groupOf(other)
		for _, p := range x.domains(g, "provider") {
			x.row()
			x.in(g, "provider", p, 1)
			x.in(with, "provider", p, -1)
			x.end("<=", 0)
		}
	}
	for _, other := range a.apart {
		from := x.groupOf(other)
		for _, p := range x.domains(g, "provider") {
			x.row()
			x.in(g, "provider", p, 1)
			x.in(from, "provider", p, 1)
			x.end("<=", 1)
		}
	}
	if a.maxHourly > 0 {
		x.row()
		for j := range x.sold {
			if x.holds(g, j) {
				x.term(float64(x.price(x.groups[g][0], j, 1))/1e6, n(g, j))
			}
		}
		x.end("<=", float64(a.maxHourly)/1e6)
	}
}

func (x *program) groupOf(intent int) int {
	return slices.IndexFunc(x.groups, func(list []int) bool { return slices.Contains(list, intent) })
}

func (x *program) spread(g int, a *asked) {
	least := fmt.Sprintf("m_%d", g)
	x.ints = append(x.ints, least)
	list := x.domains(g, a.by)
	for i, d := range list {
		x.row()
		x.in(g, a.by, d, 1)
		x.term(-1, least)
		x.end("<=", float64(a.maxSkew))
		x.row()
		x.in(g, a.by, d, 1)
		x.term(-1, least)
		x.end(">=", 0)
		if a.minDomains > 1 {
			v := fmt.Sprintf("v_%d_%d", g, i)
			x.bools = append(x.bools, v)
			x.row()
			x.in(g, a.by, d, 1)
			x.term(-1, v)
			x.end(">=", 0)
		}
	}
	if a.minDomains > 1 {
		x.row()
		for i := range list {
			x.term(1, fmt.Sprintf("v_%d_%d", g, i))
		}
		x.term(-float64(a.minDomains), y(g))
		x.end(">=", 0)
	}
}

// domains are those of the offers that would hold a replica.
func (x *program) domains(g int, by string) (out []string) {
	for j := range x.sold {
		if x.holds(g, j) {
			out = append(out, x.sold[j].domain(by))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (o *sold) domain(by string) string {
	return map[string]string{"provider": o.provider, "region": o.region, "zone": o.zone}[by]
}

// in writes how many replicas are in a domain.
func (x *program) in(g int, by, domain string, sign float64) {
	for j := range x.sold {
		if x.holds(g, j) && x.sold[j].domain(by) == domain {
			x.term(sign, n(g, j))
		}
	}
}

// capacity bounds what is on each offer, or on each pool of nodes.
func (x *program) capacity() {
	for j := range x.sold {
		o := &x.sold[j]
		for r := range dimensions {
			x.row()
			before := x.terms
			for at := range x.sold {
				if other := &x.sold[at]; at == j || r > 0 && o.pool != "" && other.pool == o.pool && other.provider == o.provider {
					x.onOffer(at, r, -1)
				}
			}
			if x.terms == before {
				x.term(1, "nothing")
			}
			x.end("<=", room(o)[r])
		}
		if o.perCard > 1 {
			x.cards(j)
		}
	}
}

// cards: a share lies on one card of four quarters. Each of three quarters needs one, and
// two halves do; what is left holds quarters.
func (x *program) cards(j int) {
	halves := fmt.Sprintf("h_%d", j)
	x.ints = append(x.ints, halves)
	for _, of := range []struct {
		quarters   int64
		by, halves float64
		relation   string
		right      float64
	}{{3, 1, 1, "<=", float64(x.sold[j].units / x.sold[j].perCard)}, {2, -1, 2, ">=", 0}} {
		x.row()
		for g := range x.groups {
			if x.of(g).quarters == of.quarters && x.holds(g, j) {
				x.term(of.by, n(g, j))
			}
		}
		x.term(of.halves, halves)
		x.end(of.relation, of.right)
	}
}

// limits are those of tenants.
func (x *program) limits() {
	for t, most := range x.tenants {
		for _, limit := range []struct {
			most float64
			of   func(g, j int) float64
		}{
			{float64(most.gpus), func(g, _ int) float64 { return float64(x.of(g).gpus) }},
			{float64(most.hourly) / 1e6, func(g, j int) float64 { return float64(x.price(x.groups[g][0], j, 1)) / 1e6 }},
		} {
			if limit.most == 0 {
				continue
			}
			x.row()
			for g := range x.groups {
				for j := range x.sold {
					if x.of(g).tenant == t && x.holds(g, j) {
						x.term(limit.of(g, j), n(g, j))
					}
				}
			}
			x.end("<=", limit.most)
		}
	}
}
