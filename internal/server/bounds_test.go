package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// poller is a broker that never has news for anybody.
type poller struct{ Broker }

func (poller) Instructions(string) (wire.Instructions, <-chan struct{}) {
	return wire.Instructions{Version: "1"}, nil
}

// startPolled is an agents' port on which long polls wait.
func startPolled(t *testing.T, connections int) *fleet {
	t.Helper()
	f := &fleet{t: t, market: &recorder{}, revocations: new(Revocations), metrics: NewMetrics(), now: time.Now()}
	files := f.certify()
	f.address = "https://" + run(t, Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: AgentTLS(files, f.revocations, quiet), Connections: connections,
		Handler: NewAgents(Agents{Reports: f.market, Market: f.market, Broker: poller{}, Revocations: f.revocations, Log: quiet}),
	})
	return f
}

// poll begins a long poll; what it ends with is sent, 0 when it fails.
func (f *fleet) poll(ctx context.Context, client *http.Client, ended chan<- int) {
	f.t.Helper()
	sent := make(chan struct{})
	once := sync.OnceFunc(func() { close(sent) })
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once() }})
	r, err := http.NewRequestWithContext(traced, http.MethodGet, f.address+wire.InstructionsPath("paris")+"?since=1&wait=60s", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { <-sent }() // what is asked afterwards on its connection comes after it
	go func() {
		defer once()
		answer, err := client.Do(r)
		if err != nil {
			ended <- 0
			return
		}
		_ = answer.Body.Close()
		ended <- answer.StatusCode
	}()
}

// connect opens the one connection that the client's requests share: requests
// that begin together while there is none would each dial.
func (f *fleet) connect(client *http.Client) {
	f.t.Helper()
	if status, _, body := f.call(client, "GET", "/healthz", nil); status != http.StatusOK {
		f.t.Fatalf("the first request: answered %d %s", status, body)
	}
}

// Requests that a revoked certificate has under way take nothing from the
// certificate that follows it, and it gets no further than the handshake.
func TestRevokedCertificate_TakesNoPlaceOfItsSuccessor(t *testing.T) {
	f := startPolled(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old, ended := f.client(paris, nil), make(chan int, 10*maxPolls)
	f.connect(old)
	for range maxPolls + 1 {
		f.poll(ctx, old, ended)
	}
	if got := <-ended; got != http.StatusTooManyRequests {
		t.Errorf("one long poll more than allowed ended with %d", got)
	}
	if _, err := f.ca.Revoke("paris"); err != nil {
		t.Fatal(err)
	}
	crl, err := f.ca.CRL()
	if err != nil {
		t.Fatal(err)
	}
	if cut, err := f.revocations.Set(crl, f.ca.CA(), f.clock()); err != nil || cut != 1 {
		t.Fatalf("cut %d connections, %v", cut, err)
	}
	for range maxPolls {
		if got := <-ended; got != 0 {
			t.Errorf("a long poll of the revoked certificate ended with %d", got)
		}
	}
	stop := make(chan struct{})
	var knocking sync.WaitGroup
	for range 8 { // it goes on trying meanwhile
		knocking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := f.refused(old); err != nil {
						t.Errorf("the revoked certificate: %v", err)
						return
					}
				}
			}
		})
	}
	successor := f.client(paris, nil)
	f.connect(successor)
	for range maxPolls {
		f.poll(ctx, successor, ended)
	}
	for range 20 {
		if status, _, body := f.call(successor, "GET", "/healthz", nil); status != 200 {
			t.Errorf("the successor: answered %d %s", status, body)
		}
	}
	close(stop)
	knocking.Wait()
	select {
	case got := <-ended:
		t.Errorf("a long poll of the successor ended with %d", got)
	default:
	}
	f.revocations.living.mu.Lock()
	defer f.revocations.living.mu.Unlock()
	if n := len(f.revocations.living.open); n != 1 {
		t.Errorf("%d connections are known, want the successor's", n)
	}
}

