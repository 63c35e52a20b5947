package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// Objects that somebody else wrote harm nobody: they are named and left out, and
// the provider's next report replaces them.
func TestHostileObjects(t *testing.T) {
	good := flavors("paris", 8, 0)
	for name, forge := range map[string]func(*marketcrd.Advertisement){
		"no generation":      func(a *marketcrd.Advertisement) { a.Spec.Generation = "x" },
		"an epoch far ahead": func(a *marketcrd.Advertisement) { a.Spec.Generation = "9000000000000000000.1" },
		"no gzip":            func(a *marketcrd.Advertisement) { a.Spec.Report = []byte("nonsense") },
		"cut off":            func(a *marketcrd.Advertisement) { a.Spec.Report = a.Spec.Report[:len(a.Spec.Report)/2] },
		"another digest":     func(a *marketcrd.Advertisement) { a.Spec.Digest = strings.Repeat("0", 64) },
		"another provider's": func(a *marketcrd.Advertisement) {
			other := storetest.Packed(flavors("oslo", 8, 0))
			a.Spec.Digest, a.Spec.Report = other.Spec.Digest, other.Spec.Report
		},
		"parts that are not there": func(a *marketcrd.Advertisement) { a.Spec.Report, a.Spec.Parts = nil, []string{"paris.00"} },
		"too many parts":           func(a *marketcrd.Advertisement) { a.Spec.Parts = make([]string, 100) },
		"a bomb":                   func(a *marketcrd.Advertisement) { a.Spec.Report = storetest.Bomb(64 << 20) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t, "a")
			a := r.all[0]
			must(t, a.report("oslo", 7, 1, flavors("oslo", 4, 0)))
			bad := storetest.Packed(good)
			bad.Name, bad.Spec.Generation = "paris", "8.1"
			forge(bad)
			r.objects.Forge(bad)
			r.tick(1)
			if len(a.store.Objects()) != 1 {
				t.Errorf("named: %v", a.store.Objects())
			}
			r.lines.Wants(t, "FB1096")
			if a.gpus("paris") != -1 || a.gpus("oslo") != 4 {
				t.Errorf("paris %d, oslo %d", a.gpus("paris"), a.gpus("oslo"))
			}
			must(t, a.report("paris", 7, 1, good))
			r.tick(1)
			if a.gpus("paris") != 8 || len(a.store.Objects()) != 0 {
				t.Errorf("after the report: %d, %v", a.gpus("paris"), a.store.Objects())
			}
		})
	}
}

// An object of a report that is known, with parts that it does not have, makes nobody delete
// or look for what it names.
func TestHostileObjects_PartsOfAKnownReport(t *testing.T) {
	r := newReplicas(t, "a")
	a := r.all[0]
	must(t, a.report("paris", 7, 1, flavors("paris", 8, 0)))
	r.tick(1)
	bad := storetest.Packed(flavors("paris", 8, 0))
	bad.Name, bad.Spec.Generation = "paris", "7.1"
	for i := range 50_000 {
		bad.Spec.Parts = append(bad.Spec.Parts, fmt.Sprintf("oslo.%d", i))
	}
	r.objects.Forge(bad)
	r.tick(1)
	if named := a.store.Objects(); len(named) != 1 || !strings.Contains(fmt.Sprint(named), "50000 parts, at most 4") {
		t.Errorf("named: %.300v", named)
	}
	r.tick(20)
	must(t, a.report("paris", 7, 2, flavors("paris", 4, 0)))
	r.tick(200)
	if n := r.objects.Deleted(); n > 0 || a.gpus("paris") != 4 || len(a.store.Objects()) != 0 {
		t.Errorf("%d parts were deleted, %d GPUs, %v", n, a.gpus("paris"), a.store.Objects())
	}
}

