// Package spread divides the consumers among the replicas of the daemon that deliver:
// each cluster is one replica's, the others neither watch it nor ask for its Lease, and
// know of it what that one tells through the store that replicas share.
//
//	reconciler ─► Deliverer ─► delivery, of the clusters that are this replica's
//	                 ▲  └────► what it sees there ─► store ─► the other replicas
//	                 └──────── what others see in theirs ◄── store
//
// # Invariants
//
//   - Whose a cluster is follows from rendezvous hashing over the live replicas: those
//     whose Heartbeat says that they serve and that the fleet repo answers them, and that
//     miss no beat (13 s). Correctness
//     does not hang on it: nothing is written without the cluster's own Lease. Who is
//     only slow is competed with for that Lease, keeps it, and is left alone when its
//     next beat comes.
//   - A cluster that is delivered to moves only when its holder hands it over: one at a
//     time, at most a tenth of the holder's in a minute (at least one), and none in which
//     a contract is being released. Who takes over begins when it hears that it was
//     handed over, when its holder has withdrawn or misses a beat, or when nobody was heard
//     for 30 s.
//   - The replica that a cluster belongs to may be unable to reach it: when nobody was
//     heard to deliver there for a minute, the next one in order tries, and keeps it for
//     an hour.
//   - A word counts for 30 s by the hearer's own clock; after that the cluster is
//     unreachable, not gone. Words are ordered by term: the epoch of a later holder is
//     above that of every word that it heard, and the store takes no older one: it names
//     the newest, and who still leads at the next look goes above it.
//   - What is absent is believed only of a word by the manifests that this replica has,
//     too.
//   - Cut off from the store nothing moves: who delivers goes on by the ledger. A replica
//     that has not reached it for a minute since its start tries all clusters.
//   - Without a store that replicas share (one daemon) all clusters are this one's, and
//     nothing here does anything.
//
// # Concurrency
//
// All methods are safe for concurrent use. Run is one goroutine; no lock is held while
// the store is asked.
package spread

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
)

// Times of who delivers where.
const (
	// fresh is how long another replica's word counts.
	fresh = 30 * time.Second
	// turn is how long nobody may be heard to deliver before the next in order tries.
	turn = time.Minute
	// kept is how long who had to try keeps a cluster.
	kept = time.Hour
	// tellEvery is how often is told what stays the same.
	tellEvery = 10 * time.Second
	// lookEvery is how often is looked whose a cluster is.
	lookEvery = time.Second
	// moveEvery is how long a cluster that was handed over is waited for, and the time in
	// which a tenth may move.
	moveEvery = time.Minute
)

// Shared is the store that replicas share, as far as it matters here.
type Shared interface {
	// Observe makes every replica know what is seen in a cluster. A *wire.StaleEpochError
	// names the newer word that is known.
	Observe(ctx context.Context, cluster string, report wire.Observed) error
	// Deliverers are the replicas that live and serve and that the fleet repo answers, this
	// one if it is one, without those that miss a beat; cut: that is not known.
	Deliverers() (replicas []string, cut bool)
	// Beats reports whether another replica is known and misses no beat.
	Beats(replica string) bool
}

// Local delivers from here; *delivery.Deliverer does.
type Local interface {
	Deliver(desired map[string]delivery.Desired)
	Observe() (v1alpha1.ConsumerObservations, uint64)
	Status() map[string]delivery.Status
	Differing() map[string]bool
	Changed() <-chan struct{}
}

// Deliverer is delivery of which this replica has a part. Make it with New.
type Deliverer struct {
	*delivery.Deliverer

	local   Local
	clock   clock.WithTicker
	log     *slog.Logger
	changed chan struct{}
	soon    chan struct{} // Run is to look now

	mu      sync.Mutex
	shared  Shared // nil: all is this one's
	replica string
	joined  time.Time
	known   bool // the store was in reach since
	desired map[string]delivery.Desired
	places  map[string]*place
	moved   []time.Time // when clusters were handed over in the last minute
	moving  string      // the one that was handed over last and is not yet heard of

	base       v1alpha1.ConsumerObservations // of local, as last merged
	said       map[string]map[string]v1alpha1.ConsumerObservation
	merged     v1alpha1.ConsumerObservations
	generation uint64
	admission  map[string]string // as Observe saw it last, and how often it changed
	admissions uint64
}

