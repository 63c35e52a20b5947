package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/proxy"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/allowance"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/guard"
)

// Deadlines of reading from a remote. A server that died in the middle of an
// answer, or sends a byte now and then, must not hold the repository's lock.
const (
	defaultIdle       = time.Minute
	defaultSlow       = 5 * time.Minute
	slowBytes         = 64 << 10
	defaultWords      = 32 << 20 // some 400,000 refs
	defaultLimit      = 10 * time.Minute
	defaultCloneLimit = time.Hour
)

// StalledError says that a remote was given up: too little progress, or no end.
type StalledError struct {
	// Why, with the bound that was not kept.
	Why string
}

// Error implements error.
func (e *StalledError) Error() string {
	return "gave the remote up: " + e.Why + "; look at the git server and what lies between"
}

// watch ends an operation that makes too little progress. Only time in which the
// remote is waited for counts against it; the whole bounds all of it. It is safe
// for concurrent use.
type watch struct {
	idle, slow time.Duration
	cancel     context.CancelCauseFunc
	guard      func(netip.Addr) error

	mu     sync.Mutex
	busy   bool // what was read is being worked on
	left   allowance.Left
	bytes  int64         // within the window
	quiet  time.Duration // waited since the last byte, up to since
	window time.Duration // waited within the window, up to since
	since  time.Time
	end    time.Time // of the whole
	limit  time.Duration
	clone  time.Duration
	timer  *time.Timer
	done   bool
}

type watchKey struct{}

// watched gives an operation's context, which ends with a *StalledError as its
// cause when the remote makes too little progress.
func (a Auth) watched(ctx context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	now := time.Now()
	w := &watch{
		guard: a.Guard, left: allowance.Left{Words: cmp.Or(a.Words, defaultWords)}, idle: cmp.Or(a.Idle, defaultIdle), slow: cmp.Or(a.Slow, defaultSlow), cancel: cancel, since: now,
		limit: cmp.Or(a.Limit, defaultLimit), clone: cmp.Or(a.CloneLimit, defaultCloneLimit),
	}
	w.end = now.Add(w.limit)
	w.mu.Lock()
	w.timer = time.AfterFunc(w.next(), w.check)
	w.mu.Unlock()
	return context.WithValue(ctx, watchKey{}, w), w
}

func watchOf(ctx context.Context) *watch {
	w, _ := ctx.Value(watchKey{}).(*watch)
	return w
}

// next is how long until a bound can be broken. The caller holds mu.
func (w *watch) next() time.Duration {
	wait := time.Until(w.end)
	if !w.busy {
		wait = min(wait, w.idle-w.quiet, w.slow-w.window)
	}
	return max(wait, time.Millisecond)
}

// pass counts the time that was waited. The caller holds mu.
func (w *watch) pass(now time.Time) {
	if !w.busy {
		w.quiet += now.Sub(w.since)
		w.window += now.Sub(w.since)
	}
	w.since = now
}

func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	now := time.Now()
	w.pass(now)
	why := ""
	switch {
	case !now.Before(w.end):
		why = fmt.Sprintf("no end after %s", w.limit)
	case w.quiet >= w.idle:
		why = fmt.Sprintf("no byte for %s", w.idle)
	case w.window >= w.slow && w.bytes < slowBytes:
		why = fmt.Sprintf("%d bytes in %s, less than %d", w.bytes, w.slow, slowBytes)
	case w.window >= w.slow:
		w.window, w.bytes = 0, 0
	}
	if why != "" {
		w.done = true
		w.cancel(&StalledError{why})
		return
	}
	w.timer.Reset(w.next())
}

// progress counts bytes that came or went.
func (w *watch) progress(n int) {
	if w == nil || n <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass(time.Now())
	w.quiet, w.bytes = 0, w.bytes+int64(n)
}

func (w *watch) heard(n int) {
	if w.progress(n); w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if why := w.left.Heard(n); why != "" && !w.done {
		w.done = true
		w.cancel(&StalledError{why})
	}
}

// work says whether what was read is being worked on: then nobody waits for the
// remote. From then on it sends a pack, of which so many bytes were taken.
func (w *watch) work(on bool, took int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left.Pack(took)
	w.pass(time.Now())
	if w.busy = on; !w.done {
		w.timer.Reset(w.next())
	}
}

// cloning lets the whole take as long as a first clone may.
func (w *watch) cloning() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = w.end.Add(w.clone - w.limit)
	w.limit = w.clone
	if !w.done {
		w.timer.Reset(w.next())
	}
}

// stop ends the watch, and turns the error of an operation that it has ended
// into the reason; one that its caller has ended says so too.
func (w *watch) stop(ctx context.Context, err error) error {
	w.mu.Lock()
	w.done = true
	w.timer.Stop()
	w.mu.Unlock()
	var stalled *StalledError
	switch ended := ctx.Err(); {
	case err == nil || ended == nil:
	case errors.As(context.Cause(ctx), &stalled):
		err = stalled
	case !errors.Is(err, ended): // of a connection that was closed for it
		err = fmt.Errorf("%w: %w", ended, err)
	}
	w.cancel(nil)
	return err
}

// sink reads for a sink, whose own work is not the remote's delay.
type sink struct {
	from io.Reader
	w    *watch
}

// Read implements io.Reader.
func (s sink) Read(p []byte) (int, error) {
	s.w.work(false, 0)
	n, err := s.from.Read(p)
	s.w.work(true, n)
	return n, err
}

// metering counts what a round trip of http sends and gets.
type metering struct {
	next   http.RoundTripper
	date   func(server, asked, answered time.Time)
	answer func(*http.Response)
}

// RoundTrip implements http.RoundTripper.
func (m metering) RoundTrip(r *http.Request) (*http.Response, error) {
	w, asked := watchOf(r.Context()), time.Now()
	if w != nil && r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = counted{r.Body, w.progress}
	}
	answer, err := m.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if at, derr := http.ParseTime(answer.Header.Get("Date")); derr == nil && m.date != nil {
		m.date(at, asked, time.Now())
	}
	if m.answer != nil {
		m.answer(answer)
	}
	if w != nil {
		w.progress(1) // its headers
		answer.Body = counted{answer.Body, w.heard}
	}
	return answer, nil
}

type counted struct {
	io.ReadCloser
	count func(int)
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.count(n)
	return n, err
}

// dialWatched dials within a watched operation. The connection is closed when that
// ends, however it is then waited for.
func dialWatched(ctx, operation context.Context, network, addr string) (net.Conn, error) {
	dial := proxy.Dial
	if w := watchOf(operation); w.guard != nil {
		dial = (&net.Dialer{Control: guard.Control(w.guard)}).DialContext
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	// Whatever ended it: go-git leaves connections open of servers that are silent, refuse or take no more.
	return &countedConn{Conn: conn, w: watchOf(operation), stop: context.AfterFunc(operation, func() { _ = conn.Close() })}, nil
}

type countedConn struct {
	net.Conn
	w    *watch
	stop func() bool
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.w.heard(n)
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.w.progress(n)
	return n, err
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
