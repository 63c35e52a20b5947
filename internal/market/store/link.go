package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
)

// How the link to the store is judged.
const (
	// patience is how long the store may be out of reach before nobody is heard.
	patience = 10 * time.Second
	// retry is how soon a beat is tried again that could not be written.
	retry = time.Second
	// soonest is how soon after a beat the next one may follow that has news.
	soonest = 500 * time.Millisecond
	// lookEvery is how often the link is judged.
	lookEvery = time.Second
	// relist is how long a watch may lag before all is asked for anew: it may be one of
	// another state of the store, which tells nothing until that state is reached.
	relist = 4 * time.Second
	// calm is after what time that counts as the first time again, and maxRelists how often the
	// rest between two doubles.
	calm, maxRelists = 10 * time.Minute, 5
	// withdrawIn bounds how long a replica that stops tries to say so.
	withdrawIn = 5 * time.Second
	// clearEvery is how often what nobody names any more is deleted, orphansEvery how
	// often all parts are looked at for what nobody remembers.
	clearEvery, orphansEvery = time.Minute, time.Hour
)

// link is what is known of the way to the store. Shared's lock guards it.
type link struct {
	// cut: nobody is heard, since when and why.
	cut   bool
	since time.Time
	why   string
	// broken is why the watch is interrupted; empty while it is alive.
	broken string
	synced bool // all that there was has been told since it was interrupted
	// relisting: the store was set back, and not all that there is has been told since: what is
	// told may be older than what was told before.
	relisting bool
	// unwritten is why the newest beat could not be written, empty when it was.
	unwritten string
	// written is when the newest beat was written, seen the newest that came back
	// by the watch.
	written time.Time
	seen    int64
	awake   int64 // the beat that has to come back since the process was held up
	// doubt is since when something is wrong; zero when nothing is.
	doubt    time.Time
	fine     time.Time // since when nothing is wrong, after something was
	cleared  time.Time
	orphaned time.Time // when all parts were last looked at
	relisted time.Time // when all was last asked for because the watch lags
	relists  int       // how often lately
	tried    time.Time // when a beat was last tried
	soon     bool      // the next beat is not to wait for its time
	looked   time.Time // when it was last judged
	dropped  bool      // a beat came back without fields that it was written with, and that was said
	newest   string    // the highest version of an object that is known
	beaten   int       // bytes of whom was heard in the newest beat
}

// sees notes the version of an object that the store has, or had.
func (l *link) sees(version string) {
	if l.newest == "" || newer(version, l.newest) {
		l.newest = version
	}
}

// lags reports whether what this replica wrote does not come back by the watch.
func (l *link) lags(beat int64, now time.Time) bool {
	return beat > l.seen && !l.written.IsZero() && now.Sub(l.written) > 2*time.Second
}

// mayRelist reports whether all may be asked for again: an API server that is slow must not
// be asked for everything every few seconds, so that the rest doubles each time.
func (l *link) mayRelist(now time.Time) bool {
	since := now.Sub(l.relisted)
	return l.relisted.IsZero() || since >= patience<<l.relists || since >= calm
}

// relist notes that all is asked for again.
func (l *link) relist(now time.Time) {
	if now.Sub(l.relisted) >= calm {
		l.relists = 0
	}
	l.relisted, l.relists = now, min(l.relists+1, maxRelists)
}

// slept reports whether nobody listened since the link was judged last: the process was
// held up.
func (l *link) slept(now time.Time) bool {
	return !l.looked.IsZero() && now.Sub(l.looked) > patience
}

