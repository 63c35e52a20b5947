package gitrepo

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/proofs"
)

// Signer signs commits. Implementations are safe for concurrent use.
type Signer interface {
	// Sign returns the armored signature over a commit's payload.
	Sign(payload []byte) (string, error)
}

// sshNamespace is the namespace of git's SSH signatures (gitformat-signature).
const sshNamespace = "git"

type sshSigner struct{ key ssh.Signer }

// SSHSigner signs with an SSH private key file, ed25519 or RSA; passphraseFile
// may be empty.
func SSHSigner(keyFile, passphraseFile string) (Signer, error) {
	key, err := (Auth{}).readSSHKey(keyFile, passphraseFile)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return sshSigner{key}, nil
}

func (s sshSigner) Sign(payload []byte) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(payload), s.key, sshsig.HashSHA512, sshNamespace)
	if err != nil {
		return "", fmt.Errorf("sign with ssh key: %w", err)
	}
	return string(sshsig.Armor(sig)), nil
}

type pgpSigner struct{ entity *openpgp.Entity }

// OpenPGPSigner signs with an armored OpenPGP private key file;
// passphraseFile may be empty.
func OpenPGPSigner(keyFile, passphraseFile string) (Signer, error) {
	b, err := os.ReadFile(keyFile) //nolint:gosec // the operator named the file
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", keyFile, err)
	}
	if len(ring) != 1 || ring[0].PrivateKey == nil {
		return nil, fmt.Errorf("signing key %s: want exactly one OpenPGP private key", keyFile)
	}
	pass, ok, err := (Auth{}).readSecret("OpenPGP passphrase", passphraseFile, "")
	if err != nil {
		return nil, err
	}
	if ok {
		if err := ring[0].DecryptPrivateKeys([]byte(pass)); err != nil {
			return nil, fmt.Errorf("signing key %s: %w", keyFile, err)
		}
	}
	if ring[0].PrivateKey.Encrypted {
		return nil, fmt.Errorf("signing key %s has a passphrase; name the file that holds it", keyFile)
	}
	return pgpSigner{ring[0]}, nil
}

func (s pgpSigner) Sign(payload []byte) (string, error) {
	var out bytes.Buffer
	cfg := &packet.Config{DefaultHash: crypto.SHA256}
	if err := openpgp.ArmoredDetachSign(&out, s.entity, bytes.NewReader(payload), cfg); err != nil {
		return "", fmt.Errorf("sign with OpenPGP key: %w", err)
	}
	return out.String() + "\n", nil
}

var proven proofs.Memory

// Keys are public keys whose signatures are trusted.
type Keys struct {
	ssh []ssh.PublicKey
	pgp openpgp.EntityList
	// sshOf and pgpOf say in which of the list a key stands.
	sshOf []int
	pgpOf map[*openpgp.Entity]int
	list  []Key
}

// Empty tells that nobody is trusted by key.
func (k Keys) Empty() bool { return len(k.ssh) == 0 && len(k.pgp) == 0 }

// SignerOf says in which of ParseKeys' texts the key stands that signed a
// commit, given the object's bytes as they are stored. The error says what is
// wrong with the signature. OpenPGP keys are judged as of now: one that has
// expired signs nothing any more, whatever date a commit bears.
func (k Keys) SignerOf(raw []byte, now time.Time) (int, error) {
	if key, ok := proven.Key(raw); ok {
		return k.listed(key)
	}
	c, err := gitobj.ParseCommit(raw)
	switch {
	case err != nil:
		return 0, err
	case c.Signature == "":
		return 0, ErrNotSigned
	case c.Ambiguous:
		return 0, errors.New("its header repeats a field or can be read in two ways, or it has two signatures or a NUL, so that its signature proves nothing")
	}
	i, err := k.find(gitobj.SignedPayload(raw), c.Signature, &packet.Config{Time: func() time.Time { return now }})
	k.prove(raw, c.Signature, i, err)
	return i, err
}

// ErrNotSigned is a commit without a signature.
var ErrNotSigned = errors.New("it is not signed")

// RevokedError is a good signature by a key that the trust root revokes.
type RevokedError struct {
	// Principal whose key it is.
	Principal string
}

// Error implements error.
func (e *RevokedError) Error() string {
	return fmt.Sprintf("the trust root revokes the key of %s that signed it", e.Principal)
}

