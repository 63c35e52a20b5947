package quality

import (
	"fmt"
	"slices"
	"strings"
)

// lies is a replica, or units of it as a part, on an offer.
type lies struct {
	intent, replica, at int
	part                int64 // units of a part, 0 for a whole replica
}

// result is what somebody came to on a mix.
type result struct {
	list []lies
	// cost with penalties; left are the penalties alone.
	cost, left int64
}

// resultOf sums up where replicas are.
func (m *mix) resultOf(list []lies) result {
	r := result{list: list, left: m.penalties()}
	seen := map[[2]int]bool{}
	for _, l := range list {
		part, of := int64(1), int64(1)
		if l.part > 0 {
			part, of = l.part, m.asked[l.intent].gpus
		}
		r.cost += m.share(l.intent, l.at, part, of)
		if key := [2]int{l.intent, l.replica}; !seen[key] {
			seen[key] = true
			r.left -= m.penalty(l.intent)
		}
	}
	r.cost += r.left
	return r
}

// broken are the rules that a result breaks, by sums of its own.
func (m *mix) broken(r *result) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	byIntent := make([][]lies, len(m.asked))
	used := make([][dimensions]int64, len(m.sold))
	shares := make([][4]int64, len(m.sold))
	tenants := make([]tenancy, len(m.tenants))
	for _, l := range r.list {
		a := &m.asked[l.intent]
		byIntent[l.intent] = append(byIntent[l.intent], l)
		if !a.suits(&m.sold[l.at]) {
			say("intent %d is on %s, which is not of an acceptable kind", l.intent, m.sold[l.at].name)
		}
		part, of := max(l.part, 1), int64(1)
		if l.part > 0 {
			of = a.gpus
		}
		u, milli, mebi := a.takes(&m.sold[l.at], part, of)
		for at := range m.sold {
			if other := &m.sold[at]; at == l.at || other.pool != "" && other.pool == m.sold[l.at].pool && other.provider == m.sold[l.at].provider {
				used[at][1], used[at][2] = used[at][1]+milli, used[at][2]+mebi
			}
		}
		used[l.at][0] += u
		if a.quarters > 0 {
			shares[l.at][a.quarters]++
		}
		t := &tenants[a.tenant]
		t.gpus, t.hourly = t.gpus+a.gpus*part/of, t.hourly+m.share(l.intent, l.at, part, of)
	}
	for j := range m.sold {
		o := &m.sold[j]
		if used[j][0] > o.units || used[j][1] > o.milli || used[j][2] > o.mebi {
			say("%s is oversold: %d of %d, %d of %d and %d of %d", o.name, used[j][0], o.units, used[j][1], o.milli, used[j][2], o.mebi)
		}
		if o.perCard > 1 && shares[j][3]+(shares[j][2]+1)/2 > o.units/o.perCard {
			say("%s has too few cards for %v shares of 1, 2 and 3 quarters", o.name, shares[j][1:])
		}
	}
	for t, most := range m.tenants {
		if most.gpus > 0 && tenants[t].gpus > most.gpus || most.hourly > 0 && tenants[t].hourly > most.hourly {
			say("tenant %d has %v of %v", t, tenants[t], most)
		}
	}
	for i := range m.asked {
		if len(byIntent[i]) > 0 {
			for _, why := range m.brokenBy(i, byIntent, used) {
				say("intent %d: %s", i, why)
			}
		}
	}
	return out
}

