package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// wire2 is one side of an HTTP/2 connection, frame by frame.
type wire2 struct {
	*http2.Framer
	conn net.Conn
	next uint32 // stream
}

// dialTLS opens a connection with a certificate, nil without, and says which protocols.
func (f *fleet) dialTLS(pair *tls.Certificate, protos ...string) (*tls.Conn, error) {
	f.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: protos, ServerName: "127.0.0.1"}
	config.RootCAs.AppendCertsFromPEM(f.ca.CA())
	if pair != nil {
		config.Certificates = []tls.Certificate{*pair}
	}
	raw, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(f.t.Context(), "tcp", strings.TrimPrefix(f.address, "https://"))
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	f.t.Cleanup(func() { _ = raw.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	return conn, conn.HandshakeContext(f.t.Context())
}

// wire begins HTTP/2. What the server says is thrown away.
func (f *fleet) wire(pair *tls.Certificate, settings ...http2.Setting) (*wire2, error) {
	conn, err := f.dialTLS(pair, "h2")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	w := &wire2{Framer: http2.NewFramer(conn, bytes.NewReader(nil)), conn: conn, next: 1}
	w.AllowIllegalWrites = true
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return w, w.WriteSettings(settings...)
}

// request is a header block of a request.
func (f *fleet) request(method, path string, more ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0)
	fields := append([]string{":method", method, ":scheme", "https", ":authority", strings.TrimPrefix(f.address, "https://"), ":path", path}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// send begins a stream with a header block, in as many frames as it takes.
func (w *wire2) send(block []byte, ends bool) error {
	id := w.next
	w.next += 2
	first := block[:min(len(block), maxFrame)]
	rest := block[len(first):]
	if err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: ends, EndHeaders: len(rest) == 0}); err != nil {
		return err
	}
	for len(rest) > 0 {
		part := rest[:min(len(rest), maxFrame)]
		rest = rest[len(part):]
		if err := w.WriteContinuation(id, len(rest) == 0, part); err != nil {
			return err
		}
	}
	return nil
}

// attacks are what one connection after the other does to a port; they end with an error
// where the server has had enough, which is as well.
var attacks = map[string]func(f *fleet, pair *tls.Certificate) error{
	"requests that are reset at once": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		block := f.request("GET", "/healthz")
		for i := 0; i < 6_000 && err == nil; i++ {
			id := w.next
			if err = w.send(block, true); err == nil {
				err = w.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		return err
	},
	"a header without end": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		if err != nil {
			return err
		}
		err = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.request("GET", "/healthz"), EndStream: true})
		part := bytes.Repeat([]byte{0x82}, maxFrame) // :method GET, again and again
		for i := 0; i < 10_000 && err == nil; i++ {
			err = w.WriteContinuation(1, false, part)
		}
		return err
	},
	"empty continuations": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		if err != nil {
			return err
		}
		err = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.request("GET", "/healthz"), EndStream: true})
		for i := 0; i < 20_000 && err == nil; i++ {
			err = w.WriteContinuation(1, false, nil)
		}
		return err
	},
	"settings without end": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		for i := 0; i < 12_000 && err == nil; i++ {
			err = w.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(i % 2 * 4096)}) //nolint:gosec // one of two
		}
		return err
	},
	"pings without end": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		for i := 0; i < 12_000 && err == nil; i++ {
			err = w.WritePing(false, [8]byte{})
		}
		return err
	},
	"frames of no kind, and windows": func(f *fleet, pair *tls.Certificate) error {
		w, err := f.wire(pair)
		for i := 0; i < 20_000 && err == nil; i++ {
			if err = w.WriteRawFrame(0xee, 0xff, uint32(i), bytes.Repeat([]byte{0xff}, 64)); err == nil { //nolint:gosec // small
				err = w.WriteWindowUpdate(0, 1)
			}
		}
		return err
	},
	"headers that are none": func(f *fleet, pair *tls.Certificate) error {
		for range 20 {
			w, err := f.wire(pair)
			if err != nil {
				return err
			}
			if err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndStream: true, EndHeaders: true}); err != nil {
				return err
			}
		}
		return nil
	},
	"slow headers": func(f *fleet, pair *tls.Certificate) error {
		for range 40 {
			conn, err := f.dialTLS(pair, "http/1.1")
			if err != nil {
				return err
			}
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: "); err != nil {
				return err
			}
		}
		return nil
	},
	"slow bodies": func(f *fleet, pair *tls.Certificate) error {
		for range 20 {
			w, err := f.wire(pair)
			if err != nil {
				return err
			}
			for range 32 {
				id := w.next
				if err := w.send(f.request("POST", "/hooks/github", "content-length", "100000", "x-hub-signature-256", "sha256="+strings.Repeat("00", 32)), false); err != nil {
					return err
				}
				if err := w.WriteData(id, false, []byte("{")); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"many connections that say nothing": func(f *fleet, pair *tls.Certificate) error {
		for range 50 {
			if _, err := f.dialTLS(pair, "h2"); err != nil {
				return err
			}
		}
		return nil
	},
	"a header of a mebibyte": func(f *fleet, pair *tls.Certificate) error {
		conn, err := f.dialTLS(pair, "http/1.1")
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Fill: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		return err
	},
	"requests that are no HTTP": func(f *fleet, pair *tls.Certificate) error {
		for _, text := range []string{"\x16\x03\x01\x02\x00", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", strings.Repeat("\r\n", 50_000), "GET http://[::1 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n"} {
			conn, err := f.dialTLS(pair, "http/1.1")
			if err != nil {
				return err
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return err
			}
		}
		return nil
	},
}

// rawPorts are the three ports behind TLS.
func rawPorts(t *testing.T) map[string]*fleet {
	t.Helper()
	agents := startPolled(t, 0)
	out := map[string]*fleet{"agents": agents}
	for _, name := range []string{"operators", "webhooks"} {
		f := &fleet{t: t, revocations: new(Revocations), now: time.Now()}
		files := f.certify()
		port := Port{Name: name, Address: "127.0.0.1:0", TLS: ServerTLS(files, quiet), Handler: NewWebhooks(Webhooks{Secret: func(string) []byte { return []byte("s3cret") }, Trigger: func(string) {}})}
		if name == "operators" {
			guard, err := NewGuard(nil, f.revocations, f.clock, quiet)
			if err != nil {
				t.Fatal(err)
			}
			port.TLS = GuardTLS(files, quiet)
			port.Handler = NewOperators(Operators{Metrics: NewMetrics(), Market: &recorder{}, Guard: guard})
		}
		f.address = "https://" + run(t, port)
		out[name] = f
	}
	return out
}

// honest is answered as ever, within a time.
func (f *fleet) honest(port string, pair *tls.Certificate) error {
	client := f.client(nil, func(c *tls.Config) {
		if pair != nil {
			c.Certificates = []tls.Certificate{*pair}
		}
	})
	client.Timeout = 10 * time.Second
	defer client.CloseIdleConnections()
	method, path, want := http.MethodGet, "/healthz", http.StatusOK
	if port == "webhooks" {
		method, path, want = http.MethodPost, "/hooks/gitlab", http.StatusAccepted
	}
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.address+path, strings.NewReader(""))
	if err != nil {
		return err
	}
	r.Header.Set("X-Gitlab-Token", "s3cret")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		return fmt.Errorf("answered %d", answer.StatusCode)
	}
	return nil
}

