package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Options configure a Shared.
type Options struct {
	// API of the objects. It is needed.
	API API
	// Market that is told. It is needed.
	Market *market.Market
	// Replica is this one's name, a DNS subdomain that no other replica has. It is needed.
	Replica string
	// Life is another one with each start. It is needed.
	Life string
	// Fleet is the id of the fleet, "" where it has none: the objects of a namespace are
	// one fleet's.
	Fleet string
	// Address at which other replicas reach this one, "" where they do not.
	Address string
	// Connections is how many agents' connections this replica has; nil: it does not say.
	Connections func() int
	// Pushes is how many pushes to the fleet repo this replica has sent that the ledger does
	// not show; Pushed is told how many another one has since its last beat. Nil: nobody counts.
	Pushes func() int64
	Pushed func(n int)
	// Holds is for how long the fleet repo's server asks this replica to be left alone with
	// reads and with pushes; Held is told what it asked of another one, or of this one before
	// it started again. Nil: nobody asks.
	Holds func() (reads, pushes time.Duration)
	Held  func(reads, pushes time.Duration)
	// Serving reports whether agents can reach this replica; nil: they can.
	Serving func() bool
	// Away reports whether the fleet repo has not answered this replica for long; nil: it
	// has.
	Away func() bool
	// Now is the clock; only what passes on it counts. Default time.Now.
	Now func() time.Time
	// Observed is told what another replica heard of a cluster, or sees there itself; nil:
	// nobody.
	Observed func(replica, cluster string, report wire.Observed)
	// Unobserved is called when what was seen of a cluster is deleted: the next word counts
	// whatever its generation; nil: nobody.
	Unobserved func(cluster string)
	// News is called when another replica knows of news of the fleet repo; nil: nobody.
	News func()
	// Webhook is called in place of News when a webhook told another replica of news: of the
	// fleet repo or a pull request; nil: News is.
	Webhook func()
	// Observer may be nil.
	Observer Observer
	// Log may be nil.
	Log *slog.Logger
}

// Observer is told what a store does, for metrics. Methods return at once.
type Observer interface {
	// StoreWrote reports a write, by kind (advertisement, part, observation, heartbeat) and result (ok, conflict, refused, error).
	StoreWrote(kind, result string)
	// StoreCut reports whether the store is out of reach.
	StoreCut(cut bool)
}

// Shared is the market that replicas have in common. Make it with NewShared and
// run it.
type Shared struct {
	opts Options
	soon chan struct{} // a beat is not to wait for its time

	// telling is held while a list becomes known and the market is told of it: what is
	// known, by whoever holds it, the market has. It is taken before mu.
	telling sync.Mutex

	mu     sync.Mutex
	lists  map[string]*list // by provider, as the store has them
	stored int64            // what all lists take, packed
	paces  paces
	beats  beats
	link   link
	bad    map[string]string    // objects that could not be used, with why, as last logged
	stale  map[string]time.Time // parts that no object names, since when
	named  map[string]naming    // by provider, the parts of an object that is no list
	seen   map[string]*seen     // by cluster, as the store has it
	// lost are providers of which the store has nothing any more, or something older
	// than what is known: the next report is written whatever it says.
	lost map[string]bool
	// doubts are providers of which an object could not be read, or another list is
	// heard of than is known, since when; they are looked at again.
	doubts map[string]doubt
	// refused are objects whose last write was refused.
	refused map[string]refusal
	// cuts are clusters of which not all that is seen fits, with what was logged.
	cuts    map[string]string
	foreign foreign
	// removed are clusters of which there are objects and that are not in the fleet, since when.
	removed map[string]time.Time
}

// list is a provider's as the store has it. It never changes.
type list struct {
	generation wire.Generation
	digest     string
	version    string // resourceVersion
	size       int64  // packed
	parts      []string
	replica    string // that wrote it
	content    *wire.FlavorReport
}

// older reports whether a list is not what comes after another one.
func (l *list) older(than *list) bool {
	if than == nil {
		return false
	}
	c := l.generation.Cmp(than.generation)
	return c < 0 || c == 0 && l.digest == than.digest
}

