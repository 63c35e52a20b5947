package sim

import (
	"errors"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// storms reports whether the store takes no writes at times and replicas are frozen, as a
// process does that is stopped, swapped out or on a machine that is: in every other seed
// without hostile people whose daemons share a store.
func (s *sim) storms() bool { return s.shared != nil && s.seed%4 == 2 }

// stormStep is what happens in such seeds, drawn from a source of its own.
func (s *sim) stormStep() {
	if s.healed {
		return
	}
	d := s.daemons[s.storm.IntN(len(s.daemons))]
	switch s.storm.IntN(3) {
	case 0:
		s.shared.refuseWrites()
	case 1:
		if d.up && !d.frozen() {
			d.thaws = s.tl.now + span(s.storm, time.Second, 90*time.Second)
			s.log("%s is frozen", d.name)
		}
	default:
		s.stills = d
	}
	s.after(span(s.storm, 20*time.Second, 2*time.Minute), s.stormStep)
}

// refuseWrites makes the store take no writes for a while: its etcd is full, and no Lease
// is renewed either, or the daemons' account lost its rights on the market's objects.
func (sh *shared) refuseWrites() {
	if sh.refusal != "" {
		return
	}
	s := sh.s
	if sh.refusal = store.RefusalFull; s.storm.IntN(2) == 0 {
		sh.refusal = store.RefusalForbidden
	}
	s.log("the store refuses writes: %s", sh.refusal)
	s.after(span(s.storm, 2*time.Second, 3*time.Minute), func() { sh.refusal = "" })
}

// refuse is the store's answer to each write.
func (sh *shared) refuse(string, string) error {
	if sh.refusal == "" {
		return nil
	}
	sh.s.counts.Refused++
	return &store.RefusedError{Why: sh.refusal, Cause: errors.New("no write is taken")}
}

// frozen reports whether a daemon does nothing.
func (d *daemon) frozen() bool { return d.held || d.s.tl.now < d.thaws }

// awake is something that a daemon does, put off until it no longer is frozen.
func (d *daemon) awake(run func()) func() {
	var later func()
	later = func() {
		if d.frozen() {
			d.s.after(max(d.thaws-d.s.tl.now, 100*time.Millisecond), later)
			return
		}
		run()
	}
	return later
}

// standStill holds a daemon up between its plan and its push, while everything else goes
// on: the Lease runs out, and another one decides.
func (d *daemon) standStill() {
	s := d.s
	if s.stills != d || s.healed || s.tl.now >= s.knobs.chaos {
		return
	}
	s.stills = nil
	d.thaws = min(s.tl.now+span(s.storm, time.Second, 90*time.Second), s.knobs.chaos)
	s.log("%s is frozen before a push", d.name)
	d.held = true
	outer := s.committer
	for s.failure == nil && s.tl.until(d.thaws) {
		s.counts.Events++
		s.step(s.tl.next())
	}
	s.committer, s.tl.now, d.held = outer, max(s.tl.now, d.thaws), false
	s.counts.Stills++
	s.log("%s goes on with its push", d.name)
}
