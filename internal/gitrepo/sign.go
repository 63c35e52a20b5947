package gitrepo

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
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
	key, err := readSSHKey(keyFile, passphraseFile)
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
	pass, ok, err := readSecret("OpenPGP passphrase", passphraseFile, "")
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

// Keys are public keys whose signatures are trusted.
type Keys struct {
	ssh []ssh.PublicKey
	pgp openpgp.EntityList
}

// ParseKeys reads public keys as fleet files hold them: lines of an
// authorized_keys file (`ssh-ed25519 AAAA…`), or armored OpenPGP blocks.
func ParseKeys(texts []string) (Keys, error) {
	var k Keys
	for i, text := range texts {
		if strings.Contains(text, "BEGIN PGP PUBLIC KEY BLOCK") {
			ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
			if err != nil {
				return Keys{}, fmt.Errorf("signer %d: %w", i+1, err)
			}
			k.pgp = append(k.pgp, ring...)
			continue
		}
		pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return Keys{}, fmt.Errorf("signer %d: neither an ssh public key nor an OpenPGP block: %w", i+1, err)
		}
		k.ssh = append(k.ssh, pub)
	}
	return k, nil
}

// Empty tells that nobody is trusted by key.
func (k Keys) Empty() bool { return len(k.ssh) == 0 && len(k.pgp) == 0 }

var errUntrusted = errors.New("not signed by a trusted key")

// verify checks a signature over the payload as it stood in the object.
func (k Keys) verify(payload []byte, signature string) error {
	if strings.HasPrefix(signature, "-----BEGIN SSH SIGNATURE") {
		sig, err := sshsig.Unarmor([]byte(signature))
		if err != nil {
			return fmt.Errorf("read ssh signature: %w", err)
		}
		for _, pub := range k.ssh {
			if sshsig.Verify(bytes.NewReader(payload), sig, pub, sig.HashAlgorithm, sshNamespace) == nil {
				return nil
			}
		}
		return errUntrusted
	}
	if len(k.pgp) == 0 {
		return errUntrusted
	}
	_, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(payload), strings.NewReader(signature), nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUntrusted, err)
	}
	return nil
}