// wrong says what keeps this replica from hearing, "" for nothing.
func (l *link) wrong(beat int64, now time.Time, served bool, shares string) string {
	switch {
	case shares != "":
		return shares
	case l.broken != "":
		return "it cannot be watched: " + l.broken
	case !l.synced:
		return "it has not been read yet"
	case l.seen < l.awake:
		return "this replica stood still, and has not seen since what it writes: what its watch shows may be old"
	case l.unwritten != "":
		return "it cannot be written: " + l.unwritten
	case l.lags(beat, now):
		return fmt.Sprintf("what this replica wrote %s ago does not come back", now.Sub(l.written).Round(time.Second))
	case !served:
		return "no replica serves agents"
	}
	return ""
}

// Run implements Store.
func (s *Shared) Run(outer context.Context) error {
	group, ctx := errgroup.WithContext(outer)
	group.Go(func() error { return s.opts.API.Watch(ctx, &watching{s, ctx}) })
	group.Go(func() error {
		for ctx.Err() == nil {
			s.Tend(ctx)
			pause(ctx, lookEvery)
		}
		return nil
	})
	group.Go(func() error {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			s.Look(ctx)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			case <-s.soon:
				pause(ctx, soonest) // what comes meanwhile goes with it
			}
		}
	})
	err := group.Wait()
	s.Withdraw(context.WithoutCancel(outer))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Withdraw tells the other replicas that this one stops: whom it heard since its
// last beat, and that it lives no longer, so that they take over at once what it
// did. Run calls it when it ends; where the store cannot be reached the others find out by
// the beats that are missing. Nothing may be called after it.
func (s *Shared) Withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, withdrawIn)
	defer cancel()
	s.mu.Lock()
	reached := s.link.synced && !s.link.cut // that the watch has just ended says nothing
	s.mu.Unlock()
	if !reached {
		return
	}
	s.beat(ctx)
	if err := s.opts.API.DeleteHeartbeat(ctx, s.opts.Replica); err != nil {
		s.opts.Log.Warn("the heartbeat of this replica is not withdrawn; the others notice that it is gone within half a minute", "error", err)
	}
}

// Head tells the other replicas the newest commit of the ledger that this one
// knows, at once if it wrote it, so that they need not wait until they ask the
// remote again.
func (s *Shared) Head(commit string, wrote bool) {
	s.mu.Lock()
	news := s.beats.head != commit && wrote
	s.beats.head = commit
	s.link.soon = s.link.soon || news
	s.mu.Unlock()
	if news {
		s.hurry()
	}
}

// Called tells the other replicas that the fleet repo has news: a webhook reaches
// one of them.
func (s *Shared) Called() {
	s.mu.Lock()
	s.beats.calls++
	s.link.soon = true
	s.mu.Unlock()
	s.hurry()
}

