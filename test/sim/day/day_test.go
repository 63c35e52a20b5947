package day

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/delivery"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/reconciler"
)

var (
	contracts = flag.Int("contracts", 250, "how many contracts to play")
	hours     = flag.Int("hours", 3, "how many hours of a working day they come in")
)

const (
	pushTakes = 2 * time.Second
	lasts     = 30 * time.Second // a client waits for an answer, as the server lets it
)

// pass lets time go by, or the context end.
func pass(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// slow is a remote whose pushes take a while, and are noted.
type slow struct {
	*memremote.Remote
	mu     sync.Mutex
	pushed []time.Time
}

// Push implements gitrepo.Remote.
func (s *slow) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	s.mu.Lock()
	s.pushed = append(s.pushed, time.Now())
	s.mu.Unlock()
	pass(ctx, pushTakes)
	return s.Remote.Push(ctx, cmds, pack)
}

// cluster is the consumer: what it was told to have is there after a while.
type cluster struct {
	rng  *rand.Rand
	wake func()

	mu         sync.Mutex
	desired    delivery.Desired
	generation uint64
	// slices and nodes are what the manifests name; joined the nodes that are there.
	slices, nodes, joined map[string]bool
}

func (c *cluster) Deliver(d map[string]delivery.Desired) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want, same := d["rome"], c.desired.Tree.Root == d["rome"].Tree.Root
	c.desired = want
	if same {
		return
	}
	slices, nodes := map[string]bool{}, map[string]bool{}
	_ = want.Tree.Walk(func(name string, _ tree.Entry) error {
		base := name[strings.LastIndexByte(name, '/')+1:]
		if s, ok := strings.CutSuffix(base, "-slice.yaml"); ok {
			slices[s] = true
		} else if s, ok := strings.CutSuffix(base, "-virtualnode.yaml"); ok {
			nodes[s] = true
		}
		return nil
	})
	for name := range nodes {
		if !c.nodes[name] {
			c.later(name, 10*time.Second, 40*time.Second)
		}
	}
	for name := range c.nodes {
		if !nodes[name] {
			c.later(name, 5*time.Second, time.Minute)
		}
	}
	c.slices, c.nodes = slices, nodes
	c.generation++
}

// later lets a node become what is wanted of it. The caller holds mu.
func (c *cluster) later(name string, least, most time.Duration) {
	time.AfterFunc(least+time.Duration(c.rng.Int64N(int64(most-least))), func() {
		c.mu.Lock()
		if c.nodes[name] {
			c.joined[name] = true
		} else {
			delete(c.joined, name)
		}
		c.generation++
		c.mu.Unlock()
		c.wake()
	})
}

func (c *cluster) Observe() (v1alpha1.ConsumerObservations, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]v1alpha1.ConsumerObservation{}
	presence := func(there bool) v1alpha1.Presence {
		if there {
			return v1alpha1.Present
		}
		return v1alpha1.Absent
	}
	for _, k := range c.desired.Contracts {
		name := k.Metadata.Name
		o := v1alpha1.ConsumerObservation{Reachable: true, Offloading: true}
		o.Slice = presence(c.slices[name])
		o.VirtualNode, o.Node = presence(c.nodes[name] || c.joined[name]), presence(c.joined[name])
		if c.slices[name] {
			o.Granted = k.Spec.Resources
		}
		if c.joined[name] {
			o.NodeReady, o.Allocatable = true, k.Spec.Resources
		}
		out[name] = o
	}
	return v1alpha1.ConsumerObservations{"rome": out}, c.generation
}

