package reconciler

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
)

// pacedDesk is a desk whose remote takes so many pushes, none of which is used.
func pacedDesk(t *testing.T, l pushbudget.Limit) *story {
	t.Helper()
	s := newDesk(t)
	s.pushes = pushbudget.New(pushbudget.Options{Default: l, Now: func() time.Time { return s.at }, Sleep: func(_ context.Context, d time.Duration) error {
		s.at = s.at.Add(d)
		return nil
	}})
	s.start()
	s.at = s.at.Add(time.Hour)
	s.round()
	return s
}

// round makes rounds until none is to follow at once.
func (s *story) round() (out Outcome) {
	s.t.Helper()
	for range 10 {
		o, err := s.r.Round(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		out.Committed = append(out.Committed, o.Committed...)
		if out.Due = o.Due; !o.Again {
			return out
		}
	}
	s.t.Fatal("rounds without end")
	return out
}

func answered(answers ...<-chan told) (n int) {
	for _, a := range answers {
		select {
		case <-a:
			n++
		case <-time.After(50 * time.Millisecond):
		}
	}
	return n
}

// limited tells a budget what a forge answers to a push.
func limited(b *pushbudget.Budget, seconds string) {
	b.Answered(&http.Response{
		StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {seconds}}, Body: io.NopCloser(strings.NewReader("")),
		Request: &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/fleet.git/git-receive-pack"}},
	})
}

// Reservations use the burst, one push each; when it is used up, those that come
// meanwhile wait together for the next push, and nobody is answered before it.
func TestReservationsUseTheBurstAndThenWaitTogether(t *testing.T) {
	s := pacedDesk(t, pushbudget.Limit{PerMinute: 6, Burst: 2})
	for _, key := range []string{"a", "b"} {
		a := s.ask(context.Background(), "rome", key, wants("4", "16Gi", "1"))
		if out := s.round(); len(out.Committed) != 1 {
			t.Fatalf("%s: %d commits at once, want 1", key, len(out.Committed))
		}
		if o := <-a; o.err != nil {
			t.Fatal(o.err)
		}
	}
	start := s.at
	c := s.ask(context.Background(), "rome", "c", wants("4", "16Gi", "1"))
	out := s.round()
	if len(out.Committed) != 0 || answered(c) != 0 {
		t.Fatalf("with the burst used up %d commits were made", len(out.Committed))
	}
	if wait := out.Due.Sub(start); wait != 10*time.Second {
		t.Fatalf("the next round is due in %s, want 10s", wait)
	}
	s.at = s.at.Add(4 * time.Second)
	d := s.ask(context.Background(), "rome", "d", wants("4", "16Gi", "1"))
	if out = s.round(); len(out.Committed) != 0 || !out.Due.Equal(start.Add(10*time.Second)) {
		t.Fatalf("another request moved the push to %s with %d commits", out.Due.Sub(start), len(out.Committed))
	}
	s.at = out.Due
	if out = s.round(); len(out.Committed) != 1 {
		t.Fatalf("%d commits when the push was due, want 1 for both", len(out.Committed))
	}
	for name, a := range map[string]<-chan told{"c": c, "d": d} {
		o := <-a
		if o.err != nil || o.reservation.Commit != out.Committed[0].Commit.Hash.String() {
			t.Errorf("%s was answered %+v, %v; want the commit of both", name, o.reservation, o.err)
		}
	}
	if !s.at.Equal(start.Add(10 * time.Second)) {
		t.Errorf("a push waited in the remote until %s", s.at.Sub(start))
	}
}

// Status waits while reservations have used of the burst, and goes along with the next.
func TestStatusLeavesTheBurstAlone(t *testing.T) {
	s := pacedDesk(t, pushbudget.Limit{PerMinute: 6, Burst: 4})
	s.at = s.at.Add(300 * time.Millisecond)
	a := s.ask(context.Background(), "rome", "a", wants("4", "16Gi", "1"))
	s.round()
	if o := <-a; o.err != nil {
		t.Fatal(o.err)
	}
	out := s.round() // peering is seen at once
	if len(out.Committed) != 0 {
		t.Fatalf("status was pushed right after a reservation: %s", out.Committed[0].Commit.Subject())
	}
	// Rounds count whole seconds: one that is due within a second would find nothing due
	// until the next, round after round.
	if wait := out.Due.Sub(s.at); wait != 10*time.Second+700*time.Millisecond {
		t.Errorf("status waits %s, want 10.7s", wait)
	}
	s.at = s.at.Add(time.Second)
	b := s.ask(context.Background(), "rome", "b", wants("4", "16Gi", "1"))
	out = s.round()
	if o := <-b; o.err != nil {
		t.Fatal(o.err)
	}
	if len(out.Committed) != 1 || !strings.Contains(out.Committed[0].Commit.Message, "peering") {
		t.Errorf("the next push does not carry the status: %v", out.Committed)
	}
}

