package gitrepo

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitfile "github.com/go-git/go-git/v5/plumbing/transport/file"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/guard"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/hostkeys"
)

// Auth says where the credentials of a remote are; it never holds one. All
// files are read again at each connection.
type Auth struct {
	// User is the user for basic authentication or ssh. Default: the URL's,
	// else "git".
	User string
	// PasswordFile or PasswordEnv names the password or access token that goes
	// with User in basic authentication, the form that all forges accept.
	PasswordFile, PasswordEnv string
	// BearerFile or BearerEnv names a token sent as `Authorization: Bearer`.
	BearerFile, BearerEnv string
	// CAFile holds further certificate authorities (PEM) for https;
	// ClientCertFile and ClientKeyFile a client certificate.
	CAFile, ClientCertFile, ClientKeyFile string
	// SSHKeyFile is a private key, SSHPassphraseFile its passphrase. Default:
	// the agent at SSH_AUTH_SOCK.
	SSHKeyFile, SSHPassphraseFile string
	// KnownHostsFile lists the host keys. Default: SSH_KNOWN_HOSTS, else
	// ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts. An unknown host is
	// refused.
	KnownHostsFile string
	// Timeout bounds making a connection and, over http, waiting for the
	// answer to begin. Default 60 s.
	Timeout time.Duration
	// Idle bounds the time without a byte from the remote (default 60 s), Slow the
	// time in which at least 64 KiB must come (default 5 min).
	Idle, Slow time.Duration
	// Words bounds what comes before a pack, in bytes (default 32 MiB).
	Words int64
	// Largest, when set, has larger files left out by servers that can, in bytes.
	Largest uint64
	// Limit bounds each operation as a whole (default 10 min), CloneLimit that of
	// one that has nothing yet (default 60 min).
	Limit, CloneLimit time.Duration
	// Read reads the files named here; nil: from this machine.
	Read func(file string) ([]byte, error)
	// Guard, when set, refuses addresses before they are connected to. Then nothing
	// follows a redirect to another host, and no ssh agent is asked.
	Guard func(ip netip.Addr) error
	// Date, when set, is called with what an http server says the time is, with when it
	// was asked and had answered. It must return at once.
	Date func(server, asked, answered time.Time)
	// Answer, when set, is called with each answer of an http server. It may read the
	// beginning of the body, and has to put it back.
	Answer func(*http.Response)
	// Another, when set, is asked before each further session of a push to a server
	// that updates one ref at a time; an error ends the push there.
	Another func(context.Context) error
}

func (a Auth) secret() bool {
	return a.PasswordFile != "" || a.PasswordEnv != "" || a.BearerFile != "" || a.BearerEnv != ""
}

func (a Auth) timeout() time.Duration {
	if a.Timeout > 0 {
		return a.Timeout
	}
	return time.Minute
}

// readSecret reads a secret from a file or, failing that, from the
// environment. Errors name the place, never the content.
func (a Auth) readSecret(what, file, env string) (string, bool, error) {
	switch {
	case file != "":
		b, err := a.file(file)
		if err != nil {
			return "", false, fmt.Errorf("read %s: %w", what, err)
		}
		s := strings.TrimRight(string(b), "\r\n")
		if s == "" {
			return "", false, fmt.Errorf("read %s: %s is empty", what, file)
		}
		return s, true, nil
	case env != "":
		s, ok := os.LookupEnv(env)
		if !ok || s == "" {
			return "", false, fmt.Errorf("read %s: the environment variable %s is not set", what, env)
		}
		return s, true, nil
	}
	return "", false, nil
}

func (a Auth) file(name string) ([]byte, error) {
	if a.Read != nil {
		return a.Read(name)
	}
	return os.ReadFile(name) //nolint:gosec // the operator named the file
}

// client returns the transport and the credentials of one session.
func (d *dialed) client(ctx context.Context) (transport.Transport, transport.AuthMethod, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	switch d.ep.Protocol {
	case "file":
		return gitfile.DefaultClient, nil, nil
	case "ssh":
		auth, err := d.auth.ssh(&d.ep)
		return gitssh.DefaultClient, auth, err
	default:
		c, err := d.web.get(d.auth, &d.ep)
		if err != nil {
			return nil, nil, err
		}
		auth, err := d.auth.web()
		if auth == nil {
			return c, nil, err
		}
		return c, auth, err
	}
}

func (a Auth) web() (githttp.AuthMethod, error) {
	token, ok, err := a.readSecret("token", a.BearerFile, a.BearerEnv)
	if err != nil {
		return nil, err
	}
	if ok {
		return &githttp.TokenAuth{Token: token}, nil
	}
	password, ok, err := a.readSecret("password", a.PasswordFile, a.PasswordEnv)
	if err != nil || !ok {
		return nil, err
	}
	user := cmp.Or(a.User, "git")
	return &githttp.BasicAuth{Username: user, Password: password}, nil
}

