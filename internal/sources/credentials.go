package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/reach"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Keys of a Secret, and names of files in a directory, with a source's credentials:
// those of Kubernetes' own types of Secrets where there are any.
const (
	keyUser       = "username"
	keyPassword   = "password"
	keyBearer     = "bearer"
	keyCA         = "ca.crt"
	keySSH        = "ssh-privatekey"
	keyKnownHosts = "known_hosts"
	keyForge      = "forge-token"
	keyHook       = "webhook-secret"
)

// maxCredential bounds one of them, in bytes.
const maxCredential = 1 << 20

// Secrets reads Secrets of the daemon's own namespace.
type Secrets interface {
	// Secret returns data and labels of a Secret.
	Secret(ctx context.Context, name string) (data map[string][]byte, labels map[string]string, err error)
}

// Credentials finds those of a source. They are read at each connection.
type Credentials struct {
	// Dir has a directory for each source, by its name; may be empty.
	Dir string
	// Secrets; nil where the daemon does not run in a cluster.
	Secrets Secrets
}

// of are a source's credentials by key: none where nobody gave any.
func (c Credentials) of(ctx context.Context, e *v1alpha1.IntentSource) (map[string][]byte, error) {
	if e.CredentialsRef == nil {
		return c.files(e.Name)
	}
	name := e.CredentialsRef.Name
	if c.Secrets == nil {
		return nil, fmt.Errorf("its credentials are in Secret %s, but the daemon does not run in a cluster: give --source-credentials-dir and take credentialsRef out of the entry", name)
	}
	data, labels, err := c.Secrets.Secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if labels[v1alpha1.LabelSource] != e.Name {
		return nil, fmt.Errorf("Secret %s is not meant for this source: label it %s=%s", name, v1alpha1.LabelSource, e.Name)
	}
	return data, nil
}

func (c Credentials) files(source string) (map[string][]byte, error) {
	out := map[string][]byte{}
	if c.Dir == "" {
		return out, nil
	}
	for _, key := range []string{keyUser, keyPassword, keyBearer, keyCA, keySSH, keyKnownHosts, keyForge, keyHook} {
		f, err := os.Open(filepath.Join(c.Dir, filepath.Base(source), key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxCredential))
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		out[key] = data
	}
	return out, nil
}

// Deadlines of a source: shorter than those of the fleet repo, which the daemon cannot
// do without.
const (
	connecting = 20 * time.Second
	idle       = 20 * time.Second
	slow       = time.Minute
	whole      = 2 * time.Minute
	cloning    = 5 * time.Minute
	maxWords   = 4 << 20
)

// dial is the remote of a source. knownHosts is a file that may be written for it.
func (k *Keeper) dial(ctx context.Context, e *v1alpha1.IntentSource, knownHosts string) (gitrepo.Remote, error) {
	if err := allowed(e, k.opts.Hosts); err != nil {
		return nil, err
	}
	data, err := k.opts.Credentials.of(ctx, e)
	k.keepHook(e.Name, data[keyHook])
	if err != nil {
		return nil, err
	}
	auth := gitrepo.Auth{
		User: strings.TrimSpace(string(data[keyUser])), Guard: guard, Timeout: connecting, Idle: k.opts.Idle, Slow: slow, Limit: whole, CloneLimit: cloning, Words: maxWords,
		KnownHostsFile: k.opts.KnownHosts, Largest: v1alpha1.MaxSourceFile, Answer: func(a *http.Response) { k.answered(e.Name, a) },
		Read: func(file string) ([]byte, error) {
			if b, ok := data[file]; ok {
				return b, nil
			}
			return nil, fs.ErrNotExist
		},
	}
	for key, to := range map[string]*string{keyPassword: &auth.PasswordFile, keyBearer: &auth.BearerFile, keyCA: &auth.CAFile, keySSH: &auth.SSHKeyFile} {
		if len(data[key]) > 0 {
			*to = key
		}
	}
	if hosts := data[keyKnownHosts]; len(hosts) > 0 { // no secret, and only read from a file
		if err := os.WriteFile(knownHosts, hosts, 0o600); err != nil {
			return nil, fmt.Errorf("keep known hosts: %w", err)
		}
		auth.KnownHostsFile = knownHosts
	}
	if strings.HasPrefix(e.URL, "ssh:") && auth.SSHKeyFile == "" {
		return nil, fmt.Errorf("it has no ssh key: put %s (and %s) into its Secret, or into the directory %s of --source-credentials-dir", keySSH, keyKnownHosts, e.Name)
	}
	return gitrepo.Dial(e.URL, auth)
}

func guard(ip netip.Addr) error {
	if !reach.Allowed(ip) {
		return fmt.Errorf("its host has the address %s, which no source may have: link-local, multicast, unspecified, or of a cloud's metadata", ip)
	}
	return nil
}

// allowed holds a URL to the hosts that an operator allows: `host` at the scheme's own
// port, `host:port`, or `*.domain`.
func allowed(e *v1alpha1.IntentSource, hosts []string) error {
	host, err := e.Host()
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return allowedAt(host, u, hosts)
}

// allowedAt holds a host, and the scheme and port of its URL, to the hosts allowed.
func allowedAt(host string, u *url.URL, hosts []string) error {
	port, standard := u.Port(), map[string]string{"https": "443", "ssh": "22"}[u.Scheme]
	if port == "" {
		port = standard
	}
	if slices.ContainsFunc(hosts, func(h string) bool {
		name, at, err := net.SplitHostPort(h)
		if err != nil {
			name, at = strings.Trim(h, "[]"), standard
		}
		name = strings.ToLower(name)
		domain, wild := strings.CutPrefix(name, "*.")
		return at == port && (name == host || wild && strings.HasSuffix(host, "."+domain))
	}) {
		return nil
	}
	named := host
	if port != standard {
		named = net.JoinHostPort(host, port)
	}
	return fmt.Errorf("host %s is not allowed: an operator adds it to the daemon's --source-hosts", named)
}
