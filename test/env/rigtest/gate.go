package rigtest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Gate passes connections on, to an address that is asked for each, unless it is
// closed. Its methods may be called from any goroutine.
type Gate struct {
	// Address that it listens at, as host:port.
	Address string
	to      func() string

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
	delay  time.Duration // of what comes back
}

// NewGate makes an open one that lives as long as the test. to is called for each
// connection, from any goroutine.
func NewGate(t testing.TB, to func() string) *Gate {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{Address: listener.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		g.Set(true)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(conn)
		}
	}()
	return g
}

// Set closes the gate and cuts what passes, or opens it.
func (g *Gate) Set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	if closed {
		for conn := range g.open {
			_ = conn.Close()
		}
	}
}

// Lead has connections go elsewhere from now on, and cuts those that are open.
func (g *Gate) Lead(to func() string) {
	g.Set(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to, g.closed = to, false
}

// Slow makes what comes back take so long, on connections that are open too.
func (g *Gate) Slow(delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = delay
}

// held is what came back, and when it is passed on.
type held struct {
	text []byte
	due  time.Time
}

// back passes on what comes back, in order, each after the delay of when it came.
func (g *Gate) back(to io.Writer, from io.Reader) {
	queue := make(chan held, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for h := range queue {
			<-time.After(time.Until(h.due))
			if _, err := to.Write(h.text); err != nil {
				for range queue { // nobody takes the rest
				}
				return
			}
		}
	}()
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			g.mu.Lock()
			due := time.Now().Add(g.delay)
			g.mu.Unlock()
			queue <- held{buffer[:n], due}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	<-done
}

func (g *Gate) enter(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	for _, c := range conns {
		g.open[c] = true
	}
	return true
}

func (g *Gate) pass(in net.Conn) {
	defer in.Close()
	g.mu.Lock()
	to := g.to
	g.mu.Unlock()
	out, err := new(net.Dialer).Dial("tcp", to())
	if err != nil {
		return
	}
	defer out.Close()
	if !g.enter(in, out) {
		return
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, in)
		delete(g.open, out)
	}()
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(out, in)
		done <- struct{}{}
	}()
	go func() {
		g.back(in, out)
		done <- struct{}{}
	}()
	<-done
}
