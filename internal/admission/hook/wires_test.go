package hook

import (
	"crypto/tls"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/fleetbroker/fleetbroker/test/wires"
)

// allowed has an orderly review answered.
func (r *rig) allowed() {
	r.t.Helper()
	if status, body, err := r.orderly(); err != nil || status != http.StatusOK || !strings.Contains(body, `"allowed":true`) {
		r.t.Errorf("an API server is answered %d %.200s, %v", status, body, err)
	}
}

// inUse is what lives on heap and stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // small
}

// TestRawWires: whatever frames and bytes come from other addresses without a certificate,
// the API server's reviews are answered meanwhile and afterwards, and once the connections
// are closed memory and goroutines are what they were.
func TestRawWires(t *testing.T) {
	r := newRig(t)
	r.allowed()
	routines := runtime.NumGoroutine()
	for name, attack := range wires.Attacks {
		t.Run(name, func(t *testing.T) {
			was := r.t
			r.t = t
			defer func() { r.t = was }()
			peer := r.hostile()
			defer func() { _ = peer.Close() }()
			before := inUse()
			ended := make(chan error, 1)
			go func() { ended <- attack(t.Context(), peer) }()
			r.allowed()
			if err := <-ended; err != nil {
				t.Logf("the attack ended: %v", err)
			}
			if grown := inUse() - before; grown > 32<<20 {
				t.Errorf("%d MiB more are in use, want at most 32", grown>>20)
			}
			r.allowed()
		})
	}
	const others = 20 // of who is honest, and of what has just ended
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(15 * time.Second); runtime.NumGoroutine() > routines+others && time.Now().Before(end); <-tick.C {
	}
	if n := runtime.NumGoroutine(); n > routines+others {
		t.Errorf("%d goroutines are left, there were %d", n, routines)
	}
}

// TestAnswersThatNobodyTakes: a peer that leaves answers untaken on all its streams has the
// agent hold a bounded amount; what is counted includes the peer's own side.
func TestAnswersThatNobodyTakes(t *testing.T) {
	r := newRig(t)
	peer := r.hostile()
	defer func() { _ = peer.Close() }()
	before := inUse()
	block := peer.Request("GET", PathPods, "x-fill", strings.Repeat("x", 7<<10))
	for range 50 {
		w, err := peer.Open(t.Context(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := 0; i < 8*maxStreams && err == nil; i++ {
			err = w.Send(block, true)
		}
		if err != nil && w == nil {
			t.Fatal(err)
		}
	}
	r.allowed()
	if grown := inUse() - before; grown > 40<<20 {
		t.Errorf("%d MiB more are in use, want at most 40", grown>>20)
	}
}

// hostile is the agent's port for a peer on another address than the API server's.
func (r *rig) hostile() *wires.Port {
	return &wires.Port{Address: r.at, TLS: &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1"}, From: net.ParseIP("127.0.0.2"), Get: PathPods, Post: PathPods}
}