// Lapsed reports whether a signature does not count only because its key is
// revoked or has expired.
func Lapsed(err error) bool {
	return errors.As(err, new(*RevokedError)) || errors.Is(err, pgperrors.ErrKeyExpired) || errors.Is(err, pgperrors.ErrKeyRevoked) || errors.Is(err, pgperrors.ErrSignatureExpired)
}

// Closest is, of signatures that do not count, the one that is nearest to it, for
// a message: the newest by a key that lapsed, else the newest of all. Commits are
// given newest first.
type Closest struct {
	Commit tree.Hash
	Err    error
}

// See takes in why a commit does not count.
func (c *Closest) See(h tree.Hash, err error) {
	if err == nil || errors.Is(err, ErrNotSigned) || c.Err != nil && (Lapsed(c.Err) || !Lapsed(err)) {
		return
	}
	c.Commit, c.Err = h, err
}

// String is a sentence about it, "" without one.
func (c *Closest) String() string {
	switch {
	case c.Err == nil:
		return ""
	case errors.As(c.Err, new(*RevokedError)):
		return fmt.Sprintf(". The newest signed one, %s, does not count: %v; if that commit is surely theirs, name it, or a newer one that is, in the entry (revoked: {after: <commit>})", c.Commit.Short(), c.Err)
	case Lapsed(c.Err):
		return fmt.Sprintf(". The newest signed one, %s, does not count: %v; put the key with its new expiry date into the trust root", c.Commit.Short(), c.Err)
	}
	return fmt.Sprintf(". The newest signed one, %s, does not count: %v", c.Commit.Short(), c.Err)
}

// prove remembers that a key of the list has signed a commit.
func (k Keys) prove(raw []byte, signature string, i int, err error) {
	if at := slices.Index(k.sshOf, i); err == nil && at >= 0 && isSSH(signature) {
		proven.Add(raw, string(k.ssh[at].Marshal()))
	}
}

// listed says where a key stands, given in ssh's wire form.
func (k Keys) listed(key string) (int, error) {
	for i, pub := range k.ssh {
		if string(pub.Marshal()) == key {
			return k.sshOf[i], nil
		}
	}
	name := key
	if pub, err := ssh.ParsePublicKey([]byte(key)); err == nil {
		name = ssh.FingerprintSHA256(pub)
	}
	return 0, fmt.Errorf("it is signed by the key %s, which is not listed", name)
}

func isSSH(signature string) bool { return strings.HasPrefix(signature, "-----BEGIN SSH SIGNATURE") }

// Signed tells whether a commit, as it is stored, carries a signature by one of
// the keys. One with two readings of its headers is taken for unsigned.
func (k Keys) Signed(raw []byte) (bool, error) {
	if key, ok := proven.Key(raw); ok {
		_, err := k.listed(key)
		return err == nil, nil
	}
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		return false, err
	}
	if c.Signature == "" || c.Ambiguous {
		return false, nil
	}
	i, err := k.find(gitobj.SignedPayload(raw), c.Signature, nil)
	k.prove(raw, c.Signature, i, err)
	return err == nil, nil
}

// find is the text of the key that made a signature.
func (k Keys) find(payload []byte, signature string, cfg *packet.Config) (int, error) {
	if isSSH(signature) {
		return k.findSSH(payload, signature)
	}
	by, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(payload), strings.NewReader(signature), cfg)
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return 0, errors.New("it is signed by an OpenPGP key that is not listed")
	case err != nil:
		return 0, fmt.Errorf("its OpenPGP signature does not count: %w", err)
	}
	return k.pgpOf[by], nil
}

func (k Keys) findSSH(payload []byte, signature string) (int, error) {
	sig, err := sshsig.Unarmor([]byte(signature))
	if err != nil {
		return 0, fmt.Errorf("its ssh signature cannot be read: %w", err)
	}
	i, err := k.listed(string(sig.PublicKey.Marshal()))
	if err != nil {
		return 0, err
	}
	if err := sshsig.Verify(bytes.NewReader(payload), sig, sig.PublicKey, sig.HashAlgorithm, sshNamespace); err != nil {
		return 0, fmt.Errorf("its signature is not one over this commit: %w", err)
	}
	return i, nil
}