// webClient keeps the http client, and with it open connections, for as long
// as the certificate files stay the same.
type webClient struct {
	mu     sync.Mutex
	key    string
	client transport.Transport
}

func (w *webClient) get(a Auth, ep *transport.Endpoint) (transport.Transport, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := a.CAFile + a.ClientCertFile + a.ClientKeyFile
	var pems [3][]byte
	for i, f := range []string{a.CAFile, a.ClientCertFile, a.ClientKeyFile} {
		if f == "" {
			continue
		}
		b, err := a.file(f)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		pems[i] = b
		key += "\x00" + string(b)
	}
	if w.client != nil && w.key == key {
		return w.client, nil
	}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.DialContext = (&net.Dialer{Timeout: a.timeout(), KeepAlive: 30 * time.Second, Control: guard.Control(a.Guard)}).DialContext
	tr.ResponseHeaderTimeout = a.timeout()
	tr.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pems[0]) {
			return nil, fmt.Errorf("read certificate authorities: %s holds no PEM certificate", a.CAFile)
		}
		tr.TLSClientConfig.RootCAs = pool
	}
	if a.ClientCertFile != "" {
		pair, err := tls.X509KeyPair(pems[1], pems[2])
		if err != nil {
			return nil, fmt.Errorf("read client certificate %s: %w", a.ClientCertFile, err)
		}
		tr.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	// go-git follows a redirect of the first request only and drops the
	// credentials when it leaves the origin.
	var via http.RoundTripper = tr
	if a.Guard != nil {
		via = guard.OnHost{Next: tr, Scheme: ep.Protocol, Host: ep.Host}
	}
	w.client, w.key = githttp.NewClient(&http.Client{Transport: metering{via, a.Date, a.Answer}}), key
	return w.client, nil
}

// sshAuth is a complete client configuration. go-git's own methods leave the
// host key algorithms open, and then a server may offer a key of a type that
// known_hosts does not hold (go-git#1551).
type sshAuth struct {
	config *ssh.ClientConfig
}

func (s *sshAuth) Name() string { return "ssh-public-keys" }

func (s *sshAuth) String() string { return "user: " + s.config.User + ", ssh-public-keys" }

func (s *sshAuth) ClientConfig() (*ssh.ClientConfig, error) { return s.config, nil }

func (a Auth) ssh(ep *transport.Endpoint) (transport.AuthMethod, error) {
	user := cmp.Or(a.User, "git")
	var files []string
	if a.KnownHostsFile != "" {
		files = append(files, a.KnownHostsFile)
	}
	db, err := gitssh.NewKnownHostsDb(files...)
	if err != nil {
		return nil, fmt.Errorf("read known hosts (add the server's key with ssh-keyscan): %w", err)
	}
	port := ep.Port
	if port == 0 {
		port = gitssh.DefaultPort
	}
	host := net.JoinHostPort(strings.Trim(ep.Host, "[]"), strconv.Itoa(port))
	algorithms := db.HostKeyAlgorithms(host)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("no host key of %s is known; add it to the known hosts file with ssh-keyscan after checking it", host)
	}
	method, err := a.sshMethod(user)
	if err != nil {
		return nil, err
	}
	return &sshAuth{&ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{method},
		HostKeyCallback:   hostkeys.Explained(db.HostKeyCallback()),
		HostKeyAlgorithms: algorithms,
		Timeout:           a.timeout(),
	}}, nil
}

func (a Auth) sshMethod(user string) (ssh.AuthMethod, error) {
	if a.SSHKeyFile == "" && a.Guard != nil {
		return nil, errors.New("no ssh key file is named")
	}
	if a.SSHKeyFile == "" {
		agent, err := gitssh.NewSSHAgentAuth(user)
		if err != nil {
			return nil, fmt.Errorf("no ssh key file is named and no agent answers: %w", err)
		}
		return ssh.PublicKeysCallback(agent.Callback), nil
	}
	signer, err := a.readSSHKey(a.SSHKeyFile, a.SSHPassphraseFile)
	if err != nil {
		return nil, err
	}
	return ssh.PublicKeys(signer), nil
}

// readSSHKey reads a private key, decrypting it with the passphrase in a file.
func (a Auth) readSSHKey(file, passphraseFile string) (ssh.Signer, error) {
	pem, err := a.file(file)
	if err != nil {
		return nil, fmt.Errorf("read ssh key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		pass, ok, perr := a.readSecret("ssh passphrase", passphraseFile, "")
		if perr != nil {
			return nil, perr
		}
		if !ok {
			return nil, fmt.Errorf("ssh key %s has a passphrase; name the file that holds it", file)
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(pass))
	}
	if err != nil {
		return nil, fmt.Errorf("read ssh key %s: %w", file, err)
	}
	return signer, nil
}