// Whatever is lost, late, in conflict or out of reach, no replica takes a list
// back that was acknowledged, and once all is well they agree on the newest.
func TestFaults(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 7))
			r := newReplicas(t, "a", "b", "c")
			r.tick(2)
			for _, one := range r.all {
				one.api.Fault = func(string) (bool, bool) {
					switch rnd.IntN(12) {
					case 0:
						return true, false
					case 1:
						return true, true
					}
					return false, false
				}
			}
			type agent struct {
				epoch, n, acked uint64
				gpus, sold      int64
			}
			agents := map[string]*agent{"paris": {epoch: 5}, "oslo": {epoch: 5}, "rome": {epoch: 5}}
			names := []string{"paris", "oslo", "rome"}
			lives := 1
			for range 300 {
				switch rnd.IntN(10) {
				case 0, 1, 2, 3:
					name := names[rnd.IntN(3)]
					ag := agents[name]
					one := r.all[rnd.IntN(3)]
					if ag.acked < ag.n || rnd.IntN(3) == 0 {
						ag.n++
						ag.gpus = rnd.Int64N(64)
					}
					var content *wire.FlavorReport
					if ag.acked != ag.n || rnd.IntN(4) == 0 {
						content = flavors(name, ag.gpus, 0)
					}
					err := one.report(name, ag.epoch, ag.n, content)
					var stale *market.StaleEpochError
					switch {
					case err == nil && content != nil:
						ag.acked, ag.sold = ag.n, ag.gpus
					case errors.As(err, &stale):
						if stale.Last.Epoch != ag.epoch || stale.Last.N > ag.n {
							t.Fatalf("%s is said to have reported %s, and is at %d.%d", name, stale.Last, ag.epoch, ag.n)
						}
						ag.epoch, ag.n, ag.acked = stale.Last.Epoch+1, 1, 0
					case errors.Is(err, market.ErrUnknownBase):
						ag.acked = 0
					}
					if err == nil && one.gpus(name) != ag.gpus {
						t.Fatalf("%s acknowledged %d GPUs of %s and has %d", one.name, ag.gpus, name, one.gpus(name))
					}
				case 4, 5:
					r.all[rnd.IntN(3)].api.Deliver(1 + rnd.IntN(3))
				case 6:
					one := r.all[rnd.IntN(3)]
					one.cut = !one.cut
					one.api.Out(one.cut)
				case 7:
					if rnd.IntN(4) == 0 {
						lives++
						r.start(r.all[rnd.IntN(3)].name, fmt.Sprint(lives))
					}
				default:
					r.now = r.now.Add(time.Duration(1+rnd.IntN(12)) * time.Second)
					r.all[rnd.IntN(3)].store.Look(t.Context())
				}
			}
			for _, one := range r.all {
				one.api.Fault = nil
				one.api.Out(false)
			}
			r.tick(30)
			for _, name := range names {
				ag := agents[name]
				ag.n, ag.gpus = ag.n+1, 99
				if err := r.all[0].report(name, ag.epoch, ag.n, flavors(name, 99, 0)); err != nil {
					var stale *market.StaleEpochError
					if !errors.As(err, &stale) {
						t.Fatal(err)
					}
					must(t, r.all[0].report(name, stale.Last.Epoch+1, 1, flavors(name, 99, 0)))
				}
			}
			r.tick(3)
			for _, one := range r.all {
				for _, name := range names {
					if one.gpus(name) != 99 || one.state(name) != model.Fresh {
						t.Errorf("%s: %d GPUs of %s, %s", one.name, one.gpus(name), name, one.state(name))
					}
				}
			}
		})
	}
}

