package wires

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Port is what is attacked, and by whom.
type Port struct {
	// Address is host:port.
	Address string
	// TLS has the server's authorities and what the peer shows. NextProtos is set here.
	TLS *tls.Config
	// From is the address of this machine that connections come from; nil: any.
	From net.IP
	// Get and Post are paths for requests without and with a body.
	Get, Post string

	mu   sync.Mutex
	open []net.Conn
}

// Close closes each connection that was opened.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.open {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	p.open = nil
	return errors.Join(errs...)
}

// maxFrame is what a frame holds unless a server says otherwise.
const maxFrame = 16 << 10

// Conn is the client's side of an HTTP/2 connection, frame by frame. It may write what a
// client may not. Not safe for concurrent use.
type Conn struct {
	*http2.Framer
	next uint32 // stream
}

// dial opens a connection and says which protocol.
func (p *Port) dial(ctx context.Context, proto string) (*tls.Conn, error) {
	config := p.TLS.Clone()
	config.NextProtos = []string{proto}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if p.From != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: p.From}
	}
	raw, err := dialer.DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.open = append(p.open, raw)
	p.mu.Unlock()
	conn := tls.Client(raw, config)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	return conn, conn.HandshakeContext(ctx)
}

// Open begins HTTP/2. What the server says is thrown away.
func (p *Port) Open(ctx context.Context, settings ...http2.Setting) (*Conn, error) {
	conn, err := p.dial(ctx, "h2")
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	w := &Conn{Framer: http2.NewFramer(conn, bytes.NewReader(nil)), next: 1}
	w.AllowIllegalWrites = true
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return w, w.WriteSettings(settings...)
}

// Request is a header block of a request; more are names and values of headers.
func (p *Port) Request(method, path string, more ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSizeLimit(0)
	fields := append([]string{":method", method, ":scheme", "https", ":authority", p.Address, ":path", path}, more...)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// Send begins a stream with a header block, in as many frames as it takes.
func (w *Conn) Send(block []byte, ends bool) error {
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
