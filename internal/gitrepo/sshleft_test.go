package gitrepo_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// serveSSHAs serves each connection as a host does that harms who asks it, and reports each
// one that was closed.
func serveSSHAs(t *testing.T, serve func(*ssh.ServerConn, <-chan ssh.NewChannel), set ...func(*ssh.ServerConfig)) (auth gitrepo.Auth, url string, closed <-chan struct{}) {
	t.Helper()
	t.Setenv("SSH_AUTH_SOCK", "")
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	cfg.AddHostKey(host)
	for _, set := range set {
		set(cfg)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	gone := make(chan struct{}, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if serve == nil {
					_, _ = io.Copy(io.Discard, c)
				} else if conn, channels, requests, err := ssh.NewServerConn(c, cfg); err == nil {
					go ssh.DiscardRequests(requests)
					go serve(conn, channels)
					_ = conn.Wait()
				}
				_ = c.Close()
				gone <- struct{}{}
			}()
		}
	}()
	file, _ := sshKey(t, "ed25519", "")
	addr := l.Addr().String()
	return gitrepo.Auth{SSHKeyFile: file, KnownHostsFile: knownHosts(t, addr, host.PublicKey())}, "ssh://git@" + addr + "/x.git", gone
}

// commands answers requests to run a command.
func commands(channels <-chan ssh.NewChannel, taken bool, open func(ssh.NewChannel)) {
	for c := range channels {
		open(c)
		_, requests, err := c.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				_ = r.Reply(taken, nil)
			}
		}()
	}
}

// No connection outlives its operation, and no operation its context: a server that never
// answers in the handshake, that refuses the command and keeps the connection, or that gives
// no room for the goodbye, would have one more descriptor of each try, or the lock for good.
func TestSSHConnectionsEndWithTheirOperation(t *testing.T) {
	noRoom := func(c ssh.NewChannel) { // the library gives 2 MiB
		field := reflect.ValueOf(c).Elem().FieldByName("myWindow")
		*(*uint32)(unsafe.Pointer(field.UnsafeAddr())) = 0 //nolint:gosec // nothing else sets it
	}
	for what, c := range map[string]struct {
		serve func(*ssh.ServerConn, <-chan ssh.NewChannel)
		waits time.Duration // 0: until the server answers
	}{
		"no handshake": {nil, 200 * time.Millisecond},
		"no command": {func(_ *ssh.ServerConn, channels <-chan ssh.NewChannel) {
			commands(channels, false, func(ssh.NewChannel) {})
		}, 0},
		"no answer, and no room": {func(_ *ssh.ServerConn, channels <-chan ssh.NewChannel) {
			commands(channels, true, noRoom)
		}, time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			auth, url, closed := serveSSHAs(t, c.serve)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.waits > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.waits)
				defer cancel()
			}
			ended := make(chan error, 1)
			go func() {
				_, err := dial(t, url, auth).Refs(ctx)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil || (c.waits > 0) != errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the operation goes on after its context has ended")
			}
			select {
			case <-closed:
			case <-time.After(20 * time.Second):
				t.Error("the connection stays open after the operation has ended")
			}
		})
	}
}
