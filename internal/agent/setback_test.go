package agent

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/agent/transport"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/internal/server"
)

// ledgerAt is a broker whose ledger has a number, and that may not know whether the
// remote has a newer one.
type ledgerAt struct {
	server.Broker
	mu     sync.Mutex
	seq    uint64
	newest error
}

func (l *ledgerAt) set(seq uint64, newest error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq, l.newest = seq, newest
}

func (l *ledgerAt) Instructions(string) (wire.Instructions, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return wire.Instructions{Version: "the same", Seq: l.seq}, make(chan struct{})
}

func (l *ledgerAt) Newest() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}
func (*ledgerAt) Vouches() error { return nil }
func (*ledgerAt) Reread()        {}

// A ledger that was restored from a backup by daemons that know of no later number goes on
// with lower ones. The agents' port tells them once the remote was read for as long as the
// agent waits, the agent takes them, and goes by them from then on. Until then, and while
// a replica cannot say that it has read the newest ledger, what the agent was told stands.
func TestRestoredLedgerIsHeard(t *testing.T) {
	var clock sync.Mutex
	now := epoch.Time
	at := func() time.Time { clock.Lock(); defer clock.Unlock(); return now }
	pass := func(d time.Duration) { clock.Lock(); defer clock.Unlock(); now = now.Add(d) }
	ledger := &ledgerAt{seq: 5000}
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	files := func(q pki.Request) *pki.Files {
		b, err := ca.Issue(q)
		dir := filepath.Join(t.TempDir(), q.Name)
		if err := errors.Join(err, b.WriteDir(dir)); err != nil {
			t.Fatal(err)
		}
		f, err := pki.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	servers, err := server.Listen(t.Context(), quiet, server.Port{
		Name: "agents", Address: "127.0.0.1:0", TLS: server.AgentTLS(files(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"127.0.0.1"}}), nil, quiet),
		Handler: server.NewAgents(server.Agents{Broker: ledger, Log: quiet, Now: at}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line, err := transport.NewHTTP("https://"+servers.Address("agents"), "rome", files(pki.Request{Name: "rome"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.Close)

	var told time.Time // when the newest words that count were given
	h := &hearing{log: quiet, told: func(_ wire.Instructions, at time.Time, _ bool) { told = at }}
	since := ""
	poll := func() { // as a follower does, without the wait
		in, err := line.Instructions(ctx, since, h.after(), 0)
		switch {
		case err == nil && h.hear("broker", &in, at()):
			since = in.Version
		case errors.Is(err, transport.ErrUnchanged):
			h.hear("broker", nil, at())
		}
	}
	minutes := func(n int) {
		for range 2 * n {
			pass(30 * time.Second)
			poll()
		}
	}
	poll()
	minutes(1)
	if h.after() != 5000 || !told.Equal(at()) {
		t.Fatalf("the agent is at number %d, told at %s", h.after(), told)
	}
	stood := told
	ledger.set(4200, errors.New("the history was rewritten"))
	if minutes(20); h.after() != 5000 || !told.Equal(stood) {
		t.Errorf("while the newest ledger is not known the agent takes number %d, told at %s", h.after(), told)
	}
	ledger.set(5000, nil)
	minutes(1)
	ledger.set(4200, nil)
	stood = told
	if minutes(4); h.after() != 5000 || !told.Equal(stood) {
		t.Errorf("after four minutes the agent takes number %d, told at %s", h.after(), told)
	}
	if minutes(2); h.after() != 4200 || !told.Equal(at()) {
		t.Errorf("after six minutes the agent is at number %d, told at %s, want 4200 now", h.after(), told)
	}
	ledger.set(4201, nil) // which changes nothing for this cluster
	if minutes(10); h.after() != 4200 || !told.Equal(at()) {
		t.Errorf("then the agent is at number %d, told at %s, want 4200 now", h.after(), told)
	}
}