// place is what is known of who delivers to a cluster.
type place struct {
	mine bool
	// quiet is since when nobody else is known to deliver there.
	quiet time.Time
	// tried is when this replica took a cluster that was another's; zero: it did not.
	tried time.Time
	// word is what another replica said last, at when; its generation is above all others.
	word  *wire.Observed
	by    string // the replica; "" where that is not known
	at    time.Time
	last  wire.Generation
	began time.Time
	// own is the generation of this replica's words, sent the last that was taken, when.
	own    wire.Generation
	sent   *wire.Observed
	sentAt time.Time
	failed string // why the last was not told, without times, as logged
}

// New makes a Deliverer that delivers to all clusters.
func New(o delivery.Options) *Deliverer {
	d := delivery.New(o)
	out := over(d, o.Clock, o.Log)
	out.Deliverer = d
	return out
}

func over(local Local, c clock.WithTicker, log *slog.Logger) *Deliverer {
	if c == nil {
		c = clock.RealClock{}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Deliverer{local: local, clock: c, log: log, changed: make(chan struct{}, 1), soon: make(chan struct{}, 1), places: map[string]*place{}}
}

// Join makes it one of several replicas, by its name among them. It is called before
// anything else.
func (d *Deliverer) Join(shared Shared, replica string) {
	d.shared, d.replica, d.joined = shared, replica, d.clock.Now()
}

// Spreads reports whether replicas share what they see of clusters: then one that does not
// decide delivers to its part too.
func (d *Deliverer) Spreads() bool { return d.shared != nil }

// Deliver sets what each consumer shall have, by cluster, and returns at once.
func (d *Deliverer) Deliver(desired map[string]delivery.Desired) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared == nil {
		d.local.Deliver(desired)
		return
	}
	d.desired = desired
	for name := range d.places {
		if !spreads(desired[name].Mode) || desired[name].Cluster == nil {
			delete(d.places, name)
		}
	}
	now := d.clock.Now()
	for name, want := range desired {
		if spreads(want.Mode) && d.places[name] == nil {
			d.places[name] = &place{quiet: now, began: now}
		}
	}
	d.hand()
	// Whose clusters are is judged by Run alone, which tells what it hands over.
	select {
	case d.soon <- struct{}{}:
	default:
	}
}

// spreads reports whether a cluster of this mode is reached from the daemon.
func spreads(mode string) bool {
	return mode == "" || mode == delivery.Direct || mode == delivery.Flux || mode == delivery.ArgoCD
}

// hand gives the clusters that are this replica's to be delivered; mu is held.
func (d *Deliverer) hand() {
	own := make(map[string]delivery.Desired, len(d.desired))
	for name, want := range d.desired {
		if p := d.places[name]; spreads(want.Mode) && (p == nil || !p.mine) {
			continue // a cluster that is missing is not touched
		}
		own[name] = want
	}
	d.local.Deliver(own)
}

// judge decides which clusters are this replica's, and reports whether others are now
// than before; mu is held.
func (d *Deliverer) judge(now time.Time) (changed bool) {
	live, cut := d.shared.Deliverers()
	d.known = d.known || !cut
	if cut {
		if d.known || now.Sub(d.joined) < turn {
			return false
		}
		live = []string{d.replica} // nobody knows of others: the clusters' Leases tell who delivers
	}
	status := d.local.Status()
	d.moved = slices.DeleteFunc(d.moved, func(at time.Time) bool { return now.Sub(at) >= moveEvery })
	for _, name := range slices.Sorted(maps.Keys(d.desired)) {
		want := d.desired[name]
		if !spreads(want.Mode) {
			continue
		}
		p := d.places[name]
		at := rank(name, d.replica, live)
		gitops := want.Mode == delivery.Flux || want.Mode == delivery.ArgoCD
		leads := p.mine && (status[name].Leading || gitops)
		led := p.word != nil && p.word.Leading && now.Sub(p.at) < fresh && (p.by == "" || d.shared.Beats(p.by))
		if led || leads {
			p.quiet = now
		}
		if led && d.moving == name {
			d.moving = ""
		}
		was := p.mine
		switch {
		case leads && !(led && gitops && at > 0):
			p.mine = at == 0 || !d.mayMove(name, p, now)
			if !p.mine {
				d.moving, d.moved = name, append(d.moved, now)
				d.log.Info("hands a cluster over to another replica", "cluster", name)
			}
		case led:
			p.mine = false
		case !p.mine && now.Sub(p.quiet) >= time.Duration(at)*turn:
			p.mine, p.tried = true, time.Time{}
			if at > 0 {
				p.tried = now
			}
			p.own = wire.Generation{Epoch: max(uint64(max(now.UnixNano(), 1)), p.last.Epoch+1)} //nolint:gosec // above zero
			p.sent = nil
			d.log.Info("delivers to a cluster", "cluster", name, "rank", at)
		}
		changed = changed || was != p.mine
	}
	return changed
}

