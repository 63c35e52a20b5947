package notify

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
)

// Snapshot is a ledger that the remote holds, with who wants to hear of it. It
// is immutable.
type Snapshot struct {
	// Fleet's name.
	Fleet string
	// Head of the ledger branch, zero before the first commit.
	Head    tree.Hash
	Ledger  *ledger.Ledger
	Tenants map[string]*v1alpha1.Tenant
	Books   ledger.Books
	// SLA of an intent, nil where it asks for none. A nil SLA is that of none.
	SLA func(tenant, intent string) *v1alpha1.SLA
	// FrozenFor is the fleet's safety.frozenFor.
	FrozenFor time.Duration
	// Sources are the tenants' own repositories as this daemon reads them.
	Sources []wire.SourceStatus
}

// Paces are how long a destination is left alone after a message, and after a
// failure.
type Paces struct {
	Webhook, Chat, Mail time.Duration
	// Retry is the first pause after a failure; it doubles up to MaxRetry.
	Retry, MaxRetry time.Duration
}

// DefaultPaces are ten events a second to a webhook, a message a second to
// a chat, which is what Slack allows, and one a minute by mail.
func DefaultPaces() Paces {
	return Paces{Webhook: 100 * time.Millisecond, Chat: time.Second, Mail: time.Minute, Retry: 5 * time.Second, MaxRetry: 5 * time.Minute}
}

// Options configure a Notifier.
type Options struct {
	// Dir of the state file; empty keeps it in memory.
	Dir string
	// State is told whether the file could be written; may be nil.
	State *statefile.Health
	// Address reads a destination's URL from a tenant's Secret. Its errors may
	// name the Secret, never what is in it.
	Address func(ctx context.Context, tenant string, ref v1alpha1.SecretKeyRef) (string, error)
	// At reads the ledger at a commit, for what happened while nobody looked.
	At func(ctx context.Context, head tree.Hash) (*ledger.Ledger, error)
	// CAs sign the certificates of receivers; nil: the system's.
	CAs *x509.CertPool
	// Count is told of results: sent, failed (and tried again), dropped.
	Count func(tenant, result string, n int)
	// Speaks reports whether this daemon is the one of several that sends; nil
	// always is. The others follow, and are ready to go on.
	Speaks func() bool
	// Told is called with every event once it is derived, whoever wants to hear of
	// it and whichever daemon speaks; it must return at once. nil: nobody.
	Told func(Event)
	// Now is the clock.
	Now   func() time.Time
	Paces Paces
	Log   *slog.Logger
}

// Notifier tells tenants what becomes of their intents. Make it with New.
type Notifier struct {
	opts   Options
	client *http.Client
	latest atomic.Pointer[Snapshot]
	first  atomic.Pointer[Snapshot] // what stood when this process began to look
	news   chan struct{}

	// What follows belongs to the goroutine of Run.
	box    *outbox
	seen   *Snapshot // up to which events were derived
	clock  time.Time // when terms and budgets were last looked at
	routes map[target]*route
	done   chan result
	saving
}

// saving is when the state file was written, and what it lacks.
type saving struct {
	urgent bool // events: they are written before they are sent
	dirty  bool // results: a crash repeats what a second has brought
	at     time.Time
}

// route is how a destination fares.
type route struct {
	busy     bool
	next     time.Time // not before
	failures int       // in a row
}

// result is what became of a message.
type result struct {
	to    target
	ids   map[string]bool
	pause time.Duration // until the next one
	err   error
}

// New makes a notifier that has seen nothing. A state file that cannot be read
// is set aside.
func New(o Options) *Notifier {
	return &Notifier{opts: o, client: newClient(o.CAs), box: load(o), news: make(chan struct{}, 1), routes: map[target]*route{}, done: make(chan result)}
}