// NewShared makes a store that has read nothing yet: nobody is heard before Run.
func NewShared(o Options) *Shared {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Away == nil {
		o.Away = func() bool { return false }
	}
	if o.Serving == nil {
		o.Serving = func() bool { return true }
	}
	s := &Shared{opts: o, soon: make(chan struct{}, 1), lists: map[string]*list{}, paces: newPaces(), beats: newBeats(), bad: map[string]string{}, stale: map[string]time.Time{}, named: map[string]naming{}, seen: map[string]*seen{}, lost: map[string]bool{}, doubts: map[string]doubt{}, refused: map[string]refusal{}, cuts: map[string]string{}, foreign: foreign{last: map[string]told{}}, removed: map[string]time.Time{}}
	s.link = link{since: o.Now(), why: "it has not been read yet", cut: true}
	o.Market.Cut()
	return s
}

// Status implements Store.
func (s *Shared) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	out := Status{Shared: true, Replicas: append(s.beats.live(now), s.opts.Replica)}
	slices.Sort(out.Replicas)
	if s.link.cut {
		out.Cut, out.Since = s.link.why, s.link.since
	}
	out.Refused = s.refusals(now)
	out.Foreign = s.foreign.count
	return out
}

// Report implements Store.
func (s *Shared) Report(ctx context.Context, r Report) error {
	if cause := s.cutOff(); cause != nil {
		return cause
	}
	if r.Content == nil {
		return s.renew(ctx, r)
	}
	if err := s.opts.Market.Check(r.Cluster, r.Generation, r.Content.Flavors); err != nil {
		return err
	}
	if err := market.CheckDemand(r.Content.Demand); err != nil {
		return fmt.Errorf("report of %s: %w", r.Cluster, err)
	}
	packed, err := pack(r.Content)
	if err != nil {
		return fmt.Errorf("report of %s: %w", r.Cluster, err)
	}
	return s.put(ctx, r, packed)
}

func (s *Shared) cutOff() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.cut {
		return &CutError{s.link.why}
	}
	return nil
}