func (s *Shared) hurry() {
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Look writes what is due and judges whether anybody can be heard. Run calls it
// every second.
func (s *Shared) Look(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	if s.link.slept(now) { // whoever stood still finds that out before it waits for anything
		s.mu.Unlock()
		s.judge()
		s.mu.Lock()
	}
	s.paces.share(len(s.beats.live(now))+1, now)
	due := s.link.synced && (s.link.tried.IsZero() || now.Sub(s.link.tried) >= beatEvery || s.link.unwritten != "" && now.Sub(s.link.tried) >= retry || s.link.soon && s.link.unwritten == "" && now.Sub(s.link.tried) >= gapAfter(s.link.beaten))
	s.mu.Unlock()
	if due {
		s.beat(ctx)
	}
	s.judge()
}

// Tend deletes what nobody needs any more and looks again at what could not be
// read. Run calls it every second, apart from Look: it may take long.
func (s *Shared) Tend(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	tidy := s.link.synced && !s.link.relisting && now.Sub(s.link.cleared) >= clearEvery
	s.mu.Unlock()
	s.settleDoubts(ctx)
	if tidy {
		limited, cancel := context.WithTimeout(ctx, clearEvery)
		defer cancel()
		s.tidy(limited)
	}
}

// doubted is how long a watch may take to tell of a list that a replica has heard.
const doubted = 3 * time.Second

// doubt notes that an object of the store is to be looked at.
func (s *Shared) doubt(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, noted := s.doubts[provider]; !noted && len(s.doubts) < maxDoubts && len(validation.IsDNS1123Subdomain(provider)) == 0 {
		s.doubts[provider] = doubt{s.opts.Now(), s.opts.Now()}
	}
}

// doubt is that an object is to be looked at, since when, and when it was looked at last.
type doubt struct{ since, looked time.Time }

// Bounds of doubts: how many are remembered and for how long, and how many are looked at
// each time. What is still in doubt then is noted again with the next Heartbeat.
const maxDoubts, looksAtOnce, doubtsFor = 20_000, 32, 10 * time.Minute

// settleDoubts looks at objects that the watch has not told, or that could not be
// read.
func (s *Shared) settleDoubts(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	var due []string
	for provider, d := range s.doubts {
		switch {
		case now.Sub(d.since) >= doubtsFor:
			delete(s.doubts, provider)
		case now.Sub(d.looked) >= doubted && len(due) < looksAtOnce:
			due = append(due, provider)
			s.doubts[provider] = doubt{d.since, now}
		}
	}
	s.mu.Unlock()
	slices.Sort(due)
	for _, provider := range due {
		was := s.known(provider)
		a, err := s.opts.API.Advertisement(ctx, provider)
		switch {
		case errors.Is(err, ErrNotFound):
			s.gone(provider)
		case err == nil && was != nil && newer(was.version, a.ResourceVersion):
			s.gone(provider) // the store was set back to before what was known: that is gone
		case err == nil:
			err = s.take(ctx, a)
			s.note("advertisement "+provider, err)
			if unreached(err) != nil {
				continue
			}
		default:
			continue
		}
		s.mu.Lock()
		delete(s.doubts, provider)
		s.mu.Unlock()
	}
}

// beat writes this replica's Heartbeat.
func (s *Shared) beat(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	s.link.tried, s.link.soon = now, false
	known := s.link.newest
	h, err := s.beats.next(s.opts.Replica, s.opts.Life, s.opts.Serving())
	if err == nil {
		s.link.beaten = len(h.Spec.Heard)
	}
	s.mu.Unlock()
	if err == nil {
		h.Spec.Address, h.Spec.Fleet, h.Spec.Away = s.opts.Address, s.opts.Fleet, s.opts.Away()
		if s.opts.Pushes != nil {
			h.Spec.Pushes = s.opts.Pushes()
		}
		if s.opts.Holds != nil {
			reads, pushes := s.opts.Holds()
			h.Spec.ReadsHeld, h.Spec.PushesHeld = seconds(reads), seconds(pushes)
		}
		if s.opts.Connections != nil {
			n := int32(min(s.opts.Connections(), math.MaxInt32)) //nolint:gosec // bounded
			h.Spec.Connections = &n
		}
		h.Spec.At = metav1.NewTime(now.UTC().Truncate(time.Second))
		limited, cancel := context.WithTimeout(ctx, patience/2)
		var version string
		version, err = s.opts.API.PutHeartbeat(limited, h)
		cancel()
		s.wrote("heartbeat", s.opts.Replica, err)
		if err == nil && newer(known, version) {
			err = fmt.Errorf("%w: this replica's Heartbeat was written as version %s, and version %s was known before", ErrSetBack, version, known)
			s.mu.Lock()
			s.beats.n, s.link.newest = h.Spec.Beat, version
			s.mu.Unlock()
		}
	}
	if errors.Is(err, ErrSetBack) {
		s.setBack()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			s.link.unwritten = err.Error()
		}
		return
	}
	s.link.unwritten, s.link.written = "", s.opts.Now()
	s.beats.n = h.Spec.Beat
}

