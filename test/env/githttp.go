package env

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// GitServer serves the bare repositories of a directory with git's own
// http-backend, on the loopback interface, and can be made to fail.
type GitServer struct {
	// Dir holds the repositories.
	Dir string

	backend string
	port    *port
	faults  faultSwitch

	mu             sync.Mutex
	server         *http.Server
	served         chan struct{} // closed when server's Serve has returned
	user, password string
	onPush         []func(Push)
	stats          GitStats
	notices        sync.WaitGroup
}

// GitStats counts what a GitServer was asked since it was started.
type GitStats struct {
	// Requests counts all http requests, Fetches those that sent a pack to
	// the client, Pushes those that sent one to the server.
	Requests, Fetches, Pushes int
}

// Push is a push that git http-backend has processed. Whether each ref moved
// is not known: a hook may have refused it.
type Push struct {
	Repo    string // as given to Init
	Updates []RefUpdate
}

// RefUpdate is one ref's old and new hash, in hexadecimal; all zeros is absent.
type RefUpdate struct{ Ref, Old, New string }

// StartGitHTTP serves the repositories in dir, which is made if it is absent.
func StartGitHTTP(ctx context.Context, dir string) (*GitServer, error) {
	path, err := Git(ctx, "", "--exec-path")
	if err != nil {
		return nil, fmt.Errorf("start a git http server: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("start a git http server: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start a git http server: %w", err)
	}
	reserved, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("start a git http server: %w", err)
	}
	s := &GitServer{Dir: dir, backend: filepath.Join(path, "git-http-backend"), port: reserved}
	if err := s.Up(); err != nil {
		reserved.release()
		return nil, err
	}
	return s, nil
}

// Init makes an empty bare repository on the server.
func (s *GitServer) Init(ctx context.Context, repo string) error {
	return InitBare(ctx, s.RepoDir(repo))
}

// RepoDir is where a repository is on disk, for hooks and for looking at the
// truth behind the server's back.
func (s *GitServer) RepoDir(repo string) string { return filepath.Join(s.Dir, repo) }

// URL is a repository's address, with the credentials if any are asked for.
func (s *GitServer) URL(repo string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := url.URL{Scheme: "http", Host: s.port.address(), Path: "/" + repo}
	if s.user != "" {
		u.User = url.UserPassword(s.user, s.password)
	}
	return u.String()
}

// BareURL is a repository's address without credentials.
func (s *GitServer) BareURL(repo string) string { return "http://" + s.port.address() + "/" + repo }

// RequireAuth makes the server ask for basic authentication from now on; an
// empty user turns that off.
func (s *GitServer) RequireAuth(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Stats returns the counts so far.
func (s *GitServer) Stats() GitStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// OnPush has f called after every push that git has processed, in a goroutine
// of its own, as a forge sends webhooks. See NotifyPushes.
func (s *GitServer) OnPush(f func(Push)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPush = append(s.onPush, f)
}

// Up starts to listen, again after Down, at the same address.
func (s *GitServer) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return nil
	}
	listener, err := s.port.listen()
	if err != nil {
		return fmt.Errorf("start a git http server: %w", err)
	}
	server, served := &http.Server{Handler: s}, make(chan struct{})
	s.server, s.served = server, served
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Down, whatever it says
	}()
	return nil
}

// Down closes the listener and every connection: a server that is gone.
// Requests under way may or may not have been persisted.
func (s *GitServer) Down() error {
	s.mu.Lock()
	server, served := s.server, s.served
	s.server = nil
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	<-served
	return err
}

// Stop is Down for good. It waits for the functions of OnPush to return.
func (s *GitServer) Stop() error {
	s.faults.set(FaultNone) // lets held requests go
	err := s.Down()
	s.notices.Wait()
	s.port.release()
	return err
}

// ServeHTTP answers a git client's request, or fails as it was told to.
func (s *GitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	push := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
	fetch := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-upload-pack")
	if !s.admit(w, r, push, fetch) {
		return
	}
	// CGI knows no chunked bodies, which git uses for any larger pack.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the request was cut off", http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil

	fault := s.faults.take(push)
	if !s.failBefore(w, r, fault) {
		return
	}
	if fault.inBody() {
		whole := &recorded{header: http.Header{}}
		s.run(whole, r, fault)
		s.pushed(push, r, body)
		s.half(w, r, fault, whole)
		return
	}
	if !fault.after() {
		s.run(w, r, fault)
		s.pushed(push, r, body)
		return
	}
	s.run(&discarded{header: http.Header{}}, r, fault)
	s.pushed(push, r, body)
	s.failAfter(w, r, fault)
}

// admit counts the request and checks its credentials.
func (s *GitServer) admit(w http.ResponseWriter, r *http.Request, push, fetch bool) bool {
	s.mu.Lock()
	s.stats.Requests++
	if push {
		s.stats.Pushes++
	}
	if fetch {
		s.stats.Fetches++
	}
	user, password := s.user, s.password
	s.mu.Unlock()
	gotUser, gotPassword, _ := r.BasicAuth()
	if user != "" && (gotUser != user || gotPassword != password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "wrong user or password", http.StatusUnauthorized)
		return false
	}
	return true
}

// run hands a request to git http-backend.
func (s *GitServer) run(w http.ResponseWriter, r *http.Request, fault Fault) {
	handler := cgi.Handler{
		Path: s.backend,
		Dir:  s.Dir,
		Env: []string{
			"GIT_PROJECT_ROOT=" + s.Dir,
			"GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_GLOBAL=" + os.DevNull,
			"GIT_CONFIG_NOSYSTEM=1",
			// Without a user, http-backend accepts no push unless the
			// repository says so; hooks see it too.
			"REMOTE_USER=" + remoteUser(r),
		},
		Stderr: io.Discard,
	}
	if version := r.Header.Get("Git-Protocol"); version != "" {
		handler.Env = append(handler.Env, "GIT_PROTOCOL="+version)
	}
	if fault == FaultPushNoRoom {
		// The kernel refuses every write to a file: the nearest thing to a
		// full disk that needs no disk of its own.
		handler.Path, handler.Args = "/bin/sh", []string{"-c", `ulimit -f 0 && exec "$0"`, s.backend}
	}
	handler.ServeHTTP(w, r)
}

func remoteUser(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		return user
	}
	return "anonymous"
}

// pushed tells the listeners of OnPush.
func (s *GitServer) pushed(push bool, r *http.Request, body []byte) {
	if !push {
		return
	}
	repo := strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/git-receive-pack"), "/")
	event := Push{Repo: repo, Updates: refUpdates(body)}
	s.mu.Lock()
	listeners := slices.Clone(s.onPush)
	s.mu.Unlock()
	for _, f := range listeners {
		s.notices.Go(func() { f(event) })
	}
}

// discarded is an answer that nobody will see.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// cut ends a connection without an answer: net/http closes it on this panic
// and logs nothing.
func cut() { panic(http.ErrAbortHandler) }
