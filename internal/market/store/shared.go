package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// Address at which other replicas reach this one, "" where they do not.
	Address string
	// Serving reports whether agents can reach this replica; nil: they can.
	Serving func() bool
	// Now is the clock; only what passes on it counts. Default time.Now.
	Now func() time.Time
	// Observed is told what the agents of clusters see, whichever replica they tell
	// it; nil: nobody.
	Observed func(cluster string, report wire.Observed)
	// News is called when another replica knows of news of the fleet repo; nil: nobody.
	News func()
	// Observer may be nil.
	Observer Observer
	// Log may be nil.
	Log *slog.Logger
}

// Observer is told what a store does, for metrics. Methods return at once.
type Observer interface {
	// StoreWrote reports a write, by kind (advertisement, observation, heartbeat) and result (ok, conflict, error).
	StoreWrote(kind, result string)
	// StoreCut reports whether the store is out of reach.
	StoreCut(cut bool)
}

// Shared is the market that replicas have in common. Make it with NewShared and
// run it.
type Shared struct {
	opts Options
	soon chan struct{} // a beat is not to wait for its time

	mu     sync.Mutex
	lists  map[string]*list // by provider, as the store has them
	stored int64            // what all lists take, packed
	paces  paces
	beats  beats
	link   link
	bad    map[string]string // objects that could not be used, with why, as last logged
	stale  map[string]time.Time
	seen   map[string]*seen // by cluster, as the store has it
}

// list is a provider's as the store has it. It never changes.
type list struct {
	generation wire.Generation
	digest     string
	version    string // resourceVersion
	size       int64  // packed
	parts      []string
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
	if o.Serving == nil {
		o.Serving = func() bool { return true }
	}
	s := &Shared{opts: o, soon: make(chan struct{}, 1), lists: map[string]*list{}, paces: newPaces(), beats: newBeats(), bad: map[string]string{}, stale: map[string]time.Time{}, seen: map[string]*seen{}}
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
	return out
}

