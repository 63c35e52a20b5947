// Package pubkey reads public keys as people write them: a line of authorized_keys, or
// an armored OpenPGP block. It is pure; gitrepo verifies signatures by what it reads, and
// who compares keys does so by ID.
package pubkey

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// errNone is a text that is no key.
var errNone = errors.New("it is neither one OpenSSH public key (ssh-ed25519 AAAA…) nor an OpenPGP block")

// SSH reads one line of an authorized_keys file. Options (valid-before,
// namespaces, cert-authority) are refused: they would limit nothing here.
func SSH(text string) (ssh.PublicKey, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\n") {
		return nil, errNone
	}
	pub, _, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNone, err)
	}
	if len(options) > 0 {
		return nil, fmt.Errorf("it has options (%s), which have no effect here: write the key without them, and end its validity with dropped or revoked", strings.Join(options, ","))
	}
	return pub, nil
}

// ID names a public key whatever comment it is written with. The error says
// why a text is no key.
func ID(text string) (string, error) {
	if !strings.Contains(text, "BEGIN PGP PUBLIC KEY BLOCK") {
		pub, err := SSH(text)
		if err != nil {
			return "", err
		}
		return ssh.FingerprintSHA256(pub), nil
	}
	ring, err := PGP(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNone, err)
	}
	var ids []string
	for _, e := range ring {
		ids = append(ids, fmt.Sprintf("%x", e.PrimaryKey.Fingerprint))
	}
	return "OpenPGP:" + strings.Join(ids, "+"), nil
}

// PGP reads an armored block of public keys, one at the least.
func PGP(text string) (openpgp.EntityList, error) {
	ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err == nil && len(ring) == 0 {
		err = errors.New("the OpenPGP block holds no public key: paste what `gpg --armor --export KEY` prints, with its first and last line")
	}
	return ring, err
}

// Fingerprint is a public key in few characters, for people.
func Fingerprint(text string) string {
	public, err := SSH(text)
	if err != nil {
		return "OpenPGP key"
	}
	return ssh.FingerprintSHA256(public)
}
