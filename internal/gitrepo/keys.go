package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
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
			ring, err := pubkey.PGP(key.Text)
			if err != nil {
				return Keys{}, fmt.Errorf("signer %d: %w", i+1, err)
			}
			for _, e := range ring {
				k.pgpOf[e] = i
			}
			k.pgp = append(k.pgp, ring...)
			continue
		}
		pub, err := pubkey.SSH(key.Text)
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
