package gitrepo_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// sshServer serves the git commands over ssh in this process. It has an RSA
// and an ed25519 host key, as real servers do, and lets in one user key.
type sshServer struct {
	addr    string
	hostKey map[string]ssh.PublicKey
}

func serveSSH(t testing.TB, authorized ssh.PublicKey) *sshServer {
	t.Helper()
	s := &sshServer{hostKey: map[string]ssh.PublicKey{}}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || string(key.Marshal()) != string(authorized.Marshal()) {
			return nil, errors.New("who are you")
		}
		return nil, nil
	}}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []any{rs, ed} {
		signer, err := ssh.NewSignerFromKey(k)
		if err != nil {
			t.Fatal(err)
		}
		cfg.AddHostKey(signer)
		s.hostKey[signer.PublicKey().Type()] = signer.PublicKey()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serveSSHConn(c, cfg) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return s
}

func serveSSHConn(c net.Conn, cfg *ssh.ServerConfig) {
	defer c.Close()
	_, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		for req := range reqs {
			if req.Type != "exec" {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil)
			status := runGitCommand(string(req.Payload[4:]), ch)
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			break
		}
		_ = ch.Close()
	}
}

// runGitCommand runs `git-upload-pack '<path>'` and its like.
func runGitCommand(line string, ch ssh.Channel) uint32 {
	verb, path, ok := strings.Cut(line, " ")
	if !ok || (verb != "git-upload-pack" && verb != "git-receive-pack") {
		return 127
	}
	cmd := exec.Command("git", strings.TrimPrefix(verb, "git-"), strings.Trim(path, "'"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(in, ch)
		_ = in.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}

func knownHosts(t testing.TB, addr string, keys ...ssh.PublicKey) string {
	t.Helper()
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&b, knownhosts.Line([]string{knownhosts.Normalize(addr)}, k))
	}
	name := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSSH(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	file, pub := sshKey(t, "ed25519", "")
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pub))
	if err != nil {
		t.Fatal(err)
	}
	srv := serveSSH(t, key)
	dir := bare(t)
	url := "ssh://git@" + srv.addr + dir
	rsaKey, edKey := srv.hostKey[ssh.KeyAlgoRSA], srv.hostKey[ssh.KeyAlgoED25519]

	for name, hosts := range map[string]string{
		"only its RSA key is known":     knownHosts(t, srv.addr, rsaKey),
		"only its ed25519 key is known": knownHosts(t, srv.addr, edKey),
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, dial(t, url, gitrepo.Auth{SSHKeyFile: file, KnownHostsFile: hosts}), options())
			res := commit(t, r, request(fetch(t, r), contract("vision", strings.ReplaceAll(name, " ", "-"), "1")))
			if got := git(t, dir, "rev-parse", "ledger"); got != res.Head().String() {
				t.Errorf("ledger: got %s, want %s", got, res.Head())
			}
			fetch(t, r)
		})
	}
	other, _ := sshKey(t, "ed25519", "")
	for name, auth := range map[string]gitrepo.Auth{
		"the host is unknown":          {SSHKeyFile: file, KnownHostsFile: knownHosts(t, "127.0.0.1:1", edKey)},
		"the host has another key":     {SSHKeyFile: file, KnownHostsFile: knownHosts(t, srv.addr, key)},
		"the user's key is another":    {SSHKeyFile: other, KnownHostsFile: knownHosts(t, srv.addr, edKey)},
		"there is no known hosts file": {SSHKeyFile: file, KnownHostsFile: "/nonexistent"},
		"there is no key":              {SSHKeyFile: "/nonexistent", KnownHostsFile: knownHosts(t, srv.addr, edKey)},
		"there is no agent":            {KnownHostsFile: knownHosts(t, srv.addr, edKey)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := dial(t, url, auth).Refs(t.Context()); err == nil {
				t.Error("connected all the same")
			}
		})
	}
}

// A server that accepts the connection and never speaks is left when the
// context says so.
func TestSSHServerThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	file, pub := sshKey(t, "ed25519", "")
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pub))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	auth := gitrepo.Auth{SSHKeyFile: file, KnownHostsFile: knownHosts(t, l.Addr().String(), key)}
	remote := dial(t, "ssh://git@"+l.Addr().String()+"/x.git", auth)
	if _, err := remote.Refs(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Refs: got %v", err)
	}
	if err := remote.Push(ctx, []gitrepo.Command{{Ref: "refs/heads/x"}}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Push: got %v", err)
	}
}
