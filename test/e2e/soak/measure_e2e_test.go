//go:build e2e

package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// tolerance is by how much the figures at the end may exceed those after the
// warm-up.
type tolerance struct{ goroutines, files, heap, resident int64 }

// The daemon keeps up to 32 MiB of git objects in memory before it writes them out
// as a pack (gitrepo.Options.FlushBytes), which is half as much again with their
// index and spare capacity, and a few MiB of decoded commits and directories: some
// 0.2 MiB a fault until then. Resident memory is twice the live heap at most
// (GOGC=100), and what the runtime has not given back yet.
var (
	minutes  = tolerance{goroutines: 4, files: 4, heap: 16 << 20, resident: 48 << 20}
	halfHour = tolerance{goroutines: 4, files: 4, heap: 64 << 20, resident: 128 << 20}
)

// tolerated is what a soak may grow by.
func tolerated() tolerance {
	if *length > 10*time.Minute {
		return halfHour
	}
	return minutes
}

// figures are what a process holds.
type figures struct {
	goroutines, files int
	heap, resident    int64 // bytes; heap is what the last collection left
}

// String implements fmt.Stringer.
func (f figures) String() string {
	return fmt.Sprintf("%d goroutines, %d files, %.1f MiB of live heap, %.1f MiB resident", f.goroutines, f.files, float64(f.heap)/(1<<20), float64(f.resident)/(1<<20))
}

// exceeds is an error for each figure that is too far above another.
func (f figures) exceeds(was figures) error {
	var errs []error
	more := tolerated()
	for _, one := range []struct {
		what      string
		was, now  int64
		tolerated int64
	}{
		{"goroutines", int64(was.goroutines), int64(f.goroutines), more.goroutines},
		{"open files", int64(was.files), int64(f.files), more.files},
		{"bytes of live heap", was.heap, f.heap, more.heap},
		{"resident bytes", was.resident, f.resident, more.resident},
	} {
		if one.now > one.was+one.tolerated {
			errs = append(errs, fmt.Errorf("%d %s, %d after the warm-up, and %d more are tolerated", one.now, one.what, one.was, one.tolerated))
		}
	}
	return errors.Join(errs...)
}

// lowest is the lower of each figure.
func (f figures) lowest(other figures) figures {
	return figures{min(f.goroutines, other.goroutines), min(f.files, other.files), min(f.heap, other.heap), min(f.resident, other.resident)}
}

// process is a program that lives through the soak.
type process struct {
	name, metrics string // its address
	*env.Program
}

// now measures the process.
func (p *process) now(ctx context.Context) (figures, float64, error) {
	values, err := scrape(ctx, p.metrics)
	if err != nil {
		return figures{}, 0, err
	}
	f := figures{goroutines: int(values["go_goroutines"]), heap: int64(values["go_memstats_next_gc_bytes"]) / 2}
	if f.goroutines == 0 || f.heap == 0 {
		return figures{}, 0, fmt.Errorf("%s shows no figures of the Go runtime", p.name)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		return figures{}, 0, err
	}
	f.files = len(open)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return figures{}, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return figures{}, 0, err
			}
			f.resident = kib << 10
		}
	}
	return f, values["go_gc_duration_seconds_count"], nil
}

// scrape reads metrics without labels.
func scrape(ctx context.Context, address string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			out[name] = v
		}
	}
	return out, nil
}

// least measures a process until two collections have ended and it has been at
// rest for some seconds; the lowest of each figure counts.
func (s *soak) least(p *process) figures {
	s.t.Helper()
	var low figures
	var first float64
	until := time.Now().Add(5 * time.Second)
	for n := 0; ; n++ {
		f, collections, err := p.now(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		switch {
		case n == 0:
			low, first = f, collections
		case collections < first+2: // the heap is still that of the work before
			low = low.lowest(f)
			low.heap = f.heap
		default:
			low = low.lowest(f)
		}
		if collections >= first+2 && time.Now().After(until) {
			return low
		}
		s.pass(50 * time.Millisecond)
	}
}

// flat waits until a process holds no more than it did, and fails with where its
// goroutines are when that does not come.
func (s *soak) flat(p *process, before figures) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		now := s.least(p)
		err := now.exceeds(before)
		if err == nil {
			s.t.Logf("%s after the warm-up: %s", p.name, before)
			s.t.Logf("%s at the end:        %s", p.name, now)
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%s has grown: %v\n%s", p.name, err, s.whereabouts(p))
			return
		}
	}
}

// whereabouts ends a process and counts by whom its goroutines were started.
func (s *soak) whereabouts(p *process) string {
	size := int64(0)
	if info, err := os.Stat(p.LogFile()); err == nil {
		size = info.Size()
	}
	if err := syscall.Kill(p.PID(), syscall.SIGQUIT); err != nil {
		return err.Error()
	}
	<-p.Done()
	log, err := os.ReadFile(p.LogFile())
	if err != nil {
		return err.Error()
	}
	counts := map[string]int{}
	for line := range bytes.Lines(log[min(size, int64(len(log))):]) {
		if by, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("created by ")); ok {
			name, _, _ := strings.Cut(string(by), " in goroutine")
			counts[name]++
		}
	}
	var out []string
	for name, n := range counts {
		out = append(out, fmt.Sprintf("%6d %s", n, name))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// leftOver are the files of the directory for temporary files, and of state
// directories, that no daemon means to keep.
func (s *soak) leftOver() []string {
	s.t.Helper()
	var out []string
	find := func(dir string, kept ...string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range list {
			means := slices.ContainsFunc(kept, func(pattern string) bool {
				ok, err := filepath.Match(pattern, e.Name())
				return ok && err == nil
			})
			if !means {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	find(s.temporary)
	for _, name := range []string{"one", "two"} {
		state := filepath.Join(s.Dir, "state-"+name)
		find(state, "accepted.json", "notify.json", "led.json", "reading.json", "reading.json.new", "cache-*", "*.damaged-*")
		caches, err := filepath.Glob(filepath.Join(state, "cache-*"))
		if err != nil {
			s.t.Fatal(err)
		}
		isAside := func(dir string) bool { return strings.Contains(filepath.Base(dir), ".damaged-") }
		aside := len(caches)
		caches = slices.DeleteFunc(caches, isAside)
		if aside -= len(caches); aside > 1 {
			out = append(out, fmt.Sprintf("%d damaged caches in %s, and the newest is kept", aside, state))
		}
		for _, dir := range caches {
			find(dir, "lock", "heads.json", "objects")
			find(filepath.Join(dir, "objects"), "pack")
			find(filepath.Join(dir, "objects", "pack"), "pack-*")
		}
		if len(caches) > 1 {
			out = append(out, caches...)
		}
	}
	return out
}