// setBack follows a store that was restored from an older state, or emptied: what it
// had of any provider or cluster is written again with its next report, what was to be
// said of it as known is not, and all that there is is told anew. What this replica
// knows stays: it is newer.
func (s *Shared) setBack() {
	s.mu.Lock()
	for provider := range s.lists {
		s.lost[provider] = true
	}
	for cluster := range s.seen {
		s.setSeen(cluster, nil)
	}
	clear(s.beats.heard)
	clear(s.named) // versions begin again; all objects are reported again before anything is tidied
	s.link.relisting = true
	s.mu.Unlock()
	s.opts.API.Again()
	s.opts.Log.Warn("the market's store was set back to an older state: what providers report is written to it again")
}

// tidy deletes what nobody needs any more; it is tried again when it fails.
func (s *Shared) tidy(ctx context.Context) {
	s.mu.Lock()
	now := s.opts.Now()
	look := s.link.orphaned.IsZero() || now.Sub(s.link.orphaned) >= orphansEvery
	s.link.cleared = now
	gone := s.beats.gone(now)
	s.mu.Unlock()
	var errs []error
	if look {
		errs = append(errs, s.orphans(ctx))
	}
	errs = append(errs, s.clear(ctx))
	for _, replica := range gone {
		errs = append(errs, s.opts.API.DeleteHeartbeat(ctx, replica))
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		s.opts.Log.Debug("the market's store is not tidied", "error", err)
	}
}

// judge cuts the market off when the store has been out of reach for too long,
// and lets it listen again when it is back.
func (s *Shared) judge() {
	s.mu.Lock()
	now := s.opts.Now()
	l := &s.link
	asleep := l.slept(now)
	if asleep {
		l.awake, l.soon = s.beats.n+1, true
	}
	wrong := l.wrong(s.beats.n, now, s.opts.Serving() || s.beats.serves(now), s.beats.shares(now))
	lags := l.lags(s.beats.n, now)
	var cut, listen, again bool
	l.looked = now
	switch {
	case wrong == "":
		if listen = l.cut; listen || !l.doubt.IsZero() {
			l.fine = now
		}
		l.cut, l.doubt, l.why = false, time.Time{}, ""
	case l.cut:
		l.why = wrong
		again = lags && l.mayRelist(now)
	case asleep: // as long as it is not known that somebody is heard, silence counts for nothing
		cut = true
		clear(s.beats.heard)
		l.cut, l.since, l.why = true, now, wrong
	case l.doubt.IsZero():
		l.doubt = now
	case lags && now.Sub(l.doubt) >= relist && l.mayRelist(now):
		again = true
	case now.Sub(l.doubt) >= patience:
		cut = true
		clear(s.beats.heard) // it would be told as if it were heard when this is over
		l.cut, l.since, l.why = true, l.doubt, wrong
	}
	if again {
		l.relist(now)
	}
	s.mu.Unlock()
	if again {
		s.opts.API.Again()
	}
	switch {
	case cut:
		s.opts.Log.Warn("the market's store cannot be used: no agent's report is taken, and none is decided by", "why", wrong)
		s.opts.Market.Cut()
	case listen:
		s.opts.Log.Info("the market's store can be used: agents' reports are taken")
		s.opts.Market.Listen()
	default:
		return
	}
	if s.opts.Observer != nil {
		s.opts.Observer.StoreCut(cut)
	}
}

// listening reports whether what a watch tells counts as heard.
func (s *Shared) listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.hears(s.opts.Now())
}

// hears reports whether what the watch tells is of now.
func (l *link) hears(now time.Time) bool {
	return !l.cut && l.synced && !l.relisting && !l.slept(now)
}

// Follow hands a watcher of the store to whoever tells it, where Run does not. The
// context is for what the watcher asks of the API.
func (s *Shared) Follow(ctx context.Context, follow func(Watcher)) { follow(&watching{s, ctx}) }

type watching struct {
	*Shared
	ctx context.Context //nolint:containedctx // of one Run, for the parts of large reports
}

