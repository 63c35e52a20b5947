package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// randomText is text that does not pack well.
func randomText(n int) string {
	source := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(source.IntN(26))
	}
	return string(b)
}

// staller serves a real git server's answers; those that match are sent up to
// half of their body, and then as pace says.
type staller struct {
	match atomic.Value // string in the URL, "" none
	drip  atomic.Bool  // a byte now and then instead of none
}

func serveStalling(t *testing.T, root string) (*httptest.Server, *staller) {
	t.Helper()
	backend, s := serveGit(t, root), &staller{}
	s.match.Store("")
	gone, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		match := s.match.Load().(string)
		if match == "" || !strings.Contains(r.URL.String(), match) {
			backend.Config.Handler.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		backend.Config.Handler.ServeHTTP(whole, r)
		for name, values := range whole.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(whole.Code)
		body := whole.Body.Bytes()
		half := len(body) / 2
		_, _ = w.Write(body[:half])
		_ = http.NewResponseController(w).Flush()
		for _, b := range body[half:] {
			var next <-chan time.Time
			if s.drip.Load() {
				next = time.After(20 * time.Millisecond)
			}
			select {
			case <-next:
				_, _ = w.Write([]byte{b})
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			case <-gone.Done():
				return
			}
		}
	}))
	t.Cleanup(func() { stop(); srv.Close() })
	return srv, s
}

// isStalled fails unless an operation ended soon, because of the remote.
func isStalled(t *testing.T, what string, began time.Time, err error, want string) {
	t.Helper()
	var stalled *gitrepo.StalledError
	if !errors.As(err, &stalled) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
	if took := time.Since(began); took > 2*time.Minute { // else for an hour, or for good
		t.Errorf("%s: it took %s", what, took)
	}
}

// A server that stalls in the middle of an answer is left soon: of refs, of a
// fetch and of a push, which is then settled by the refs.
func TestHTTPServerThatStallsInABody(t *testing.T) {
	dir := bare(t)
	srv, s := serveStalling(t, filepath.Dir(dir))
	bound := gitrepo.Auth{Idle: 2 * time.Second, Slow: time.Hour}
	r := open(t, dial(t, srv.URL+"/fleet.git", bound), options())
	h := fetch(t, r)
	for what, match := range map[string]string{"refs": "info/refs", "a fetch": "git-upload-pack"} {
		gitPut(t, dir, "main", "intents/vision/b.yaml", "# "+what+"\n"+strings.Repeat("x: y\n", 1000))
		s.match.Store(match)
		began := time.Now()
		_, err := r.Fetch(t.Context())
		isStalled(t, what, began, err, "no byte for 2s")
		s.match.Store("")
		h = fetch(t, r)
	}
	s.match.Store("fleet.git/git-receive-pack")
	began := time.Now()
	res, err := r.Commit(t.Context(), request(h, contract("vision", "a", "1")))
	if took := time.Since(began); took > 2*time.Minute { // else for an hour, or for good
		t.Errorf("a push: it took %s", took)
	}
	if err != nil || git(t, dir, "rev-parse", "ledger") != res.Head().String() {
		t.Errorf("a push whose answer stalled, and that took effect: %v", err)
	}
	s.match.Store("")
	commit(t, r, request(fetch(t, r), contract("vision", "b", "1")))
}

// A byte now and then is no progress, and an operation has an end.
func TestHTTPServerThatDrips(t *testing.T) {
	dir := bare(t)
	srv, s := serveStalling(t, filepath.Dir(dir))
	s.drip.Store(true)
	for want, bound := range map[string]gitrepo.Auth{
		"less than 65536":  {Idle: 10 * time.Second, Slow: time.Second},
		"no end after 1s":  {Idle: 10 * time.Second, Slow: 20 * time.Second, Limit: time.Second},
		"no end after 2.1": {Idle: 10 * time.Second, Slow: 20 * time.Second, Limit: time.Second, CloneLimit: 2100 * time.Millisecond},
	} {
		remote := dial(t, srv.URL+"/fleet.git", bound)
		began := time.Now()
		var err error
		if bound.CloneLimit > 0 {
			s.match.Store("fleet.git/git-upload-pack")
			_, err = open(t, remote, options()).Fetch(t.Context())
		} else {
			s.match.Store("info/refs")
			_, err = remote.Refs(t.Context())
		}
		isStalled(t, want, began, err, want)
	}
}