// dialFrom opens a connection from an address of this machine.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(to, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// open reports whether the other side keeps a silent connection open.
func open(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Peers without a certificate take half of the places at most, for as long as
// a handshake may take; a peer that is known gets in meanwhile.
func TestConnections_HalfIsKeptForKnownPeers(t *testing.T) {
	f := startPolled(t, 8)
	known := f.client(paris, nil)
	if status, _, _ := f.call(known, "GET", "/healthz", nil); status != 200 {
		t.Fatalf("answered %d", status)
	}
	known.CloseIdleConnections()
	var silent []net.Conn
	for range 40 {
		silent = append(silent, dialFrom(t, "127.0.0.2", f.address))
	}
	began := time.Now()
	kept := 0
	for _, conn := range silent {
		if open(t, conn) {
			kept++
		}
	}
	if kept == 0 || kept > 4 {
		t.Errorf("%d silent connections were kept, want at most half of 8", kept)
	}
	for range 3 {
		if status, _, body := f.call(f.client(paris, nil), "GET", "/healthz", nil); status != 200 {
			t.Errorf("a known peer: answered %d %s", status, body)
		}
	}
	for _, conn := range silent {
		if err := conn.SetReadDeadline(time.Now().Add(readHeaderTimeout + 5*time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("a connection without handshake is open after %s: %v", time.Since(began), err)
		}
	}
}

// from is a connection of which only the peer's address is asked.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }
func (from) Close() error           { return nil }

// Of a full port the address with most strangers gives way, its oldest connection
// first; a peer that showed a certificate never does.
func TestAdmission_DisplacesWhoHasMost(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	a := newAdmission(6, 0, false, func() time.Time { return now })
	enter := func(ip string) (conn, displaced *watchedConn, ok bool) {
		now = now.Add(time.Second)
		conn = &watchedConn{Conn: from{address: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}, began: now}
		displaced, ok = a.enter(conn)
		return conn, displaced, ok
	}
	certified, _, _ := enter("192.0.2.1")
	certified.completed()
	early, _, _ := enter("192.0.2.2")
	var crowd []*watchedConn
	for range 4 {
		conn, _, _ := enter("192.0.2.66")
		crowd = append(crowd, conn)
	}
	for i, ip := range []string{"192.0.2.3", "192.0.2.66", "192.0.2.4"} {
		if _, displaced, ok := enter(ip); !ok || displaced != crowd[i] {
			t.Errorf("%s, the newcomer %d: admitted %t, and the one that gave way is not the crowd's oldest", ip, i, ok)
		}
	}
	// The crowd has two left, everybody else one: the crowd first, then the oldest.
	if _, displaced, _ := enter("192.0.2.5"); displaced != crowd[3] {
		t.Error("the crowd did not give way")
	}
	if _, displaced, _ := enter("192.0.2.6"); displaced != early {
		t.Error("of addresses with one connection each the oldest did not give way")
	}
	early.completed() // too late
	if _, known := a.known[early.place.address]; known || a.open != 6 || a.strangers.n != 5 {
		t.Errorf("known %t, %d open, %d strangers; want 6 and 5", known, a.open, a.strangers.n)
	}
	full := newAdmission(1, 0, false, func() time.Time { return now })
	if _, ok := full.enter(certified); !ok {
		t.Fatal("the first is refused")
	}
	certified.completed()
	if displaced, ok := full.enter(&watchedConn{Conn: from{address: &net.TCPAddr{IP: net.ParseIP("192.0.2.9")}}}); ok || displaced != nil {
		t.Error("a stranger took the place of a peer that showed a certificate")
	}
}

// Behind a balancer that gives all peers its own address, who shows no certificate keeps
// nobody out: an agent gets a place for its handshake, and keeps it afterwards.
func TestConnections_OneAddressForAll(t *testing.T) {
	f := startPolled(t, 8)
	standing := f.client(paris, nil)
	if status, _, _ := f.call(standing, "GET", "/healthz", nil); status != http.StatusOK {
		t.Fatalf("answered %d", status)
	}
	for range 3 { // the flood begins anew each time, from the address that is known
		for range 40 {
			dialFrom(t, "127.0.0.1", f.address)
		}
		newcomer := f.client(paris, nil)
		if status, _, body := f.call(newcomer, "GET", "/healthz", nil); status != http.StatusOK {
			t.Errorf("a newcomer: answered %d %s", status, body)
		}
		newcomer.CloseIdleConnections()
		if status, _, body := f.call(standing, "GET", "/healthz", nil); status != http.StatusOK {
			t.Errorf("who is there: answered %d %s", status, body)
		}
	}
}

// A probe that shows no certificate is answered while another opens connections up to
// the limit and says nothing on them, from its own address or from the probe's.
func TestProbes_AreAnsweredOnAPortThatIsFull(t *testing.T) {
	f := &fleet{t: t, revocations: new(Revocations), now: time.Now()}
	guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
	if err != nil {
		t.Fatal(err)
	}
	f.address = "https://" + run(t, Port{
		Name: "operators", Address: "127.0.0.1:0", TLS: GuardTLS(f.certify(), quiet), Connections: 8,
		Handler: NewOperators(Operators{Metrics: NewMetrics(), Guard: guard}),
	})
	for _, flooder := range []string{"127.0.0.2", "127.0.0.1"} {
		var silent []net.Conn
		for range 40 {
			silent = append(silent, dialFrom(t, flooder, f.address))
		}
		for range 3 {
			client := f.client(nil, nil) // a kubelet takes a new connection for each probe
			if status, _, body := f.call(client, "GET", "/healthz", nil); status != http.StatusOK {
				t.Errorf("while %s fills the port: answered %d %s", flooder, status, body)
			}
			client.CloseIdleConnections()
		}
		kept := 0
		for _, conn := range silent {
			if open(t, conn) {
				kept++
			}
		}
		if kept == 0 || kept > 8 {
			t.Errorf("%d silent connections were kept, want at most 8", kept)
		}
	}
}

func TestAdmission_RemembersAndForgets(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	a := newAdmission(10, 3, true, func() time.Time { return now })
	enter := func(ip string) (*place, bool) {
		conn := &watchedConn{Conn: from{address: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}, began: now}
		_, ok := a.enter(conn)
		return &conn.place, ok
	}
	p, ok := enter("2001:db8::1")
	if !ok {
		t.Fatal("the first is refused")
	}
	p.completed()
	p.leave()
	p.leave()
	if q, ok := enter("2001:db8::ffff"); !ok || q.crowd != &a.familiar {
		t.Error("the same /64 is not known")
	}
	var places []*place
	for range 5 {
		if p, ok := enter("192.0.2.7"); ok {
			places = append(places, p)
		}
	}
	if len(places) != 3 {
		t.Errorf("%d connections of one address, want 3", len(places))
	}
	now = now.Add(knownFor + time.Minute)
	if q, ok := enter("2001:db8::2"); !ok || q.crowd != &a.strangers {
		t.Error("an address is known for longer than an hour")
	}
	for i := range maxKnown + 10 {
		q := place{at: a, address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		q.completed()
	}
	if len(a.known) > maxKnown {
		t.Errorf("%d addresses are remembered", len(a.known))
	}
}

// Bodies of all identities together are bounded, and an identity's own share
// stays free for it.
func TestBodies_AreBoundedForAllTogether(t *testing.T) {
	all := newBodies()
	var greedy []*body
	for {
		b := &body{all: all, budget: &budget{}}
		if !b.grow(maxReport) {
			break
		}
		greedy = append(greedy, b)
	}
	if n := len(greedy); n < 8 || n > maxBodies/(maxReport-ownBodies)+1 {
		t.Errorf("%d bodies of the largest size at once", n)
	}
	honest := &body{all: all, budget: &budget{}}
	if !honest.grow(20 << 10) {
		t.Error("an honest report found no room")
	}
	honest.release()
	for _, b := range greedy {
		b.release()
	}
	if all.shared != 0 || len(all.held) != 0 {
		t.Errorf("%d bytes, %d identities are left", all.shared, len(all.held))
	}
}

// heapBytes is what lives on heap and stacks.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// One certificate that opens all it can, with headers as large as they may be,
// bodies that nobody reads and long polls, makes the daemon hold a bounded
// amount of memory; what is counted includes the client's own side.
func TestOneCertificate_CannotFillMemory(t *testing.T) {
	f := startPolled(t, 0)
	before := heapBytes()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	answered := map[int]int{}
	bundle, err := f.ca.Issue(*paris)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		t.Fatal(err)
	}
	const clients, each = 40, 32
	var asked sync.WaitGroup
	for range clients {
		client := f.client(nil, func(c *tls.Config) { c.Certificates = []tls.Certificate{pair} })
		for i := range each {
			body, feed := io.Pipe()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address+wire.InstructionsPath("paris")+"?since=1&wait=60s", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Fill", strings.Repeat("x", 24<<10))
			go func() {
				_, _ = feed.Write(make([]byte, 256<<10)) // nobody reads it
			}()
			asked.Add(1)
			go func() {
				done := sync.OnceFunc(asked.Done)
				time.AfterFunc(5*time.Second, done)
				answer, err := client.Do(r)
				status := 0
				if err == nil {
					status = answer.StatusCode
					_ = answer.Body.Close()
				}
				mu.Lock()
				answered[status]++
				mu.Unlock()
				done()
			}()
			_ = i
		}
	}
	asked.Wait()
	grown := heapBytes() - before
	mu.Lock()
	t.Logf("%d requests on %d connections: answered %v; %.1f MiB more are in use, client included", clients*each, clients, answered, float64(grown)/(1<<20))
	if answered[http.StatusTooManyRequests] < clients*each-maxPolls-200 {
		t.Errorf("answered %v", answered)
	}
	mu.Unlock()
	if grown > 64<<20 {
		t.Errorf("%d MiB more are in use, want at most 64", grown>>20)
	}
	if status, _, _ := f.call(f.client(&pki.Request{Name: "lyon"}, nil), "GET", "/healthz", nil); status != 200 {
		t.Errorf("another agent: answered %d", status)
	}
}

// Large headers are refused, over HTTP/1.1 and HTTP/2.
func TestHeaders_AreBounded(t *testing.T) {
	f := startFleet(t)
	for name, change := range map[string]func(*tls.Config){"HTTP/2": nil, "HTTP/1.1": func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }} {
		client := f.client(paris, change)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			r.Header.Set(fmt.Sprintf("X-Fill-%d", i), strings.Repeat("x", 2<<10))
		}
		answer, err := client.Do(r)
		if err == nil {
			if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: answered %d", name, answer.StatusCode)
			}
			_ = answer.Body.Close()
		}
	}
}

// An agent of an earlier version that asks for the stream gets what to do in words,
// in words that its gRPC library logs.
func TestTheStreamOfEarlierVersionsIsRefusedWithARemedy(t *testing.T) {
	f := startFleet(t)
	status, header, _ := f.call(f.client(paris, nil), "POST", streamPath, nil, "Content-Type", "application/grpc", "TE", "trailers")
	if status != 200 || header.Get("Grpc-Status") != "12" || !strings.Contains(header.Get("Grpc-Message"), "--broker-transport http") {
		t.Errorf("answered %d %v", status, header)
	}
}
