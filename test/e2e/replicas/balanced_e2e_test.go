//go:build e2e

package replicas

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/test/bounded"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// crowd is how many agents there are: with three replicas one that has them all is above
// half as many again as its share, and 16 more, by two.
const crowd = 36

// mostOf is how many connections a replica keeps of so many.
func mostOf(all int) int { return all/3 + all/3/2 + 16 }

// Behind the balancer one replica has all agents, because the others were away: it gives
// away what is too much of it, no agent's report fails for that, and a restart of another one
// changes nothing of it. What one certificate may have holds however many connections it has.
func TestAgentsAreSpreadAndBounded(t *testing.T) {
	t.Parallel() // most of it is waiting
	ctx, h := newHub(t, fleetOf(crowd), 3)
	h.awaitStore(ctx, h.all...)
	first := h.all[0]
	var away atomic.Bool // the others
	away.Store(true)
	h.balancer = rigtest.NewGate(t, func() string {
		if away.Load() {
			return first.Agents
		}
		return h.all[rand.IntN(len(h.all))].Agents //nolint:gosec // any of them
	})
	agents := make([]*agent, crowd)
	running, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	for i := range agents {
		agents[i] = h.agent(provider(i))
		wait.Go(func() { agents[i].run(running) })
	}
	h.agree(ctx, "all have reported", agents, h.all...)
	objects := h.objects()
	h.await(ctx, "one replica to have all agents", 15*time.Second, func() error {
		if n := h.connections(ctx, objects)[first.Name]; n < crowd {
			return fmt.Errorf("it has %d of %d", n, crowd)
		}
		return nil
	})
	away.Store(false)
	if err := h.all[2].Stop(); err != nil {
		t.Error(err)
	}
	if err := h.all[2].Restart(ctx); err != nil {
		t.Fatal(err)
	}
	h.awaitStore(ctx, h.all...)

	t.Run("bounds", func(t *testing.T) { h.bounded(ctx, t, agents) })

	h.await(ctx, "it to have given away what is too much", 40*time.Second, func() error {
		n := h.connections(ctx, objects)
		if all := n["r0"] + n["r1"] + n["r2"]; n["r0"] > mostOf(all) || all < crowd {
			return fmt.Errorf("connections: %v, at most %d of one", n, mostOf(all))
		}
		return nil
	})
	t.Logf("connections: %v", h.connections(ctx, objects))
	h.agree(ctx, "all are known to all", agents, h.all...)
	for _, a := range agents {
		a.mu.Lock()
		if a.fails > 1 { // the balancer may choose the one that restarts
			t.Errorf("%s: %d reports failed", a.name, a.fails)
		}
		a.mu.Unlock()
	}
	answer, err := http.Get("http://" + first.Operators + "/metrics") //nolint:noctx // the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if want := `fleetbroker_certificate_expiry_timestamp_seconds{cluster="",use="broker"}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the metrics have no %s (%v)", want, err)
	}
}

// connections are those of agents by replica, as Heartbeats tell.
func (h *hub) connections(ctx context.Context, objects client.Client) map[string]int {
	h.t.Helper()
	list := &marketcrd.HeartbeatList{}
	if err := objects.List(ctx, list, client.InNamespace(rigtest.HubNamespace)); err != nil {
		h.t.Fatal(err)
	}
	out := map[string]int{}
	for i := range list.Items {
		n := list.Items[i].Spec.Connections
		for _, r := range h.all {
			if n != nil && strings.HasSuffix(list.Items[i].Name, "-"+r.Name) { // after the machine's name
				out[r.Name] = int(*n)
			}
		}
	}
	return out
}

// maxPolls and maxReport are what one certificate may have of one replica: long polls at a
// time, and bytes of a report.
const maxPolls, maxReport = 16, 8 << 20

// bounded checks what a certificate may have behind the balancer: as much of each replica,
// whatever its connections, and without harm to others.
func (h *hub) bounded(ctx context.Context, t *testing.T, agents []*agent) {
	greedy := agents[0].name
	once := h.line(greedy)
	in, err := once.Instructions(ctx, "", 0, 0)
	if once.Close(); err != nil {
		t.Fatal(err)
	}
	polls, end := context.WithCancel(ctx)
	var refused, other atomic.Int32
	var wait sync.WaitGroup
	const asked = 3*maxPolls + 30
	for range asked {
		wait.Go(func() {
			line := h.line(greedy) // a connection of its own
			defer line.Close()
			_, err := line.Instructions(polls, in.Version, 0, 30*time.Second)
			var refusal *wire.Refusal
			switch {
			case errors.As(err, &refusal) && refusal.Status == http.StatusTooManyRequests:
				refused.Add(1)
			case polls.Err() == nil:
				other.Add(1)
			}
		})
	}
	h.await(ctx, "long polls beyond the bound to be refused", 10*time.Second, func() error {
		if n := refused.Load(); n < asked-3*maxPolls {
			return fmt.Errorf("%d of %d are refused", n, asked)
		}
		return nil
	})
	watch := bounded.StartStopwatch()
	honest := h.line(agents[1].name)
	if err := honest.Put(ctx, agents[1].now(), nil, 0); err != nil {
		t.Errorf("another agent's report: %v", err)
	}
	honest.Close()
	if err := watch.Late(2*time.Second, 30*time.Second); err != nil {
		t.Errorf("another agent's report: %v", err)
	}
	if n := refused.Load(); n > asked-maxPolls || other.Load() > 0 {
		t.Errorf("of %d long polls %d are refused, and %d ended otherwise", asked, n, other.Load())
	}
	end()
	wait.Wait()

	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	if _, err := w.Write(bytes.Repeat([]byte(" "), maxReport+1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 * len(h.all) { // whichever it reaches
		g := agents[0].now()
		g.N++
		var refusal *wire.Refusal
		line := h.line(greedy)
		err := line.Put(ctx, g, bomb.Bytes(), 0)
		if line.Close(); !errors.As(err, &refusal) || refusal.Status != http.StatusRequestEntityTooLarge && refusal.Status != http.StatusTooManyRequests {
			t.Errorf("%d bytes packed into %d: %v", maxReport+1, bomb.Len(), err)
		}
	}
}

// now is the generation that an agent reports.
func (a *agent) now() wire.Generation {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.generation
}