// Address is where another replica is reached, "" where it is not known or the
// replica is not live.
func (s *Shared) Address(replica string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.beats.others[replica]; o != nil && slices.Contains(s.beats.live(s.opts.Now()), replica) {
		return o.address
	}
	return ""
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
	if l := s.known(r.Cluster); l != nil && l.generation == r.Generation {
		return s.heardHere(r.Cluster, l)
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
	s.keep(r.Cluster, l)
	return s.heardHere(r.Cluster, l)
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

// attempts bounds how often a write is tried that others are faster with.
const attempts = 5

// Newest makes the market know the lists of some providers as the store has them at
// this moment, and reports whether any was not known: what was decided on the
// former may be wrong. An error means that it is not known.
func (s *Shared) Newest(ctx context.Context, providers []string) (news bool, err error) {
	var found atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(asked)
	for _, provider := range providers {
		group.Go(func() error {
			a, err := s.opts.API.Advertisement(ctx, provider)
			if errors.Is(err, ErrNotFound) { // a file's, or somebody deleted it, which withdraws nothing
				return nil
			}
			if err != nil {
				return fmt.Errorf("look what %s offers now: %w", provider, err)
			}
			if l := s.known(provider); l != nil && l.version == a.ResourceVersion {
				return nil
			}
			l, err := s.read(ctx, a)
			if err != nil { // it is left out, as the watch will say
				return nil //nolint:nilerr // what was known stays
			}
			if s.keep(provider, l) {
				found.Store(true)
				return current(s.tell(provider, l, there))
			}
			return nil
		})
	}
	err = group.Wait()
	return found.Load(), err
}

// asked bounds how many objects are asked for at a time.
const asked = 16

// put writes a list, and makes this market hear it when the store has it.
func (s *Shared) put(ctx context.Context, r Report, p packed) error {
	next := &list{generation: r.Generation, digest: p.digest, size: int64(len(p.bytes)), content: r.Content}
	read := false // the object itself was read
	for range attempts {
		was := s.known(r.Cluster)
		if was != nil && next.older(was) {
			switch {
			case was.generation == next.generation: // sent again
				return s.heardHere(r.Cluster, was)
			case read:
				return &market.StaleEpochError{Last: was.generation}
			}
			s.reread(ctx, r.Cluster)
			read = true
			continue
		}
		if err := s.admit(r.Cluster, was, next); err != nil {
			return err
		}
		err := s.write(ctx, r, p, was, next)
		switch {
		case err == nil:
			return current(s.tell(r.Cluster, next, here))
		case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
			s.reread(ctx, r.Cluster)
			read = true
		default:
			return &CutError{err.Error()}
		}
	}
	return &BusyError{Because: "other replicas take reports of " + r.Cluster + " at the same time", After: time.Second}
}

// admit asks the budgets. A provider that has to wait is heard nevertheless: its
// list is kept as it was.
func (s *Shared) admit(cluster string, was, next *list) error {
	s.mu.Lock()
	stored := s.stored + next.size
	var content *wire.FlavorReport
	if was != nil {
		stored -= was.size
		content = was.content
	}
	err := s.paces.admit(cluster, content, next.content, stored, s.opts.Now())
	s.mu.Unlock()
	if err != nil && was != nil {
		if told := s.heardHere(cluster, was); told != nil {
			return told
		}
	}
	return err
}

// write writes the parts and then the object that names them.
func (s *Shared) write(ctx context.Context, r Report, p packed, was, next *list) error {
	a := &marketcrd.Advertisement{}
	a.Name = r.Cluster
	if was != nil {
		a.ResourceVersion = was.version
	}
	now := s.opts.Now()
	a.Spec = marketcrd.AdvertisementSpec{
		Generation: r.Generation.String(), Replica: s.opts.Replica, Certificate: r.Certificate, ReportedAt: metav1.NewTime(now.UTC().Truncate(time.Second)),
		Summary: summaryOf(r.Content), Digest: p.digest,
	}
	for _, part := range p.parts(r.Cluster) {
		if err := s.opts.API.PutPart(ctx, part); err != nil && !errors.Is(err, ErrConflict) { // one of that name has the same in it
			return err
		}
		a.Spec.Parts = append(a.Spec.Parts, part.Name)
	}
	if len(a.Spec.Parts) == 0 {
		a.Spec.Report = p.bytes
	}
	written, err := s.opts.API.PutAdvertisement(ctx, a)
	s.wrote("advertisement", err)
	if err != nil {
		return err
	}
	next.version, next.parts = written.ResourceVersion, a.Spec.Parts
	s.mu.Lock()
	s.paces.written[r.Cluster] = now
	s.beats.hear(r.Cluster, r.Generation)
	if was != nil {
		s.leave(was.parts, next.parts, now)
	}
	s.mu.Unlock()
	s.keep(r.Cluster, next)
	return nil
}

func (s *Shared) wrote(kind string, err error) {
	if s.opts.Observer == nil {
		return
	}
	switch {
	case err == nil:
		s.opts.Observer.StoreWrote(kind, "ok")
	case errors.Is(err, ErrConflict), errors.Is(err, ErrNotFound):
		s.opts.Observer.StoreWrote(kind, "conflict")
	default:
		s.opts.Observer.StoreWrote(kind, "error")
	}
}

// known is a provider's list as the store was last seen to have it, nil for none.
func (s *Shared) known(provider string) *list {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[provider]
}

// keep takes over what the store has of a provider. What is older than what is
// kept stays out, because watches lag; another version of the same list counts.
func (s *Shared) keep(provider string, l *list) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.lists[provider]
	if was != nil && l.generation.Cmp(was.generation) < 0 {
		return false
	}
	s.lists[provider] = l
	s.stored += l.size
	if was != nil {
		s.stored -= was.size
	}
	return !l.older(was)
}

// reread takes over what the store has of a provider now. nil: nothing that can be
// read; the next write then replaces whatever there is.
func (s *Shared) reread(ctx context.Context, provider string) *list {
	a, err := s.opts.API.Advertisement(ctx, provider)
	if errors.Is(err, ErrNotFound) {
		s.mu.Lock()
		if was := s.lists[provider]; was != nil {
			s.stored -= was.size
			delete(s.lists, provider)
		}
		s.mu.Unlock()
		return nil
	}
	if err != nil {
		return s.known(provider)
	}
	l, err := s.read(ctx, a)
	if err != nil {
		l = &list{version: a.ResourceVersion, content: &wire.FlavorReport{}}
		s.mu.Lock()
		defer s.mu.Unlock()
		if was := s.lists[provider]; was != nil {
			s.stored -= was.size
		}
		s.lists[provider] = l
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.lists[provider]; was != nil {
		s.stored -= was.size
	}
	s.lists[provider] = l // also an older one: somebody has put it back
	s.stored += l.size
	return l
}

// read makes a list of an object. The error says why it cannot be used.
func (s *Shared) read(ctx context.Context, a *marketcrd.Advertisement) (*list, error) {
	generation, err := wire.ParseGeneration(a.Spec.Generation)
	if err != nil {
		return nil, err
	}
	if l := s.known(a.Name); l != nil && l.generation == generation && l.digest == a.Spec.Digest { // another version of what is known
		again := *l
		again.version, again.parts = a.ResourceVersion, a.Spec.Parts
		return &again, nil
	}
	data := a.Spec.Report
	if len(a.Spec.Parts) > maxPacked/maxObject {
		return nil, fmt.Errorf("%d parts, at most %d", len(a.Spec.Parts), maxPacked/maxObject)
	}
	for _, name := range a.Spec.Parts {
		part, err := s.opts.API.Part(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("part %.80q: %w", name, err)
		}
		if name != partName(a.Name, part.Spec.Report) {
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
	return &list{generation: generation, digest: a.Spec.Digest, version: a.ResourceVersion, size: int64(len(data)), parts: slices.Clone(a.Spec.Parts), content: content}, nil
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
// says so within a beat, is cut off when it cannot, and so is who does not see it.
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
	return s.opts.Market.SetDemand(provider, l.content.Demand)
}

// leave notes parts that no object names any more.
func (s *Shared) leave(was, now []string, at time.Time) {
	for _, name := range was {
		if !slices.Contains(now, name) {
			s.stale[name] = at
		}
	}
	for _, name := range now {
		delete(s.stale, name)
	}
}

// keptParts is how long parts stay that no object names: a reader may be on them.
const keptParts = time.Minute

// clear deletes parts that nobody names any more.
func (s *Shared) clear(ctx context.Context) error {
	s.mu.Lock()
	now := s.opts.Now()
	named := map[string]bool{}
	for _, l := range s.lists {
		for _, name := range l.parts {
			named[name] = true
		}
	}
	var due []string
	for name, since := range s.stale {
		switch {
		case named[name]:
			delete(s.stale, name)
		case now.Sub(since) >= keptParts:
			due = append(due, name)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(slices.Values(due)) {
		if err := s.opts.API.DeletePart(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		s.mu.Lock()
		delete(s.stale, name)
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// orphans notes the parts that nobody names at a start: a replica died between
// them and their object.
func (s *Shared) orphans(ctx context.Context) error {
	names, err := s.opts.API.Parts(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	for _, l := range s.lists {
		for _, name := range l.parts {
			known[name] = true
		}
	}
	now := s.opts.Now()
	for _, name := range names {
		if _, noted := s.stale[name]; !noted && !known[name] {
			s.stale[name] = now
		}
	}
	return nil
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
		s.bad[object] = why
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
