package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

func TestRequestsAreLimitedByIdentity(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := newLimiter(Limits{Requests: 10, Bytes: 1, Concurrent: 3}, func() time.Time { return now })
	paris, lyon := l.of(pki.Identity{Name: "paris", Role: pki.Agent}), l.of(pki.Identity{Name: "lyon", Role: pki.Agent})
	if l.of(pki.Identity{Name: "paris", Role: pki.Agent}) != paris || l.of(pki.Identity{Name: "paris", Role: pki.Operator}) == paris {
		t.Error("a budget is one identity's, whatever connections it opens")
	}
	spend := func(b *budget, cost, times int) (taken int, after time.Duration) {
		for range times {
			leave, wait, _ := b.enter(cost)
			if leave == nil {
				return taken, wait
			}
			leave()
			taken++
		}
		return taken, 0
	}
	if taken, after := spend(paris, 1, 100); taken != 20 || after != 100*time.Millisecond {
		t.Errorf("let through %d, next in %s; want 20, 100 ms", taken, after)
	}
	if taken, _ := spend(lyon, 1, 20); taken != 20 {
		t.Errorf("another: let through %d", taken)
	}
	now = now.Add(time.Second)
	if taken, _ := spend(paris, 5, 100); taken != 2 {
		t.Errorf("a second later: let through %d of cost 5; want 2", taken)
	}
	now = now.Add(time.Hour)
	var leaves []func()
	for range 3 {
		leave, _, _ := paris.enter(1)
		leaves = append(leaves, leave)
	}
	if leave, after, reason := paris.enter(1); leave != nil || after <= 0 || !strings.Contains(reason, "under way") {
		t.Errorf("a fourth at once: %v %q", after, reason)
	}
	leaves[0]()
	if leave, _, _ := paris.enter(1); leave == nil {
		t.Error("a slot that was left is not free")
	}
}

func TestTheCostOfTheMarketIsHigh(t *testing.T) {
	f := startFleet(t)
	client := f.client(paris, nil)
	refused := 0
	for range 2 * defaultRequests * requestBurst / marketCost {
		if status, headers, body := f.call(client, "GET", "/market", nil); status == http.StatusTooManyRequests {
			refused++
			if reasonOf(t, body) != "RateLimited" || headers.Get("Retry-After") == "" {
				t.Errorf("answered %v %s", headers, body)
			}
		}
	}
	if refused == 0 { // the fleet's clock stands still
		t.Error("one agent may ask for the market without end")
	}
	if status, _, body := f.call(f.client(&pki.Request{Name: "lyon"}, nil), "GET", "/market", nil); status != 200 {
		t.Errorf("another: answered %d %s", status, body)
	}
}

// TestANoisyAgentStarvesNobody: one agent sends the largest and most costly
// reports it can, on many connections, as fast as it can; the other reports as
// usual and is always heard.
func TestANoisyAgentStarvesNobody(t *testing.T) {
	f := startFleet(t)
	f.now = time.Time{} // the real clock, from here on
	noisy, calm := f.client(paris, nil), f.client(&pki.Request{Name: "lyon"}, nil)
	f.call(calm, "GET", "/healthz", nil)
	flood := []byte(`{"flavors":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"a"},"spec":{"capacity":{"cpu":"1"}}},`, 100_000), ",") + `]}`)
	packed := packed(t, flood)
	ctx, stop := context.WithCancel(t.Context())
	var sent, heldBack atomic.Int64
	var flooders sync.WaitGroup
	for i := range 8 {
		flooders.Add(1)
		go func() {
			defer flooders.Done()
			for n := 1; ctx.Err() == nil; n++ {
				r, err := http.NewRequestWithContext(ctx, "PUT", f.address+wire.FlavorsPath("paris"), bytes.NewReader(packed))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set(wire.HeaderGeneration, fmt.Sprintf("%d.%d", i+1, n))
				r.Header.Set("Content-Encoding", "gzip")
				answer, err := noisy.Do(r)
				if err != nil {
					continue // cut off, or at the end
				}
				answer.Body.Close()
				if sent.Add(1); answer.StatusCode == http.StatusTooManyRequests {
					heldBack.Add(1)
				}
			}
		}()
	}
	var worst time.Duration
	for n := 1; n <= 100; n++ {
		begun := time.Now()
		status, _, body := f.call(calm, "PUT", wire.FlavorsPath("lyon"), []byte(h100), wire.HeaderGeneration, fmt.Sprintf("1.%d", n))
		if took := time.Since(begun); took > worst {
			worst = took
		}
		if status != http.StatusNoContent {
			t.Fatalf("report %d of the calm agent: answered %d %s", n, status, body)
		}
		waitFor(t, 20*time.Millisecond)
	}
	stop()
	flooders.Wait()
	t.Logf("the calm agent waited %s at most, beside %d requests of which %d were held back", worst, sent.Load(), heldBack.Load())
	if worst > 10*time.Second { // as long as an agent waits before it gives a report up
		t.Errorf("the calm agent waited %s", worst)
	}
	if heldBack.Load() < sent.Load()/2 {
		t.Errorf("only %d of %d costly reports were held back", heldBack.Load(), sent.Load())
	}
	accepted := 0
	for _, h := range f.market.take() {
		if h.cluster == "paris" {
			accepted++
		}
	}
	// 16 MiB at once and 1 MiB a second, at 5.7 MiB a report.
	if accepted > 8 {
		t.Errorf("%d of the noisy agent's reports reached the market", accepted)
	}
	if text := scrape(t, f.metrics); !strings.Contains(text, `fleetbroker_advert_total{cluster="lyon",result="accepted"} 100`) {
		t.Errorf("the calm agent's reports were not counted:\n%s", text)
	}
}