// A client whose wait would be longer than it lasts is told so before it waits; what
// stands on the ledger is told at any time, and nothing is sent to the forge.
func TestForgeThatLimitsIsToldAtOnce(t *testing.T) {
	s := pacedDesk(t, pushbudget.Limit{})
	a := s.reserve("rome", "a", wants("4", "16Gi", "1"))
	if a.err != nil {
		t.Fatal(a.err)
	}
	s.round()
	pushes := 0
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			pushes++
		}
		return true, nil
	}
	limited(s.pushes, "300")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := s.r.Reserve(ctx, wire.Ask{Cluster: "rome", Key: "b", Request: wants("4", "16Gi", "1")})
	if r := (told{err: err}).refusal(t); r.Status != http.StatusServiceUnavailable || r.RetryAfter < 300*time.Second || r.RetryAfter > 310*time.Second {
		t.Errorf("answered %d, again in %s; want 503 and 300s", r.Status, r.RetryAfter)
	}
	if n := s.waiting(); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	retry := s.ask(ctx, "rome", "a", wants("4", "16Gi", "1"))
	s.round()
	if o := <-retry; o.err != nil || o.reservation.ID != a.reservation.ID {
		t.Errorf("a retry was answered %+v, %v", o.reservation, o.err)
	}
	patient := s.ask(context.Background(), "rome", "c", wants("4", "16Gi", "1"))
	if out := s.round(); out.Due.Sub(s.at) > 300*time.Second {
		t.Errorf("the next round is in %s", out.Due.Sub(s.at))
	}
	if pushes != 0 {
		t.Errorf("%d pushes while the forge limits", pushes)
	}
	s.at = s.at.Add(300 * time.Second)
	s.round()
	if o := <-patient; o.err != nil {
		t.Error(o.err)
	}
}

// A limit that is hit by a push ends what waits with the time that the forge named, once
// it is longer than the client's, and is no failed round.
func TestLimitHitByAPush(t *testing.T) {
	s := pacedDesk(t, pushbudget.Limit{})
	s.remote.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			limited(s.pushes, "600")
			return false, &url.Error{Op: "Post", URL: "https://git.example.org", Err: io.EOF}
		}
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a := s.ask(ctx, "rome", "a", wants("4", "16Gi", "1"))
	s.round()
	if r := (<-a).refusal(t); r.Status != http.StatusServiceUnavailable || r.RetryAfter < 590*time.Second {
		t.Errorf("answered %d, again in %s; want 503 and 10 min", r.Status, r.RetryAfter)
	}
	if err := s.r.Ready(); err != nil {
		t.Errorf("the round failed: %v", err)
	}
	if head := s.remote.Head("ledger"); !head.IsZero() {
		t.Errorf("the ledger is at %s", head)
	}
}

// Who begins to decide has no burst, whatever it pushed itself.
func TestTakeoverHasNoBurst(t *testing.T) {
	s := newDesk(t)
	leads := false
	s.leads = func() bool { return leads }
	s.pushes = pushbudget.New(pushbudget.Options{Default: pushbudget.Limit{PerMinute: 6, Burst: 6}, Now: func() time.Time { return s.at }})
	s.start()
	s.round()
	s.at = s.at.Add(time.Hour)
	if at := s.pushes.At(pushbudget.Status); !at.IsZero() {
		t.Fatalf("an hour later status waits until %s", at)
	}
	leads = true
	s.round()
	if got := s.pushes.At(pushbudget.Status).Sub(s.at); got != 50*time.Second {
		t.Errorf("after a takeover status waits %s, want 50s", got)
	}
	if !s.pushes.At(pushbudget.Urgent).IsZero() {
		t.Error("after a takeover there is not even one push")
	}
}

// fleet.yaml says how many, and a restart counts what the ledger has of the last minute.
func TestBudgetFollowsFleetAndLedger(t *testing.T) {
	s := newDesk(t)
	s.push(map[string]string{"fleet.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
		"  writeBack: {inputs: main, branch: ledger, pushes: {perMinute: 4, burst: 2}, author: {name: fleetbroker, email: broker@example.org}}\n"})
	s.rest()
	if a := s.reserve("rome", "a", wants("4", "16Gi", "1")); a.err != nil {
		t.Fatal(a.err)
	}
	s.pushes = pushbudget.New(pushbudget.Options{Now: func() time.Time { return s.at }})
	s.start()
	s.round()
	f := s.pushes.Figures()
	if (f.Limit != pushbudget.Limit{PerMinute: 4, Burst: 2}) || f.Used < 1 {
		t.Errorf("after a restart the limit is %+v, and %d pushes of the last minute are known", f.Limit, f.Used)
	}
	if s.pushes.At(pushbudget.Urgent).IsZero() {
		t.Error("after a restart right after a push, another may go at once")
	}
}

// Drained capacity is given back with what others left of the burst.
func TestReleaseOfDrainedUsesTheBurst(t *testing.T) {
	s := pacedDesk(t, pushbudget.Limit{PerMinute: 1, Burst: 8})
	a := s.ask(context.Background(), "rome", "a", wants("4", "16Gi", "1"))
	s.round()
	id := (<-a).reservation.ID
	done := make(chan error, 1)
	go func() { done <- s.r.Release(context.Background(), "rome", id) }()
	s.until(nil, func() bool { return s.waiting() > 0 })
	start := s.at
	for range 20 {
		s.round()
		if held := s.r.View().Contracts.Providers(); len(held) == 0 {
			break
		}
		s.at = s.at.Add(5 * time.Second)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := s.at.Sub(start); took > 45*time.Second || len(s.r.View().Contracts.Providers()) != 0 {
		t.Errorf("the capacity is still held after %s, at one push a minute with most of the burst left", took)
	}
}

// Nothing is held back, and nothing asked, where there is no limit.
func TestNoLimitNoWait(t *testing.T) {
	for name, budget := range map[string]*pushbudget.Budget{"no budget": nil, "no limit": pushbudget.New(pushbudget.Options{})} {
		s := newDesk(t)
		s.pushes = budget
		s.start()
		s.round()
		start, before := s.at, s.remote.Head("ledger")
		for _, key := range []string{"a", "b", "c", "d"} {
			a := s.ask(context.Background(), "rome", key, wants("4", "16Gi", "1"))
			s.round()
			if o := <-a; o.err != nil {
				t.Fatal(o.err)
			}
		}
		if !s.at.Equal(start) || s.remote.Head("ledger") == before {
			t.Errorf("%s: four reservations took %s", name, s.at.Sub(start))
		}
	}
}
