//go:build e2e

package reservations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/checker"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

const (
	clients  = 64
	each     = 4   // reservations a client
	capacity = 300 // GPUs; all together would like about 400
	calm     = 10  // operations between one trouble and the next
	ahead    = 60  // operations that clients may be ahead of trouble
)

// event is one operation as its client saw it. Attempts that were answered
// with 503, cut or not answered at all are part of the operation: its client
// asked again with the same key until it was told what had become of it.
type event struct {
	kind string // reserve, release, read
	key  string
	gpus int
	ok   bool            // it took effect
	seen map[string]bool // read: keys that stand on the ledger and are not released
	head string          // read: the ledger's commit
	n    int             // the key's number
	at   int             // which commit of requests it is, or saw last, from 1
}

// history is what everybody saw.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation
	marks []mark
}

// mark is closed when a number of operations have ended.
type mark struct {
	n    int
	done chan struct{}
}

// reached closes what it returns once n operations have ended.
func (h *history) reached(n int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := mark{n, make(chan struct{})}
	h.marks = append(h.marks, m)
	h.tell()
	return m.done
}

// tell closes the marks that are reached; h.mu is held.
func (h *history) tell() {
	h.marks = slices.DeleteFunc(h.marks, func(m mark) bool {
		if m.n <= len(h.ops) {
			close(m.done)
		}
		return m.n <= len(h.ops)
	})
}

// record runs an operation and notes when it began and ended.
func (h *history) record(client int, do func() (event, error)) error {
	call := time.Since(h.begun)
	e, err := do()
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: e, Output: e, Call: call.Nanoseconds(), Return: time.Since(h.begun).Nanoseconds()})
	h.tell()
	return nil
}

// TestReservationsAreLinearizable: see the package comment.
func TestReservationsAreLinearizable(t *testing.T) {
	ctx, r := start(t, map[string]string{
		"flavors/paris/h100.yaml": fmt.Sprintf("apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n"+
			"  capacity: {cpu: \"4000\", memory: 40Ti, gpu: %d}\n  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n", capacity),
	})
	hub := rigtest.NewHub(ctx, t)
	var daemons []*rig.Daemon
	for _, name := range []string{"one", "two", "three"} {
		daemons = append(daemons, daemon(ctx, t, r, name, hub.Args("")...))
	}
	balancer := rigtest.NewGate(t, func() string { return daemons[rand.IntN(len(daemons))].Agents }) //nolint:gosec // any of them
	files, err := r.Files("rome")
	if err != nil {
		t.Fatal(err)
	}
	crowd := &crowd{t: t, rig: r, hub: hub, files: files, broker: "https://" + balancer.Address, history: history{begun: time.Now()}, ids: map[string]string{}}
	done := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() { crowd.trouble(ctx, daemons, done) })
	trouble.Go(func() { crowd.readers(ctx, done) })
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() { crowd.client(ctx, c) })
	}
	wg.Wait()
	close(done)
	trouble.Wait()
	r.Git.SetFault(env.FaultNone)
	if t.Failed() {
		return
	}
	if err := crowd.history.record(clients+1, func() (event, error) { return crowd.read(ctx) }); err != nil {
		t.Fatal(err)
	}
	crowd.judge(ctx)
}

// crowd is the clients and those who make trouble for them.
type crowd struct {
	t       *testing.T
	rig     *rig.Rig
	hub     *rigtest.Hub
	files   *pki.Files
	broker  string // the balancer's address, the only one that clients know
	history history

	mu       sync.Mutex
	ids      map[string]string // of reservations that were answered 2xx, by key
	attempts int
	kills    int
	deciders int // of the kills
	faults   int
	crashes  int          // of the store's servers
	met      atomic.Int64 // troubles that are over
}

// client makes its reservations through the balancer, and gives some back.
func (c *crowd) client(ctx context.Context, n int) {
	rng := rand.New(rand.NewPCG(uint64(n), 42))
	for i := range each {
		if err := c.turn(ctx, i*clients+n); err != nil {
			c.t.Errorf("c%d-%d: %v", n, i, err)
			return
		}
		key, gpus := fmt.Sprintf("c%d-%d", n, i), 1+rng.IntN(2)
		var got event
		if err := c.history.record(n, func() (event, error) {
			var err error
			got, err = c.reserve(ctx, rng, key, gpus)
			return got, err
		}); err != nil {
			c.t.Errorf("%s: %v", key, err)
			return
		}
		if !got.ok || rng.IntN(4) > 0 {
			continue
		}
		if err := c.history.record(n, func() (event, error) { return c.release(ctx, rng, key, gpus) }); err != nil {
			c.t.Errorf("release %s: %v", key, err)
			return
		}
	}
}

