//go:build e2e

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// counter is a fleet whose daemon takes reservations of cluster rome: a real
// process, and a real git server behind it. Nothing is delivered.
type counter struct {
	*rig.Rig
	daemon *rig.Daemon
	// replicas are all daemons where several share a market, and broker is then the address
	// of what sends each connection to any of them.
	replicas []*rig.Daemon
	broker   string
	asked    atomic.Int64
	// heldBack counts answers that told a client to come later.
	heldBack atomic.Int64
}

// providers have one large pool each.
const providers = 10

func openCounter(ctx context.Context, b *testing.B, more map[string]string) *counter {
	b.Helper()
	c := openRig(ctx, b, more)
	c.daemon = c.start(ctx, b, "one")
	return c
}

// openRig is openCounter without a daemon.
func openRig(ctx context.Context, b *testing.B, more map[string]string) *counter {
	b.Helper()
	files := map[string]string{
		"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  currency: EUR\n" +
			"  limits: {contracts: 100000} # of one tenant; a fast machine reserves more than the default in some seconds\n" +
			"  writeBack: {mode: push, inputs: main, branch: " + rig.Ledger + ", statusInterval: 1s, author: {name: fleetbroker, email: fleetbroker@example.org}}\n",
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
		"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\n" +
			"spec: {roles: [consumer], delivery: none, reservations: {tenant: vision, defaultDuration: 24h}}\n",
	}
	for i := range providers {
		name := fmt.Sprintf("p%d", i)
		files["clusters/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {roles: [provider], endpoint: \"https://" + name + ".example.org:6443\"}\n"
		files["flavors/"+name+"/pool.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: pool, namespace: " + name + "}\n" +
			"spec:\n  capacity: {cpu: \"100000\", memory: 400Ti}\n  price: {currency: EUR, perHour: {cpu: \"0.0" + fmt.Sprint(i+1) + "\"}}\n"
	}
	r, err := rig.Start(ctx, rig.Options{Dir: b.TempDir(), Bin: programs(b), Inputs: over(files, more)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Stop(); err != nil {
			b.Errorf("stop the rig: %v", err)
		}
	})
	return &counter{Rig: r}
}

// start starts a daemon and waits until it is ready.
func (c *counter) start(ctx context.Context, b *testing.B, name string, args ...string) *rig.Daemon {
	b.Helper()
	d, err := c.Daemon(ctx, name, args...)
	if err != nil {
		b.Fatal(err)
	}
	d.NotifyPushes(ctx)
	if err := d.AwaitReady(ctx); err != nil {
		b.Fatal(err)
	}
	return d
}

// lines are n clients, each with a connection of its own.
func (c *counter) lines(b *testing.B, n int) []transport.Transport {
	b.Helper()
	out := make([]transport.Transport, n)
	for i := range out {
		line, err := c.line()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(line.Close)
		out[i] = line
	}
	return out
}

func (c *counter) line() (transport.Transport, error) {
	if c.broker == "" {
		return c.Line("rome", c.daemon)
	}
	files, err := c.Files("rome")
	if err != nil {
		return nil, err
	}
	return transport.NewHTTP(c.broker, "rome", files)
}

// reserve makes one reservation and returns how long it took, with the pauses
// that the daemon imposes: all clients speak as one cluster, and a fast machine
// lets them come faster than one may.
func (c *counter) reserve(ctx context.Context, line transport.Transport) (time.Duration, error) {
	n := c.asked.Add(1)
	start := time.Now()
	ask := func() (wire.Reservation, error) {
		return line.Reserve(ctx, fmt.Sprintf("job-%d", n), wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "1", Memory: "1Gi"}})
	}
	res, err := ask()
	for refusal := (*wire.Refusal)(nil); errors.As(err, &refusal) && refusal.Status == http.StatusTooManyRequests; res, err = ask() {
		c.heldBack.Add(1)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(max(refusal.RetryAfter, time.Millisecond)):
		}
	}
	if err == nil && (res.Status.Phase != wire.PhaseReserved || res.Commit == "") {
		err = fmt.Errorf("answered %+v", res)
	}
	return time.Since(start), err
}

