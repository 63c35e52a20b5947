package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/bench/gen"
	"github.com/fleetbroker/fleetbroker/test/env"
)

// The two fleets of the targets.
var (
	wide = gen.Options{Tenants: 100, Intents: 1000, Held: 100, Waiting: 100, Providers: 100, Flavors: 10, Consumers: 4, Delivery: "none", Now: made}
	tall = gen.Options{Tenants: 1, Intents: 20_000, Held: 10_000, Waiting: 1000, Providers: 100, Flavors: 10, Consumers: 1, Delivery: "none", Now: made}
)

// made is when the generated fleets were committed.
var made = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// keep names a directory in which fleets stay for the next run: making them
// takes a minute.
const keep = "FLEETBROKER_BENCH_FLEETS"

func run(m *testing.M) (int, error) {
	fleets.dir = os.Getenv(keep)
	if fleets.dir == "" {
		dir, err := os.MkdirTemp("", "fleetbroker-bench-")
		if err != nil {
			return 1, err
		}
		fleets.dir = dir
		defer os.RemoveAll(dir)
	}
	code := m.Run()
	results.print()
	return code, nil
}

// fleets are made once for all benchmarks; each works on a copy.
var fleets struct {
	sync.Mutex
	dir  string
	made map[gen.Options]*gen.Fleet
}

// place is a copy of a fleet on a git server.
type place struct {
	*gen.Fleet
	git *env.GitServer
	dir string
	n   int
}

// repo is the name of the fleet repo on its server.
const repo = "fleet"

func serve(tb testing.TB, o gen.Options) *place {
	tb.Helper()
	fleets.Lock()
	defer fleets.Unlock()
	original := filepath.Join(fleets.dir, fmt.Sprintf("%dx%d-%d-%s", o.Tenants, o.Intents, o.Held, o.Delivery))
	if fleets.made[o] == nil {
		f, err := gen.Open(tb.Context(), original, o)
		if err != nil {
			f, err = gen.Make(tb.Context(), original, o)
		}
		if err != nil {
			tb.Fatal(err)
		}
		if fleets.made == nil {
			fleets.made = map[gen.Options]*gen.Fleet{}
		}
		fleets.made[o] = f
	}
	p := &place{Fleet: fleets.made[o], dir: tb.TempDir()}
	var err error
	if p.git, err = env.StartGitHTTP(tb.Context(), p.dir); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.git.Stop() })
	p.copy(tb, original, repo)
	return p
}

// copy puts a repository on the server.
func (p *place) copy(tb testing.TB, from, name string) {
	tb.Helper()
	if err := os.CopyFS(p.git.RepoDir(name), os.DirFS(from)); err != nil {
		tb.Fatal(err)
	}
}

// put commits files to the inputs, behind the server's back.
func (p *place) put(tb testing.TB, files map[string][]byte) {
	tb.Helper()
	p.n++
	c := gen.Commit{Branch: gen.InputsBranch, By: "Ada L. <ada@example.org>", When: made.Unix() + int64(p.n), Message: "Ask for more", Files: files}
	if _, err := gen.Import(context.WithoutCancel(tb.Context()), p.git.RepoDir(repo), c); err != nil {
		tb.Fatal(err)
	}
}

// median of what was measured.
func median[T cmp.Ordered](d []T) T {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// cpuTime is the processor's time that this process has used, garbage
// collection included: the machine may be busy with other things.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// figure is one measured value.
type figure struct {
	name, value, target string
	ok                  bool
}

type figures struct {
	mu   sync.Mutex
	list []figure
}

var results figures

// below records a figure and whether it keeps its target.
func (f *figures) below(name string, value, target float64, unit string) {
	f.add(figure{name, fmt.Sprintf("%.4g %s", value, unit), fmt.Sprintf("< %g %s", target, unit), value < target})
}

// atLeast records a figure that has to reach its target.
func (f *figures) atLeast(name string, value, target float64, unit string) {
	f.add(figure{name, fmt.Sprintf("%.4g %s", value, unit), fmt.Sprintf(">= %g %s", target, unit), value >= target})
}

// note records a figure that has no target.
func (f *figures) note(name, value string) { f.add(figure{name: name, value: value}) }

func (f *figures) add(one figure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, one)
	fmt.Println(one)
}

func (f figure) String() string {
	verdict := ""
	switch {
	case f.target == "":
	case f.ok:
		verdict = "PASS"
	default:
		verdict = "MISS"
	}
	return fmt.Sprintf("| %-66s | %14s | %10s | %-4s |", f.name, f.value, f.target, verdict)
}

func (f *figures) print() {
	if len(f.list) == 0 {
		return
	}
	fmt.Printf("\n| %-66s | %14s | %10s | %-4s |\n", "figure", "measured", "target", "")
	for _, one := range f.list {
		fmt.Println(one)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
