package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli/demo"
)

type demoOptions struct {
	streams Streams
	dir     string
	noLiqo  bool
}

func newCmdDemo(s Streams) *cobra.Command {
	o := demoOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole thing on this machine",
		Long: `Show the whole thing on this machine: two provider clusters and a consumer (etcd,
kube-apiserver and Liqo's controllers each), a git server, agents and the daemon.
A team's commit becomes a reserved, versioned, applied slice of GPUs on which its
pods run, and is given back. Nothing is left running.

Liqo listens on every address, so the demo runs in a network of its own, which
takes Linux, and root or the right to make user namespaces. --no-liqo does
without it, and ends where Liqo would begin. Run it from a checkout of the project: the servers are built
from Go modules at the first time, which takes some minutes.`,
		Example: `  make demo
  bin/fleetbroker demo --no-liqo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demoRun(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "keep clones, logs and servers' data in this directory (default: a temporary one)")
	cmd.Flags().BoolVar(&o.noLiqo, "no-liqo", false, "without Liqo's controllers: faster, and no pod runs")
	return cmd
}

func demoRun(ctx context.Context, o demoOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return demo.Run(ctx, demo.Options{
		Out: o.streams.Out, Bin: filepath.Dir(self), Dir: o.dir, Liqo: !o.noLiqo,
		CLI: func(ctx context.Context, out io.Writer, args ...string) error {
			s := Streams{In: strings.NewReader(""), Out: out, Err: io.Discard, Terminal: true, Now: o.streams.Now}
			root := NewRoot(s)
			root.SetArgs(args)
			if err := root.ExecuteContext(ctx); err != nil && !errors.Is(err, errChanges) {
				return err
			}
			return nil
		},
	})
}