// waitFor lets a moment pass.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// TestARevocationCutsConnectionsAtOnce: also one whose request is under way.
func TestARevocationCutsConnectionsAtOnce(t *testing.T) {
	f := startFleet(t)
	hanging := make(chan struct{})
	f.market.hang = hanging
	client := f.client(paris, nil)
	failed := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", f.address+wire.FlavorsPath("paris"), nil)
		if err == nil {
			r.Header.Set(wire.HeaderGeneration, "1.1")
			var answer *http.Response
			if answer, err = client.Do(r); err == nil {
				answer.Body.Close()
			}
		}
		failed <- err
	}()
	<-hanging // the request has reached the market, which does not answer
	other := f.client(&pki.Request{Name: "lyon"}, nil)
	if status, _, _ := f.call(other, "GET", "/healthz", nil); status != 200 {
		t.Fatalf("another: answered %d", status)
	}
	if _, err := f.ca.Revoke("paris"); err != nil {
		t.Fatal(err)
	}
	crl, err := f.ca.CRL()
	if err != nil {
		t.Fatal(err)
	}
	if cut, err := f.revocations.Set(crl, f.ca.CA(), f.clock()); cut != 1 || err != nil {
		t.Fatalf("cut %d connections, %v; want 1", cut, err)
	}
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the request was answered")
		}
	case <-time.After(time.Minute):
		t.Error("the request still waits")
	}
	if cut, err := f.revocations.Set(crl, f.ca.CA(), f.clock()); cut != 0 || err != nil {
		t.Errorf("again: cut %d, %v", cut, err)
	}
	if n := len(f.revocations.living.open); n != 1 {
		t.Errorf("%d connections are known, want the other's", n)
	}
	close(hanging)
}

func TestConnectionsAreBounded(t *testing.T) {
	f := startFleet(t)
	bundle, err := f.ca.Issue(*paris)
	if err != nil {
		t.Fatal(err)
	}
	cert := leaf(t, bundle)
	var c connections
	for range maxConnections {
		if err := c.add(&watchedConn{}, cert); err != nil {
			t.Fatal(err)
		}
	}
	over := &watchedConn{}
	if err := c.add(over, cert); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("one more: %v", err)
	}
	other, err := f.ca.Issue(pki.Request{Name: "lyon"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.add(over, leaf(t, other)); err != nil {
		t.Errorf("another's: %v", err)
	}
	if err := errors.Join(closeAll(&c)...); err != nil {
		t.Error(err)
	}
	if len(c.open) != 0 || len(c.count) != 0 {
		t.Errorf("%d connections are left", len(c.open))
	}
}

func leaf(t *testing.T, bundle *pki.Bundle) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// closeAll closes what is known.
func closeAll(c *connections) (errs []error) {
	for conn := range c.open {
		near, far := net.Pipe()
		conn.Conn = near
		errs = append(errs, conn.Close(), far.Close())
	}
	return errs
}
