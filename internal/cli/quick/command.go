package quick

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/demo"
)

// CLI runs a command of the program as a person at a terminal would see it. A plan with
// changes is no error.
type CLI func(ctx context.Context, out io.Writer, args ...string) error

// Command is `fleetbroker demo`.
func Command(out io.Writer, run CLI) *cobra.Command {
	quick, dir := false, ""
	cmd := &cobra.Command{
		Use:   "demo --quick",
		Short: "Show the whole thing in this process: no Kubernetes, no git server",
		Long: `Show what happens between a team's pull request and running pods, and back: three
clusters, git and agents in memory, the daemon's own reader, planner, ledger and
manifests, and the commands of this program. It takes some seconds, needs nothing
but this program, and leaves nothing behind.

From a checkout of the project, make demo tells the same story on real API servers
with Liqo.`,
		Example: `  fleetbroker demo --quick
  fleetbroker demo --quick --dir demo && cd demo/fleet && fleetbroker validate`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !quick {
				return hints.On(fmt.Errorf("the demo on real clusters runs from a checkout of the project: make demo"), "fleetbroker demo --quick    # in memory, from this program alone")
			}
			return tell(cmd.Context(), out, dir, run)
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "simulate clusters and git in memory")
	cmd.Flags().StringVar(&dir, "dir", "", "keep the team's clone in this directory, as fleet (default: a temporary one)")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// tell tells the story in a directory, "" for one that is removed afterwards.
func tell(ctx context.Context, out io.Writer, dir string, run CLI) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fleetbroker-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() { err = firstOf(err, os.RemoveAll(dir)) }()
	}
	on := newStage(dir, run)
	if err := demo.Tell(ctx, demo.Options{Out: out, Granted: true, Patience: 30 * time.Second}, on); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