// The store is set back to what it was ten minutes ago, versions too: watches are of a
// state that is no more and tell nothing. Replicas notice with their next beat, list all
// anew, and have it written again what providers offer; nobody is silent, and nobody
// goes back to what was.
func TestSetBack(t *testing.T) {
	for name, test := range map[string]struct{ known, soon, bumped bool }{
		"their heartbeats were there":                   {known: true},
		"they were not":                                 {},
		"no replica wrote a heartbeat since":            {known: true, soon: true},
		"none did, and versions go on, as may be asked": {known: true, soon: true, bumped: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t)
			if test.known {
				r.start("a", "1")
				r.start("b", "1")
				r.tick(2)
			} else {
				r.start("c", "1")
				r.tick(2)
			}
			must(t, r.all[0].report("paris", 7, 1, flavors("paris", 16, 0)))
			r.tick(12)
			old := r.objects.Backup()
			if !test.known {
				r.all = nil
				r.start("a", "1")
				r.start("b", "1")
				r.tick(2)
			}
			a, b := r.all[0], r.all[1]
			for range 10 {
				r.tick(60)
				must(t, a.report("paris", 7, 1, nil))
			}
			if test.soon {
				old = r.objects.Backup()
			}
			must(t, a.report("paris", 7, 2, flavors("paris", 4, 0)))
			if !test.soon {
				r.tick(30)
			}
			for _, one := range r.all {
				one.api.Deliver(0)
			}
			r.objects.SetBack(old)
			if test.bumped {
				r.objects.Bump(1_000_000_000)
			}
			for second := range 300 {
				r.tick(1)
				if second%30 == 0 { // as an agent does: the list only when it is asked for
					switch err := b.report("paris", 7, 2, nil); {
					case errors.Is(err, market.ErrUnknownBase):
						must(t, b.report("paris", 7, 2, flavors("paris", 4, 0)))
					case err != nil && second > 60:
						t.Fatalf("second %d: %v", second, err)
					}
				}
				for _, one := range r.all {
					if one.gpus("paris") != 4 {
						t.Fatalf("second %d: %s goes by %d GPUs", second, one.name, one.gpus("paris"))
					}
					if got := one.state("paris"); got == model.Silent || got == model.Lost {
						t.Fatalf("second %d: paris is %s to %s", second, got, one.name)
					}
				}
			}
			if !test.soon {
				r.lines.Wants(t, "FB1089")
			}
			late := r.start("d", "1")
			r.tick(3)
			if late.gpus("paris") != 4 {
				t.Errorf("who starts later finds %d GPUs in the store", late.gpus("paris"))
			}
			for _, one := range []*replica{a, b} {
				if st := one.store.Status(); st.Cut != "" {
					t.Errorf("%s is cut off: %s", one.name, st.Cut)
				}
			}
		})
	}
}

// A watch that tells nothing any more, of a store that takes what is written, is begun
// again before anybody is cut off.
func TestWatchThatTellsNothing(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	r.tick(12)
	a.api.Deafen()
	must(t, b.report("paris", 7, 1, flavors("paris", 4, 0)))
	for range 30 {
		r.tick(1)
		if st := a.store.Status(); st.Cut != "" {
			t.Fatalf("cut off: %s", st.Cut)
		}
	}
	if a.gpus("paris") != 4 {
		t.Errorf("it has %d GPUs of paris", a.gpus("paris"))
	}
}

// A watch that lags because the API server is slow is not begun again every few seconds:
// reading all is the most expensive that there is.
func TestSlowWatchIsNotListedAgainAndAgain(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a := r.all[0]
	r.tick(12)
	listed := 0
	for range 20 * 60 {
		r.now = r.now.Add(time.Second)
		a.store.Look(t.Context()) // nothing is told
		if a.api.Asked() {
			listed++
		}
	}
	if listed < 2 || listed > 8 {
		t.Errorf("all was listed again %d times in 20 minutes", listed)
	}
}

// What the store had of a consumer before it was set back is told to nobody as what is
// seen there now: the contracts that were there then may be gone.
func TestSetBack_TellsNoOldObservation(t *testing.T) {
	r := newReplicas(t, "a", "b")
	a, b := r.all[0], r.all[1]
	say := func(n int, root string) {
		t.Helper()
		must(t, a.store.Observe(t.Context(), "rome", wire.Observed{Generation: fmt.Sprintf("5.%d", n), Root: strings.Repeat(root, 20)}))
	}
	say(1, "aa")
	r.tick(12)
	old := r.objects.Backup()
	say(2, "bb")
	r.tick(12)
	b.seen = nil
	r.objects.SetBack(old)
	r.tick(25)
	if len(b.seen) > 0 {
		t.Errorf("after the store was set back b is told %v", b.seen)
	}
	say(3, "cc")
	r.tick(2)
	if len(b.seen) != 1 || b.seen[0] != "rome cc" {
		t.Errorf("then it is told %v, want what is seen now", b.seen)
	}
}
