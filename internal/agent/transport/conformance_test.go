package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// desk is a broker that reserves whatever is asked for, in memory: what is
// tested here is the way to it and back.
type desk struct {
	mu      sync.Mutex
	asks    []wire.Ask
	told    map[string]bool
	version string
	changed chan struct{}
}

func (d *desk) Reserve(ctx context.Context, ask wire.Ask) (wire.Reservation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asks = append(d.asks, ask)
	switch ask.Key {
	case "full":
		return wire.Reservation{}, &wire.Refusal{Status: http.StatusConflict, Body: wire.Error{Error: "nothing is reserved", Reason: "NothingFits", Rejected: map[string]int{"capacity.gpu": 3}, Considered: 3}}
	case "deaf":
		return wire.Reservation{}, &wire.Refusal{Status: http.StatusServiceUnavailable, Body: wire.Error{Error: "deaf", Reason: wire.ReasonDeaf}, RetryAfter: 5 * time.Second}
	case "queue":
		return wire.Reservation{ID: "rq-queue", Status: wire.ReservationStatus{Phase: wire.PhasePending}}, nil
	}
	return wire.Reservation{ID: "rq-" + ask.Key, RequesterID: ask.Cluster, Status: wire.ReservationStatus{Phase: wire.PhaseReserved}}, ctx.Err()
}

func (d *desk) Answered(id string, told bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told[id] = told
}

func (d *desk) Release(_ context.Context, cluster, id string) error {
	if id != "rq-1" || cluster != "rome" {
		return &wire.Refusal{Status: http.StatusNotFound, Body: wire.Error{Error: "no " + id, Reason: wire.ReasonNotFound}}
	}
	return nil
}

func (d *desk) Reread()        {}
func (d *desk) Vouches() error { return nil }
func (d *desk) Newest() error  { return nil }

func (d *desk) Instructions(string) (wire.Instructions, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return wire.Instructions{Version: d.version, Provide: []wire.Instruction{{Contract: "c", Resources: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1500)}}}}, d.changed
}

func (d *desk) set(version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = version
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *desk) Owed(string) []wire.Reservation { return nil }
func (d *desk) Held(string) wire.Quantities    { return wire.Quantities{} }

// place is an authority, the real agents' port with the real market, and an
// agent's certificate.
type place struct {
	ca      *pki.Authority
	desk    *desk
	market  *market.Market
	address string
	files   *pki.Files
	certs   string
	stop    func()
}

