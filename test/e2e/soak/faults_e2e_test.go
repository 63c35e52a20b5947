//go:build e2e

package soak

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// fault is something that begins and ends.
type fault struct {
	name       string
	begin, end func(s *soak) error
}

// ofGit is a fault of the git server.
func ofGit(name string, f env.Fault) fault {
	set := func(f env.Fault) func(*soak) error {
		return func(s *soak) error { s.Git.SetFault(f); return nil }
	}
	return fault{name, set(f), set(env.FaultNone)}
}

// faults happen one after the other, again and again.
var faults = []fault{
	ofGit("git stalls in the middle of bodies", env.FaultStallBody),
	{"the second daemon is killed and its state damaged", killAndDamage, func(s *soak) error { return s.two.Restart(s.ctx) }},
	ofGit("git ends in the middle of bodies", env.FaultCutBody),
	{"the consumer's API server hangs", func(s *soak) error { return s.Clusters["rome"].Pause() }, func(s *soak) error { return s.Clusters["rome"].Resume() }},
	ofGit("answers to pushes are lost", env.FaultPushAnswerLost),
	{"an agent is killed", func(s *soak) error { return s.rome.Kill() }, func(s *soak) error { s.startRome(); return nil }},
	ofGit("git refuses", env.FaultRefuse),
	{"the daemon is frozen", func(s *soak) error { return s.one.Pause() }, func(s *soak) error { return s.one.Resume() }},
	ofGit("pushes hang", env.FaultPushHang),
	{"the second daemon is stopped", func(s *soak) error { return s.two.Stop() }, func(s *soak) error { return s.two.Restart(s.ctx) }},
	{"git is gone", func(s *soak) error { return s.Git.Down() }, func(s *soak) error { return s.Git.Up() }},
	{"the provider's agent is frozen", func(s *soak) error { return s.paris.Pause() }, func(s *soak) error { return s.paris.Resume() }},
	{"the consumer's API server is gone", func(s *soak) error { return s.Clusters["rome"].StopServers() }, func(s *soak) error { return s.Clusters["rome"].StartServers(s.ctx) }},
}

// killAndDamage kills the second daemon and damages its state in one of three
// ways.
func killAndDamage(s *soak) error {
	if err := s.two.Kill(); err != nil {
		return err
	}
	state := filepath.Join(s.Dir, "state-two")
	names := []string{filepath.Join(state, "notify.json"), filepath.Join(state, "accepted.json")}
	packs, err := filepath.Glob(filepath.Join(state, "cache-*", "objects", "pack", "*.pack"))
	if err != nil {
		return err
	}
	names = append(names, packs...)
	s.damaged++
	name := names[s.damaged%len(names)]
	if err := os.Chmod(name, 0o600); errors.Is(err, os.ErrNotExist) {
		return nil // it has written none yet
	}
	return os.WriteFile(name, []byte("{"), 0o600)
}