// Observe takes the newest ledger and returns at once.
func (n *Notifier) Observe(s *Snapshot) {
	n.first.CompareAndSwap(nil, s)
	n.latest.Store(s)
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// clockEvery is how often terms and budgets are looked at.
const clockEvery = time.Minute

// Run derives events and sends them until the context ends; then it waits for
// what is under way and saves.
func (n *Notifier) Run(ctx context.Context) error {
	for {
		n.derive(ctx)
		n.save(false)
		t := time.NewTimer(n.dispatch(ctx))
		select {
		case <-ctx.Done():
			t.Stop()
			n.drain()
			return nil
		case <-n.news:
		case <-t.C:
		case r := <-n.done:
			n.settle(r)
		}
		t.Stop()
	}
}

// drain waits for messages under way, whose context has ended too.
func (n *Notifier) drain() {
	for _, r := range n.routes {
		if r.busy {
			n.settle(<-n.done)
		}
	}
	n.save(true)
}

// saveEvery is how often results alone are written.
const saveEvery = time.Second

func (n *Notifier) save(now bool) {
	if n.box == nil || (!n.urgent && !n.dirty) {
		return
	}
	if !now && !n.urgent && n.opts.Now().Sub(n.at) < saveEvery {
		return
	}
	n.at = n.opts.Now()
	err := n.box.save(n.opts.Dir)
	n.opts.State.Note(filepath.Join(n.opts.Dir, stateFile), err)
	if err != nil {
		if n.opts.State == nil { // which logs each change once
			n.opts.Log.Error("sent notifications cannot be recorded; a restart may repeat them", "error", err)
		}
		return
	}
	n.urgent, n.dirty = false, false
}

// derive turns what is new in the ledger, and on the clock, into events.
func (n *Notifier) derive(ctx context.Context) {
	s := n.latest.Load()
	if s == nil {
		return
	}
	now := n.opts.Now()
	if n.box == nil { // the first start of all: what stands is no news
		n.seen = n.first.Load()
		n.box, n.urgent = newOutbox(), true
		n.box.Head = hash(n.seen.Head)
	}
	if n.seen == nil {
		n.seen = n.resume(ctx, s)
	}
	var events []Event
	if s != n.seen {
		if s.Ledger != n.seen.Ledger {
			events = append(Since(s.Fleet, n.seen.Ledger, s.Ledger, s.SLA), freezes(s.Fleet, n.seen.Ledger, s.Ledger, s.FrozenFor)...)
		}
		if n.box.Head != hash(s.Head) {
			n.box.Head, n.dirty = hash(s.Head), true
		}
		n.seen = s
	}
	if told := n.box.changed(s, now); len(told) > 0 {
		events, n.dirty = append(events, told...), true
	}
	if now.Sub(n.clock) >= clockEvery {
		n.clock = now
		events = append(events, n.box.fresh(Due(s.Fleet, s.Ledger, s.Tenants, s.Books, s.SLA, v1alpha1.TimeOf(now)))...)
	}
	if n.opts.Told != nil {
		for _, e := range events {
			n.opts.Told(e)
		}
	}
	n.post(s, events)
}

// resume is the ledger as it was when events were last derived from it, before
// this process.
func (n *Notifier) resume(ctx context.Context, s *Snapshot) *Snapshot {
	was := *s
	head := tree.Hash(n.box.Head)
	if head == s.Head {
		return &was
	}
	l, err := ledger.Empty(), error(nil)
	if !head.IsZero() {
		l, err = n.opts.At(ctx, head)
	}
	if err != nil {
		n.opts.Log.Warn("what happened while the daemon was down is not notified", "since", head.Short(), "error", err)
		return &was
	}
	was.Ledger = l
	return &was
}

// post puts events into the outboxes of those who want them.
func (n *Notifier) post(s *Snapshot, events []Event) {
	byTenant := map[string][]Event{}
	for _, e := range events {
		byTenant[e.Tenant] = append(byTenant[e.Tenant], e)
	}
	for tenant, list := range byTenant {
		t := s.Tenants[tenant]
		if t == nil {
			continue
		}
		for to, kinds := range wants(t) {
			mine := slices.DeleteFunc(slices.Clone(list), func(e Event) bool { return !kinds[e.Kind] && !kinds[v1alpha1.NotifyAll] })
			if len(mine) == 0 {
				continue
			}
			n.urgent = true
			n.count(tenant, "dropped", n.box.put(to, mine))
		}
	}
}

// wants are a tenant's destinations with what each shall be told: one that is
// named twice is told once.
func wants(t *v1alpha1.Tenant) map[target]map[string]bool {
	out := map[target]map[string]bool{}
	for _, sub := range t.Spec.Notify {
		to := targetOf(t.Metadata.Name, sub)
		if out[to] == nil {
			out[to] = map[string]bool{}
		}
		for _, kind := range sub.Events {
			out[to][kind] = true
		}
	}
	return out
}

// DefaultKey is the key of an address in a Secret that names none.
const DefaultKey = "url"

func (n *Notifier) count(tenant, result string, by int) {
	if by > 0 && n.opts.Count != nil {
		n.opts.Count(tenant, result, by)
	}
}

// maxBusy bounds how many messages are under way at a time.
const maxBusy = 16

// dispatch sends to every destination that is due, and returns how long until
// the next one is.
func (n *Notifier) dispatch(ctx context.Context) time.Duration {
	wait := clockEvery
	if n.seen == nil { // who wants what is not known yet
		return wait
	}
	if n.dirty {
		wait = saveEvery
	}
	now, busy := n.opts.Now(), 0
	for _, r := range n.routes {
		if r.busy {
			busy++
		}
	}
	for i := range n.box.Pending {
		p := &n.box.Pending[i]
		if !n.wanted(p.Target) { // the tenant file has changed meanwhile
			p.Events, n.dirty = nil, true
		}
		if !n.speaks() {
			n.dirty = p.expire(now, handover) > 0 || n.dirty
			wait = min(wait, takeover)
			continue
		}
		if k := p.expire(now, maxAge); k > 0 {
			n.dirty = true
			n.count(p.Target.Tenant, "dropped", k)
		}
		r := n.routes[p.Target]
		if r == nil {
			r = &route{}
			n.routes[p.Target] = r
		}
		switch {
		case len(p.Events) == 0 || r.busy || busy >= maxBusy:
		case r.next.After(now):
			wait = min(wait, r.next.Sub(now))
		default:
			r.busy = true
			busy++
			go n.send(ctx, p.Target, n.insecure(p.Target), slices.Clone(p.Events))
		}
	}
	n.box.Pending = slices.DeleteFunc(n.box.Pending, func(p pending) bool { return len(p.Events) == 0 })
	return max(wait, time.Millisecond)
}

// takeover is how often one that keeps something looks whether it speaks now.
const takeover = time.Second

func (n *Notifier) speaks() bool { return n.opts.Speaks == nil || n.opts.Speaks() }

func (n *Notifier) wanted(to target) bool {
	t := n.seen.Tenants[to.Tenant]
	if t == nil {
		return false
	}
	_, ok := wants(t)[to]
	return ok
}

// insecure reports whether the tenant's file lets a destination be without TLS.
func (n *Notifier) insecure(to target) bool {
	t := n.seen.Tenants[to.Tenant]
	return t != nil && slices.ContainsFunc(t.Spec.Notify, func(sub v1alpha1.Notify) bool {
		return sub.AllowInsecure && targetOf(to.Tenant, sub) == to
	})
}

func targetOf(tenant string, sub v1alpha1.Notify) target {
	return target{Tenant: tenant, Secret: sub.URLSecretRef.Name, Key: cmp.Or(sub.URLSecretRef.Key, DefaultKey)}
}

// settle takes the result of a message.
func (n *Notifier) settle(r result) {
	route := n.routes[r.to]
	route.busy = false
	n.dirty = true
	now := n.opts.Now()
	if r.err == nil {
		if route.failures > 0 {
			n.opts.Log.Info("notifications arrive again", "tenant", r.to.Tenant, "secret", r.to.Secret)
		}
		route.failures, route.next = 0, now.Add(r.pause)
		n.box.taken(r.to, r.ids)
		n.count(r.to.Tenant, "sent", len(r.ids))
		return
	}
	pause := min(n.opts.Paces.Retry<<min(route.failures, 16), n.opts.Paces.MaxRetry)
	if route.failures == 0 {
		n.opts.Log.Warn("a notification could not be sent; it is tried again", "tenant", r.to.Tenant, "secret", r.to.Secret, "key", r.to.Key, "error", r.err)
	}
	n.count(r.to.Tenant, "failed", 1)
	route.failures++
	route.next = now.Add(pause)
}
