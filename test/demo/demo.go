package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// Options of a demo.
type Options struct {
	// Out is told the story.
	Out io.Writer
	// Bin is the directory with the programs fleetbroker and fleet-agent.
	Bin string
	// Dir holds everything; empty makes one and removes it afterwards.
	Dir string
	// Liqo runs for real: pods of the team run on the other cluster. Without it
	// its CRDs are there alone.
	Liqo bool
	// CLI runs a fleetbroker command as a person at a terminal would see it.
	CLI func(ctx context.Context, out io.Writer, args ...string) error
	// Patience bounds each step that waits (default 60 s).
	Patience time.Duration
}

// Run tells the story from an empty machine to a released slice.
func Run(ctx context.Context, o Options) (err error) {
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "fleetbroker-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(o.Dir)
			}
		}()
	}
	for _, program := range []string{"fleetbroker", "fleet-agent"} {
		if _, err := os.Stat(filepath.Join(o.Bin, program)); err != nil {
			return fmt.Errorf("demo: %w; build both programs first: make build", err)
		}
	}
	s := &story{Options: o}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := env.BuildTools(ctx, o.Out); err != nil {
		return err
	}
	last := s.stopAtPeering
	if o.Liqo {
		if err := liqo.Build(ctx, o.Out); err != nil {
			return err
		}
		if err := env.Isolate(ctx, o.Out); err != nil {
			return fmt.Errorf("demo: %w (--no-liqo needs none)", err)
		}
		last = s.work
	}
	s.begun = time.Now()
	for _, chapter := range []func(context.Context) error{s.setUp, s.ask, s.show, last, s.explain, s.giveBack} {
		if err := chapter(ctx); err != nil {
			return fmt.Errorf("demo: %w (logs are in %s)", err, filepath.Join(o.Dir, "logs"))
		}
	}
	return nil
}

// story is one run.
type story struct {
	Options
	begun  time.Time
	rig    *rig.Rig
	daemon *rig.Daemon
	team   *env.Team
}

func (s *story) end() error {
	if s.rig == nil {
		return nil
	}
	s.say("stopping everything")
	err := s.rig.Stop()
	s.say("done: nothing is left running")
	return err
}

// say writes one line of the timeline.
func (s *story) say(format string, args ...any) {
	at := time.Since(s.begun)
	if s.begun.IsZero() {
		at = 0
	}
	fmt.Fprintf(s.Out, "%6.1fs  %s\n", at.Seconds(), fmt.Sprintf(format, args...))
}

// quote shows what a command printed, or a file.
func (s *story) quote(title, text string) {
	fmt.Fprintf(s.Out, "\n         $ %s\n", title)
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(s.Out, "         %s\n", line)
	}
	fmt.Fprintln(s.Out)
}

// setUp brings the fleet up: clusters, git server, daemon, agents.
func (s *story) setUp(ctx context.Context) error {
	with := ""
	if s.Liqo {
		with = ", with the controllers of Liqo " + tools.LiqoVersion + " on each,"
	}
	s.say("starting three clusters (etcd and kube-apiserver each)%s and a git server", with)
	r, err := rig.Start(ctx, rig.Options{
		Liqo: s.Liqo, Signed: s.signs(),
		Dir: s.Dir, Bin: s.Bin, Consumers: []string{"rome"}, Providers: providers(), Inputs: inputs(),
		// A release waits for the provider's word; a viewer need not wait for the
		// usual half minute.
		AgentArgs: []string{"--advertisement-requeue-interval", "1s"},
	})
	if err != nil {
		return err
	}
	s.rig = r
	s.say("up: paris and milan give (16 H100, 4 H100, 8 A100), rome takes; fleet repo at %s", r.Git.URL(rig.Repo))
	if s.daemon, err = r.Daemon(ctx, "one"); err != nil {
		return err
	}
	s.daemon.NotifyPushes(ctx)
	for name := range r.Clusters {
		if _, err := r.Agent(ctx, name, s.daemon); err != nil {
			return err
		}
	}
	wait, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if err := s.daemon.AwaitReady(wait); err != nil {
		return err
	}
	if err := s.until(ctx, "the agents' flavors", func(ctx context.Context) (bool, error) {
		out, err := s.fleetbroker(ctx, "get", "flavors", "-C", s.team0(), "--market", s.market())
		return err == nil && strings.Count(out, "pool") >= 3, nil
	}); err != nil {
		return err
	}
	s.say("the daemon is ready and knows what the agents offer")
	out, err := s.fleetbroker(ctx, "get", "flavors", "-C", s.team0(), "--market", s.market())
	if err != nil {
		return err
	}
	s.quote("fleetbroker get flavors", out)
	return nil
}

// signs reports whether the fleet is a signed one: git needs ssh-keygen for that.
func (s *story) signs() bool {
	_, err := exec.LookPath("ssh-keygen")
	if err != nil {
		s.say("ssh-keygen is missing: this fleet is unsigned")
	}
	return err == nil
}

// market is where the daemon shows its market.
func (s *story) market() string { return "http://" + s.daemon.Operators + "/market" }

// team0 is the clone that commands are run on before the team has its own.
func (s *story) team0() string {
	if s.team != nil {
		return s.team.Dir
	}
	return s.rig.Platform.Dir
}

// fleetbroker runs a command, as a person would.
func (s *story) fleetbroker(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	if err := s.CLI(ctx, &out, args...); err != nil {
		return out.String(), fmt.Errorf("fleetbroker %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}

// until waits for a condition.
func (s *story) until(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		ok, err := condition(ctx)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-s.daemon.Done():
			return s.daemon.Failure()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
