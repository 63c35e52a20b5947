package env

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves the bare repositories of a directory over ssh, on the
// loopback interface, to the holder of one key.
type SSHServer struct {
	// Dir holds the repositories.
	Dir string
	// ClientKey is the private key that is let in, and HostKey the server's
	// public one as a line of known_hosts. The files hold the same.
	ClientKey     []byte
	KnownHosts    string
	ClientKeyFile string
	KnownHostFile string

	port     *port
	config   *ssh.ServerConfig
	listener net.Listener
	ctx      context.Context // ends with Stop
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// StartSSH serves the repositories in dir over ssh. Keys are made for it and
// written into keyDir.
func StartSSH(ctx context.Context, dir, keyDir string) (*SSHServer, error) {
	s := &SSHServer{
		Dir:           dir,
		ClientKeyFile: filepath.Join(keyDir, "id_ed25519"),
		KnownHostFile: filepath.Join(keyDir, "known_hosts"),
	}
	var err error
	if s.port, err = reservePort(); err != nil {
		return nil, fmt.Errorf("start a git ssh server: %w", err)
	}
	if err := s.makeKeys(); err != nil {
		s.port.release()
		return nil, fmt.Errorf("start a git ssh server: %w", err)
	}
	if s.listener, err = s.port.listen(); err != nil {
		s.port.release()
		return nil, fmt.Errorf("start a git ssh server: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(s.accept)
	return s, nil
}

// URL is a repository's address.
func (s *SSHServer) URL(repo string) string { return "ssh://git@" + s.port.address() + "/" + repo }

// GitSSHCommand is the value of GIT_SSH_COMMAND with which the native client
// uses the key and knows the server.
func (s *SSHServer) GitSSHCommand() string {
	return fmt.Sprintf("ssh -F none -i %s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes",
		s.ClientKeyFile, s.KnownHostFile)
}

// Stop ends the server and everything it runs.
func (s *SSHServer) Stop() error {
	s.cancel()
	err := s.listener.Close()
	s.running.Wait()
	s.port.release()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// makeKeys makes the host's and the client's key and a server configuration
// that knows both.
func (s *SSHServer) makeKeys() error {
	_, hostKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	host, err := ssh.NewSignerFromKey(hostKey)
	if err != nil {
		return err
	}
	public, clientKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	allowed, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(clientKey, "")
	if err != nil {
		return err
	}
	s.ClientKey = pem.EncodeToMemory(block)
	s.KnownHosts = knownhosts.Line([]string{s.port.address()}, host.PublicKey()) + "\n"
	s.config = &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
			if string(offered.Marshal()) != string(allowed.Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
	}
	s.config.AddHostKey(host)
	if err := os.MkdirAll(filepath.Dir(s.ClientKeyFile), 0o700); err != nil {
		return err
	}
	return writeFiles(map[string][]byte{s.ClientKeyFile: s.ClientKey, s.KnownHostFile: []byte(s.KnownHosts)})
}

func (s *SSHServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed by Stop
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

func (s *SSHServer) serve(conn net.Conn) {
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // not let in, or gone
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.session(channel, requests) })
	}
}

// session answers the requests of one channel: "env" for git's protocol
// version, then "exec" with the command.
func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	var environment []string
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			known := ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL"
			if known {
				environment = append(environment, variable.Name+"="+variable.Value)
			}
			_ = request.Reply(known, nil)
		case "exec":
			var command struct{ Line string }
			err := ssh.Unmarshal(request.Payload, &command)
			_ = request.Reply(err == nil, nil)
			if err != nil {
				return
			}
			status := s.exec(channel, command.Line, environment)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// exec runs the one kind of command a git client sends, for example
// git-receive-pack '/team/fleet.git', and returns its exit status.
func (s *SSHServer) exec(channel ssh.Channel, line string, environment []string) uint32 {
	command, path, _ := strings.Cut(line, " ")
	command = strings.TrimPrefix(strings.TrimPrefix(command, "git-"), "git ")
	if !slices.Contains([]string{"receive-pack", "upload-pack"}, command) {
		fmt.Fprintf(channel.Stderr(), "unknown command %q\n", line)
		return 127
	}
	// Cleaning from the root keeps the path inside the directory.
	repo := filepath.Join(s.Dir, filepath.Clean("/"+strings.Trim(path, "'")))
	cmd := exec.CommandContext(s.ctx, "git", command, repo)
	cmd.Env = append(gitEnviron(), environment...)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(channel.Stderr(), err)
		return 1
	}
	// Not waited for: git may end before the client closes its side.
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}
