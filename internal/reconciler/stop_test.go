package reconciler

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// slowPushes is a remote whose pushes take a while, and end when their context does.
type slowPushes struct {
	*memremote.Remote
	takes time.Duration
	began chan struct{}
}

// Push implements gitrepo.Remote.
func (m *slowPushes) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	m.began <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.takes):
		return m.Remote.Push(ctx, cmds, pack)
	}
}

// A stop waits up to 5 s for the push of the ledger that is under way: the
// client who waits is answered by what became of it. A longer one is given up.
func TestStopWaitsForThePush(t *testing.T) {
	for _, tc := range []struct {
		name        string
		takes, ends time.Duration
		landed      bool
	}{
		{"answered in time", 4 * time.Second, 4 * time.Second, true},
		{"not answered", time.Hour, 5 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newDesk(t)
				slow := &slowPushes{Remote: s.remote, takes: tc.takes, began: make(chan struct{}, 10)}
				s.r.opts.Repo = slowRepo(t, s, slow)
				if _, err := s.r.Round(t.Context()); err != nil {
					t.Fatal(err)
				}
				before := s.remote.Head("ledger")
				answer := make(chan told, 1)
				go func() {
					res, err := s.r.Reserve(context.WithoutCancel(t.Context()), wire.Ask{Cluster: "rome", Key: "k1", Request: wants("4", "16Gi", "2")})
					answer <- told{res, err}
				}()
				synctest.Wait()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.r.Run(ctx) }()
				<-slow.began
				stop()
				since := time.Now()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(since); took != tc.ends {
					t.Errorf("the loop ended after %s, want %s", took, tc.ends)
				}
				got := <-answer
				if moved := s.remote.Head("ledger") != before; moved != tc.landed {
					t.Errorf("the ledger moved: %v, want %v", moved, tc.landed)
				}
				if tc.landed && (got.err != nil || got.reservation.Status.Phase != wire.PhaseReserved) {
					t.Errorf("answered %+v, %v; want the reservation that is on the ledger", got.reservation, got.err)
				}
				var r *wire.Refusal
				if !tc.landed && (!errors.As(got.err, &r) || r.Status != http.StatusServiceUnavailable) {
					t.Errorf("answered %+v, %v; want 503", got.reservation, got.err)
				}
			})
		})
	}
}

// slowRepo opens the story's repository over another remote.
func slowRepo(t *testing.T, s *story, remote gitrepo.Remote) *gitrepo.Repo {
	t.Helper()
	repo, err := gitrepo.Open(t.Context(), remote, gitrepo.Options{
		Inputs: "main", Ledger: "ledger", Now: func() time.Time { return s.at }, Rand: func() float64 { return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}