// inputs of the fleet.
func inputs() map[string][]byte {
	files := map[string]string{
		"fleet.yaml":          "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: ledger, author: {name: fleetbroker, email: broker@example.org}}\n",
		"clusters/rome.yaml":  "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], reservations: {tenant: vision, defaultDuration: 72h}}\n",
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {consumers: [rome]}\n",
	}
	for i := range 5 {
		name := fmt.Sprintf("p%d", i)
		files["clusters/"+name+".yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: " + name + "}\nspec: {roles: [provider], endpoint: \"https://" + name + ".example.org:6443\"}\n"
		files["flavors/"+name+"/pool.yaml"] = "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: pool, namespace: " + name + "}\nspec:\n" +
			"  capacity: {cpu: \"8192\", memory: 32Ti, gpu: 512}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n" +
			fmt.Sprintf("  price: {currency: EUR, perHour: {gpu: \"2.%d0\"}}\n", i)
	}
	out := map[string][]byte{}
	for name, text := range files {
		out[name] = []byte(text)
	}
	return out
}

// arrivals draws when clients come: by day thrice as often as by night, and one in ten
// within a storm of twenty.
func arrivals(rng *rand.Rand, n int, span time.Duration) (at []time.Duration) {
	busy := func(t time.Duration) bool {
		h := t % (24 * time.Hour)
		return h >= time.Hour && h < 10*time.Hour
	}
	for len(at) < n {
		t := time.Duration(rng.Int64N(int64(span)))
		if !busy(t) && rng.IntN(3) > 0 {
			continue
		}
		at = append(at, t)
		if rng.IntN(180) == 0 {
			for range min(19, n-len(at)) {
				at = append(at, t+time.Duration(rng.Int64N(int64(time.Minute))))
			}
		}
	}
	slices.Sort(at)
	return at
}

// figures are what a day came to.
type figures struct {
	pushes   []time.Time
	waits    []time.Duration // of reservations
	put      int             // answers to come again
	releases []time.Duration
	ended    int
}

// play plays one day.
func play(t *testing.T, limit pushbudget.Limit, n int, span time.Duration) (out figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		remote := &slow{Remote: memremote.New()}
		ada := gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: time.Now()}
		if _, err := remote.Commit("main", ada, "Found the fleet", gitobj.Change{Puts: inputs()}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		budget := pushbudget.New(pushbudget.Options{Default: limit})
		repo, err := gitrepo.Open(ctx, budget.Remote(remote, "ledger"), gitrepo.Options{Inputs: "main", Ledger: "ledger"})
		if err != nil {
			t.Fatal(err)
		}
		rome := &cluster{rng: rng, joined: map[string]bool{}}
		loop := reconciler.New(reconciler.Options{Repo: repo, Ledger: "ledger", Market: market.New(market.Options{}), Delivery: rome, Pushes: budget})
		rome.wake = loop.Wake
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := loop.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		c := &clients{t: t, loop: loop, remote: remote.Remote, out: &out}
		start := time.Now()
		var all sync.WaitGroup
		for i, at := range arrivals(rng, n, span) {
			life := min(time.Duration(rng.ExpFloat64()*float64(2*time.Hour))+time.Minute, 12*time.Hour)
			all.Go(func() {
				pass(ctx, at)
				if id := c.reserve(ctx, fmt.Sprintf("job-%d", i)); id != "" && start.Add(span).After(time.Now().Add(life)) {
					pass(ctx, life)
					c.release(ctx, id)
				}
			})
		}
		all.Wait()
		pass(ctx, 5*time.Minute) // what was let go of drains
		cancel()
		<-done
		out.pushes = remote.pushed
		out.ended = loop.View().Contracts.Len() - loop.View().Contracts.Held()
	})
	return out
}

// clients are all who ask.
type clients struct {
	t      *testing.T
	loop   *reconciler.Reconciler
	remote *memremote.Remote
	mu     sync.Mutex
	out    *figures
}

// again asks until there is an answer that lasts, as agents do, and says how long it took.
func (c *clients) again(ctx context.Context, ask func(context.Context) error) time.Duration {
	start := time.Now()
	for {
		bounded, cancel := context.WithTimeout(ctx, lasts)
		err := ask(bounded)
		cancel()
		var refused *wire.Refusal
		switch {
		case err == nil:
			return time.Since(start)
		case !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || refused.RetryAfter <= 0:
			c.t.Errorf("after %s: %v", time.Since(start), err)
			return time.Since(start)
		}
		c.mu.Lock()
		c.out.put++
		c.mu.Unlock()
		pass(ctx, refused.RetryAfter)
	}
}