// renew takes a report that says that a list still holds.
func (s *Shared) renew(ctx context.Context, r Report) error {
	switch l := s.known(r.Cluster); {
	case s.isLost(r.Cluster):
		return market.ErrUnknownBase
	case l != nil && l.generation == r.Generation:
		return s.heardHere(r.Cluster, l)
	}
	if err := s.mayLook(r.Cluster, "the list of "+r.Cluster); err != nil {
		return err
	}
	// A watch may lag: the object itself tells.
	a, err := s.opts.API.Advertisement(ctx, r.Cluster)
	switch {
	case errors.Is(err, ErrNotFound):
		return market.ErrUnknownBase
	case err != nil:
		return &CutError{err.Error()}
	}
	l, err := s.read(ctx, a)
	switch {
	case err != nil: // somebody wrote what nobody can read: the next report replaces it
		return market.ErrUnknownBase
	case r.Generation.Cmp(l.generation) < 0:
		return &market.StaleEpochError{Last: l.generation}
	case r.Generation != l.generation:
		return market.ErrUnknownBase
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.keep(r.Cluster, l)
	return s.heardHere(r.Cluster, l)
}

func (s *Shared) isLost(provider string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[provider]
}

// heardHere notes that a provider was heard by this replica, and that its list holds.
func (s *Shared) heardHere(cluster string, l *list) error {
	s.mu.Lock()
	s.beats.hear(cluster, l.generation)
	s.mu.Unlock()
	err := current(tell(s.opts.Market, Report{Cluster: cluster, Generation: l.generation}, 0))
	if errors.Is(err, market.ErrUnknownBase) { // the market is behind: this list has not been told yet
		err = current(s.tell(cluster, l, here))
	}
	return err
}

// current is the error of telling the market what the store has, which is none
// where the market has heard something newer meanwhile.
func current(err error) error {
	var stale *market.StaleEpochError
	if errors.As(err, &stale) {
		return nil
	}
	return err
}

// Newest makes the market know the lists of some providers as the store has them at
// this moment: a watch may lag behind a report that another replica acknowledged. An
// error means that it is not known.
func (s *Shared) Newest(ctx context.Context, providers []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(asked)
	for _, provider := range providers {
		group.Go(func() error {
			a, err := s.opts.API.Advertisement(ctx, provider)
			if errors.Is(err, ErrNotFound) { // a file's, or somebody deleted it, which withdraws nothing
				return nil
			}
			if err == nil {
				err = unreached(s.take(ctx, a))
			}
			if err != nil {
				return fmt.Errorf("look what %s offers now: %w", provider, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// unreached is an error of reaching the store, and none of what stands there: what
// nobody can read is left out.
func unreached(err error) error {
	var cut *CutError
	if errors.As(err, &cut) {
		return err
	}
	return nil
}

// take makes the market know an object of the store, and hear it if anybody can be
// heard.
func (s *Shared) take(ctx context.Context, a *marketcrd.Advertisement) error {
	if s.told(a.Name, a.ResourceVersion) {
		return nil
	}
	l, err := s.read(ctx, a)
	if err != nil {
		return err
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	if !s.keep(a.Name, l) {
		if was := s.known(a.Name); was != nil && newer(was.version, l.version) {
			s.doubt(a.Name) // a watch that lags, or a store that was set back
		}
		return nil // between two replicas' words of one report the market has it already
	}
	return s.tellFound(a.Name, l)
}

// told reports whether the market has what the store has of a provider, by its version.
func (s *Shared) told(provider, version string) bool {
	s.telling.Lock()
	defer s.telling.Unlock()
	l := s.known(provider)
	return l != nil && l.version == version
}

// tellFound makes the market know a list that was found in the store, and hear it if
// anybody can be heard.
func (s *Shared) tellFound(provider string, l *list) error {
	how := before
	if s.listening() {
		how = there
	}
	return current(s.tell(provider, l, how))
}

// asked bounds how many objects are asked for at a time.
const asked = 16

// known is a provider's list as the store was last seen to have it, nil for none.
func (s *Shared) known(provider string) *list {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[provider]
}

// keep takes over what the store has of a provider. What is older than what is
// kept stays out, because watches lag; another version of the same list counts. Of two
// lists under one generation the later version stands.
func (s *Shared) keep(provider string, l *list) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.lists[provider]
	if was != nil && was.generation == l.generation && newer(was.version, l.version) {
		return false
	}
	if was != nil && l.generation.Cmp(was.generation) < 0 {
		if newer(l.version, was.version) { // somebody put an older one back
			s.lost[provider] = true
		}
		return false
	}
	delete(s.doubts, provider)
	delete(s.lost, provider) // another replica wrote it
	s.paced(provider, was, l)
	if n, ok := s.named[provider]; ok && !newer(n.version, l.version) {
		delete(s.named, provider) // the list has them
	}
	s.set(provider, l)
	return !l.older(was)
}

// set makes a list, or nil, what the store has of a provider. s.mu is held.
func (s *Shared) set(provider string, l *list) {
	if was := s.lists[provider]; was != nil {
		s.stored -= was.size
		delete(s.lists, provider)
	}
	if l != nil {
		s.link.sees(l.version)
		s.stored += l.size
		s.lists[provider] = l
	}
}

// newer reports whether an object's version comes after another one: the numbers of
// one cluster's API server only grow.
func newer(version, than string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	return errA == nil && errB == nil && a > b
}

// gone notes that the store has nothing of a provider any more: that withdraws
// nothing, and its next report is written whatever it says.
func (s *Shared) gone(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lists[provider] != nil {
		s.lost[provider] = true
	}
}

// reread takes over what the store has of a provider now, also an older list: somebody
// has put it back. The market is told what is newer: the watch finds it known, and says
// nothing of it. What nobody can read is replaced by the next write.
func (s *Shared) reread(ctx context.Context, provider string) {
	a, err := s.opts.API.Advertisement(ctx, provider)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return // what is known stays
	}
	var l *list
	readable := false
	if err == nil {
		if l, err = s.read(ctx, a); err != nil {
			l = &list{version: a.ResourceVersion, content: &wire.FlavorReport{}}
		}
		readable = err == nil
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	was := s.lists[provider]
	if readable && !l.older(was) { // who puts an older one back has not reported
		s.paced(provider, was, l)
	}
	s.set(provider, l)
	s.mu.Unlock()
	if readable && !l.older(was) {
		s.note("advertisement "+provider, s.tellFound(provider, l))
	}
}

// read makes a list of an object. The error says why it cannot be used.
func (s *Shared) read(ctx context.Context, a *marketcrd.Advertisement) (*list, error) {
	s.names(a)
	if err := s.ours("advertisement "+a.Name, a); err != nil {
		return nil, err
	}
	generation, err := wire.ParseGeneration(a.Spec.Generation)
	if err != nil {
		return nil, err
	}
	if l := s.known(a.Name); l != nil && l.generation == generation && l.digest == a.Spec.Digest && slices.Equal(l.parts, a.Spec.Parts) { // another version of what is known
		again := *l
		again.version, again.replica = a.ResourceVersion, a.Spec.Replica
		return &again, nil
	}
	data := a.Spec.Report
	if len(a.Spec.Parts) > maxParts {
		return nil, fmt.Errorf("%d parts, at most %d", len(a.Spec.Parts), maxParts)
	}
	for _, name := range a.Spec.Parts {
		part, err := s.opts.API.Part(ctx, name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, &CutError{err.Error()}
		}
		if err != nil {
			return nil, fmt.Errorf("part %.80q: %w", name, err)
		}
		if name != partName(a.Name, generation, part.Spec.Report) {
			return nil, fmt.Errorf("part %.80q is not of this provider, or was changed", name)
		}
		data = append(slices.Clip(data), part.Spec.Report...)
	}
	if len(data) > maxPacked {
		return nil, fmt.Errorf("%d bytes of a report, at most %d", len(data), maxPacked)
	}
	content, err := unpack(a.Spec.Digest, data)
	if err != nil {
		return nil, err
	}
	if err := s.opts.Market.Check(a.Name, generation, content.Flavors); err != nil {
		return nil, err
	}
	if err := market.CheckDemand(content.Demand); err != nil {
		return nil, err
	}
	return &list{generation: generation, digest: a.Spec.Digest, version: a.ResourceVersion, size: int64(len(data)), parts: slices.Clone(a.Spec.Parts), replica: a.Spec.Replica, content: content}, nil
}

// How the market is told a list.
const (
	// here: this replica took the report.
	here = iota
	// there: another one took it.
	there
	// before: it was known before anybody listened.
	before
)

// lateWord is how long ago a word may have been given that another replica took: it
// says so within a beat, is cut off when it cannot, and so is who does not see it. It
// counts for agents that do not say what they had honoured (Market.Honoured), and for
// what was made smaller (Market.StillHeld).
const lateWord = beatEvery + 2*patience + 15*time.Second

// tell makes the market know a list, and unless it is from before hear it.
func (s *Shared) tell(provider string, l *list, how int) error {
	r := Report{Cluster: provider, Generation: l.generation, Content: l.content}
	switch how {
	case here:
		return tell(s.opts.Market, r, 0)
	case there:
		return tell(s.opts.Market, r, lateWord)
	}
	if err := s.opts.Market.Restore(provider, l.generation, l.content.Flavors); err != nil {
		return err
	}
	s.opts.Market.SetHonoured(provider, l.content.Honoured)
	return s.opts.Market.SetDemand(provider, l.content.Demand)
}

// note logs why an object is left out, once for each reason.
func (s *Shared) note(object string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.bad, object)
		return
	}
	if why := err.Error(); s.bad[object] != why {
		if len(s.bad) >= maxNoted {
			clear(s.bad)
		}
		if s.bad[object] = why; forged(err) {
			return // it is logged already
		}
		s.opts.Log.Warn("an object of the market's store is left out", "object", object, "error", err)
	}
}

// maxNoted bounds what is remembered of objects that are left out.
const maxNoted = 1000

// Objects that are left out, with why.
func (s *Shared) Objects() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.bad)
}
