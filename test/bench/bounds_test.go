package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bench/gen"
)

// bound is a fleet made to be expensive, and what a command may take for it.
type bound struct {
	name, command    string
	intents, flavors int
	// more is what the i-th intent states beside its size, which no other asks for.
	more func(i int) string
	// alike: sizes are those of 200 shapes.
	alike bool
	// seconds of processor time, and GiB resident at the most.
	seconds, gib float64
}

// bounds are the figures of the project's promise that a round is bounded whatever
// is asked for.
var bounds = []bound{
	{name: "10,000 different x 10,000", command: "plan", intents: 10_000, flavors: 10_000, seconds: 10, gib: 1.5},
	{name: "30,000 different x 10,000", command: "plan", intents: 30_000, flavors: 10_000, seconds: 30, gib: 2},
	{name: "2,000 conditions x 10,000", command: "plan", intents: 2000, flavors: 10_000, seconds: 5, gib: 1.5, more: func(i int) string {
		return fmt.Sprintf("  placement: {where: 'flavor.gpu.memoryGi >= %d && flavor.price.hourly < %d.%02d'}\n", 20+i%40, 500+i/100, i%100)
	}},
	{name: "2,000 of objective cost x 10,000", command: "plan", intents: 2000, flavors: 10_000, seconds: 10, gib: 1, more: func(int) string { return "  objective: cost\n" }},
	{name: "validate 100,000 files", command: "validate", intents: 100_000, flavors: 1000, alike: true, seconds: 12, gib: 1},
	{name: "plan 100,000 files", command: "plan", intents: 100_000, flavors: 1000, alike: true, seconds: 12, gib: 1},
}

// write writes the fleet as files, unless it is there.
func (x *bound) write(dir string) error {
	const tenants, providers = 20, 100
	o := gen.Options{Tenants: tenants, Providers: providers, Flavors: x.flavors / providers, Consumers: 1, Delivery: "none"}
	files := o.Inputs()
	files["fleet.yaml"] = []byte(strings.NewReplacer("work: 1000000000", "work: 1000000000000, conditions: 1000000000000").Replace(string(files["fleet.yaml"])))
	for i := range x.intents {
		size := i
		if x.alike {
			size = i % 200
		}
		more := ""
		if x.more != nil {
			more = x.more(i)
		}
		files[gen.IntentPath(i%tenants, i/tenants)] = fmt.Appendf(nil, `apiVersion: fleetbroker.io/v1alpha1
kind: ResourceIntent
metadata: {name: %s, namespace: %s}
spec:
  resources: {cpu: %dm, memory: %dMi, gpu: {count: 1}}
%s`, gen.IntentName(i/tenants), gen.TenantName(i%tenants), 1000+size, 4096+size, more)
	}
	made := map[string]bool{}
	for path, content := range files {
		path = filepath.Join(dir, path)
		if at := filepath.Dir(path); !made[at] {
			made[at] = true
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkBounds runs commands as a user would, each as a process of its own, on
// fleets that are made to be expensive.
func BenchmarkBounds(b *testing.B) {
	bin := programs(b)
	for i := range bounds {
		x := &bounds[i]
		b.Run(strings.ReplaceAll(x.name, " ", "_"), func(b *testing.B) {
			dir := b.TempDir()
			if err := x.write(dir); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				cpu, resident := x.run(b, filepath.Join(bin, "fleetbroker"), dir)
				results.below(x.name+": processor time", cpu.Seconds(), x.seconds, "s")
				results.below(x.name+": most memory resident", resident/(1<<30), x.gib, "GiB")
			}
		})
	}
}

// run runs the command, and returns its processor time and the most bytes that it
// had resident.
func (x *bound) run(tb testing.TB, program, dir string) (cpu time.Duration, resident float64) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program, x.command, dir)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if x.command == "plan" && errors.As(err, &exit) && exit.ExitCode() == 2 {
		err = nil // it changes something
	}
	if err != nil {
		tb.Fatalf("%s: %v\n%s", x.command, err, said.String())
	}
	if n := strings.Count(string(out), "\n"); x.command == "plan" && n < x.intents/2 {
		tb.Fatalf("the plan has %d lines for %d intents:\n%.2000s", n, x.intents, out)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), float64(usage.Maxrss) * 1024
}
