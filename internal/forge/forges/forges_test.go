package forges

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/forge"
	"github.com/fleetbroker/fleetbroker/internal/forge/forgetest"
	"github.com/fleetbroker/fleetbroker/test/bounded"
)

// fakes are the forges that cannot be run here; Gitea is run in test/e2e/forge.
var fakes = map[forge.Kind]func(*testing.T) *forgetest.Fake{forge.GitHub: forgetest.GitHub, forge.GitLab: forgetest.GitLab}

// each opens every faked forge in turn. Its clock stands still but for what is
// slept.
func each(t *testing.T, run func(t *testing.T, f forge.Forge, fake *forgetest.Fake, slept func() time.Duration)) {
	for kind, start := range fakes {
		t.Run(string(kind), func(t *testing.T) {
			fake := start(t)
			now, slept := time.Unix(1_800_000_000, 0), time.Duration(0)
			f := open(t, kind, fake, func(l *forge.Limits) {
				l.Now = func() time.Time { return now }
				l.Sleep = func(ctx context.Context, d time.Duration) error { now, slept = now.Add(d), slept+d; return ctx.Err() }
			})
			run(t, f, fake, func() time.Duration { return slept })
		})
	}
}

// open is a client of a faked forge.
func open(t *testing.T, kind forge.Kind, fake *forgetest.Fake, limits ...func(*forge.Limits)) forge.Forge {
	t.Helper()
	c := forge.Config{Kind: kind, URL: fake.URL, Repo: "acme/fleet", TokenFile: filepath.Join(t.TempDir(), "token")}
	for _, set := range limits {
		set(&c.Limits)
	}
	if err := os.WriteFile(c.TokenFile, []byte(forgetest.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(c, "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestConform(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		heads := 0
		push := func(branch string) string {
			heads++
			head := strings.Repeat(string(rune('a'+heads)), 40)
			open, err := f.Open(t.Context(), "main")
			if err != nil {
				t.Fatal(err)
			}
			for _, pr := range open {
				if pr.HeadBranch == branch {
					fake.Change(pr.Number, func(p *forgetest.Pull) { p.Head = head })
				}
			}
			return head
		}
		branches := []string{"one", "two", "three", "four", "five"}
		for _, b := range branches { // a fake has no git that would know their heads
			fake.Add(forgetest.Pull{Title: "Add " + b, Branch: b, Base: "main", Author: forgetest.Me, Head: strings.Repeat("0", 40)})
		}
		forgetest.Conform(t, f, forgetest.Repo{
			Base: "main", Branches: branches, Path: "intents/vision/a.yaml", Push: push,
			Say: func(n int64, body string) { fake.Say(n, "mallory", body) },
			Comments: func(n int64) []string {
				var out []string
				for _, c := range fake.Comments(n, false) {
					out = append(out, c.Body)
				}
				return out
			},
		})
		lines := fake.Comments(1, true)
		if len(lines) != 1 || !strings.HasSuffix(lines[0].Body, "d") {
			t.Errorf("comments on lines at the end: %+v, want one", lines)
		}
	})
}

func TestReviewsAreTheNewestWord(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h", Approvers: []string{"zoe", "ada"}})
		got, err := f.Reviews(t.Context(), n)
		if err != nil || len(got) != 2 || got[0].Author != "ada" || got[0].Verdict != forge.Approved || got[1].Author != "zoe" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestMergeThatIsNotReady(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h", NotReady: true})
		err := f.Merge(t.Context(), n, forge.Merge{Head: "h"})
		var refused *forge.Refused
		if !errors.Is(err, forge.ErrNotReady) || !errors.As(err, &refused) || refused.Remedy == "" || !strings.ContainsAny(refused.Words, "RP") {
			t.Errorf("got %v, want ErrNotReady with the forge's words and a remedy", err)
		}
	})
}

func TestForksAreTold(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h", Fork: true})
		if pr, err := f.Get(t.Context(), n); err != nil || !pr.Fork {
			t.Errorf("got %+v, %v", pr, err)
		}
	})
}

func TestShortLimitsAreWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, slept func() time.Duration) {
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h"})
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			fake2 := slept() == 0
			if fake2 {
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return fake2
		})
		if _, err := f.Get(t.Context(), n); err != nil || slept() != 3*time.Second {
			t.Errorf("%v after %v, want an answer after 3 s", err, slept())
		}
	})
}

