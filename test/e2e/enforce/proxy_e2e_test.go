//go:build e2e

package enforce

import (
	"net"
	"sync"
	"testing"
)

// proxy is the network between an agent and the daemon. It can be cut: what is
// connected then hangs, as when packets are lost, and nothing new gets through.
type proxy struct {
	address string
	target  string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
	// healed is closed while the network is whole.
	healed chan struct{}
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), target: target, conns: map[net.Conn]bool{}, healed: make(chan struct{})}
	close(p.healed)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		p.set(false)
		p.drop()
	})
	return p
}

// set cuts or heals.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut == cut {
		return
	}
	if p.cut = cut; cut {
		p.healed = make(chan struct{})
	} else {
		close(p.healed)
	}
}

// drop ends all connections.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) whole() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.healed
}

func (p *proxy) keep(c net.Conn, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is {
		p.conns[c] = true
	} else {
		delete(p.conns, c)
	}
}

func (p *proxy) serve(from net.Conn) {
	p.keep(from, true)
	defer p.keep(from, false)
	defer from.Close()
	<-p.whole()
	to, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.keep(to, true)
	defer p.keep(to, false)
	defer to.Close()
	var both sync.WaitGroup
	both.Go(func() { p.carry(to, from) })
	both.Go(func() { p.carry(from, to) })
	both.Wait()
}

// carry copies one way; what arrives while the network is cut waits.
func (p *proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			<-p.whole()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
