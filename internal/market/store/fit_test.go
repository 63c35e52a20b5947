package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/storetest"
)

// noise is a text that does not pack.
func noise(r *rand.Rand, size int) string {
	sum := sha256.Sum256(fmt.Append(nil, r.Uint64()))
	var out strings.Builder
	for out.Len() < size {
		sum = sha256.Sum256(sum[:])
		out.WriteString(hex.EncodeToString(sum[:]))
	}
	return out.String()[:size]
}

// What is seen in a cluster with many contracts, or in one whose administrators write as
// much into their objects as they like, fits into one object: replicas are told what is
// decided by, and what is missing is said aloud. Before that they were told nothing of
// such a cluster, and took it for unreachable.
func TestWhatIsSeenFits(t *testing.T) {
	for name, test := range map[string]struct {
		contracts, text, blockers int
		loud                      bool
		least                     int // contracts that are told
	}{
		"a few":                        {10, 200, 2, false, 10},
		"twenty thousand, all well":    {20_000, 0, 0, false, 20_000},
		"five hundred that complain":   {500, 4000, 0, true, 500},
		"many, each drain held up":     {2_000, 100, 50, true, 2_000},
		"hostile, as much as they can": {20_000, 64, 3, true, 2_000},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // a test's
			report := wire.Observed{Generation: "5.1", Root: strings.Repeat("a", 40), Leading: true, Troubles: []string{"one of its own"}, Contracts: map[string]v1alpha1.ConsumerObservation{}}
			for i := range test.contracts {
				o := v1alpha1.ConsumerObservation{Reachable: true, Slice: v1alpha1.Present, NodeReady: true, SliceDenied: noise(r, test.text), NodeMessage: noise(r, test.text)}
				for range test.blockers {
					o.Blockers = append(o.Blockers, noise(r, max(test.text, 1)))
				}
				report.Contracts[fmt.Sprintf("vision-%05d-8f2a11", i)] = o
			}
			if err := report.Check(); err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			objects := &storetest.Objects{}
			var told wire.Observed
			var all []*store.Shared
			var apis []*storetest.API
			for _, name := range []string{"a", "b"} {
				api := objects.API()
				s := store.NewShared(store.Options{
					API: api, Market: market.New(market.Options{Now: func() time.Time { return now }}), Replica: name, Life: "1", Now: func() time.Time { return now },
					Observed: func(_, _ string, report wire.Observed) { told = report },
				})
				s.Follow(t.Context(), api.Follow)
				all, apis = append(all, s), append(apis, api)
			}
			for range 2 {
				for i, s := range all {
					apis[i].Deliver(0)
					s.Look(t.Context())
				}
			}
			if err := all[0].Observe(t.Context(), "rome", report); err != nil {
				t.Fatalf("it is refused: %v", err)
			}
			apis[1].Deliver(0)
			if len(told.Contracts) < test.least {
				t.Fatalf("%d of %d contracts are told; want at least %d", len(told.Contracts), test.contracts, test.least)
			}
			if err := told.Check(); err != nil {
				t.Errorf("what is told: %v", err)
			}
			for name, got := range told.Contracts {
				want := report.Contracts[name]
				if got.Slice != want.Slice || got.NodeReady != want.NodeReady || !got.Reachable || (got.SliceDenied == "") != (want.SliceDenied == "") || !strings.HasPrefix(want.SliceDenied, got.SliceDenied) {
					t.Fatalf("%s is told as %+v", name, got)
				}
			}
			is := strings.Contains(told.Troubles[0], "replicas share at most")
			if is != test.loud || told.Troubles[len(told.Troubles)-1] != "one of its own" {
				t.Errorf("its troubles are %.300q", told.Troubles)
			}
			if left := test.contracts - len(told.Contracts); left > 0 && !strings.Contains(told.Troubles[0], fmt.Sprintf("%d of %d contracts", left, test.contracts)) {
				t.Errorf("%d contracts are left out, and it says %q", left, told.Troubles[0])
			}
		})
	}
}
