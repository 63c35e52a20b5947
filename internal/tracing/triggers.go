package tracing

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxTriggers bounds what waits for a round.
	maxTriggers = 16
	// stale is how long something may wait for the round that it leads to, staleHeld where
	// what came of it is known and waits.
	stale     = 10 * time.Second
	staleHeld = 10 * time.Minute
)

// Trigger is something that leads to a round: a request that brought news.
type Trigger struct {
	origin Origin
	// kept: the trace of the request is kept. Where none of a round's triggers is, the
	// round's is not either.
	kept bool
	// market: what it brought is a report. There are many of them, and what asks for
	// something goes before them.
	market bool
	at     time.Time
}

// triggers wait for the round that comes of them. The zero value has none.
type triggers struct {
	mu   sync.Mutex
	list []*Trigger
}

// add has a trigger wait, in place of another one where there are many.
func (t *triggers) add(one *Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = few(append(t.list, one))
}

// few leaves the oldest out where there are too many, reports first.
func few(list []*Trigger) []*Trigger {
	for len(list) > maxTriggers {
		at := max(slices.IndexFunc(list, func(one *Trigger) bool { return one.market }), 0)
		list = slices.Delete(list, at, at+1)
	}
	return list
}

// remove takes one back that brought nothing.
func (t *triggers) remove(one *Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, has := range t.list {
		if has == one {
			t.list = append(t.list[:i], t.list[i+1:]...)
			return
		}
	}
}

// Triggers takes what waits for a round, oldest first.
func (t *Tracer) Triggers() []*Trigger {
	if t == nil {
		return nil
	}
	t.triggers.mu.Lock()
	defer t.triggers.mu.Unlock()
	list := t.triggers.list
	t.triggers.list = nil
	return list
}

// PutBack has triggers wait for another round, because nothing came of this one. held: what
// they brought is known and waits (a plan that may not be pushed yet, a round that failed);
// otherwise their news may come just now. Old ones are dropped, which is sooner then.
func (t *Tracer) PutBack(list []*Trigger, held bool) {
	if t == nil || len(list) == 0 {
		return
	}
	now, most := time.Now(), stale
	if held {
		most = staleHeld
	}
	t.triggers.mu.Lock()
	defer t.triggers.mu.Unlock()
	var all []*Trigger
	for _, one := range list {
		if now.Sub(one.at) < most {
			all = append(all, one)
		}
	}
	t.triggers.list = few(append(all, t.triggers.list...))
}

// Led are what triggers lead to a round: its parent, which is the oldest that asks for
// something or else the oldest report, and what else did. dropped: there were some, and the
// traces of none are kept.
func Led(list []*Trigger) (parent Origin, links []Origin, dropped bool) {
	var first *Trigger
	for _, one := range list {
		if one.kept && (first == nil || first.market && !one.market) {
			first = one
		}
	}
	if first == nil {
		return Origin{}, nil, len(list) > 0
	}
	for _, one := range list {
		if one.kept && one != first {
			links = append(links, one.origin)
		}
	}
	return first.origin, links, false
}
