package reconciler

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pushbudget"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// A round that fails after the inputs were verified leaves what was read before
// in force, with its own commit: the next round reads again, and does not take
// the old tree for that of the new commit.
func TestRound_ReadsAgainAfterAReadThatFailed(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	s.rest()
	before := s.r.View()
	accepted := s.remote.Head("main")
	s.push(map[string]string{
		"fleet.yaml":               "apiVersion: fleetbroker.io/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n  writeBack: {inputs: main, branch: elsewhere, author: {name: fleetbroker, email: broker@example.org}}\n",
		"intents/vision/more.yaml": intentOf("more", "1"),
	})
	for i := range 3 {
		s.at = s.at.Add(time.Minute)
		s.r.Reread()
		out, err := s.r.Round(context.Background())
		if err == nil || !strings.Contains(err.Error(), "elsewhere") || len(out.Committed) > 0 {
			t.Errorf("round %d after the change: %v, committed %v", i+1, err, out.Committed)
		}
		if v := s.r.View(); v.Inputs != before.Inputs || s.r.Ready() == nil {
			t.Errorf("round %d: the view stands on inputs %s, ready %v", i+1, v.Inputs.Short(), s.r.Ready())
		}
	}
	if got := s.remote.AllRefs()["refs/fleetbroker/accepted/inputs"]; got != accepted {
		t.Errorf("accepted is %s, want %s, of which all was read", got.Short(), accepted.Short())
	}
}

// copyCache copies a state directory whose cache nobody holds.
func copyCache(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A start on a cache with any damaged byte fails rounds at most, and comes to
// the same ledger.
func TestStart_OnADamagedCacheConverges(t *testing.T) {
	s := newStory(t, "ledger")
	s.push(map[string]string{"intents/vision/train.yaml": intentOf("train", "4")})
	dir := filepath.Join(t.TempDir(), "state")
	startOn(s, dir)
	s.rest()
	if err := s.r.opts.Repo.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.startDamaged(dir, "", nil); n > 0 { // it may write status that the first life held back
		t.Fatalf("%d rounds on an undamaged cache failed", n)
	}
	head := s.remote.Head("ledger")
	found, err := filepath.Glob(filepath.Join(dir, "cache-*", "objects", "pack", "*.pack"))
	if err != nil || len(found) == 0 {
		t.Fatalf("packs %v, %v", found, err)
	}
	failed := 0
	for _, file := range found {
		pack, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := 12; at < len(pack); at += max(1, len(pack)/100) {
			damaged := slices.Clone(pack)
			damaged[at] ^= 0xff
			failed += s.startDamaged(dir, file, damaged)
			if got := s.remote.Head("ledger"); got != head {
				log, err := s.remote.Log("ledger")
				t.Fatalf("%s, byte %d damaged: the ledger moved to %s: %q, %v", file, at, got.Short(), log[0].Message, err)
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was noticed: the test shows nothing")
	}
}

// startDamaged starts on a copy of a state directory in which a file holds
// something else (with no file: on the copy as it is), and returns how many rounds failed before one did not.
func (s *story) startDamaged(dir, file string, content []byte) (failed int) {
	s.t.Helper()
	state := copyCache(s.t, dir)
	name := strings.Replace(file, dir, state, 1)
	if file != "" {
		if err := errors.Join(os.Chmod(name, 0o600), os.WriteFile(name, content, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	}
	defer func(at time.Time) { s.at = at }(s.at) // else the slice's time to be granted ends
	startOn(s, state)
	for {
		s.at = s.at.Add(time.Minute)
		s.r.Reread()
		_, err := s.r.Round(context.Background())
		if err == nil {
			break
		}
		if failed++; failed == 5 {
			s.t.Fatalf("%s: after %d rounds still: %v", name, failed, err)
		}
	}
	s.rest()
	if err := s.r.opts.Repo.Close(); err != nil {
		s.t.Fatal(err)
	}
	return failed
}

// startOn starts a daemon on a state directory. It delivers nothing: the clusters
// of other tests would observe by what they read of the damaged cache.
func startOn(s *story, dir string) {
	s.t.Helper()
	now := func() time.Time { return s.at }
	repo, err := gitrepo.Open(context.Background(), s.remote, gitrepo.Options{
		Dir: dir, Inputs: "main", Ledger: s.ledger, Now: now, Rand: func() float64 { return 0.5 },
		Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.r = New(Options{Repo: repo, Ledger: s.ledger, Market: market.New(market.Options{Now: now}), Now: now})
}

// Whatever wakes the loop, the pause after a failed round is kept.
func TestRun_KeepsTheBackoffWhateverWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "ledger")
		s.r.opts.Now = time.Now
		var asked atomic.Int32
		s.remote.Fault = func(memremote.Op) (bool, error) { asked.Add(1); return false, errors.New("503") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					s.r.Reread()
				}
			}
		}()
		if err := s.r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// 0, 0.25, 0.75, 1.75, 3.75, 7.75, 15.75 and 31.75 s.
		if n := asked.Load(); n != 8 {
			t.Errorf("the remote was asked %d times in a minute of failures, want 8", n)
		}
	})
}

// A round that hangs in the remote makes the daemon not ready before it ends.
func TestReady_SaysThatTheRemoteDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, "ledger")
		s.r.opts.Now = time.Now
		s.rest()
		release := make(chan struct{})
		s.remote.Fault = func(memremote.Op) (bool, error) { <-release; return false, nil }
		s.r.Reread()
		done := make(chan error)
		go func() {
			_, err := s.r.Round(context.Background())
			done <- err
		}()
		<-time.After(29 * time.Second)
		synctest.Wait()
		if err := s.r.Ready(); err != nil {
			t.Errorf("after 29 s: %v", err)
		}
		<-time.After(5 * time.Second)
		if err := s.r.Ready(); err == nil || err.Error() != "the remote has not answered for 34s: fetch the fleet repo" {
			t.Errorf("after 34 s: %v", err)
		}
		s.remote.Fault = nil
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := s.r.Ready(); err != nil {
			t.Errorf("answered: %v", err)
		}
		<-time.After(3 * time.Minute)
		if err := s.r.Ready(); err == nil || !strings.HasPrefix(err.Error(), "no round for 3m") {
			t.Errorf("no round since: %v", err)
		}
	})
}

