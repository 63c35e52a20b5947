package store

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"golang.org/x/time/rate"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Budgets of what is written, so that the market never starves the cluster whose
// API it stands on: every change is a revision that etcd keeps for five to ten minutes,
// with bytes as base64. docs/scale.md has the reckoning. A budget of a provider or a
// cluster is one over all replicas: each charges what the others wrote when it sees it. What
// it does not see is parts of a write that came too late; who wrote them is charged. A
// budget of all is divided among the replicas that live, and each keeps its part.
const (
	// pace is how often a provider's list is written, unless it is urgent.
	pace = 10 * time.Second
	// smallPace is how often it is written when only use within what is unsold changed.
	smallPace = time.Minute
	// writesPerSecond and writesAtOnce are those of all lists with their parts, and of all
	// that is seen in clusters, by all replicas.
	writesPerSecond, writesAtOnce = 100, 200
	// bytesPerSecond and bytesAtOnce are what these writes add to the store, packed.
	bytesPerSecond, bytesAtOnce = 1 << 20, 32 << 20
	// maxStored is what the store may have of them, packed, with parts that are to be deleted.
	maxStored = 512 << 20
	// urgentPace is how often an urgent list is written, after urgentAtOnce of them.
	urgentPace, urgentAtOnce = 10 * time.Second, 6
	// listBytesPerMinute is what a provider's lists add to the store, packed, after
	// listBytesAtOnce: the largest one each minute, and a quarter more.
	listBytesPerMinute, listBytesAtOnce = maxPacked * 5 / 4, 4 * maxPacked
	// seenPace is how often what a cluster's agent sees is written, after seenAtOnce.
	seenPace, seenAtOnce = 5 * time.Second, 6
	// seenBytesPerMinute is what that adds to the store, packed, after seenBytesAtOnce.
	seenBytesPerMinute, seenBytesAtOnce = 4 * maxSeen, seenAtOnce * maxSeen
)

// budgets are those of one kind, one for each provider or cluster.
type budgets struct {
	limit rate.Limit
	burst int
	by    map[string]*rate.Limiter
}

func newBudgets(limit rate.Limit, burst int) *budgets {
	return &budgets{limit, burst, map[string]*rate.Limiter{}}
}

// of is the budget of one.
func (b *budgets) of(name string) *rate.Limiter {
	l := b.by[name]
	if l == nil {
		l = rate.NewLimiter(b.limit, b.burst)
		b.by[name] = l
	}
	return l
}

// paces judge whether a list may be written now. Shared's lock guards them.
type paces struct {
	// all and allBytes are this replica's part of the budgets of all.
	all, allBytes *rate.Limiter
	// written is when each provider's list was last written, as seen here.
	written map[string]time.Time
	// urgent, listBytes, seen, seenBytes and looks are those of each provider or cluster.
	urgent, listBytes, seen, seenBytes, looks *budgets
}

func newPaces() paces {
	return paces{
		all: rate.NewLimiter(writesPerSecond, writesAtOnce), allBytes: rate.NewLimiter(bytesPerSecond, bytesAtOnce), written: map[string]time.Time{},
		urgent: newBudgets(rate.Every(urgentPace), urgentAtOnce), listBytes: newBudgets(listBytesPerMinute/60., listBytesAtOnce),
		seen: newBudgets(rate.Every(seenPace), seenAtOnce), seenBytes: newBudgets(seenBytesPerMinute/60., seenBytesAtOnce),
		looks: newBudgets(rate.Every(lookAgain), looksFirst),
	}
}

// cost is what a write takes.
type cost struct {
	objects int   // that are written
	bytes   int   // of them, packed
	stored  int64 // that the store has then
	adds    int64 // to that, less what is replaced
}

// takes is the cost of a write of so many objects, in place of so many bytes. s.mu is held.
func (s *Shared) takes(objects int, size, replaced int64) cost {
	adds := size - replaced
	return cost{objects: objects, bytes: int(size), stored: s.taken() + adds, adds: adds}
}

// claim is so much of a budget, and why one has to wait who does not get it. after, where
// it is not zero, is for how long, whatever the budget says.
type claim struct {
	of      *rate.Limiter
	n       int
	because string
	after   time.Duration
}