// TestLimitsWithoutEndAreAskedAgain: one answer of a broken proxy, or a clock that
// was wrong for a while, ends nothing for good.
func TestLimitsWithoutEndAreAskedAgain(t *testing.T) {
	for _, after := range []string{"2147483647", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, slept func() time.Duration) {
			n := fake.Add(forgetest.Pull{Base: "main", Head: "h"})
			broken := true
			fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
				if broken {
					w.Header().Set("Retry-After", after)
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return broken
			})
			_, err := f.Get(t.Context(), n)
			var limited *forge.Limited
			if !errors.As(err, &limited) || limited.Until.After(time.Unix(1_800_000_000, 0).Add(time.Hour)) {
				t.Fatalf("Retry-After: %s: got %v after %v, want *Limited of at most an hour", after, err, slept())
			}
			broken = false
		})
	}
	t.Run("clock set back", func(t *testing.T) {
		fake, now := forgetest.GitHub(t), time.Unix(1_800_000_000, 0).Add(365*24*time.Hour)
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h"})
		f := open(t, forge.GitHub, fake, func(l *forge.Limits) { l.Now = func() time.Time { return now } })
		broken := true
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			if broken {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			return broken
		})
		var limited *forge.Limited
		if _, err := f.Get(t.Context(), n); !errors.As(err, &limited) {
			t.Fatal(err)
		}
		broken, now = false, now.Add(-365*24*time.Hour)
		_, _ = f.Get(t.Context(), n) // sees that the clock was set back
		now = now.Add(2 * time.Hour)
		if _, err := f.Get(t.Context(), n); err != nil {
			t.Errorf("two hours after the clock was set back: %v", err)
		}
	})
}

func TestLongLimitsAreTold(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, slept func() time.Duration) {
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", "1800000600")
			w.WriteHeader(http.StatusForbidden)
			return true
		})
		for range 3 {
			_, err := f.Open(t.Context(), "main")
			var limited *forge.Limited
			if !errors.As(err, &limited) || limited.Until.Unix() != 1_800_000_600 || slept() != 0 {
				t.Fatalf("got %v after %v, want *Limited at once", err, slept())
			}
		}
		if n := fake.Requests(); n != 1 {
			t.Errorf("%d requests were sent, want 1: while the limit lasts the forge is left alone", n)
		}
	})
}

func TestOutagesAreAskedAgainAndThenTold(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, slept func() time.Duration) {
		n := fake.Add(forgetest.Pull{Base: "main", Head: "h"})
		left := 2
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			left--
			if left < 0 {
				return false
			}
			w.WriteHeader(http.StatusBadGateway)
			return true
		})
		if _, err := f.Get(t.Context(), n); err != nil || slept() != 1500*time.Millisecond {
			t.Errorf("%v after %v, want the third answer", err, slept())
		}
		left = 100
		if _, err := f.Get(t.Context(), n); !errors.Is(err, forge.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		before := fake.Requests()
		if err := f.SetStatus(t.Context(), "h", forge.Status{Context: "c", State: forge.Success}); !errors.Is(err, forge.ErrUnavailable) || fake.Requests() != before+1 {
			t.Errorf("a status sent %d times: %v; what may have been done is not sent again", fake.Requests()-before, err)
		}
		fake.Close()
		if _, err := f.Get(t.Context(), n); !errors.Is(err, forge.ErrUnavailable) {
			t.Errorf("of a server that is gone: %v", err)
		}
	})
}

func TestTheTokenStaysWithTheForge(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		got := make(chan http.Header, 10)
		thief := forgetest.Recorder(t, got)
		fake.Fault(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, thief+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		})
		_, err := f.Get(t.Context(), 1)
		if err == nil || strings.Contains(err.Error(), forgetest.Token) {
			t.Errorf("got %v, want an error without the token", err)
		}
		if len(got) > 0 {
			t.Errorf("another host was asked, with %v", <-got)
		}
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusUnauthorized); return true })
		if _, err = f.Get(t.Context(), 1); err == nil || strings.Contains(err.Error(), forgetest.Token) || !strings.Contains(err.Error(), "renew the token") {
			t.Errorf("got %v, want a remedy and no token", err)
		}
	})
}

