//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// patience bounds every wait.
const patience = 3 * time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin) }

// hub is the cluster that the replicas run in, with what stands between.
type hub struct {
	*rigtest.Hub

	t   *testing.T
	rig *rig.Rig
	all []*replica
	// balancer is the one address that agents know.
	balancer *rigtest.Gate
}

// replica is a daemon with its way to the API server.
type replica struct {
	*rig.Daemon
	api, git *rigtest.Gate
}

// newHub starts an API server, git, and so many replicas of a fleet.
func newHub(t *testing.T, inputs map[string]string, replicas int, args ...string) (context.Context, *hub) {
	t.Helper()
	return newHubOf(t, rig.Options{Inputs: inputs}, replicas, args...)
}

// newHubOf is newHub with clusters.
func newHubOf(t *testing.T, o rig.Options, replicas int, args ...string) (context.Context, *hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	h := &hub{t: t, Hub: rigtest.NewHub(ctx, t)}
	var err error
	o.Dir, o.Bin = t.TempDir(), bin
	h.rig, err = rig.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.rig.Stop(); err != nil {
			t.Errorf("stop the rig: %v", err)
		}
	})
	server, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := url.Parse(h.rig.Git.URL(rig.Repo))
	if err != nil {
		t.Fatal(err)
	}
	for i := range replicas {
		r := &replica{api: rigtest.NewGate(t, func() string { return server.Host }), git: rigtest.NewGate(t, func() string { return repo.Host })}
		url, err := through(repo.String(), r.git)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("r%d", i)
		kubeconfig := filepath.Join(t.TempDir(), name+".kubeconfig")
		text := strings.ReplaceAll(string(h.Kubeconfig), server.Host, r.api.Address)
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Daemon, err = h.rig.Daemon(ctx, name, append(append([]string{"--poll-interval", "2s", "--repo", url}, h.Args(kubeconfig)...), args...)...)
		if err != nil {
			t.Fatal(err)
		}
		h.all = append(h.all, r)
	}
	h.balancer = rigtest.NewGate(t, func() string { return h.all[rand.IntN(len(h.all))].Agents }) //nolint:gosec // any of them
	return ctx, h
}

// line is a cluster's line to whichever replica the balancer chooses; each has a
// connection of its own.
func (h *hub) line(cluster string) transport.Transport {
	h.t.Helper()
	files, err := h.rig.Files(cluster)
	if err != nil {
		h.t.Fatal(err)
	}
	line, err := transport.NewHTTP("https://"+h.balancer.Address, cluster, files)
	if err != nil {
		h.t.Fatal(err)
	}
	return line
}

// rest waits before something is looked at again.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