// paid are claims that were met.
type paid []claim

// giveBack returns what was paid for a write that was not made.
func (p paid) giveBack(now time.Time) {
	for _, c := range p {
		c.of.ReserveN(now, -c.n) // a limiter takes in what is negative
	}
}

// pay meets all claims or, with a *BusyError, none.
func pay(now time.Time, claims ...claim) (paid, error) {
	var met paid
	for _, c := range claims {
		if c.n == 0 {
			continue // a budget that is overdrawn would refuse it
		}
		r := c.of.ReserveN(now, c.n)
		if wait := r.DelayFrom(now); wait > 0 {
			r.CancelAt(now)
			met.giveBack(now)
			if c.after > 0 {
				wait = c.after
			}
			return nil, &BusyError{Because: c.because, After: wait}
		}
		met = append(met, c)
	}
	return met, nil
}

// charge takes from a budget what was spent of it elsewhere. It is overdrawn by its
// burst at the most, so that the wait for it is bounded.
func charge(l *rate.Limiter, n int, now time.Time) {
	if n = min(n, l.Burst()); l.TokensAt(now) > -float64(l.Burst()) {
		l.ReserveN(now, n)
	}
}

// admit lets a list be written, or says when to come again. was is the list that
// the store has, nil for none.
func (p *paces) admit(provider string, was, next *wire.FlavorReport, c cost, now time.Time) (paid, error) {
	least := pace
	var own []claim
	switch {
	case was == nil:
		least = 0
	case urgent(was, next):
		least = 0
		own = append(own, claim{of: p.urgent.of(provider), n: 1, because: fmt.Sprintf("the list of %s takes something back too often", provider)})
	case small(was, next):
		least = smallPace
	}
	if last, ok := p.written[provider]; ok {
		if wait := last.Add(least).Sub(now); wait > 0 && wait <= least {
			return nil, &BusyError{Because: fmt.Sprintf("the list of %s is written at most every %s for what has changed", provider, least), After: wait}
		}
	}
	own = append(own, claim{of: p.listBytes.of(provider), n: c.bytes, because: fmt.Sprintf("the lists of %s take more than %d KiB a minute, packed", provider, listBytesPerMinute>>10)})
	return p.admitAll(c, now, own...)
}

// admitSeen lets what is seen in a cluster be written.
func (p *paces) admitSeen(cluster string, c cost, now time.Time) (paid, error) {
	return p.admitAll(
		c, now,
		claim{of: p.seen.of(cluster), n: 1, because: fmt.Sprintf("what is seen in %s changes too often", cluster)},
		claim{of: p.seenBytes.of(cluster), n: c.bytes, because: fmt.Sprintf("what is seen in %s takes more than %d KiB a minute, packed", cluster, seenBytesPerMinute>>10)},
	)
}

// admitAll lets a write be made that its own budgets let through, if those of all do.
func (p *paces) admitAll(c cost, now time.Time, own ...claim) (paid, error) {
	if c.stored > maxStored && c.adds > 0 { // what makes it no more is let through: it must shrink again
		return nil, &BusyError{Because: fmt.Sprintf("what providers offer and what is seen in clusters take more than %d MiB of the market's store", maxStored>>20), After: smallPace}
	}
	return pay(now, append(own,
		claim{of: p.all, n: c.objects, because: fmt.Sprintf("more than %.3g changes a second are reported to this replica", float64(p.all.Limit())), after: 2 * time.Second},
		claim{of: p.allBytes, n: c.bytes, because: fmt.Sprintf("more than %.3g KiB a second are reported to this replica", float64(p.allBytes.Limit())/1024), after: 2 * time.Second},
	)...)
}

// wrote charges a provider with a list that another replica wrote.
func (p *paces) wrote(provider string, was, next *list, now time.Time) {
	if was != nil && was.digest != next.digest && urgent(was.content, next.content) {
		charge(p.urgent.of(provider), 1, now)
	}
	charge(p.listBytes.of(provider), int(next.size), now)
}