func issue(t *testing.T, ca *pki.Authority, q pki.Request, dir string) *pki.Files {
	t.Helper()
	b, err := ca.Issue(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func open(t *testing.T) *place {
	t.Helper()
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{ca: ca, desk: &desk{told: map[string]bool{}, version: "1", changed: make(chan struct{})}, market: market.New(market.Options{}), certs: filepath.Join(t.TempDir(), "rome")}
	own := issue(t, ca, pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}, filepath.Join(t.TempDir(), "broker"))
	p.files = issue(t, ca, pki.Request{Name: "rome"}, p.certs)
	log := slog.New(slog.DiscardHandler)
	servers, err := server.Listen(t.Context(), log, server.Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: server.AgentTLS(own, nil, log),
		Handler: server.NewAgents(server.Agents{Reports: &store.Memory{Market: p.market}, Market: p.market, Broker: p.desk, Log: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.address = "https://" + servers.Address("agents")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, 5*time.Second) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop serving: %v", err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

// transports are the implementations.
var transports = map[string]func(broker, cluster string, files *pki.Files) (Transport, error){
	"HTTP": func(b, c string, f *pki.Files) (Transport, error) { return NewHTTP(b, c, f) },
}

// TestConformance is the suite that each implementation must pass.
func TestConformance(t *testing.T) {
	for name, dial := range transports {
		t.Run(name, func(t *testing.T) {
			for what, test := range map[string]func(*testing.T, *place, Transport){
				"Reports": testReports, "Reservations": testReservations, "Instructions": testInstructions,
				"Cancellation": testCancellation, "Identity": testIdentity, "Renewal": testRenewal, "Stop": testStop,
			} {
				t.Run(what, func(t *testing.T) {
					p := open(t)
					line, err := dial(p.address, "rome", p.files)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(line.Close)
					test(t, p, line)
				})
			}
			if _, err := dial("http://plain.example.org", "rome", nil); err == nil {
				t.Error("an address without TLS is accepted")
			}
		})
	}
}

func testReports(t *testing.T, p *place, line Transport) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(wire.FlavorReport{Flavors: []v1alpha1.Flavor{{Metadata: v1alpha1.Metadata{Name: "pool"}, Spec: v1alpha1.FlavorSpec{Capacity: v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(8000)}}}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	first := wire.Generation{Epoch: 10, N: 1}
	if err := line.Put(t.Context(), first, nil, 0); !errors.Is(err, ErrUnknownBase) {
		t.Errorf("unchanged, of a list that nobody knows: %v", err)
	}
	if err := line.Put(t.Context(), first, packed.Bytes(), 41); err != nil {
		t.Fatal(err)
	}
	if got := p.market.Honoured("rome"); got != 41 {
		t.Errorf("the market knows that 41 was carried out as %d", got)
	}
	if err := line.Put(t.Context(), first, nil, 0); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	if _, flavors, _ := p.market.Offers(market.Query{}); len(flavors) != 1 || flavors[0].Ref() != "rome/pool" {
		t.Errorf("the market has %v", flavors)
	}
	var stale *StaleError
	if err := line.Put(t.Context(), wire.Generation{Epoch: 9, N: 1}, nil, 0); !errors.As(err, &stale) || stale.Last != first {
		t.Errorf("an older epoch: %v", err)
	}
	var refusal *wire.Refusal
	if err := line.Put(t.Context(), wire.Generation{Epoch: 11, N: 1}, []byte("no gzip"), 0); !errors.As(err, &refusal) || refusal.Status != http.StatusBadRequest {
		t.Errorf("a broken body: %v", err)
	}
}

func testReservations(t *testing.T, p *place, line Transport) {
	q := wire.ReservationRequest{RequestedResources: &wire.Quantities{CPU: "4", Memory: "8Gi"}, Requester: &wire.Requester{Namespace: "default", Name: "train"}}
	res, err := line.Reserve(t.Context(), "1", q)
	if err != nil || res.ID != "rq-1" || res.RequesterID != "rome" {
		t.Fatalf("reserved %+v, %v", res, err)
	}
	p.desk.mu.Lock()
	ask := p.desk.asks[0]
	p.desk.mu.Unlock()
	if ask.Cluster != "rome" || ask.Key != "1" || ask.Request.RequestedResources.CPU != "4" || ask.Request.Requester.Name != "train" {
		t.Errorf("the broker was asked %+v", ask)
	}
	if res, err := line.Reserve(t.Context(), "queue", q); err != nil || res.Status.Phase != wire.PhasePending {
		t.Errorf("queued: %+v, %v", res, err)
	}
	var refusal *wire.Refusal
	if _, err := line.Reserve(t.Context(), "full", q); !errors.As(err, &refusal) || refusal.Status != http.StatusConflict || refusal.Body.Rejected["capacity.gpu"] != 3 {
		t.Errorf("nothing fits: %v", err)
	}
	if _, err := line.Reserve(t.Context(), "deaf", q); !errors.As(err, &refusal) || refusal.Status != http.StatusServiceUnavailable || refusal.RetryAfter != 5*time.Second {
		t.Errorf("deaf: %v", err)
	}
	if err := line.Release(t.Context(), "rq-1"); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := line.Release(t.Context(), "rq-2"); !errors.As(err, &refusal) || refusal.Body.Reason != wire.ReasonNotFound {
		t.Errorf("release of nothing: %v", err)
	}
}

func testInstructions(t *testing.T, p *place, line Transport) {
	in, err := line.Instructions(t.Context(), "", 0, time.Minute)
	if err != nil || in.Version != "1" || len(in.Provide) != 1 || in.Provide[0].Resources[v1alpha1.CPU] != v1alpha1.AmountOf(1500) {
		t.Fatalf("told %+v, %v", in, err)
	}
	if _, err := line.Instructions(t.Context(), "1", 0, 50*time.Millisecond); !errors.Is(err, ErrUnchanged) {
		t.Errorf("nothing new: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		in, err := line.Instructions(t.Context(), "1", 0, time.Minute)
		if err == nil && in.Version != "2" {
			err = errors.New("told of version " + in.Version)
		}
		got <- err
	}()
	// A report passes a long poll by.
	if err := line.Put(t.Context(), wire.Generation{Epoch: 1, N: 1}, nil, 0); !errors.Is(err, ErrUnknownBase) {
		t.Errorf("a report beside a long poll: %v", err)
	}
	p.desk.set("2")
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func testCancellation(t *testing.T, p *place, line Transport) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := line.Instructions(ctx, "1", 0, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: %v", err)
	}
	if in, err := line.Instructions(t.Context(), "", 0, time.Minute); err != nil || in.Version != "1" {
		t.Errorf("after one that was given up: %+v, %v", in, err)
	}
	_ = p
}

// testIdentity: the certificate speaks, not the address.
func testIdentity(t *testing.T, p *place, line Transport) {
	_ = line
	other, err := NewHTTP(p.address, "paris", p.files)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var refusal *wire.Refusal
	if _, err := other.Instructions(t.Context(), "", 0, 0); !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden {
		t.Errorf("the instructions of another cluster: %v", err)
	}
	if err := other.Put(t.Context(), wire.Generation{Epoch: 1, N: 1}, nil, 0); !errors.As(err, &refusal) || refusal.Status != http.StatusForbidden {
		t.Errorf("a report for another cluster: %v", err)
	}
}

// testRenewal: a renewed certificate is used without a new transport.
func testRenewal(t *testing.T, p *place, line Transport) {
	if _, err := line.Instructions(t.Context(), "", 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Remove(filepath.Join(p.certs, name)); err != nil {
			t.Fatal(err)
		}
	}
	issue(t, p.ca, pki.Request{Name: "milan"}, p.certs)
	var refusal *wire.Refusal
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := line.Instructions(t.Context(), "", 0, 0)
		if errors.As(err, &refusal) && refusal.Status == http.StatusForbidden {
			return // it speaks as milan now, which may not hear what rome is told
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new certificate is not used: %v", err)
		}
	}
}

// testStop: whoever waits is answered when the port closes, and soon.
func testStop(t *testing.T, p *place, line Transport) {
	if _, err := line.Instructions(t.Context(), "", 0, 0); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := line.Instructions(t.Context(), "1", 0, time.Minute)
		got <- err
	}()
	watch := bounded.StartStopwatch()
	p.stop()
	if err := <-got; err == nil {
		t.Error("a long poll was answered with news that there were not")
	}
	if err := watch.Late(4*time.Second, 50*time.Second); err != nil { // the poll waits for a minute
		t.Errorf("stopping: %v", err)
	}
}