// A forge that asks to be left alone is asked no more until then, and is not silent: this
// replica would give its Lease up, and the next one would ask the forge at once.
func TestRemoteOut_NotWhileTheForgeLimitsReads(t *testing.T) {
	s := newStory(t, "ledger")
	s.pushes = pushbudget.New(pushbudget.Options{Now: func() time.Time { return s.at }})
	s.start()
	s.rest()
	began, asked, limited := s.at, 0, true
	s.remote.Fault = func(memremote.Op) (bool, error) {
		asked++
		if limited {
			s.pushes.Answered(&http.Response{
				StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}, Body: http.NoBody,
				Request: &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/fleet.git/git-upload-pack"}},
			})
		}
		return false, errors.New("no answer that helps")
	}
	for s.at.Sub(began) < 10*time.Minute {
		s.r.Reread()
		if _, err := s.r.Round(t.Context()); err == nil {
			t.Fatal("a round without the remote")
		}
		if out := s.r.RemoteOut(); out != 0 {
			t.Fatalf("after %s the remote counts as away for %s", s.at.Sub(began), out)
		}
		s.at = s.at.Add(10 * time.Second)
	}
	if asked != 1 {
		t.Errorf("the forge was asked %d times within the 10 min, want once", asked)
	}
	limited = false
	for range 5 {
		s.r.Reread()
		if _, err := s.r.Round(t.Context()); err == nil {
			t.Fatal("a round without the remote")
		}
		s.at = s.at.Add(10 * time.Second)
	}
	if out := s.r.RemoteOut(); out != 50*time.Second || asked != 6 {
		t.Errorf("without a limit it counts as away for %s, asked %d times; want 50s, 6", out, asked)
	}
}
