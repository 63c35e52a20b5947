package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// concurrentCalls bounds how many calls of one stream are under way, a long
// poll among them.
const concurrentCalls = 64

// streams serves the routes of HTTP over gRPC streams on the same port: each
// call goes through the very handler that requests go through, so that a
// certificate is judged, limits are kept and reports are counted call by call.
type streams struct {
	calls http.Handler
	grpc  *grpc.Server
}

// withStreams adds the stream form to the agents' routes.
func withStreams(calls http.Handler, l *limiter) http.Handler {
	s := &streams{calls: calls}
	s.grpc = grpc.NewServer(grpc.ForceServerCodec(wire.Codec{}), grpc.MaxRecvMsgSize(maxReport+64<<10))
	name := strings.Split(wire.StreamMethod, "/")
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: name[1], HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: name[2], Handler: func(_ any, stream grpc.ServerStream) error { return s.serve(stream) }, ServerStreams: true, ClientStreams: true}},
	}, s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wire.StreamMethod {
			calls.ServeHTTP(w, r)
			return
		}
		if r.ProtoMajor != 2 || peer(r) == nil {
			refuse(w, http.StatusBadRequest, "BadStream", "%s is a gRPC stream over HTTP/2 with a client certificate", wire.StreamMethod)
			return
		}
		// Who this is, and whether he may, is judged call by call.
		leave := l.of(pki.Identity{Name: peer(r).Subject.CommonName}).openStream()
		if leave == nil {
			tooMany(w, time.Second, peer(r).Subject.CommonName, "it has as many streams open as it may")
			return
		}
		defer leave()
		c := http.NewResponseController(w)
		// A stream lasts as long as its agent; each call has its own limits.
		_ = c.SetReadDeadline(time.Time{})
		_ = c.SetWriteDeadline(time.Time{})
		s.grpc.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), handshakeKey{}, r.TLS)))
	})
}

type handshakeKey struct{}

// serve answers calls until the client ends the stream, or the port closes.
func (s *streams) serve(stream grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	var under sync.WaitGroup
	var sending, beginning sync.Mutex
	closed := false
	defer func() {
		beginning.Lock()
		closed = true
		beginning.Unlock()
		under.Wait()
	}()
	ended := make(chan error, 1)
	slots := make(chan struct{}, concurrentCalls)
	go func() {
		for {
			call := new(wire.Call)
			if err := stream.RecvMsg(call); err != nil {
				ended <- err
				return
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
			beginning.Lock()
			if !closed {
				under.Go(func() {
					defer func() { <-slots }()
					answer := s.answer(ctx, call)
					sending.Lock()
					defer sending.Unlock()
					_ = stream.SendMsg(answer) // whoever has gone is nobody to tell
				})
			}
			beginning.Unlock()
		}
	}()
	select {
	case err := <-ended:
		cancel() // nobody waits for what is under way
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-stopping(ctx):
		// Those under way are answered: the broker answers everybody when it stops.
		beginning.Lock()
		closed = true
		beginning.Unlock()
		under.Wait()
		cancel()
		return status.Error(codes.Unavailable, "the daemon is stopping")
	}
}

// answer lets the routes answer a call.
func (s *streams) answer(ctx context.Context, call *wire.Call) *wire.StreamAnswer {
	out := &record{header: http.Header{}}
	r, err := http.NewRequestWithContext(ctx, call.Method, "https://stream"+call.Path, bytes.NewReader(call.Body))
	switch {
	case err != nil || !strings.HasPrefix(call.Path, "/"):
		refuse(out, http.StatusBadRequest, "BadCall", "method %+.20q, path %+.80q: not a request", call.Method, call.Path)
	case len(call.Body) > 0 && call.Method != http.MethodPut && call.Method != http.MethodPost:
		// It would stay in memory for as long as the call waits.
		refuse(out, http.StatusBadRequest, "BadCall", "method %+.20q carries no body", call.Method)
	default:
		for name, value := range call.Header {
			r.Header.Set(name, value)
		}
		r.TLS, _ = ctx.Value(handshakeKey{}).(*tls.ConnectionState)
		s.calls.ServeHTTP(out, r)
	}
	answer := &wire.StreamAnswer{Number: call.Number, Status: uint32(max(out.status, http.StatusOK)), Header: map[string]string{}, Body: out.body.Bytes()}
	for name := range out.header {
		answer.Header[name] = out.header.Get(name)
	}
	return answer
}

// record is a ResponseWriter that keeps what is written.
type record struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *record) Header() http.Header { return r.header }

// Write implements http.ResponseWriter.
func (r *record) Write(b []byte) (int, error) { return r.body.Write(b) }

// WriteHeader implements http.ResponseWriter.
func (r *record) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}
