//go:build e2e

package replicas

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// patience bounds every wait.
const patience = time.Minute

var bin string

func TestMain(m *testing.M) { envtest.Main(m, &bin) }

// hub is the cluster that the replicas run in, with what stands between.
type hub struct {
	*rigtest.Hub

	t   *testing.T
	rig *rig.Rig
	all []*replica
	// balancer is the one address that agents know.
	balancer *gate
}

// replica is a daemon with its way to the API server.
type replica struct {
	*rig.Daemon
	api, git *gate
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
		r := &replica{api: newGate(t, func() string { return server.Host }), git: newGate(t, func() string { return repo.Host })}
		url, err := through(repo.String(), r.git)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("r%d", i)
		kubeconfig := filepath.Join(t.TempDir(), name+".kubeconfig")
		text := strings.ReplaceAll(string(h.Kubeconfig), server.Host, r.api.address)
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Daemon, err = h.rig.Daemon(ctx, name, append(append([]string{"--poll-interval", "2s", "--repo", url}, h.Args(kubeconfig)...), args...)...)
		if err != nil {
			t.Fatal(err)
		}
		h.all = append(h.all, r)
	}
	h.balancer = newGate(t, func() string { return h.all[rand.IntN(len(h.all))].Agents }) //nolint:gosec // any of them
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
	line, err := transport.NewHTTP("https://"+h.balancer.address, cluster, files)
	if err != nil {
		h.t.Fatal(err)
	}
	return line
}

// gate passes connections on, to an address that is asked for each, unless it is
// closed.
type gate struct {
	address string
	to      func() string

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
	delay  time.Duration // of what comes back
}

func newGate(t *testing.T, to func() string) *gate {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: listener.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		g.set(true)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(conn)
		}
	}()
	return g
}

// set closes the gate and cuts what passes, or opens it.
func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	if closed {
		for conn := range g.open {
			_ = conn.Close()
		}
	}
}

// lead has connections go elsewhere from now on, and cuts those that are open.
func (g *gate) lead(to func() string) {
	g.set(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to, g.closed = to, false
}

// slow makes what comes back take so long, on connections that are open too.
func (g *gate) slow(delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = delay
}

// held is what came back, and when it is passed on.
type held struct {
	text []byte
	due  time.Time
}

// back passes on what comes back, in order, each after the delay of when it came.
func (g *gate) back(to io.Writer, from io.Reader) {
	queue := make(chan held, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for h := range queue {
			<-time.After(time.Until(h.due))
			if _, err := to.Write(h.text); err != nil {
				for range queue { // nobody takes the rest
				}
				return
			}
		}
	}()
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			g.mu.Lock()
			due := time.Now().Add(g.delay)
			g.mu.Unlock()
			queue <- held{buffer[:n], due}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	<-done
}

func (g *gate) enter(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	for _, c := range conns {
		g.open[c] = true
	}
	return true
}

func (g *gate) pass(in net.Conn) {
	defer in.Close()
	g.mu.Lock()
	to := g.to
	g.mu.Unlock()
	out, err := new(net.Dialer).Dial("tcp", to())
	if err != nil {
		return
	}
	defer out.Close()
	if !g.enter(in, out) {
		return
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, in)
		delete(g.open, out)
	}()
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(out, in)
		done <- struct{}{}
	}()
	go func() {
		g.back(in, out)
		done <- struct{}{}
	}()
	<-done
}

// rest waits before something is looked at again.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
