//go:build e2e

package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/kube"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// sites is how many providers BenchmarkStore has.
var sites = flag.Int("sites", 10_000, "providers that share a market's store, with ten flavors each")

// measured is how long the steady state is looked at.
const measured = 2 * interval

// sharer is a replica's part of the store.
type sharer struct {
	*store.Shared
	market  *market.Market
	replica string
}

// BenchmarkStore is three replicas' market on a real API server: each provider
// reports every 30 s to one of them, every tenth time with a change. What agents
// cost a replica's port is measured by BenchmarkAgents.
func BenchmarkStore(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Minute)
	defer cancel()
	for b.Loop() {
		hub := rigtest.NewHub(ctx, b)
		replicas := []*sharer{sharing(ctx, b, hub, 0), sharing(ctx, b, hub, 1), sharing(ctx, b, hub, 2)}
		fleet := fmt.Sprintf("%d providers, %d flavors, three replicas", *sites, *sites*flavors)

		begun := time.Now()
		if err := fill(ctx, replicas, 0); err != nil {
			b.Fatal(err)
		}
		results.note(fleet+": until all had reported", time.Since(begun).Round(100*time.Millisecond).String())
		for _, r := range replicas {
			r.whole(ctx, b)
		}
		results.note(fleet+": until each replica had all", time.Since(begun).Round(100*time.Millisecond).String())
		wait(ctx, interval) // what the beginning cost is over

		before := usedBy(b, hub)
		seen := lively(ctx, b, replicas)
		after, sum := usedBy(b, hub), 0.0
		for _, program := range []string{"etcd", "kube-apiserver"} {
			share := (after[program] - before[program]).Seconds() / measured.Seconds()
			sum += share
			results.note(fleet+": "+program, fmt.Sprintf("%.3g of a core", share))
		}
		results.below(fleet+": both together", sum, 0.4, "of a core")
		slices.Sort(seen)
		results.note(fleet+": changes looked at", fmt.Sprint(len(seen)))
		results.note(fleet+": a change acknowledged, until every replica has it, median", fmt.Sprintf("%.4g ms", ms(median(seen))))
		results.below(fleet+": the same, of 99 in a hundred", ms(seen[len(seen)*99/100]), 1000, "ms")

		begun = time.Now()
		fresh := sharing(ctx, b, hub, 3)
		fresh.whole(ctx, b)
		results.below(fleet+": until a fresh replica has all", time.Since(begun).Seconds(), 30, "s")
	}
}

// sharing makes a replica whose store follows the hub's.
func sharing(ctx context.Context, b *testing.B, hub *rigtest.Hub, i int) *sharer {
	b.Helper()
	api, err := kube.New(hub.Config, rigtest.HubNamespace)
	if err != nil {
		b.Fatal(err)
	}
	m := market.New(market.Options{Now: time.Now})
	name := fmt.Sprintf("replica-%d", i)
	s := &sharer{market: m, replica: name, Shared: store.NewShared(store.Options{API: api, Market: m, Replica: name, Life: fmt.Sprint(time.Now().UnixNano())})}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(run) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	until(ctx, b, "the store is read", func() bool { return s.Status().Cut == "" })
	return s
}

// whole waits until the replica has every provider's flavors.
func (s *sharer) whole(ctx context.Context, b *testing.B) {
	b.Helper()
	until(ctx, b, "every flavor is known", func() bool {
		offers, _ := s.market.Snapshot().Select(market.Query{})
		return len(offers) == *sites*flavors
	})
}

// said is the version-th report of a provider.
func said(site, version int) store.Report {
	r := store.Report{
		Cluster: fmt.Sprintf("site-%05d", site), Generation: wire.Generation{Epoch: 1, N: uint64(version) + 1},
		Content: &wire.FlavorReport{Flavors: pools(256_000+1000*int64(version), 0)},
	}
	for i := range r.Content.Flavors {
		r.Content.Flavors[i].Metadata.Namespace = r.Cluster // as the agents' port does
	}
	return r
}

// fill lets every provider from the first on report once, as fast as the replicas' budgets
// let it.
func fill(ctx context.Context, replicas []*sharer, first int) error {
	var group errgroup.Group
	group.SetLimit(32)
	for i := first; i < *sites; i++ {
		group.Go(func() error { return put(ctx, replicas[i%len(replicas)], said(i, 0)) })
	}
	return group.Wait()
}

// put reports, and comes again when it is told to.
func put(ctx context.Context, to *sharer, r store.Report) error {
	for {
		err := to.Report(ctx, r)
		busy := (*store.BusyError)(nil)
		if !errors.As(err, &busy) {
			return err
		}
		wait(ctx, busy.After)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// lively lets every provider report once in each interval, a tenth with a change,
// and returns how long each change took from its acknowledgement until every
// replica had it.
func lively(ctx context.Context, b *testing.B, replicas []*sharer) []time.Duration {
	var mu sync.Mutex
	var seen []time.Duration
	var group errgroup.Group
	begun := time.Now()
	total := int(measured/interval) * *sites
	for n := range total {
		wait(ctx, time.Until(begun.Add(measured*time.Duration(n)/time.Duration(total))))
		site, turn := n%*sites, n / *sites
		changes := 0 // of this provider so far
		for t := range turn + 1 {
			if (site+t)%changedOne == 0 {
				changes++
			}
		}
		to := replicas[n%len(replicas)]
		if (site+turn)%changedOne != 0 {
			r := said(site, changes)
			r.Content = nil
			group.Go(func() error { return to.Report(ctx, r) })
			continue
		}
		r := said(site, changes)
		group.Go(func() error {
			if err := put(ctx, to, r); err != nil {
				return err
			}
			acknowledged := time.Now()
			for _, one := range replicas {
				if err := one.has(ctx, r); err != nil {
					return err
				}
			}
			took := time.Since(acknowledged)
			if took > time.Second {
				b.Logf("%s of %s, reported to %s %s after the beginning", took, r.Cluster, to.replica, acknowledged.Sub(begun))
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, took)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return seen
}

// has waits until the replica offers what a report says.
func (s *sharer) has(ctx context.Context, r store.Report) error {
	want := r.Content.Flavors[0].Spec.Capacity[v1alpha1.CPU]
	for {
		offers, changed := s.market.Snapshot().Select(market.Query{Provider: r.Cluster})
		for _, o := range offers {
			if o.Flavor.Metadata.Name == r.Content.Flavors[0].Metadata.Name && o.Flavor.Spec.Capacity[v1alpha1.CPU].Cmp(want) == 0 {
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", r.Cluster, ctx.Err())
		}
	}
}

// usedBy is what the hub's servers have used of processors.
func usedBy(b *testing.B, hub *rigtest.Hub) map[string]time.Duration {
	out := map[string]time.Duration{}
	for program, pid := range hub.PIDs() {
		out[program] = processorTime(b, pid)
	}
	return out
}
