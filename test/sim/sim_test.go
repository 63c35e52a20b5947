package sim

import (
	"flag"
	"testing"
	"testing/synctest"
)

var (
	seed  = flag.Uint64("seed", 0, "play only this seed, and print its journal with -v")
	seeds = flag.Uint64("seeds", 100, "how many seeds to play, from 1")
	from  = flag.Uint64("from", 1, "the first seed")
)

func TestSim(t *testing.T) {
	if *seed != 0 {
		var sink func(string)
		if testing.Verbose() {
			sink = func(line string) { t.Log(line) }
		}
		report(t, play(t, *seed, sink))
		return
	}
	var total Result
	failed, count := 0, *seeds
	if testing.Short() {
		count = min(count, 10)
	}
	for n := *from; n < *from+count; n++ {
		res := play(t, n, nil)
		if res.Failure != nil {
			failed++
		}
		report(t, res)
		total.Events += res.Events
		total.Commits += res.Commits
		total.Placed += res.Placed
		total.Ended += res.Ended
		total.Replayed += res.Replayed
		total.Span += res.Span
	}
	t.Logf("%d seeds: %d failed, %d events, %d commits, %d contracts placed, %d ended, %d decisions replayed, %s of virtual time",
		count, failed, total.Events, total.Commits, total.Placed, total.Ended, total.Replayed, total.Span)
	if total.Replayed == 0 && failed == 0 {
		t.Error("no decision was replayed")
	}
}

// play runs a seed in a bubble of its own.
func play(t *testing.T, n uint64, sink func(string)) (res Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { res = Run(n, t.TempDir(), sink) })
	return res
}

func report(t *testing.T, res Result) {
	t.Helper()
	if res.Failure != nil {
		t.Error(res.Failure)
		return
	}
	t.Logf("seed %d: %d events, %d commits, %d placed, %d ended", res.Seed, res.Events, res.Commits, res.Placed, res.Ended)
}

// Equal seeds must give equal runs, or no failure could be found again.
func TestSameSeedSameRun(t *testing.T) {
	for n := uint64(1); n <= 3; n++ {
		a, b := play(t, n, nil), play(t, n, nil)
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: two runs differ: %s after %d events, %s after %d", n, a.Hash[:12], a.Events, b.Hash[:12], b.Events)
		}
	}
}
