package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Key is a public key, whose it is, and what limits it.
type Key struct {
	// Principal is whose key it is, for people.
	Principal string
	// Text is the key in OpenSSH's or OpenPGP's text form.
	Text string
	// Revoked: only After and its ancestors may be signed by it; nothing when
	// After is zero.
	Revoked bool
	After   tree.Hash
}

// errNoKey is a text that is no key.
var errNoKey = errors.New("it is neither one OpenSSH public key (ssh-ed25519 AAAA…) nor an OpenPGP block")

// parseSSH reads one line of an authorized_keys file. Options (valid-before,
// namespaces, cert-authority) are refused: they would limit nothing here.
func parseSSH(text string) (ssh.PublicKey, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\n") {
		return nil, errNoKey
	}
	pub, _, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoKey, err)
	}
	if len(options) > 0 {
		return nil, fmt.Errorf("it has options (%s), which have no effect here: write the key without them, and end its validity with dropped or revoked", strings.Join(options, ","))
	}
	return pub, nil
}

// KeyID names a public key whatever comment it is written with. The error says
// why a text is no key.
func KeyID(text string) (string, error) {
	if !strings.Contains(text, "BEGIN PGP PUBLIC KEY BLOCK") {
		pub, err := parseSSH(text)
		if err != nil {
			return "", err
		}
		return ssh.FingerprintSHA256(pub), nil
	}
	ring, err := readPGP(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoKey, err)
	}
	var ids []string
	for _, e := range ring {
		ids = append(ids, fmt.Sprintf("%x", e.PrimaryKey.Fingerprint))
	}
	return "OpenPGP:" + strings.Join(ids, "+"), nil
}

// readPGP reads an armored block of public keys, one at the least.
func readPGP(text string) (openpgp.EntityList, error) {
	ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err == nil && len(ring) == 0 {
		err = errors.New("the OpenPGP block holds no public key: paste what `gpg --armor --export KEY` prints, with its first and last line")
	}
	return ring, err
}

// ParseKeys reads public keys as fleet files hold them: lines of an
// authorized_keys file (`ssh-ed25519 AAAA…`), or armored OpenPGP blocks.
func ParseKeys(texts []string) (Keys, error) {
	list := make([]Key, len(texts))
	for i, text := range texts {
		list[i].Text = text
	}
	return NewKeys(list)
}

// NewKeys are keys with what limits them.
func NewKeys(list []Key) (Keys, error) {
	k := Keys{pgpOf: map[*openpgp.Entity]int{}, list: list}
	for i, key := range list {
		if strings.Contains(key.Text, "BEGIN PGP PUBLIC KEY BLOCK") {
			ring, err := readPGP(key.Text)
			if err != nil {
				return Keys{}, fmt.Errorf("signer %d: %w", i+1, err)
			}
			for _, e := range ring {
				k.pgpOf[e] = i
			}
			k.pgp = append(k.pgp, ring...)
			continue
		}
		pub, err := parseSSH(key.Text)
		if err != nil {
			return Keys{}, fmt.Errorf("signer %d: %w", i+1, err)
		}
		k.ssh, k.sshOf = append(k.ssh, pub), append(k.sshOf, i)
	}
	return k, nil
}

// Has reports whether a public key is among them and not revoked.
func (k Keys) Has(public ssh.PublicKey) bool {
	for i, pub := range k.ssh {
		if string(pub.Marshal()) == string(public.Marshal()) {
			return !k.list[k.sshOf[i]].Revoked
		}
	}
	return false
}

// Admit is a signer's key. The error says why commits of it do not count.
func (k Keys) Admit(s Signer) (Key, error) {
	if s == nil {
		return Key{}, errors.New("this daemon signs nothing: start it with --signing-key")
	}
	payload := []byte("fleetbroker looks whether its key is in force\n")
	signature, err := s.Sign(payload)
	if err != nil {
		return Key{}, err
	}
	i, err := k.find(payload, signature, nil)
	if err != nil {
		return Key{}, err
	}
	if k.list[i].Revoked {
		return k.list[i], fmt.Errorf("the trust root revokes the key of %s", k.list[i].Principal)
	}
	return k.list[i], nil
}

// Ancestor tells whether commit a can be reached from b.
type Ancestor func(a, b tree.Hash) (bool, error)

// SignedCommit is whose key signed a commit, given its name and its bytes as they
// are stored, revocations regarded. The error says why the signature does not
// count.
func (k Keys) SignedCommit(h tree.Hash, raw []byte, now time.Time, ancestor Ancestor) (Key, error) {
	i, err := k.SignerOf(raw, now)
	if err != nil {
		return Key{}, err
	}
	key := k.list[i]
	if !key.Revoked {
		return key, nil
	}
	if !key.After.IsZero() {
		if ok, err := ancestor(h, key.After); err == nil && ok {
			return key, nil
		}
	}
	return Key{}, &RevokedError{key.Principal}
}