// pair is a certificate of an agent, nil for the ports that ask for none.
func (f *fleet) pair(port, name string) *tls.Certificate {
	f.t.Helper()
	if port != "agents" {
		return nil
	}
	bundle, err := f.ca.Issue(pki.Request{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	return &pair
}

// in has a subtest fail, not the test, until it ends.
func (f *fleet) in(t *testing.T) (back func()) {
	was := f.t
	f.t = t
	return func() { f.t = was }
}

// TestRawWires: whatever frames and bytes come on connections, whoever is honest is answered
// meanwhile and afterwards, and once the connections are closed memory and goroutines are
// what they were.
func TestRawWires(t *testing.T) {
	for port, f := range rawPorts(t) {
		hostile, honest := f.pair(port, "paris"), f.pair(port, "lyon")
		if err := f.honest(port, honest); err != nil {
			t.Fatalf("%s, before: %v", port, err)
		}
		routines := runtime.NumGoroutine()
		for name, attack := range attacks {
			t.Run(port+", "+name, func(t *testing.T) {
				defer f.in(t)()
				before := heapBytes()
				ended := make(chan error, 1)
				go func() { ended <- attack(f, hostile) }()
				if err := f.honest(port, honest); err != nil {
					t.Errorf("meanwhile: %v", err)
				}
				if err := <-ended; err != nil {
					t.Logf("the attack ended: %v", err)
				}
				if grown := heapBytes() - before; grown > 32<<20 {
					t.Errorf("%d MiB more are in use, want at most 32", grown>>20)
				}
				if err := f.honest(port, honest); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
		if err := f.honest(port, honest); err != nil {
			t.Errorf("%s, after all: %v", port, err)
		}
		const others = 20 // of who is honest, and of what has just ended
		tick := time.NewTicker(50 * time.Millisecond)
		for end := time.Now().Add(15 * time.Second); runtime.NumGoroutine() > routines+others && time.Now().Before(end); <-tick.C {
		}
		tick.Stop()
		if n := runtime.NumGoroutine(); n > routines+others {
			t.Errorf("%s: %d goroutines are left, there were %d", port, n, routines)
		}
	}
}

// TestAnswersThatNobodyTakes: a peer that leaves answers untaken, on each stream that it may
// have and with headers as large as they may be, has a port hold a bounded amount; what is
// counted includes the peer's own side.
func TestAnswersThatNobodyTakes(t *testing.T) {
	for port, f := range rawPorts(t) {
		t.Run(port, func(t *testing.T) {
			defer f.in(t)()
			hostile, honest := f.pair(port, "paris"), f.pair(port, "lyon")
			before := heapBytes()
			block := f.request("GET", "/healthz", "x-fill", strings.Repeat("x", 30<<10))
			for range 50 {
				w, err := f.wire(hostile, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				for i := 0; i < 64 && err == nil; i++ {
					err = w.send(block, true)
				}
				if err != nil && w == nil {
					t.Fatal(err)
				}
			}
			if err := f.honest(port, honest); err != nil {
				t.Errorf("meanwhile: %v", err)
			}
			grown := heapBytes() - before
			t.Logf("%.1f MiB more are in use", float64(grown)/(1<<20))
			if grown > 40<<20 {
				t.Errorf("%d MiB more are in use, want at most 40", grown>>20)
			}
		})
	}
}
