package theirs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forges"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
	"github.com/fleetbroker/fleetbroker/internal/reconciler/reviews"
	"github.com/fleetbroker/fleetbroker/internal/sources"
)

// Keeper knows the sources; *sources.Keeper is one.
type Keeper interface {
	Pull(ctx context.Context, source, ref string, bounds gitrepo.SideBounds) (*sources.Pull, error)
	Forge(source string) (config forge.Config, ok bool, err error)
	Frozen(source string) string
}

// Options are what a Set works with.
type Options struct {
	Keeper Keeper
	// Common is shared with the reviews of the fleet repo.
	Common *reviews.Common
	// View is the reconciler's newest.
	View func() *reconciler.View
	// Speaks, Refresh and Now are those of reviews.Options; Poll is how often a forge is
	// asked when no webhook comes (default one minute).
	Speaks  func() bool
	Poll    time.Duration
	Refresh time.Duration
	Now     func() time.Time
	Log     *slog.Logger
}

// Set is the reviews of all sources. Make it with New.
type Set struct {
	opts Options

	mu      sync.Mutex
	running map[string]*one
}

// one is the reviews of one source.
type one struct {
	entry string // as it was when they began
	stop  context.CancelFunc
	wake  func()
}

// New makes a Set that follows nothing yet.
func New(o Options) *Set {
	if o.Poll <= 0 {
		o.Poll = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Set{opts: o, running: map[string]*one{}}
}

// errUnknown: the Keeper has not been told of the entry yet.
var errUnknown = errors.New("its entry in fleet.yaml was read just now")

// look is how often the fleet's entries are looked at, and again how soon a forge that
// could not be opened is tried.
const (
	look  = time.Second
	again = time.Minute
)

// Run reviews until the context ends.
func (s *Set) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	t := time.NewTicker(look)
	defer t.Stop()
	var last *reconciler.View
	for {
		if v := s.opts.View(); v != last && v.Fleet != nil {
			last = v
			s.follow(ctx, v.Fleet.Policy.Sources, &wg)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// follow starts and ends reviews by the entries of the fleet that is acted on.
func (s *Set) follow(ctx context.Context, entries []v1alpha1.IntentSource, wg *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]*v1alpha1.IntentSource{}
	for i := range entries {
		if entries[i].Forge != nil {
			wanted[entries[i].Name] = &entries[i]
		}
	}
	for name, r := range s.running {
		if e := wanted[name]; e == nil || text(e) != r.entry {
			r.stop()
			delete(s.running, name)
		}
	}
	for name, e := range wanted {
		if s.running[name] != nil {
			continue
		}
		of, stop := context.WithCancel(ctx)
		wake := make(chan struct{}, 1)
		s.running[name] = &one{entry: text(e), stop: stop, wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}}
		wg.Go(func() { s.review(of, name, e.Ref(), wake) })
	}
}

// text tells one entry from another.
func text(e *v1alpha1.IntentSource) string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain values
	}
	return string(b)
}

// review reviews the pull requests of one source until the context ends.
func (s *Set) review(ctx context.Context, name, branch string, wake <-chan struct{}) {
	log := s.opts.Log.With("source", name)
	said := ""
	for {
		client, err := s.open(name)
		if err == nil {
			r := reviews.New(reviews.Options{
				Forge: client, Source: source{s.opts.Keeper, name}, Common: s.opts.Common, View: s.opts.View, Branch: branch,
				Poll: s.opts.Poll, Refresh: s.opts.Refresh, Speaks: s.opts.Speaks, Now: s.opts.Now, Log: log,
			})
			if err := forwarding(ctx, wake, r.Wake, r.Run); err != nil {
				log.Error("pull requests are not looked after any more", "error", err)
			}
			return
		}
		if why := escape.Line(err.Error()); why != said && !errors.Is(err, errUnknown) {
			said = why
			log.Warn("pull requests are not looked after", "error", why)
		}
		pause := again
		if errors.Is(err, errUnknown) {
			pause = look
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// forwarding calls to for each wake while run runs, and returns when both have ended.
func forwarding(ctx context.Context, wake <-chan struct{}, to func(), run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-wake:
				to()
			}
		}
	})
	return run(ctx)
}

// open makes the client of a source's forge.
func (s *Set) open(name string) (forge.Forge, error) {
	config, ok, err := s.opts.Keeper.Forge(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errUnknown
	}
	return forges.Open(config, "")
}

// Wake asks for a look at the pull requests of a source now: a webhook came.
func (s *Set) Wake(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[source]; r != nil {
		r.wake()
	}
}

// source is one of the Keeper's.
type source struct {
	keeper Keeper
	name   string
}

// Name implements reviews.Source.
func (s source) Name() string { return s.name }

// Pull implements reviews.Source.
func (s source) Pull(ctx context.Context, ref string, bounds gitrepo.SideBounds) (*sources.Pull, error) {
	return s.keeper.Pull(ctx, s.name, ref, bounds)
}

// Frozen implements reviews.Source.
func (s source) Frozen() string { return s.keeper.Frozen(s.name) }
