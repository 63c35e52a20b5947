package reconciler

import (
	"context"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// asks counts the questions to the remote that rounds make from now on.
func (s *story) asks() (count func() int) {
	n := 0
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind != memremote.Push {
			n++
		}
		return false, nil
	}
	return func() int { return n }
}

// A webhook that comes while clients wait, as one does after each of our own
// pushes, costs no question to the remote, for a second at most, and is heeded
// once nobody waits.
func TestWebhooksWhileClientsWait(t *testing.T) {
	s := newDesk(t)
	ctx := context.Background()
	asked := s.asks()
	serve := func(key string) {
		t.Helper()
		waits := s.ask(ctx, "rome", key, wants("1", "1Gi", "1"))
		s.r.Reread()
		if _, err := s.r.Round(ctx); err != nil {
			t.Fatal(err)
		}
		if o := <-waits; o.err != nil {
			t.Fatal(o.err)
		}
	}
	s.at = s.r.asked
	serve("k1")
	serve("k2")
	if n := asked(); n != 0 {
		t.Errorf("two commits for clients, and the remote was asked %d times", n)
	}
	s.at = s.at.Add(time.Second)
	serve("k3")
	if n := asked(); n != 1 {
		t.Errorf("a second later the remote has been asked %d times", n)
	}
	serve("k4")
	out, err := s.r.Round(ctx)
	if n := asked(); err != nil || n != 2 {
		t.Errorf("when nobody waits any more the remote has been asked %d times (%+v, %v)", n, out, err)
	}
	if out, err = s.r.Round(ctx); err != nil || out.Again || asked() != 2 {
		t.Errorf("the webhook is heeded twice: %+v, %v", out, err)
	}
}

// Where others write the ledger too, each webhook counts: it saves a push that
// would be refused.
func TestWebhooksAmongWriters(t *testing.T) {
	s := newDesk(t)
	ctx := context.Background()
	s.at = s.r.asked
	asked := s.asks()
	waits := s.ask(ctx, "rome", "k1", wants("1", "1Gi", "1"))
	s.push(map[string]string{"README.md": "news\n"})
	s.r.contended = true
	s.r.Reread()
	if _, err := s.r.Round(ctx); err != nil || asked() != 1 {
		t.Errorf("asked %d times, %v", asked(), err)
	}
	<-waits
	if s.r.contended {
		t.Error("a commit without a conflict leaves the writers contending")
	}
}
