package env

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// BuildTools makes sure that the programs a Cluster runs are there, building
// them if need be, which takes minutes the first time. StartCluster does so
// too; calling this first keeps a build out of a start's deadline.
func BuildTools(ctx context.Context, progress io.Writer) error {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := tools.Find(ctx, name, progress); err != nil {
			return err
		}
	}
	return nil
}

// Kubectl runs kubectl on the cluster as its administrator, in a directory (the
// current one if empty), and returns what it printed on standard output. The
// one on PATH is used, or one is built.
func (c *Cluster) Kubectl(ctx context.Context, dir string, args ...string) (string, error) {
	path, err := tools.Find(ctx, "kubectl", c.options.Progress)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", c.KubeconfigPath}, args...)...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s on cluster %s: %w: %s", strings.Join(args, " "), c.Name, err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}
