package tracing

import (
	"sync"
	"time"
)

const (
	// maxTriggers bounds what waits for a round.
	maxTriggers = 16
	// stale is how long something may wait for the round that it leads to.
	stale = 10 * time.Second
)

// Trigger is something that leads to a round: a request that brought news.
type Trigger struct {
	origin Origin
	// kept: the trace of the request is kept. Where none of a round's triggers is, the
	// round's is not either.
	kept bool
	at   time.Time
}

// triggers wait for the round that comes of them. The zero value has none.
type triggers struct {
	mu   sync.Mutex
	list []*Trigger
}

// add has a trigger wait, in place of the oldest where there are many.
func (t *triggers) add(one *Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) >= maxTriggers {
		t.list = append(t.list[:0], t.list[1:]...)
	}
	t.list = append(t.list, one)
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

// PutBack has triggers wait for another round: this one did nothing, and they may have
// come just before their news. Old ones are dropped.
func (t *Tracer) PutBack(list []*Trigger) {
	if t == nil || len(list) == 0 {
		return
	}
	now := time.Now()
	t.triggers.mu.Lock()
	defer t.triggers.mu.Unlock()
	var all []*Trigger
	for _, one := range list {
		if now.Sub(one.at) < stale {
			all = append(all, one)
		}
	}
	all = append(all, t.triggers.list...)
	t.triggers.list = all[max(0, len(all)-maxTriggers):]
}

// Led are what triggers lead to a round: its parent, and what else did. dropped: there
// were some, and the traces of none are kept.
func Led(list []*Trigger) (parent Origin, links []Origin, dropped bool) {
	for _, one := range list {
		switch {
		case !one.kept:
		case parent.IsZero():
			parent = one.origin
		default:
			links = append(links, one.origin)
		}
	}
	return parent, links, len(list) > 0 && parent.IsZero()
}
