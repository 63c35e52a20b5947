package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := Options{Out: os.Stdout, CLI: command}
	var noLiqo bool
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
  bin/demo --no-liqo`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Liqo = !noLiqo
			return Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Bin, "bin", "bin", "directory with the programs fleetbroker and fleet-agent")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "keep clones, logs and servers' data in this directory (default: a temporary one)")
	cmd.Flags().BoolVar(&noLiqo, "no-liqo", false, "without Liqo's controllers: faster, and no pod runs")
	return cmd
}

// command runs a fleetbroker command as a person at a terminal would see it.
func command(ctx context.Context, out io.Writer, args ...string) error {
	var errs strings.Builder
	s := cli.Streams{In: strings.NewReader(""), Out: out, Err: &errs, Terminal: true, Now: time.Now}
	// 2: the plan has changes.
	if code := cli.Run(ctx, s, args); code != 0 && code != 2 {
		return fmt.Errorf("fleetbroker %s: %s", strings.Join(args, " "), strings.TrimSpace(errs.String()))
	}
	return nil
}
