package newfleet

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
)

// Names of what init writes into the directory of keys.
const (
	policyKey = "policy"
	ledgerKey = "ledger"
	// RootFile is the trust root.
	RootFile = "trust-root.yaml"
)

// KeyOptions say where keys go, and which are there already.
type KeyOptions struct {
	// Repo is the fleet repo, Dir where keys go; "": the repo's name with .keys.
	Repo, Dir string
	// Signing and Policy are OpenSSH key files, private or public; "": new ones.
	Signing, Policy string
}

// Keyring is what init writes outside the repository.
type Keyring struct {
	// Dir it is written into.
	Dir string
	// ID of the fleet.
	ID string

	files map[string][]byte
	// policy is the private key file to sign with, "" where a public key was given.
	policy string
}

// NewKeyring makes the keys that are not given and the trust root of both, in
// memory: init writes when it knows that it can.
func NewKeyring(o KeyOptions) (*Keyring, error) {
	repo := filepath.Clean(o.Repo)
	if base := filepath.Base(repo); base == "." || base == ".." { // has no name to go by
		abs, err := filepath.Abs(repo)
		if err != nil {
			return nil, fmt.Errorf("find the fleet repo: %w", err)
		}
		repo = abs
	}
	k := &Keyring{Dir: cmp.Or(o.Dir, strings.TrimSuffix(repo, string(filepath.Separator))+".keys"), files: map[string][]byte{}}
	if err := outsideRepos(k.Dir, o.Repo); err != nil {
		return nil, err
	}
	policy, policyName, err := k.key(policyKey, o.Policy, "policy")
	if err != nil {
		return nil, err
	}
	ledger, ledgerName, err := k.key(ledgerKey, o.Signing, "fleetbroker")
	if err != nil {
		return nil, err
	}
	if policy == ledger {
		return nil, hints.On(errors.New("--policy-key and --signing-key are one key"), "give two: the daemon's key gives no rights, and a person's makes no commit the daemon's")
	}
	id, err := newFleetID()
	if err != nil {
		return nil, err
	}
	k.ID = id
	k.files[RootFile] = fmt.Appendf(nil, `# What the daemon and audit trust: docs/signing.md. Keep it beside the daemon and
# the auditor, never in the repository.
apiVersion: fleetbroker.io/v1alpha1
kind: TrustRoot
metadata: {name: acme}
spec:
  fleetID: %s
  policy:                               # people: may change what gives rights
  - {principal: %s, publicKey: %s}
  ledger:                               # the daemon, or one key a replica
  - {principal: %s, publicKey: %s}
`, id, policyName, policy, ledgerName, ledger)
	for name := range k.files {
		if _, err := os.Lstat(filepath.Join(k.Dir, name)); err == nil {
			return nil, hints.On(fmt.Errorf("%s exists", filepath.Join(k.Dir, name)), "name another directory with --keys-dir; init changes nothing that exists")
		}
	}
	return k, nil
}

// key is the public line of a key file, or of a new key.
func (k *Keyring) key(name, file, principal string) (line, who string, err error) {
	if file == "" {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return "", "", fmt.Errorf("make key %s: %w", name, err)
		}
		block, err := ssh.MarshalPrivateKey(private, principal)
		if err != nil {
			return "", "", fmt.Errorf("make key %s: %w", name, err)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			return "", "", fmt.Errorf("make key %s: %w", name, err)
		}
		line = authorized(key)
		k.files[name] = pem.EncodeToMemory(block)
		k.files[name+".pub"] = []byte(line + " " + principal + "\n")
		if name == policyKey {
			k.policy = filepath.Join(k.Dir, name)
		}
		return line, principal, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator named the file
	if err != nil {
		return "", "", fmt.Errorf("read the %s key: %w", name, err)
	}
	if key, comment, _, _, err := ssh.ParseAuthorizedKey(text); err == nil {
		if !validPrincipal(comment) {
			comment = ""
		}
		return authorized(key), cmp.Or(comment, principal), nil
	}
	if name == policyKey {
		k.policy = file
	}
	private, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return authorized(private.PublicKey()), principal, nil
	case errors.As(err, &locked) && locked.PublicKey != nil:
		return authorized(locked.PublicKey), principal, nil
	}
	return "", "", hints.On(fmt.Errorf("read the %s key %s: %w", name, file, err), "name an OpenSSH private key, or its .pub file: ssh-keygen -t ed25519")
}

// validPrincipal reports whether a comment of a key is a plain address.
func validPrincipal(s string) bool {
	name, host, ok := strings.Cut(s, "@")
	plain := func(s string) bool {
		return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_+") == ""
	}
	return ok && plain(name) && plain(host)
}

func authorized(key ssh.PublicKey) string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
}

// newFleetID is ten characters of base32hex, the first of them a letter: it is a
// part of names in clusters.
func newFleetID() (string, error) {
	for {
		raw := make([]byte, 7)
		if _, err := rand.Read(raw); err != nil {
			return "", fmt.Errorf("make the fleet's id: %w", err)
		}
		id := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))[:10]
		if id[0] >= 'a' {
			return id, nil
		}
	}
}

// outsideRepos is an error when a directory lies in a git work tree, or in the
// fleet repo that is made: private keys are committed by `git add .`.
func outsideRepos(dir, repo string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find the directory of keys: %w", err)
	}
	fleet, err := filepath.Abs(repo)
	if err != nil {
		return fmt.Errorf("find the fleet repo: %w", err)
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(real, filepath.Base(abs))
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(fleet)); err == nil {
		fleet = filepath.Join(real, filepath.Base(fleet))
	}
	const remedy = "name a directory outside every repository: --keys-dir ~/fleet.keys"
	for at := abs; ; at = filepath.Dir(at) {
		if at == fleet {
			return hints.On(fmt.Errorf("private keys do not belong into the fleet repo: %s is in %s", dir, repo), remedy)
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return hints.On(fmt.Errorf("private keys do not belong into a git work tree: %s is in that of %s", dir, at), remedy)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// Write writes the keys and the trust root, for their owner alone.
func (k *Keyring) Write() error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		f, err := os.OpenFile(filepath.Join(k.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return hints.On(fmt.Errorf("write the keys: %w", err), "name another directory with --keys-dir")
		}
		if err != nil {
			return fmt.Errorf("write the keys: %w", err)
		}
		_, err = f.Write(k.files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("write the keys: %w", err)
		}
	}
	return nil
}

// SignLine is the command that makes git sign in the fleet repo, "" where init
// does not know the private key.
func (k *Keyring) SignLine(repo string) string {
	if k.policy == "" {
		return ""
	}
	key := k.policy
	if !filepath.IsAbs(key) {
		if rel, err := filepath.Rel(repo, key); err == nil {
			key = "$PWD/" + filepath.ToSlash(rel)
		}
	}
	return fmt.Sprintf(`git config gpg.format ssh && git config user.signingkey "%s" && git config commit.gpgsign true`, key)
}