// mayMove reports whether a cluster may be handed over now; mu is held.
func (d *Deliverer) mayMove(name string, p *place, now time.Time) bool {
	if !p.tried.IsZero() && now.Sub(p.tried) < kept || p.sent == nil {
		return false
	}
	if d.moving != "" && len(d.moved) > 0 && now.Sub(d.moved[len(d.moved)-1]) < moveEvery {
		return false
	}
	mine := 0
	for _, p := range d.places {
		if p.mine {
			mine++
		}
	}
	if len(d.moved) >= max(1, mine/10) {
		return false
	}
	return !slices.ContainsFunc(d.desired[name].Contracts, func(c *v1alpha1.Contract) bool { return c.Status.Phase == v1alpha1.PhaseReleasing })
}

// Changed receives when Observe may say something new.
func (d *Deliverer) Changed() <-chan struct{} {
	if d.shared == nil {
		return d.local.Changed()
	}
	return d.changed
}

// Run tells what is seen here and looks whose clusters are, until the context ends.
func (d *Deliverer) Run(ctx context.Context) error {
	if d.shared == nil {
		return nil
	}
	ticker := d.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.soon:
		case <-d.local.Changed():
			d.wake()
		case <-ticker.C():
		}
		d.look(ctx)
	}
}

// look is one look at whose clusters are, and tells what is new in this replica's.
func (d *Deliverer) look(ctx context.Context) {
	now := d.clock.Now()
	d.mu.Lock()
	var before []string
	for name, p := range d.places {
		if p.mine {
			before = append(before, name)
		}
	}
	last := d.reports(before)
	if d.judge(now) {
		d.hand()
		d.wake()
	}
	var over []string
	for _, name := range before {
		if p := d.places[name]; p != nil && !p.mine {
			over = append(over, name)
		}
	}
	lapsed := false
	for _, p := range d.places {
		if p.word != nil && !p.mine && now.Sub(p.at) >= fresh {
			p.word, lapsed = nil, true
		}
	}
	d.mu.Unlock()
	if lapsed {
		d.wake()
	}
	slices.Sort(before)
	for _, name := range before {
		report, ended := last[name], slices.Contains(over, name)
		if ended && report != nil {
			report.Leading = false // the last word of this term
		}
		d.tell(ctx, name, report, ended, now)
	}
}

// reports are what is seen in clusters that this replica delivers to, nil where it does
// not; mu is held.
func (d *Deliverer) reports(names []string) map[string]*wire.Observed {
	status := d.local.Status()
	// The root before what is seen: newer manifests say less of what is absent.
	roots := make(map[string]string, len(names))
	for _, name := range names {
		roots[name] = d.desired[name].Tree.Root.String()
	}
	seen, _ := d.local.Observe()
	differs := d.local.Differing()
	out := make(map[string]*wire.Observed, len(names))
	for _, name := range names {
		s := status[name]
		gitops := d.desired[name].Mode == delivery.Flux || d.desired[name].Mode == delivery.ArgoCD
		if !(s.Leading || gitops && s.Reachable) {
			continue
		}
		contracts := seen[name]
		if contracts == nil {
			contracts = map[string]v1alpha1.ConsumerObservation{}
		}
		report := &wire.Observed{
			Root: roots[name], Applied: !s.Commit.IsZero() && s.Pending == 0, Contracts: contracts,
			Leading: true, Pending: s.Pending, Problem: s.Problem, Troubles: s.Troubles, Admission: s.Admission, Differs: differs[name],
		}
		report.Fit()
		out[name] = report
	}
	return out
}

// tell makes the other replicas know what is seen in a cluster, when it is something
// else or has not been said for a while.
func (d *Deliverer) tell(ctx context.Context, name string, report *wire.Observed, ended bool, now time.Time) {
	d.mu.Lock()
	p := d.places[name]
	if p == nil || report == nil || !ended && p.sent != nil && now.Sub(p.sentAt) < tellEvery && same(p.sent, report) {
		d.mu.Unlock()
		return
	}
	if p.own.Epoch <= p.last.Epoch { // another replica spoke since: this is a later term
		p.own = wire.Generation{Epoch: max(uint64(max(now.UnixNano(), 1)), p.last.Epoch+1)} //nolint:gosec // above zero
	}
	p.own.N++
	report.Generation = p.own.String()
	d.mu.Unlock()
	err := d.shared.Observe(ctx, name, *report)
	d.mu.Lock()
	defer d.mu.Unlock()
	var stale *wire.StaleEpochError
	switch {
	case errors.As(err, &stale):
		if !ended { // the next look is of a later term, if it finds that this replica still leads
			p.last.Epoch, p.sent = max(p.last.Epoch, stale.Last.Epoch, p.own.Epoch), nil
		}
	case err != nil:
		lasting := reason(err)
		if p.failed != lasting {
			d.log.Warn("what is seen in a cluster is not shared with other replicas", "cluster", name, "error", err)
		}
		p.failed = lasting
	default:
		p.sent, p.sentAt, p.failed = report, now, ""
	}
	if ended { // until the next holder speaks this is what is known
		p.word, p.at, p.quiet, p.by = report, now, now, ""
	}
}