// turn waits until an operation, by its place among all, is not too far ahead of trouble.
func (c *crowd) turn(ctx context.Context, at int) error {
	_, err := env.Until(ctx, 5*time.Minute, func() error {
		if met := c.met.Load(); at >= int(met)*calm+ahead && !c.t.Failed() {
			return fmt.Errorf("only %d troubles are over", met)
		}
		return nil
	})
	return err
}

// reserve asks until it is told.
func (c *crowd) reserve(ctx context.Context, rng *rand.Rand, key string, gpus int) (event, error) {
	e := event{kind: "reserve", key: key, n: number(key), gpus: gpus}
	q := wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "1", Memory: "1Gi", GPU: fmt.Sprint(gpus)}}
	err := c.insist(ctx, rng, func(line transport.Transport) error {
		res, err := line.Reserve(ctx, key, q)
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if before := c.ids[key]; before != "" && before != res.ID || len(res.Contracts) != 1 || res.Commit == "" {
			return fmt.Errorf("was %s, is answered %+v", before, res)
		}
		c.ids[key], e.ok = res.ID, true
		return nil
	})
	var refusal *wire.Refusal
	if errors.As(err, &refusal) && refusal.Status == http.StatusConflict && refusal.Body.Reason != wire.ReasonKeyReused {
		return e, nil
	}
	return e, err
}

func (c *crowd) release(ctx context.Context, rng *rand.Rand, key string, gpus int) (event, error) {
	c.mu.Lock()
	id := c.ids[key]
	c.mu.Unlock()
	return event{kind: "release", key: key, n: number(key), gpus: gpus, ok: true}, c.insist(ctx, rng, func(line transport.Transport) error { return line.Release(ctx, id) })
}

// insist tries until there is an answer that says something: neither 503 nor
// none. Each try has a connection of its own, which the balancer sends to any replica.
func (c *crowd) insist(ctx context.Context, rng *rand.Rand, try func(transport.Transport) error) error {
	for {
		c.mu.Lock()
		c.attempts++
		c.mu.Unlock()
		err := c.through(try)
		var refusal *wire.Refusal
		if err == nil || errors.As(err, &refusal) && refusal.Status != http.StatusServiceUnavailable && refusal.Status != http.StatusTooManyRequests {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(time.Duration(50+rng.IntN(200)) * time.Millisecond):
		}
	}
}

// through tries over a new connection.
func (c *crowd) through(try func(transport.Transport) error) error {
	line, err := transport.NewHTTP(c.broker, "rome", c.files)
	if err != nil {
		return err
	}
	defer line.Close()
	return try(line)
}

// trouble kills the daemon that decides, again and again, and now and then the API server or
// etcd of the store, and lets the git server fail until all is done. It
// follows what clients get done, not the clock, and they are not far ahead of it, so that a
// fast machine meets as much of it as a slow one.
func (c *crowd) trouble(ctx context.Context, daemons []*rig.Daemon, done <-chan struct{}) {
	kinds := []env.Fault{env.FaultPushAnswerCut, env.FaultPushCut, env.FaultPushAnswerLost, env.FaultPushRefused}
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-c.history.reached((i + 1) * calm):
		}
		c.met.Store(int64(i)) // those before this one
		c.rig.Git.FailNext(kinds[i%len(kinds)], 1)
		c.faults++
		if i%8 == 5 {
			if err := c.crashStore(ctx); err != nil {
				c.t.Errorf("crash the store: %v", err)
				return
			}
		}
		if i%4 != 3 {
			continue
		}
		d := daemons[(i/4)%len(daemons)]
		decides := ""
		if _, err := env.Until(ctx, time.Minute, func() (err error) {
			decides, err = c.hub.Decides(ctx, "one", "two", "three")
			return err
		}); err != nil {
			c.t.Error(err)
			return
		}
		if at := slices.IndexFunc(daemons, func(d *rig.Daemon) bool { return d.Name == decides }); at >= 0 {
			d = daemons[at]
			c.deciders++
		}
		if err := d.Kill(); err != nil {
			c.t.Errorf("kill %s: %v", d.Name, err)
			return
		}
		c.kills++
		if err := d.Restart(ctx); err != nil {
			c.t.Errorf("start %s again: %v", d.Name, err)
			return
		}
	}
}

