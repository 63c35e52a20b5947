//go:build e2e

package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// BenchmarkInstructions measures from the moment at which the git server has
// taken the commit until the provider's long poll is answered with its contract.
func BenchmarkInstructions(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for b.Loop() {
		c := openCounter(ctx, b, nil)
		var mu sync.Mutex
		var pushed time.Time
		heard := map[string]time.Time{} // by contract
		c.Git.OnPush(func(env.Push) {
			mu.Lock()
			defer mu.Unlock()
			pushed = time.Now()
		})
		for i := range providers {
			line, err := c.Line(fmt.Sprintf("p%d", i), c.daemon)
			if err != nil {
				b.Fatal(err)
			}
			defer line.Close()
			go follow(ctx, line, func(in wire.Instructions) {
				mu.Lock()
				defer mu.Unlock()
				for _, p := range in.Provide {
					if heard[p.Contract].IsZero() {
						heard[p.Contract] = time.Now()
					}
				}
			})
		}
		line := c.lines(b, 1)[0]
		var waits []time.Duration
		for i := range 41 {
			res, err := line.Reserve(ctx, fmt.Sprintf("told-%d", i), wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "1", Memory: "1Gi"}})
			if err != nil {
				b.Fatal(err)
			}
			mu.Lock()
			at := pushed
			mu.Unlock()
			until(ctx, b, "the provider hears of "+res.Contract, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !heard[res.Contract].IsZero()
			})
			mu.Lock()
			waits = append(waits, heard[res.Contract].Sub(at))
			mu.Unlock()
		}
		results.below("commit taken by the git server, until the provider is told (median of 41)", ms(median(waits)), 100, "ms")
	}
}

// follow hears instructions as an agent does.
func follow(ctx context.Context, line transport.Transport, hear func(wire.Instructions)) {
	since := ""
	for ctx.Err() == nil {
		in, err := line.Instructions(ctx, since, 0, 30*time.Second)
		if err == nil {
			since = in.Version
			hear(in)
		}
	}
}

// The crowd of agents.
const (
	agents     = 1000
	flavors    = 10
	interval   = 30 * time.Second
	changedOne = 10 // of so many reports carries a changed list
)

// BenchmarkAgents measures what a thousand agents cost the daemon: each reports
// ten flavors every 30 s, every tenth report with a change, and holds a long
// poll for instructions.
func BenchmarkAgents(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	for b.Loop() {
		files := map[string]string{}
		for i := range agents {
			name := fmt.Sprintf("a%03d", i)
			files["clusters/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {roles: [provider]}\n"
		}
		c := openCounter(ctx, b, files)
		var wg sync.WaitGroup
		var changing atomic.Bool
		all, stop := context.WithCancel(ctx)
		defer stop()
		begun := time.Now()
		for i := range agents {
			line, err := c.Line(fmt.Sprintf("a%03d", i), c.daemon)
			if err != nil {
				b.Fatal(err)
			}
			defer line.Close()
			if err := report(all, line, i, -1); err != nil {
				b.Fatal(err)
			}
			wg.Go(func() { follow(all, line, func(wire.Instructions) {}) })
			wg.Go(func() { keepReporting(all, b, line, i, &changing) })
		}
		results.note("a thousand agents: until all had reported", time.Since(begun).Round(time.Second).String())
		wait(ctx, interval) // what the beginning cost is over
		results.below("a thousand agents with ten flavors each, every 30 s", share(ctx, b, c), 10, "% of a core")
		changing.Store(true)
		results.below("the same, and every tenth report brings a change", share(ctx, b, c), 10, "% of a core")
		stop()
		wg.Wait()
	}
}

// share is what the daemon uses of a core during an interval, in percent.
func share(ctx context.Context, b *testing.B, c *counter) float64 {
	b.Helper()
	used, from := processorTime(b, c.daemon.PID()), time.Now()
	wait(ctx, interval)
	return 100 * (processorTime(b, c.daemon.PID()) - used).Seconds() / time.Since(from).Seconds()
}

// keepReporting sends a report each interval, agents evenly apart.
func keepReporting(ctx context.Context, b *testing.B, line transport.Transport, agent int, changing *atomic.Bool) {
	first := time.NewTimer(interval * time.Duration(agent) / agents)
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 0; ; {
		if changing.Load() {
			n++
		}
		if err := report(ctx, line, agent, n); err != nil && ctx.Err() == nil {
			b.Errorf("agent %d: %v", agent, err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// report is one of an agent: the first (n below 0) in full, then every tenth
// that counts, turn by turn.
func report(ctx context.Context, line transport.Transport, agent, n int) error {
	version := (max(n, 0) + agent%changedOne) / changedOne
	g := wire.Generation{Epoch: 1, N: uint64(version) + 1}
	if n == 0 || n > 0 && (n+agent%changedOne)%changedOne != 0 {
		return line.Put(ctx, g, nil, 0)
	}
	packed, err := pack(wire.FlavorReport{Flavors: pools(256_000, int64(version)*1000)})
	if err != nil {
		return err
	}
	return line.Put(ctx, g, packed, 0)
}

// pack is a list as agents send it.
func pack(list wire.FlavorReport) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(list); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}

// pools are an agent's flavors, with so many thousandths of processors and so many
// of them in use.
func pools(capacity, used int64) (out []v1alpha1.Flavor) {
	for i := range flavors {
		out = append(out, v1alpha1.Flavor{
			Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("pool-%d", i)},
			Spec: v1alpha1.FlavorSpec{
				Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(capacity), v1alpha1.Memory: v1alpha1.AmountOf(2 << 40), v1alpha1.GPU: v1alpha1.AmountOf(16)},
				Used:     v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(used)},
				GPU:      &v1alpha1.FlavorGPU{Vendor: "nvidia", Model: "nvidia-h100", Memory: v1alpha1.MemorySize{Amount: v1alpha1.AmountOf(80 << 30)}, ResourceName: "nvidia.com/gpu"},
			},
		})
	}
	return out
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// processorTime is what a running process has used of processors, in ticks of
// 10 ms as Linux counts them (proc(5), fields 14 and 15).
func processorTime(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may hold blanks
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// over puts files over others.
func over(files, more map[string]string) map[string]string {
	maps.Copy(files, more)
	return files
}
