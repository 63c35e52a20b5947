package sim

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A run makes much garbage and keeps little: collecting it seldom, and by what is
// there at most, is a fifth of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(2000)
	debug.SetMemoryLimit(768 << 20)
	os.Exit(m.Run())
}

var (
	seed  = flag.Uint64("seed", 0, "play only this seed, and print its journal with -v")
	seeds = flag.Uint64("seeds", 300, "how many seeds to play, from 1")
	from  = flag.Uint64("from", 1, "the first seed")
	// For many seeds on a machine of unknown speed.
	within = flag.Duration("within", 0, "begin no seed after so long (0: play all)")
	least  = flag.Int("least", 0, "fail when fewer seeds were played")
	update = flag.Bool("update", false, "record the digests of plans of the seeds that are played; read in the commit why they change")
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
	count := *seeds
	if testing.Short() {
		count = min(count, 10)
	}
	var total Result
	var mu sync.Mutex
	failed, began := 0, time.Now()
	golden := readPlans(t)
	t.Run("seeds", func(t *testing.T) {
		for n := *from; n < *from+count; n++ {
			t.Run(strconv.FormatUint(n, 10), func(t *testing.T) {
				t.Parallel()
				if *within > 0 && time.Since(began) > *within {
					return
				}
				res := play(t, n, nil)
				report(t, res)
				mu.Lock()
				defer mu.Unlock()
				golden.compare(t, res)
				if res.Failure != nil {
					failed++
				}
				total.add(res)
			})
		}
	})
	golden.finish(t)
	t.Logf("%d seeds in %s: %d failed, %s", total.Played, time.Since(began).Round(time.Second), failed, total)
	if total.Replayed == 0 && failed == 0 {
		t.Error("no decision was replayed")
	}
	if total.Traced == 0 && failed == 0 && total.Played > 1 {
		t.Error("no commit names a trace")
	}
	if total.Checked == 0 && failed == 0 {
		t.Error("no plan was checked against one from nothing")
	}
	if total.Remapped == 0 && failed == 0 && total.Played >= 300 {
		t.Error("no part of a contract was given another node")
	}
	if (total.Stills == 0 || total.Refused == 0) && failed == 0 && total.Played >= 100 {
		t.Error("no replica stood still before a push, or no store refused a write")
	}
	if total.Honoured == 0 && failed == 0 {
		t.Error("no agent said what it had honoured")
	}
	if failed == 0 && total.Played >= 100 {
		for _, kind := range attackKinds {
			if total.Attacks[kind].Caught == 0 {
				t.Errorf("no attack of kind %q was seen to be caught", kind)
			}
		}
	}
	if *least > 0 && total.Played < *least {
		t.Errorf("%d seeds were played in %s, and at least %d were asked for", total.Played, *within, *least)
	}
}

// attackKinds are what hostile people do in every other seed.
var attackKinds = []string{
	"rollback by merge", "replayed trailers", "replayed signature", "cherry-picked commit", "foreign key", "key of the policy",
	"set back without a note", "moved note", "bomb of aliases", "takeover of a namespace", "flood of intents", "unsigned rights",
	"future-dated commit", "broken tree", "forged report", "clock jump",
	"lie about place", "lie about price", "renamed refusals", "merged offer", "cherry-picked offer",
}

// found are seeds that once showed a fault which those that are always played did
// not: 9915 accepted, by the commit that retires requests, what nobody had signed;
// 79 had the auditor call inputs rewritten that said the same as those before; the
// checker judged 105 before all intents had a turn of rounds that do little work, and
// 30105 before one had a turn again that lost what it held; 11 and 17 sold twice what
// an old offer promised that Mallory merged; in 30169 the ledger was set back while the
// only note of it was moved and the only daemon had no memory, which a witness alone
// sees (setBackUnseen plays it).
// 30360 and 40556 were decided again otherwise, as requests that got nothing had used up
// the work that another intent of their tenant waited for, or had counted as demand.
// The checker read a ledger that nobody had begun in 100011. In 101009 an old offer that had been
// merged and taken back by merges was no edit when it was merged again. In 113412 a reservation
// was resized to no nodes when one of its two was gone. In 112670 a replica that had stood still
// took what its watch had kept for heard now, and 113085 was judged as if a refused intent went
// on trying.
var found = []uint64{11, 17, 79, 105, 9915, 30105, 30169, 30360, 40556, 100011, 101009, 112670, 113085, 113412}

func TestSim_Found(t *testing.T) {
	for _, n := range found {
		t.Run(strconv.FormatUint(n, 10), func(t *testing.T) {
			t.Parallel()
			report(t, play(t, n, nil))
		})
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
		if a.PlansHash != b.PlansHash || a.Plans != b.Plans {
			t.Errorf("seed %d: the plans of two runs differ: %d, %s and %d, %s", n, a.Plans, a.PlansHash, b.Plans, b.PlansHash)
		}
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: two runs differ: %s after %d events, %s after %d", n, a.Hash[:12], a.Events, b.Hash[:12], b.Events)
		}
	}
}
