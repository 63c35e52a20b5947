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
	"time"

	"github.com/fleetbroker/fleetbroker/internal/demo"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/liqo"
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
	for _, path := range []*string{&o.Bin, &o.Dir} { // programs run in directories of their own
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	for _, program := range []string{"fleetbroker", "fleet-agent"} {
		if _, err := os.Stat(filepath.Join(o.Bin, program)); err != nil {
			return fmt.Errorf("demo: %w; build both programs first: make build", err)
		}
	}
	if err := env.BuildTools(ctx, o.Out); err != nil {
		return err
	}
	if _, err := tools.Find(ctx, "kubectl", o.Out); err != nil { // now, and not in the middle of the story
		return err
	}
	if o.Liqo {
		if err := liqo.Build(ctx, o.Out); err != nil {
			return err
		}
		if err := env.Isolate(ctx, o.Out); err != nil {
			return fmt.Errorf("demo: %w (--no-liqo needs none)", err)
		}
	}
	on := &stage{Options: o, signs: signs(o.Out)}
	if err := demo.Tell(ctx, demo.Options{Out: o.Out, Granted: o.Liqo, Patience: o.Patience}, on); err != nil {
		return fmt.Errorf("demo: %w (logs are in %s)", err, filepath.Join(o.Dir, "logs"))
	}
	return nil
}

// signs reports whether the fleet is a signed one: git needs ssh-keygen for that.
func signs(out io.Writer) bool {
	_, err := exec.LookPath("ssh-keygen")
	if err != nil {
		fmt.Fprintln(out, "ssh-keygen is missing: this fleet is unsigned")
	}
	return err == nil
}

// Fleetbroker implements demo.Stage: a command as a person would run it.
func (s *stage) Fleetbroker(ctx context.Context, args ...string) (string, error) {
	dir := s.rig.Platform.Dir // before the team has a clone of its own
	if s.team != nil {
		dir = s.team.Dir
	}
	var out bytes.Buffer
	err := s.CLI(ctx, &out, append(args, "-C", dir, "--market", "http://"+s.daemon.Operators+"/market")...)
	return out.String(), err
}

// End implements demo.Stage.
func (s *stage) End() error {
	if s.rig == nil {
		return nil
	}
	return s.rig.Stop()
}

// Failure implements demo.Stage.
func (s *stage) Failure() error {
	if s.daemon == nil {
		return nil
	}
	select {
	case <-s.daemon.Done():
		return errors.Join(errors.New("it ended"), s.daemon.Failure())
	default:
		return nil
	}
}