// reason is what an error says, without for how long one is to wait: that is another time
// with each look.
func reason(err error) string {
	var wait interface{ Reason() string }
	if errors.As(err, &wait) {
		return wait.Reason()
	}
	return err.Error()
}

// Observed takes what a cluster's own agent sees there.
func (d *Deliverer) Observed(cluster string, report wire.Observed) error {
	return d.Told("", cluster, report)
}

// Told takes what another replica says of a cluster: what its agent told that one or,
// where replicas deliver, what that one sees there. "" is no replica's name.
func (d *Deliverer) Told(replica, cluster string, report wire.Observed) error {
	d.mu.Lock()
	if d.shared == nil || !spreads(d.desired[cluster].Mode) {
		d.mu.Unlock()
		return d.Deliverer.Observed(cluster, report)
	}
	defer d.mu.Unlock()
	p, now := d.places[cluster], d.clock.Now()
	g, err := wire.ParseGeneration(report.Generation)
	if p == nil || err != nil || g.Cmp(p.last) < 0 {
		return err
	}
	if p.mine && p.sent != nil && g.Epoch < p.own.Epoch { // of a term before this one's
		return nil
	}
	p.last, p.word, p.at, p.by = g, &report, now, replica
	d.wake()
	return nil
}

// Forgotten takes that the store has no word of a cluster any more: the next one counts
// whatever its term.
func (d *Deliverer) Forgotten(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.places[cluster]; p != nil {
		p.last, p.sent = wire.Generation{}, nil
	}
}

// Observe is what consumers say about contracts, and a number that grows when they say
// something else.
func (d *Deliverer) Observe() (v1alpha1.ConsumerObservations, uint64) {
	base, generation := d.local.Observe()
	admission := d.Admission()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !maps.Equal(admission, d.admission) {
		d.admission = admission
		d.admissions++
	}
	if d.shared == nil {
		return base, generation + d.admissions
	}
	now, said := d.clock.Now(), map[string]map[string]v1alpha1.ConsumerObservation{}
	for name, p := range d.places {
		if p.mine {
			continue
		}
		next := p.observe(d.desired[name], now)
		if was := d.said[name]; was != nil && maps.EqualFunc(next, was, func(a, b v1alpha1.ConsumerObservation) bool { return a.Equal(&b) }) {
			next = was // a cluster that says the same keeps its map
		}
		said[name] = next
	}
	if d.merged != nil && sameMaps(base, d.base) && sameMaps(said, d.said) {
		return d.merged, d.generation + d.admissions
	}
	d.base, d.said = base, said
	d.merged = maps.Clone(v1alpha1.ConsumerObservations(said))
	maps.Copy(d.merged, base)
	d.generation++
	return d.merged, d.generation + d.admissions
}

// Admission is the version of MutatingAdmissionPolicy that each consumer serves, as
// wire.Observed.Admission has it, without those of which it is not known. A change of it
// changes the number of Observe.
func (d *Deliverer) Admission() map[string]string {
	out := map[string]string{}
	for name, s := range d.local.Status() {
		if s.Admission != "" {
			out[name] = s.Admission
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, p := range d.places {
		if !p.mine && p.word != nil && p.word.Admission != "" {
			out[name] = p.word.Admission
		}
	}
	return out
}

// Differing are the clusters of which the ledger has other manifests than are rendered.
func (d *Deliverer) Differing() map[string]bool {
	out := d.local.Differing()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, p := range d.places {
		if !p.mine && p.word != nil && p.word.Differs && p.word.Root == d.desired[name].Tree.Root.String() {
			out[name] = true
		}
	}
	return out
}

// Refused is how much is not delivered, by each cluster that is delivered to from here: what
// is handed over or leaves the fleet is not among them any more.
func (d *Deliverer) Refused() map[string]int {
	out := map[string]int{}
	for name, s := range d.local.Status() {
		out[name] = s.Refused
	}
	return out
}

func (d *Deliverer) wake() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}