func (c *clients) reserve(ctx context.Context, key string) (id string) {
	took := c.again(ctx, func(ctx context.Context) error {
		r, err := c.loop.Reserve(ctx, wire.Ask{Cluster: "rome", Key: key, Request: wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "4", Memory: "16Gi", GPU: "1"}}})
		if err != nil {
			return err
		}
		id = r.ID
		t, err := c.remote.Tree(c.remote.Head("ledger"))
		if err == nil {
			_, err = t.Find(r.Path)
		}
		if err != nil || len(r.Contracts) == 0 {
			c.t.Errorf("%s was answered with %d contracts, and the remote's ledger has no %s: %v", key, len(r.Contracts), r.Path, err)
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.waits = append(c.out.waits, took)
	return id
}

func (c *clients) release(ctx context.Context, id string) {
	took := c.again(ctx, func(ctx context.Context) error { return c.loop.Release(ctx, "rome", id) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.releases = append(c.out.releases, took)
}

func quantile(list []time.Duration, q float64) time.Duration {
	list = slices.Sorted(slices.Values(list))
	if len(list) == 0 {
		return 0
	}
	return list[min(int(math.Ceil(q*float64(len(list))))-1, len(list)-1)]
}

// minutes is how many pushes the busiest minute had, whenever it began, and how many
// minutes of the clock had more than some.
func (f *figures) minutes(some int) (most, over int) {
	byMinute := map[time.Time]int{}
	for i, at := range f.pushes {
		byMinute[at.Truncate(time.Minute)]++
		n := 0
		for j := i; j < len(f.pushes) && f.pushes[j].Sub(at) < time.Minute; j++ {
			n++
		}
		most = max(most, n)
	}
	for _, n := range byMinute {
		if n > some {
			over++
		}
	}
	return most, over
}

func (f *figures) report(w io.Writer, span time.Duration, some int) {
	most, over := f.minutes(some)
	fmt.Fprintf(w, "%d reservations and %d releases in %d pushes, %.2f a minute; busiest minute %d, minutes with more than %d: %d; "+
		"reservations p50 %.1f s, p99 %.1f s, slowest %.1f s; releases p99 %.1f s; %d told to come again; %d contracts ended",
		len(f.waits), len(f.releases), len(f.pushes), float64(len(f.pushes))/span.Minutes(), most, some, over,
		quantile(f.waits, .5).Seconds(), quantile(f.waits, .99).Seconds(), quantile(f.waits, 1).Seconds(), quantile(f.releases, .99).Seconds(), f.put, f.ended)
}

// TestDay: with six pushes a minute a reservation takes less than 15 s at the 99th
// percentile, and no minute has more pushes than there are, without a burst and with one.
func TestDay(t *testing.T) {
	span := time.Duration(*hours) * time.Hour
	for _, c := range []struct {
		name  string
		limit pushbudget.Limit
	}{
		{"the default of GitHub", pushbudget.DefaultOf("github")},
		{"a burst of six", pushbudget.Limit{PerMinute: 6, Burst: 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := play(t, c.limit, *contracts, span)
			var text strings.Builder
			f.report(&text, span, c.limit.PerMinute)
			t.Log(text.String())
			if len(f.waits) != *contracts {
				t.Errorf("%d reservations were asked for, want %d", len(f.waits), *contracts)
			}
			if p99 := quantile(f.waits, .99); p99 >= 15*time.Second {
				t.Errorf("reservations take %s at the 99th percentile, want less than 15s", p99)
			}
			if len(f.releases) < *contracts/10 || f.ended < len(f.releases)*9/10 {
				t.Errorf("%d contracts were let go of and %d have ended: the day is none of a busy fleet", len(f.releases), f.ended)
			}
			// A bucket that holds the burst, filled at the pace, is never empty.
			each, debt := time.Minute/time.Duration(c.limit.PerMinute), time.Time{}
			for i, at := range f.pushes {
				if at.After(debt) {
					debt = at
				}
				if debt = debt.Add(each); debt.Sub(at) > time.Duration(c.limit.Burst)*each {
					t.Fatalf("push %d at %s is one too many", i, at)
				}
			}
			if most, over := f.minutes(c.limit.PerMinute); c.limit.Burst == 1 && (most > c.limit.PerMinute || over > 0) {
				t.Errorf("a minute has %d pushes, want at most %d", most, c.limit.PerMinute)
			}
		})
	}
}