// brokenBy are the rules of one intent's own.
func (m *mix) brokenBy(i int, all [][]lies, used [][dimensions]int64) (out []string) {
	a, mine := &m.asked[i], all[i]
	replicas, cost, inParts := map[int][]lies{}, int64(0), false
	count := map[string]int64{}
	for _, l := range mine {
		replicas[l.replica] = append(replicas[l.replica], l)
		cost += m.share(i, l.at, max(l.part, 1), map[bool]int64{true: a.gpus, false: 1}[l.part > 0])
		inParts = inParts || l.part > 0
		count[m.sold[l.at].domain(a.by)]++
	}
	if int64(len(replicas)) != a.replicas {
		out = append(out, fmt.Sprintf("%d of %d replicas", len(replicas), a.replicas))
	}
	if a.maxHourly > 0 && cost > a.maxHourly {
		out = append(out, fmt.Sprintf("%d over its budget of %d", cost, a.maxHourly))
	}
	at := func(i int) map[string]bool {
		set := map[string]bool{}
		for _, l := range all[i] {
			set[m.sold[l.at].provider] = true
		}
		return set
	}
	own := at(i)
	if a.inOneProvider && len(own) > 1 {
		out = append(out, "in several providers")
	}
	for _, other := range a.together {
		if there := at(other); len(there) != 1 || len(own) != 1 || !there[m.sold[mine[0].at].provider] {
			out = append(out, fmt.Sprintf("not with %d", other))
		}
	}
	for _, other := range a.apart {
		for p := range at(other) {
			if own[p] {
				out = append(out, fmt.Sprintf("not apart from %d", other))
			}
		}
	}
	if a.by != "" {
		out = append(out, m.brokenSpread(i, count)...)
	}
	if inParts {
		out = append(out, m.brokenParts(i, mine, used)...)
	}
	return out
}

func (m *mix) brokenSpread(i int, count map[string]int64) (out []string) {
	a := &m.asked[i]
	least, most := a.replicas, int64(0)
	for j := range m.sold {
		if a.fits(&m.sold[j]) {
			n := count[m.sold[j].domain(a.by)]
			least, most = min(least, n), max(most, n)
		}
	}
	if most-least > a.maxSkew || int64(len(count)) < a.minDomains {
		out = append(out, fmt.Sprintf("spread as %v by %s: maxSkew %d, minDomains %d", count, a.by, a.maxSkew, a.minDomains))
	}
	return out
}

// brokenParts: two of all units, on two offers, and no offer has room for the whole next
// to the others.
func (m *mix) brokenParts(i int, mine []lies, used [][dimensions]int64) (out []string) {
	a := &m.asked[i]
	sum := int64(0)
	own := map[int]int64{}
	for _, l := range mine {
		sum += l.part
		own[l.at] = l.part
	}
	if len(mine) != 2 || len(own) != 2 || sum != a.gpus {
		out = append(out, fmt.Sprintf("in parts as %v", mine))
	}
	for j := range m.sold {
		o := &m.sold[j]
		u, milli, mebi := a.takes(o, own[j], a.gpus)
		wu, wmilli, wmebi := a.takes(o, 1, 1)
		if a.fits(o) && used[j][0]-u+wu <= o.units && used[j][1]-milli+wmilli <= o.milli && used[j][2]-mebi+wmebi <= o.mebi {
			out = append(out, fmt.Sprintf("in parts, though %s has room for all of it", o.name))
		}
	}
	return out
}

// text is a result as it is stored: intent:replica:offer, and the units of a part.
func (r *result) text() string {
	var b strings.Builder
	for n, l := range r.list {
		if n > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%d:%d:%d", l.intent, l.replica, l.at, l.part)
	}
	return b.String()
}

// readText is the reverse.
func readText(s string) (list []lies, err error) {
	for f := range strings.FieldsSeq(s) {
		var l lies
		if _, err := fmt.Sscanf(f, "%d:%d:%d:%d", &l.intent, &l.replica, &l.at, &l.part); err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// fromProgram is what a solution of the program says, by its variables above 0.
func (m *mix) fromProgram(values map[string]int64) []lies {
	groups := m.equals()
	var list []lies
	next := make([]int, len(groups))
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var g, j int
		if _, err := fmt.Sscanf(name, "n_%d_%d", &g, &j); err == nil {
			for range values[name] {
				if a := &m.asked[groups[g][0]]; a.replicas > 1 {
					list = append(list, lies{intent: groups[g][0], replica: next[g], at: j})
				} else {
					list = append(list, lies{intent: groups[g][next[g]], at: j})
				}
				next[g]++
			}
		}
		if _, err := fmt.Sscanf(name, "k_%d_%d", &g, &j); err == nil {
			list = append(list, lies{intent: groups[g][0], at: j, part: values[name]})
		}
	}
	return list
}
