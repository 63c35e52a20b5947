package env

import (
	"context"
	"fmt"
	"io"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// StartScheduler runs kube-scheduler for a cluster: pods that fit nowhere are
// then said to be unschedulable, and others are bound, though nobody runs them.
// Stop it before the cluster. Building it, where it is not there yet, is told
// to progress, which may be nil.
func StartScheduler(ctx context.Context, c *Cluster, progress io.Writer) (*Program, error) {
	path, err := tools.Find(ctx, "kube-scheduler", progress)
	if err != nil {
		return nil, fmt.Errorf("start a scheduler: %w", err)
	}
	return StartProgramWith([]string{SeldomCollected}, "kube-scheduler", c.Dir, path,
		"--kubeconfig="+c.KubeconfigPath, "--leader-elect=false", "--secure-port=0", "--v=1")
}