// wroteSeen charges a cluster with what another replica wrote of it.
func (p *paces) wroteSeen(cluster string, size int64, now time.Time) {
	charge(p.seen.of(cluster), 1, now)
	charge(p.seenBytes.of(cluster), int(size), now)
}

// forget drops what is known of a cluster.
func (p *paces) forget(cluster string) {
	delete(p.written, cluster)
	for _, b := range []*budgets{p.urgent, p.listBytes, p.seen, p.seenBytes, p.looks} {
		delete(b.by, cluster)
	}
	delete(p.looks.by, observedBy+cluster)
}

// share makes this replica's part of what all may write that of one of so many. However
// many there are, the largest list fits into it.
func (p *paces) share(replicas int, now time.Time) {
	n := max(replicas, 1)
	part := func(l *rate.Limiter, all float64, burst, least int) {
		if limit := rate.Limit(all / float64(n)); limit != l.Limit() {
			l.SetLimitAt(now, limit)
			l.SetBurstAt(now, max(burst/n, least))
		}
	}
	part(p.all, writesPerSecond, writesAtOnce, 1+maxParts)
	part(p.allBytes, bytesPerSecond, bytesAtOnce, maxPacked)
}

// lookAgain is how often a provider's object is read for its reports, after looksFirst.
const lookAgain, looksFirst = time.Second, 5

// mayLook lets a cluster's object be read for a report, or says when to come again. what is
// its name for people. This budget is one of each replica: it bounds reads.
func (s *Shared) mayLook(object, what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paces.looks.of(object).AllowN(s.opts.Now(), 1) {
		return nil
	}
	return &BusyError{Because: what + " is looked for once a second", After: lookAgain}
}

// urgent reports whether a list takes something back that may have been sold, or
// lets go of something: what is decided meanwhile on the former list would be
// wrong, or somebody waits for it.
func urgent(was, next *wire.FlavorReport) bool {
	now := byName(next)
	for i := range was.Flavors {
		old := &was.Flavors[i]
		f := now[old.Metadata.Name]
		if f == nil || !f.Spec.Capacity.Covers(old.Spec.Capacity) || len(old.Spec.Refused) != len(f.Spec.Refused) || old.Spec.Cordon != f.Spec.Cordon {
			return true
		}
		for slice, held := range old.Spec.Held {
			if !f.Spec.Held[slice].Covers(held) {
				return true
			}
		}
		for slice := range f.Spec.Refused {
			if _, ok := old.Spec.Refused[slice]; !ok {
				return true
			}
		}
	}
	return false
}

// small reports whether all that differs is what the provider's own pods and the
// contracts' use, and every flavor has room for it beside what is held.
func small(was, next *wire.FlavorReport) bool {
	old := byName(was)
	if len(old) != len(next.Flavors) || was.Honoured != next.Honoured || !reflect.DeepEqual(was.Demand, next.Demand) {
		return false
	}
	for i := range next.Flavors {
		f := &next.Flavors[i]
		before := old[f.Metadata.Name]
		if before == nil {
			return false
		}
		a, b := *before, *f
		a.Spec.Used, a.Spec.Usage, b.Spec.Used, b.Spec.Usage = nil, nil, nil, nil
		a.Spec.Nodes, b.Spec.Nodes = nil, nil // as the capacity, which is compared, but for use
		if !a.SameButUse(&b) || !maps.EqualFunc(a.Spec.Held, b.Spec.Held, v1alpha1.Resources.Equal) || !v1alpha1.SameOnNodes(a.Spec.HeldOn, b.Spec.HeldOn) || overfull(f) {
			return false
		}
	}
	return true
}

// overfull reports whether a flavor has less than is used and held of it.
func overfull(f *v1alpha1.Flavor) bool {
	sum := f.Spec.Used
	for _, held := range f.Spec.Held {
		sum = sum.Add(held)
	}
	return !f.Spec.Capacity.Covers(sum)
}

// byName are the flavors of a list.
func byName(r *wire.FlavorReport) map[string]*v1alpha1.Flavor {
	out := make(map[string]*v1alpha1.Flavor, len(r.Flavors))
	for i := range r.Flavors {
		out[r.Flavors[i].Metadata.Name] = &r.Flavors[i]
	}
	return out
}
