package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// rewriteHistory is a force push: the inputs squashed into one commit, or the
// ledger set back. Somebody restores it after a while, or an operator accepts.
func (s *sim) rewriteHistory() {
	p := s.people
	if s.stopped != nil || len(s.unsettled) > 0 || p.inputs == p.ledger {
		return
	}
	rw := &rewrite{at: s.tl.now}
	if s.rng.IntN(2) == 0 {
		if s.rooted != nil || p.headBroken {
			return // who squashes a signed fleet's inputs takes all signatures away
		}
		if s.remote.AllRefs()[acceptedInputs].IsZero() && !slices.ContainsFunc(s.daemons, func(d *daemon) bool { return d.dir != "" }) {
			return // nothing was written yet: who crashes now has seen nothing
		}
		rw.ref, rw.old = gitrepo.Branch(p.inputs), s.remote.Head(p.inputs)
		ch := gitobj.Change{Puts: map[string][]byte{}}
		for path, text := range p.files {
			ch.Puts[path] = []byte(text)
		}
		h, err := s.remote.Rewrite(p.inputs, [20]byte{}, p.person("Mallory"), "squash everything\n", ch)
		if err != nil {
			s.fail("sim", "%v", err)
			return
		}
		rw.now = h
		p.known[h] = p.reading()
	} else {
		log, err := s.remote.Log(p.ledger)
		if err != nil || len(log) < 4 {
			return
		}
		n := 1 + s.rng.IntN(3)
		back := log[n]
		if !s.ours(back) || !slices.ContainsFunc(log[:n], s.ours) {
			return // what an operator accepts, he accepts with all that is in it; what no daemon has accepted is none's to miss
		}
		if slices.Contains(s.moved, s.remote.AllRefs()[acceptedLedger]) {
			return // nobody but a witness sees both together (setBackUnseen), where no daemon has a memory of its own
		}
		rw.ref, rw.old, rw.now = gitrepo.Branch(p.ledger), log[0].Hash, back.Hash
		s.followLedger()
		s.remote.SetRef(rw.ref, rw.now)
		s.books.rebase()
		s.forgetLost()
	}
	s.log("rewritten: %s from %s to %s", rw.ref, rw.old.Short(), rw.now.Short())
	s.stopped, s.rewritten = rw, true
	s.after(span(s.rng, 10*time.Second, 2*time.Minute), s.settleRewrite)
}

// settleRewrite ends a rewrite one way or the other.
func (s *sim) settleRewrite() {
	rw := s.stopped
	if rw == nil {
		return
	}
	s.stopped = nil
	for _, d := range s.daemons {
		s.unsettled[d.name] = true
		if d.up {
			d.loop.Reread()
		}
	}
	if s.rng.IntN(2) == 0 && s.remote.AllRefs()[rw.ref] == rw.now {
		s.remote.SetRef(rw.ref, rw.old)
		s.log("restored: %s to %s", rw.ref, rw.old.Short())
		s.books.rebase()
	}
	s.accept()
}

// accept is an operator's word at every daemon that has stopped, until all
// have had a good round.
func (s *sim) accept() {
	if s.stopped != nil {
		return // the next one has begun: its own end will come
	}
	for _, d := range s.daemons {
		var stop *gitrepo.ErrRewritten
		if d.up && !d.frozen() && errors.As(d.lastErr, &stop) && s.remote.AllRefs()[stop.Ref] == stop.New {
			err := d.repo.AcceptRewrite(context.Background(), stop.New)
			s.log("an operator accepts %s at %s: %v", stop.New.Short(), d.name, err)
			d.loop.Reread()
			d.wake()
		}
	}
	if len(s.unsettled) > 0 && !s.healed {
		s.after(10*time.Second, s.accept)
	}
}

// rewrite is a branch whose history was rewritten and not yet accepted.
type rewrite struct {
	ref      string
	old, now tree.Hash
	at       time.Duration
}

// checkStopped is invariant 12.
func (s *sim) checkStopped(c memremote.Logged) {
	if s.stopped == nil {
		return
	}
	if s.stopped.ref == gitrepo.Branch(s.people.ledger) {
		s.fail("12", "commit %s is written to a rewritten ledger that nobody accepted", c.Hash.Short())
		return
	}
	for _, h := range gitobj.Trailers(c.Message, "Inputs") {
		if h == s.stopped.now.String() {
			s.fail("12", "commit %s acts on rewritten inputs that nobody accepted", c.Hash.Short())
		}
	}
}
