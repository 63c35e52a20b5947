package batch

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Rule is what seats that have its number must keep to among themselves.
type Rule struct {
	// Most is what their places may come to by Place.Most; below 0: any.
	Most quantity.Micro
	// Spread are the domains that they are spread over.
	Spread []Spread
	// Apart are the rules none of whose seats may share a domain of the kind By with one
	// of these; Barred are domains of that kind in which none may be. A row in no domain
	// shares none. By below 0: there are neither.
	Apart  []int32
	By     int32
	Barred map[int32]bool
}

// Spread is that a domain has at most Skew seats more than the least used of Of, and that
// a seat goes to a domain without any as long as fewer than Least have one. A row in no
// domain of the kind cannot be used.
type Spread struct {
	Domains int32
	// Skew is at least 1.
	Skew, Least int32
	// Of are numbers of domains, each once; every domain in which a seat has a place is one.
	Of []int32
}

// ruled is where the seats of a rule are.
type ruled struct {
	spent quantity.Micro
	// spread are the numbers of seats by domain, a list for each of Rule.Spread.
	spread []tally
	// at are those by domain of Rule.By.
	at []int32
	// under are the seats that have the rule.
	under []int32
}

// tally counts seats by domain.
type tally struct {
	in   []int32
	used int32
	// most is up to how many a domain may have for one more, fresh: only one without any
	// may have one; both as of when a seat last began to choose.
	most  int32
	fresh bool
}

// beginRules is the state of all rules before any seat is counted.
func (x *ruins) beginRules() {
	x.ruled = make([]ruled, len(x.Rules))
	size := func(kind int32, also []int32) int32 {
		n := int32(0)
		for _, d := range x.Domains[kind] {
			n = max(n, d+1)
		}
		for _, d := range also {
			n = max(n, d+1)
		}
		return n
	}
	for i := range x.Rules {
		r, rule := &x.ruled[i], &x.Rules[i]
		if rule.By >= 0 {
			r.at = make([]int32, size(rule.By, nil))
		}
		for _, sp := range rule.Spread {
			r.spread = append(r.spread, tally{in: make([]int32, size(sp.Domains, sp.Of))})
		}
	}
	for i := range x.Seats {
		if s := &x.Seats[i]; x.isRuled(s) {
			x.ruled[s.Rule].under = append(x.ruled[s.Rule].under, int32(i)) //nolint:gosec // their number
		}
	}
}

func (x *ruins) isRuled(s *Seat) bool { return len(x.Rules) > 0 && s.Rule >= 0 }

// count counts a seat in a place for its rule, or (-1) no more.
func (x *ruins) count(s *Seat, pl *Place, n int32) {
	if !x.isRuled(s) {
		return
	}
	rule, r := &x.Rules[s.Rule], &x.ruled[s.Rule]
	r.spent += quantity.Micro(n) * pl.Most
	for i := range rule.Spread {
		if d := x.Domains[rule.Spread[i].Domains][pl.Row]; d >= 0 {
			r.spread[i].count(d, n)
		}
	}
	if rule.By >= 0 {
		if d := x.Domains[rule.By][pl.Row]; d >= 0 {
			r.at[d] += n
		}
	}
}

func (t *tally) count(d, n int32) {
	if t.in[d] > 0 {
		t.used--
	}
	if t.in[d] += n; t.in[d] > 0 {
		t.used++
	}
}

// consider brings up to date what a seat's rule allows, before it looks at places.
func (x *ruins) consider(s *Seat) {
	if !x.isRuled(s) {
		return
	}
	rule, r := &x.Rules[s.Rule], &x.ruled[s.Rule]
	for i := range rule.Spread {
		sp, t := &rule.Spread[i], &r.spread[i]
		least := int32(0)
		if len(sp.Of) > 0 {
			least = slices.MinFunc(sp.Of, func(a, b int32) int { return int(t.in[a] - t.in[b]) })
			least = t.in[least]
		}
		t.most, t.fresh = least+sp.Skew, t.used < sp.Least
	}
}

// breaks reports whether one more seat in a place would break the seat's rule.
func (x *ruins) breaks(s *Seat, pl *Place) bool {
	if !x.isRuled(s) {
		return false
	}
	rule, r := &x.Rules[s.Rule], &x.ruled[s.Rule]
	if rule.Most >= 0 && r.spent+pl.Most > rule.Most {
		return true
	}
	for i := range rule.Spread {
		d, t := x.Domains[rule.Spread[i].Domains][pl.Row], &r.spread[i]
		if d < 0 || t.in[d] >= t.most || t.fresh && t.in[d] > 0 {
			return true
		}
	}
	if rule.By < 0 {
		return false
	}
	d := x.Domains[rule.By][pl.Row]
	if d < 0 {
		return false
	}
	if rule.Barred[d] {
		return true
	}
	for _, other := range rule.Apart {
		if x.ruled[other].has(d) {
			return true
		}
	}
	return false
}

// has reports whether a seat of the rule is in a domain.
func (r *ruled) has(d int32) bool { return int(d) < len(r.at) && r.at[d] > 0 }