func TestAnswersAreBounded(t *testing.T) {
	each(t, func(t *testing.T, f forge.Forge, fake *forgetest.Fake, _ func() time.Duration) {
		fake.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
			block := []byte(strings.Repeat("x", 1<<20))
			_, _ = w.Write([]byte(`{"title":"`))
			for range 40 {
				if _, err := w.Write(block); err != nil {
					return true
				}
			}
			return true
		})
		if _, err := f.Get(t.Context(), 1); !errors.Is(err, forge.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable for 40 MiB", err)
		}
	})
}

func TestKindOfRemote(t *testing.T) {
	for remote, want := range map[string]forge.Kind{
		"https://github.com/acme/fleet.git":             forge.GitHub,
		"https://GitHub.com:443/acme/fleet":             forge.GitHub,
		"git@github.com:acme/fleet.git":                 forge.GitHub,
		"ssh://git@ssh.github.com:443/acme/fleet.git":   forge.GitHub,
		"https://gitlab.com/acme/fleet.git":             forge.GitLab,
		"https://github.com.example.org/acme/fleet.git": "",
		"https://git.example.org/github.com/fleet.git":  "",
		"/srv/github.com/fleet.git":                     "",
		"file:///srv/fleet.git":                         "",
	} {
		if got := forge.KindOf(remote); got != want {
			t.Errorf("%s is of kind %q, want %q", remote, got, want)
		}
	}
}

func TestConfigIsCompletedFromTheRemote(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind        forge.Kind
		remote      string
		url, repo   string
		wantTrouble string
	}{
		{forge.GitHub, "https://github.com/acme/fleet.git", "https://api.github.com/", "acme/fleet", ""},
		{forge.GitHub, "git@github.com:acme/fleet.git", "https://api.github.com/", "acme/fleet", ""},
		{forge.GitHub, "https://ghe.example.org/acme/fleet", "https://ghe.example.org/api/v3/", "acme/fleet", ""},
		{forge.GitLab, "https://gitlab.example.org:8443/acme/infra/fleet.git", "https://gitlab.example.org:8443", "acme/infra/fleet", ""},
		{forge.Gitea, "ssh://git@git.example.org:2222/acme/fleet.git", "https://git.example.org", "acme/fleet", ""},
		{forge.Gitea, "http://127.0.0.1:3000/acme/fleet.git", "http://127.0.0.1:3000", "acme/fleet", ""},
		{forge.Gitea, "https://broker:hunter2@git.example.org/fleet.git", "", "", "owner/name"},
		{forge.Gitea, "/srv/git/fleet.git", "", "", "cannot determine the repository's name"},
		{"sourcehut", "https://git.example.org/acme/fleet", "", "", "want github, gitlab or gitea"},
	} {
		got, err := forge.Config{Kind: c.kind, TokenFile: token}.Complete(c.remote)
		switch {
		case c.wantTrouble != "":
			if err == nil || !strings.Contains(err.Error(), c.wantTrouble) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v, want %q", c.remote, err, c.wantTrouble)
			}
		case err != nil || got.URL != c.url || got.Repo != c.repo:
			t.Errorf("%s: got %s %s, %v", c.remote, got.URL, got.Repo, err)
		}
	}
}

// A forge that stalls in the middle of an answer is left when the request's time
// is over, and counts as one that cannot be reached: the next request is served.
func TestStallInTheMiddleOfAnAnswer(t *testing.T) {
	for kind, start := range fakes {
		t.Run(string(kind), func(t *testing.T) {
			fake := start(t)
			f := open(t, kind, fake, func(l *forge.Limits) { l.Timeout, l.Backoff = 300*time.Millisecond, time.Millisecond })
			fake.Add(forgetest.Pull{Title: "One", Branch: "one", Base: "main", Head: strings.Repeat("1", 40)})
			fake.Fault(func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`[{"number": 1, "iid": 1, "title": "On`))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return true
			})
			watch := bounded.StartStopwatch()
			list, err := f.Open(t.Context(), "main")
			if !errors.Is(err, forge.ErrUnavailable) || len(list) > 0 {
				t.Errorf("got %v, %v; want ErrUnavailable", list, err)
			}
			if err := watch.Late(10*time.Second, time.Minute); err != nil {
				t.Error(err)
			}
			fake.Fault(nil)
			if list, err := f.Open(t.Context(), "main"); err != nil || len(list) != 1 {
				t.Errorf("after the stall: %v, %v", list, err)
			}
		})
	}
}
