package sim

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// link is one daemon's way to the remote, with its faults: not persisted,
// persisted though it failed, an outage, somebody else in between, and the
// daemon's own end at the worst moment.
type link struct {
	s   *sim
	d   *daemon
	out bool // an outage
}

var _ gitrepo.Remote = (*link)(nil)

var (
	errOutage = errors.New("the remote is out of reach")
	errLost   = errors.New("the connection broke")
)

func (l *link) fault() error {
	if l.out {
		return errOutage
	}
	if !l.s.healed && l.s.rng.Float64() < l.s.knobs.remoteFaults {
		return errLost
	}
	return nil
}

// InProcess is the remote's.
func (l *link) InProcess() bool { return l.s.remote.InProcess() }

// Refs implements gitrepo.Remote.
func (l *link) Refs(ctx context.Context) (map[string]tree.Hash, error) {
	if err := l.fault(); err != nil {
		return nil, err
	}
	defer l.dated()
	return l.s.remote.Refs(ctx)
}

// Fetch implements gitrepo.Remote.
func (l *link) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	if err := l.fault(); err != nil {
		return err
	}
	l.dated()
	return l.s.remote.Fetch(ctx, choose, sink)
}

// dated is the date that the server's answer bears.
func (l *link) dated() { l.d.clock.Heard("git server", l.s.wall(), 0) }

// Push implements gitrepo.Remote.
func (l *link) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	l.s.interlope(l.d)
	l.d.standStill()
	l.d.maybeCrash("before a push")
	if err := l.fault(); err != nil {
		return err // not persisted
	}
	err := l.s.remote.Push(ctx, cmds, pack)
	if err == nil {
		l.s.followLedger()
	}
	l.d.maybeCrash("between a push and its answer")
	if ferr := l.fault(); ferr != nil {
		return ferr // whatever it was, its answer is lost
	}
	return err
}

// interlope lets somebody else act between a daemon's plan and its push.
func (s *sim) interlope(d *daemon) {
	if s.healed || s.interloping || s.rng.Float64() >= s.knobs.interlopers {
		return
	}
	s.interloping = true
	defer func() { s.interloping = false }()
	others := slices.DeleteFunc(slices.Clone(s.daemons), func(o *daemon) bool { return o == d || !o.up || o.rounding || o.frozen() })
	if len(others) > 0 && s.rng.IntN(2) == 0 {
		o := others[s.rng.IntN(len(others))]
		s.log("%s gets in between", o.name)
		o.guarded(o.round)
		return
	}
	s.people.act()
}

// hooks refuse some paths for a while.
func (s *sim) refuse(ref string, paths []string) error {
	for _, tenant := range slices.Sorted(maps.Keys(s.refused)) {
		for _, p := range paths {
			if ref == gitrepo.Branch(s.people.ledger) && under(p, "contracts/"+tenant) {
				return errors.New("hook declined: " + tenant + " is closed for the day")
			}
		}
	}
	return nil
}

func under(path, dir string) bool { return len(path) > len(dir) && path[:len(dir)+1] == dir+"/" }