// crashStore ends the API server, or etcd in its turn, and starts it again.
func (c *crowd) crashStore(ctx context.Context) error {
	c.crashes++
	if c.crashes%2 == 0 {
		return c.hub.CrashEtcd(ctx)
	}
	if err := c.hub.KillAPIServer(); err != nil {
		return err
	}
	return c.hub.StartAPIServer(ctx)
}

// readers look at the repository all the while.
func (c *crowd) readers(ctx context.Context, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
		if err := c.history.record(clients, func() (event, error) { return c.read(ctx) }); err != nil && ctx.Err() == nil {
			c.t.Errorf("read the ledger: %v", err)
			return
		}
	}
}

// read is what the ledger holds at one moment: the keys of the requests that
// are not released.
func (c *crowd) read(ctx context.Context) (event, error) {
	e := event{kind: "read", seen: map[string]bool{}}
	dir := c.rig.Git.RepoDir(rig.Repo)
	head, err := env.Git(ctx, dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+rig.Ledger)
	if err != nil || strings.TrimSpace(head) == "" {
		return e, err
	}
	head = strings.TrimSpace(head)
	e.head = head
	if files, err := env.Git(ctx, dir, "ls-tree", "--name-only", head, "requests"); err != nil || strings.TrimSpace(files) == "" {
		return e, err
	}
	text, err := env.Git(ctx, dir, "grep", "-h", "-E", "idempotency-key: |suspend: true|^kind: ", head, "--", "requests")
	if err != nil {
		return e, err
	}
	key := ""
	for line := range strings.Lines(text + "\nkind: end\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "kind: "):
			if key != "" {
				e.seen[key] = true
			}
			key = ""
		case line == "suspend: true":
			key = ""
		default:
			_, key, _ = strings.Cut(line, ": ")
			key = strings.Trim(key, `"`)
		}
	}
	return e, nil
}

// judge compares what clients were told with what the repository holds.
func (c *crowd) judge(ctx context.Context) {
	t := c.t
	t.Logf("%d operations in %d attempts, %d reserved, over %d kills (%d of who decided), %d crashes of the store and %d faults", len(c.history.ops), c.attempts, len(c.ids), c.kills, c.deciders, c.crashes, c.faults)
	if c.kills < 4 || c.deciders < 4 || c.crashes < 2 || c.attempts <= clients*each {
		t.Errorf("%d kills, %d crashes and %d attempts: the test has not tested much", c.kills, c.crashes, c.attempts)
	}
	l := c.ledger(ctx)
	for key, id := range c.ids {
		if l.reserved[key] == 0 {
			t.Errorf("%s was answered 201 as %s, and stands nowhere on the ledger", key, id)
		}
	}
	for key := range l.reserved {
		if c.ids[key] == "" {
			t.Errorf("%s stands on the ledger, and its client was refused", key)
		}
	}
	if t.Failed() {
		return
	}
	for i := range c.history.ops {
		e := c.history.ops[i].Input.(event)
		switch {
		case e.kind == "read":
			e.at = l.upTo[e.head]
		case e.kind == "release":
			e.at = l.released[e.key]
		case e.ok:
			e.at = l.reserved[e.key]
		}
		c.history.ops[i].Input = e
	}
	plan := schedule{writes: append([]int{0}, l.count...), looks: make([]int, len(l.count)+1)}
	placeRefusals(c.history.ops, len(l.count))
	for _, op := range c.history.ops {
		if e := op.Input.(event); !e.writes() {
			plan.looks[e.at]++
		}
	}
	if res := porcupine.CheckOperationsTimeout(modelOf(plan), c.history.ops, patience); res != porcupine.Ok {
		t.Errorf("the history of %d operations is not linearizable: %s", len(c.history.ops), res)
	}
	st := filesystem.NewStorage(osfs.New(c.rig.Git.RepoDir(rig.Repo)), cache.NewObjectLRUDefault())
	sound, err := checker.Check(st, rig.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range sound.Violations {
		t.Errorf("invariant broken in %s", v)
	}
}