// crowd lets every line reserve over and over until the time is up.
func (c *counter) crowd(ctx context.Context, b *testing.B, lines []transport.Transport, during time.Duration) (done int64, took time.Duration, waits []time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for _, line := range lines {
		wg.Go(func() {
			for time.Since(start) < during {
				d, err := c.reserve(ctx, line)
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				waits = append(waits, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return int64(len(waits)), time.Since(start), waits
}

// onLedger counts the requests that the remote holds.
func (c *counter) onLedger(ctx context.Context, b *testing.B) int64 {
	b.Helper()
	out, err := env.Git(ctx, c.Git.RepoDir(rig.Repo), "ls-tree", "-r", "--name-only", "refs/heads/"+rig.Ledger, "requests/")
	if err != nil {
		b.Fatal(err)
	}
	return int64(len(strings.Fields(out)))
}

// BenchmarkReserve measures durable reservations: 64 clients at once, and one
// alone. Every one that was answered must be on the remote afterwards.
func BenchmarkReserve(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	for b.Loop() {
		openCounter(ctx, b, nil).measure(ctx, b, "")
	}
}

// BenchmarkReserveShared is BenchmarkReserve with three replicas that share a market on a
// real API server, behind a balancer that sends each connection to any of them: two of three
// requests are handed on to the one that decides.
func BenchmarkReserveShared(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	for b.Loop() {
		hub := rigtest.NewHub(ctx, b)
		c := openRig(ctx, b, nil)
		for _, name := range []string{"one", "two", "three"} {
			c.replicas = append(c.replicas, c.start(ctx, b, name, hub.Args("")...))
		}
		balancer := rigtest.NewGate(b, func() string { return c.replicas[rand.IntN(len(c.replicas))].Agents }) //nolint:gosec // any of them
		c.broker = "https://" + balancer.Address
		c.measure(ctx, b, "three replicas, shared market: ")
	}
}

// measure makes the figures; name begins what they are called.
func (c *counter) measure(ctx context.Context, b *testing.B, name string) {
	lines := c.lines(b, 64)
	var alone []time.Duration
	for range 41 {
		d, err := c.reserve(ctx, lines[0])
		if err != nil {
			b.Fatal(err)
		}
		alone = append(alone, d)
	}
	results.below(name+"reservation by one client alone (median of 41)", ms(median(alone)), 250, "ms")
	c.crowd(ctx, b, lines, time.Second) // connections, caches
	used := c.used(b)
	done, took, waits := c.crowd(ctx, b, lines, 20*time.Second)
	results.atLeast(name+"durable reservations by 64 clients at once", float64(done)/took.Seconds(), 200, "/s")
	results.note(name+"the daemons' processor time for each of them", fmt.Sprintf("%.2f ms", ms(c.used(b)-used)/float64(done)))
	results.note(name+"64 clients at once: median wait", fmt.Sprintf("%.0f ms", ms(median(waits))))
	commits, err := env.Git(ctx, c.Git.RepoDir(rig.Repo), "rev-list", "--count", "refs/heads/"+rig.Ledger)
	if err != nil {
		b.Fatal(err)
	}
	results.note(name+"the same: reservations and commits in all", fmt.Sprintf("%d in %s", c.asked.Load(), strings.TrimSpace(commits)))
	results.note(name+"the same: times a client was told to come later", fmt.Sprint(c.heldBack.Load()))
	if asked, there := c.asked.Load(), c.onLedger(ctx, b); asked != there {
		b.Errorf("%d reservations were answered, and the remote holds %d", asked, there)
	}
}

// used is the processor time of all daemons.
func (c *counter) used(b *testing.B) (all time.Duration) {
	b.Helper()
	for _, d := range append(c.replicas, c.daemon) {
		if d != nil {
			all += processorTime(b, d.PID())
		}
	}
	return all
}