// A server that talks without end is left before its words fill the memory: in
// refs, in an error, in its acknowledgements, in its report of a push.
func TestHTTPServerThatTalksWithoutEnd(t *testing.T) {
	dir := bare(t)
	backend := serveGit(t, filepath.Dir(dir))
	line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	some := strings.Repeat("1", 40)
	var where, begin, more string
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.String(), where) {
			backend.Config.Handler.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, err := io.WriteString(w, begin)
		for chunk := strings.Repeat(more, 64<<10/len(more)); err == nil; {
			_, err = io.WriteString(w, chunk)
		}
	}))
	t.Cleanup(srv.Close)
	advertised := line("# service=git-upload-pack\n") + "0000" + line(some+" refs/heads/main\x00agent=x\n")
	for _, c := range []struct {
		what, where, begin, more string
		status                   int
	}{
		{"refs", "info/refs", advertised, line(some + " refs/heads/b\n"), 200},
		{"shallow commits", "info/refs", advertised, line("shallow " + some + "\n"), 200},
		{"an error", "info/refs", "", "no ", 500},
		{"a login page", "info/refs", "", "<p>", 401},
		{"acknowledgements", "fleet.git/git-upload-pack", "", line("ACK " + some + "\n"), 200},
		{"a refusal of a fetch", "fleet.git/git-upload-pack", "", "no ", 403},
		{"a report of a push", "fleet.git/git-receive-pack", "", line("\x02" + strings.Repeat("no ", 100)), 200},
	} {
		t.Run(c.what, func(t *testing.T) {
			where, begin, more, status = c.where, c.begin, c.more, c.status
			remote := dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Words: 256 << 10})
			began := time.Now()
			var err error
			switch c.where {
			case "info/refs":
				_, err = remote.Refs(t.Context())
			case "fleet.git/git-upload-pack":
				_, err = open(t, remote, options()).Fetch(t.Context())
			default:
				pack, perr := gitobj.Set{}.Pack()
				if perr != nil {
					t.Fatal(perr)
				}
				at, _ := tree.ParseHash(git(t, dir, "rev-parse", "main"))
				err = remote.Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/x", New: at}}, pack)
			}
			isStalled(t, c.what, began, err, "more refs or words than are taken")
		})
	}
}

// Work on what was read is no delay of the remote.
func TestSlowDiskIsNoStall(t *testing.T) {
	dir := bare(t)
	gitPut(t, dir, "main", "intents/vision/b.yaml", strings.Repeat("x: y\n", 100))
	srv := serveGit(t, filepath.Dir(dir))
	remote := dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Idle: 200 * time.Millisecond, Slow: 300 * time.Millisecond})
	everything := func(refs map[string]tree.Hash) (want, have []tree.Hash) {
		return []tree.Hash{refs["refs/heads/main"]}, nil
	}
	err := remote.Fetch(t.Context(), everything, func(pack io.Reader) error {
		if _, err := io.Copy(io.Discard, io.LimitReader(pack, 20)); err != nil {
			return err
		}
		<-time.After(time.Second)
		_, err := io.Copy(io.Discard, pack)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What an http server says of the time is passed on.
func TestHTTPServerTellsTheTime(t *testing.T) {
	dir := bare(t)
	srv := serveGit(t, filepath.Dir(dir))
	var mu sync.Mutex
	var heard []time.Time
	remote := dial(t, srv.URL+"/fleet.git", gitrepo.Auth{Date: func(server, asked, answered time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if answered.Before(asked) {
			t.Errorf("asked at %s, answered at %s", asked, answered)
		}
		heard = append(heard, server)
	}})
	if _, err := remote.Refs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 1 || time.Since(heard[0]).Abs() > 10*time.Second {
		t.Errorf("heard %v", heard)
	}
}

// relay passes connections on to a server until it is stopped.
func relay(t *testing.T, to string) (addr string, stall *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stall = new(atomic.Int64) // bytes of answers that are passed on; 0: all
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			wg.Go(func() { _, _ = io.Copy(s, c); _ = s.Close() })
			wg.Go(func() {
				if n := stall.Load(); n > 0 {
					_, _ = io.CopyN(c, s, n)
					_, _ = io.Copy(io.Discard, s)
				} else {
					_, _ = io.Copy(c, s)
				}
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return l.Addr().String(), stall
}

// Over ssh too, wherever it stalls: in the handshake, in the refs, in the pack.
func TestSSHServerThatStalls(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	file, pub := sshKey(t, "ed25519", "")
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pub))
	if err != nil {
		t.Fatal(err)
	}
	srv := serveSSH(t, key)
	dir := bare(t)
	gitPut(t, dir, "main", "intents/vision/b.yaml", randomText(200<<10))
	addr, stall := relay(t, srv.addr)
	auth := gitrepo.Auth{SSHKeyFile: file, KnownHostsFile: knownHosts(t, addr, srv.hostKey[ssh.KeyAlgoED25519]), Idle: 500 * time.Millisecond, Slow: time.Hour}
	url := "ssh://git@" + addr + dir
	for _, after := range []int64{10, 1500, 3500, 60 << 10} {
		stall.Store(after)
		r := open(t, dial(t, url, auth), options())
		began := time.Now()
		_, err := r.Fetch(t.Context())
		isStalled(t, "a fetch", began, err, "no byte for 500ms")
		stall.Store(0)
		fetch(t, r)
	}
	pack, err := gitobj.Set{}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	stall.Store(3200)
	began := time.Now()
	perr := dial(t, url, auth).Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/x", New: fetch(t, open(t, dial(t, "file://"+dir, gitrepo.Auth{}), options())).Inputs.Commit.Hash}}, pack)
	if perr != nil {
		isStalled(t, "a push", began, perr, "no byte for 500ms")
	}
}
