package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// GRPC is a Transport over one gRPC stream (wire.StreamMethod), on which all
// calls travel at once. A stream that broke, or whose certificate was renewed,
// is opened again by the next call; calls under way on it fail.
type GRPC struct {
	verbs
	target string
	files  *pki.Files

	mu       sync.Mutex
	material *pki.Material
	line     *line
}

// NewGRPC checks a broker's address; nothing is dialled before the first call.
func NewGRPC(broker, cluster string, files *pki.Files) (*GRPC, error) {
	u, err := parseBroker(broker)
	if err != nil {
		return nil, err
	}
	t := &GRPC{target: u.Host, files: files}
	t.verbs = verbs{cluster: cluster, call: t.call}
	return t, nil
}

// Close implements Transport.
func (t *GRPC) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != nil {
		t.line.end(errors.New("the transport is closed"))
		t.line = nil
	}
}

// errBroken is what calls get whose stream ended.
var errBroken = errors.New("the stream to the broker broke")

func (t *GRPC) call(ctx context.Context, method, path string, header http.Header, body []byte) (*answer, error) {
	l, err := t.open()
	if err != nil {
		return nil, err
	}
	call := &wire.Call{Method: method, Path: path, Header: map[string]string{}, Body: body}
	for name := range header {
		call.Header[name] = header.Get(name)
	}
	got, err := l.do(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("%s https://%s%s: %w", method, t.target, path, err)
	}
	out := &answer{url: "https://" + t.target + path, status: int(got.Status), header: http.Header{}, body: got.Body}
	for name, value := range got.Header {
		out.header.Set(name, value)
	}
	return out, nil
}

// open is the stream with the newest certificates.
func (t *GRPC) open() (*line, error) {
	m, err := t.files.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != nil && !t.line.broken() && (err != nil || m == t.material) {
		return t.line, nil
	}
	if t.line != nil {
		t.line.end(errBroken)
		t.line = nil
	}
	l, err := dial(t.target, m)
	if err != nil {
		return nil, err
	}
	t.material, t.line = m, l
	return l, nil
}

// line is one stream.
type line struct {
	conn   *grpc.ClientConn
	stream grpc.ClientStream
	cancel context.CancelFunc
	gone   chan struct{}

	sending sync.Mutex
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan *wire.StreamAnswer
	err     error
}

func dial(target string, m *pki.Material) (*line, error) {
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(credentials.NewTLS(clientTLS(m))),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(wire.Codec{}), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	)
	if err != nil {
		return nil, fmt.Errorf("broker %s: %w", target, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// A broker that cannot be reached must not hold the call that opens.
	late := time.AfterFunc(reportTimeout, cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, wire.StreamMethod)
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("open a stream to the broker %s: %w", target, err), conn.Close())
	}
	l := &line{conn: conn, stream: stream, cancel: cancel, gone: make(chan struct{}), waiting: map[uint64]chan *wire.StreamAnswer{}}
	go l.receive()
	return l, nil
}

// receive hands answers to those who wait for them.
func (l *line) receive() {
	for {
		got := new(wire.StreamAnswer)
		if err := l.stream.RecvMsg(got); err != nil {
			l.end(fmt.Errorf("%w: %w", errBroken, err))
			return
		}
		l.mu.Lock()
		ch := l.waiting[got.Number]
		delete(l.waiting, got.Number)
		l.mu.Unlock()
		if ch != nil {
			ch <- got
		}
	}
}

// end gives the stream up, once.
func (l *line) end(err error) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
		close(l.gone)
	}
	l.mu.Unlock()
	if first {
		l.cancel()
		_ = l.conn.Close() // nothing is left to lose
	}
}

func (l *line) broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

func (l *line) do(ctx context.Context, call *wire.Call) (*wire.StreamAnswer, error) {
	ch := make(chan *wire.StreamAnswer, 1)
	l.mu.Lock()
	l.next++
	call.Number = l.next
	l.waiting[call.Number] = ch
	l.mu.Unlock()
	l.sending.Lock()
	err := l.stream.SendMsg(call)
	l.sending.Unlock()
	if err != nil {
		l.end(fmt.Errorf("%w: %w", errBroken, err))
	}
	select {
	case got := <-ch:
		return got, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.waiting, call.Number)
		l.mu.Unlock()
		return nil, ctx.Err()
	case <-l.gone:
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, l.err
	}
}
