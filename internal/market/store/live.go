package store

import (
	"slices"
	"time"
)

// Who else lives, by the Heartbeats.

// Live are the replicas that live and that agents can reach, this one included, in
// order, without those that miss a beat; cut: nobody is heard, and which others live is
// not known.
func (s *Shared) Live() (replicas []string, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	for _, name := range s.beats.live(now) {
		if s.beats.others[name].serving && s.beating(name, now) {
			replicas = append(replicas, name)
		}
	}
	replicas = append(replicas, s.opts.Replica)
	slices.Sort(replicas)
	return replicas, s.link.cut
}

// Deliverers are the replicas of Live that the fleet repo answers, or all of Live where it
// answers none of them.
func (s *Shared) Deliverers() (replicas []string, cut bool) {
	live, cut := s.Live()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range live {
		if name == s.opts.Replica && !s.opts.Away() || s.beats.others[name] != nil && !s.beats.others[name].away {
			replicas = append(replicas, name)
		}
	}
	if len(replicas) == 0 {
		replicas = live
	}
	return replicas, cut
}

// Connections are those of agents that each of the other live replicas has which serve and
// say so; none while nobody is heard.
func (s *Shared) Connections() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	if s.link.cut {
		return out
	}
	now := s.opts.Now()
	for _, name := range s.beats.live(now) {
		if o := s.beats.others[name]; o.serving && o.connections != nil && s.beating(name, now) {
			out[name] = int(max(*o.connections, 0))
		}
	}
	return out
}

// Beats reports whether another replica is known and misses no beat. While this one
// cannot listen nobody misses any.
func (s *Shared) Beats(replica string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beating(replica, s.opts.Now())
}

// beating is Beats; mu is held.
func (s *Shared) beating(replica string, now time.Time) bool {
	if !s.link.doubt.IsZero() {
		now = s.link.doubt
	}
	return s.beats.beating(replica, s.link.fine, now)
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
