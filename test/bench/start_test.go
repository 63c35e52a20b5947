package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
)

func BenchmarkColdStartWide(b *testing.B) { benchmarkColdStart(b, "100 x 1,000", wide) }
func BenchmarkColdStartTall(b *testing.B) { benchmarkColdStart(b, "1 x 20,000", tall) }

// benchmarkColdStart runs the real daemon with an empty state directory until
// it says that it is ready: it has cloned, read inputs and ledger, and planned.
func benchmarkColdStart(b *testing.B, fleet string, o gen.Options) {
	p := serve(b, o)
	bin := programs(b)
	address, release, err := env.ReserveAddress()
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	state := b.TempDir()
	for b.Loop() {
		for _, kind := range []string{"cold", "warm"} {
			took, u := startOnce(b, bin, p, address, state, memoryLimit)
			name := fleet + ": " + kind + " start"
			if kind == "cold" {
				results.below(name+" until ready", took.Seconds(), 20, "s")
				results.below(name+", most memory resident", u.resident/(1<<20), 1024, "MiB")
			} else {
				results.note(name+" (the local copy is there)", fmt.Sprintf("%.4g s", took.Seconds()))
			}
			results.note(name+", processor time", fmt.Sprintf("%.4g s", u.cpu.Seconds()))
		}
	}
}

// usage is what a program has used.
type usage struct {
	resident float64 // at most, bytes
	cpu      time.Duration
}

// memoryLimit is that of the install base, fleet-repo-template/install/broker.
const memoryLimit = "800MiB"

func startOnce(b *testing.B, bin string, p *place, address, state, memory string) (time.Duration, usage) {
	b.Setenv("GOMEMLIMIT", memory) // for the daemon: our own runtime has read it
	begin := time.Now()
	daemon, err := env.StartProgram("daemon", b.TempDir(), filepath.Join(bin, "fleetbroker"), "run", "--unsigned", "--repo", p.git.URL(repo),
		"--state-dir", state, "--agents-address", "", "--operators-address", address, "--poll-interval", "1h")
	if err != nil {
		b.Fatal(err)
	}
	ready(b, address, daemon)
	took := time.Since(begin)
	resident := highWater(b, daemon.PID())
	if err := daemon.Stop(); err != nil {
		b.Fatal(err)
	}
	<-daemon.Done()
	return took, usage{resident, daemon.ProcessorTime()}
}

// ready waits until the daemon says so.
func ready(b *testing.B, address string, daemon *env.Program) {
	ctx, cancel := context.WithTimeout(b.Context(), 15*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var state struct{ Ready bool }
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			b.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			err = json.NewDecoder(resp.Body).Decode(&state)
			resp.Body.Close()
			if err == nil && state.Ready {
				return
			}
		}
		select {
		case <-daemon.Done():
			b.Fatal(daemon.Failure())
		case <-ctx.Done():
			b.Fatalf("the daemon is not ready; its log is %s", daemon.LogFile())
		case <-tick.C:
		}
	}
}

// highWater is the most memory that a process has had resident, in bytes.
func highWater(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib * 1024
		}
	}
	b.Fatal("the kernel tells no VmHWM")
	return 0
}

// programs builds the project's own programs once.
var built struct {
	sync.Once
	err error
}

func programs(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(fleets.dir, "bin")
	built.Do(func() {
		out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", dir+"/", "../../cmd/fleetbroker", "../../cmd/fleet-agent").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build the programs: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return dir
}