// Advertisement implements Watcher.
func (w *watching) Advertisement(a *marketcrd.Advertisement) {
	err := w.take(w.ctx, a)
	w.note("advertisement "+a.Name, err)
	if forged(err) {
		w.gone(a.Name) // the next report writes it again
	}
	if unreached(err) != nil {
		w.doubt(a.Name)
	}
}

// AdvertisementGone implements Watcher.
func (w *watching) AdvertisementGone(provider string) {
	w.gone(provider)
	w.mu.Lock()
	delete(w.named, provider)
	w.mu.Unlock()
}

// held tells for how long the fleet repo's server is to be left alone.
func (s *Shared) held(by hold) {
	if s.opts.Held != nil && (by.reads > 0 || by.pushes > 0) {
		s.opts.Held(by.reads, by.pushes)
	}
}

// Heartbeat implements Watcher.
func (w *watching) Heartbeat(h *marketcrd.Heartbeat) {
	s := w.Shared
	foreign := s.ours("heartbeat "+h.Name, h)
	if s.note("heartbeat "+h.Name, foreign); foreign != nil && h.Name != s.opts.Replica {
		return // the next beat writes it again
	}
	s.mu.Lock()
	s.link.sees(h.ResourceVersion)
	if h.Name == s.opts.Replica {
		dropped := false
		if h.Spec.Life == s.opts.Life {
			s.link.seen = max(s.link.seen, h.Spec.Beat)
			dropped = !s.link.dropped && s.opts.Connections != nil && h.Spec.Connections == nil
			s.link.dropped = s.link.dropped || dropped
		}
		s.mu.Unlock()
		if h.Spec.Life != s.opts.Life && foreign == nil { // what it was told before it started again
			s.held(heldBy(h, s.opts.Now(), false))
		}
		if dropped {
			s.opts.Log.Warn("the definitions of market.fleetbroker.io in the cluster are older than this program: the API server drops fields of what replicas share, such as their connections and pushes", "remedy", remedies[RefusalInvalid])
		}
		return
	}
	if s.opts.Fleet != "" && h.Spec.Fleet != "" && h.Spec.Fleet != s.opts.Fleet {
		s.beats.strange(h, s.opts.Now())
		s.mu.Unlock()
		return
	}
	delete(s.beats.foreign, h.Name)
	heard, more, err := s.beats.take(h, s.opts.Now())
	counts := s.link.hears(s.opts.Now())
	s.mu.Unlock()
	s.note("heartbeat "+h.Name, err)
	switch {
	case more.hook && s.opts.Webhook != nil:
		s.opts.Webhook()
	case (more.repo || more.hook) && s.opts.News != nil:
		s.opts.News()
	}
	if more.pushes > 0 && s.opts.Pushed != nil {
		s.opts.Pushed(int(more.pushes))
	}
	s.held(more.hold)
	if !counts {
		return
	}
	for _, provider := range slices.Sorted(maps.Keys(heard)) { // in one order: a run can be played again
		generation := heard[provider]
		if cluster, ok := strings.CutPrefix(provider, observedBy); ok {
			s.again(h.Name, cluster, generation)
			continue
		}
		switch l := s.known(provider); {
		case l == nil || l.generation != generation: // the watch will tell, or has failed to
			s.opts.Market.Vouch(provider)
			s.doubt(provider)
		default:
			_ = tell(s.opts.Market, Report{Cluster: provider, Generation: generation}, lateWord) // it has the list
		}
	}
}

// HeartbeatGone implements Watcher.
func (w *watching) HeartbeatGone(replica string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.beats.others, replica)
	delete(w.beats.foreign, replica)
}

// Synced implements Watcher.
func (w *watching) Synced() {
	w.mu.Lock()
	w.link.broken, w.link.synced, w.link.relisting = "", true, false
	w.mu.Unlock()
}

// Broken implements Watcher.
func (w *watching) Broken(err error) {
	w.mu.Lock()
	w.link.broken = err.Error()
	w.mu.Unlock()
}
