package planner_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/planner"
)

// The golden plans hold each step of a change of structure to the plans of the
// step before. testdata/golden/worlds.gz has those of 200 random fleets, round by
// round and whole; testdata/golden/tests.txt has a digest of what each test of
// this package has planned through a Builder. A commit that changes decisions on
// purpose records both again (-update) and states why; nothing else is in it.
var update = flag.Bool("update", false, "record the golden plans again; read what changes")

const (
	goldenWorlds = "testdata/golden/worlds.gz"
	goldenTests  = "testdata/golden/tests.txt"
	worlds       = 200
)

// encoded is a plan as bytes: all that is exported of it, in the order in which
// it stands there, which is part of what Decide promises.
func encoded(p *planner.Plan) []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return b
}

// lives are the plans of a random fleet, one a line, with the event before each.
var lives = rapid.Custom(func(t *rapid.T) string {
	s, out := newStory(t), strings.Builder{}
	for range rapid.IntRange(4, 16).Draw(t, "length") {
		said := s.event()
		s.Tick(time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600, 6 * 3600, 200 * 3600}).Draw(t, "seconds")) * time.Second)
		p := s.Round()
		fmt.Fprintf(&out, "%s: %s\n", said, encoded(p))
	}
	return out.String()
})

func TestGoldenWorlds(t *testing.T) {
	var got bytes.Buffer
	for n := range worlds {
		fmt.Fprintf(&got, "world %d\n%s", n, lives.Example(n))
	}
	if *update {
		write(t, goldenWorlds, zipped(t, got.Bytes()))
	}
	want := unzipped(t, goldenWorlds)
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	was, world := strings.Split(string(want), "\n"), ""
	for i, line := range strings.Split(got.String(), "\n") {
		if strings.HasPrefix(line, "world ") {
			world = line
		}
		if i >= len(was) || line != was[i] {
			t.Fatalf("%s plans otherwise, in line %d of the record:\n%s\nwas\n%s", world, i+1, line, was[min(i, len(was)-1)])
		}
	}
	t.Fatalf("the record has %d lines more", len(was)-strings.Count(got.String(), "\n"))
}

// planLog collects the digests of plans by the test that made them.
type planLog struct {
	sync.Mutex
	of map[string][]string
}

// add notes a plan under the test function on the stack. Those of properties are
// left out: how many there are depends on flags.
func (l *planLog) add(p *planner.Plan) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	test := ""
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "rapid.") {
			return
		}
		if _, name, ok := strings.Cut(f.Function, "/planner_test."); ok && strings.HasPrefix(name, "Test") {
			test, _, _ = strings.Cut(name, ".")
		}
		if !more {
			break
		}
	}
	if test == "" {
		return // a benchmark, or a goroutine of a test's own
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(encoded(p)))
	l.Lock()
	defer l.Unlock()
	l.of[test] = append(l.of[test], digest)
}

// differences compares with what was recorded; only a run of all tests can.
func (l *planLog) differences() []string {
	l.Lock()
	defer l.Unlock()
	var got strings.Builder
	for _, test := range slices.Sorted(maps.Keys(l.of)) {
		list := slices.Sorted(slices.Values(l.of[test])) // subtests may run side by side
		fmt.Fprintf(&got, "%s: %d plans, %x\n", test, len(list), sha256.Sum256([]byte(strings.Join(list, "\n"))))
	}
	if *update {
		if err := os.WriteFile(goldenTests, []byte(got.String()), 0o644); err != nil {
			return []string{err.Error()}
		}
	}
	was, err := os.ReadFile(goldenTests)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	want := strings.Split(string(was), "\n")
	for line := range strings.SplitSeq(got.String(), "\n") {
		if !slices.Contains(want, line) {
			out = append(out, line)
		}
	}
	return out
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
