package memremote

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// T is what KeyPair needs of a test. The package is linked into the program too, which
// has no place for package testing.
type T interface {
	Helper()
	TempDir() string
	Fatal(args ...any)
}

// KeyPair makes a signer of commits and its public key, as signers are listed.
// The same letter gives the same pair.
func KeyPair(t T, letter string) (gitrepo.Signer, string) {
	t.Helper()
	signer, public, err := Pair(t.TempDir(), letter)
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

// Pair is KeyPair with a directory for the private key.
func Pair(dir, letter string) (gitrepo.Signer, string, error) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(letter, ed25519.SeedSize)))
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "key-"+letter)
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, "", err
	}
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		return nil, "", err
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return nil, "", err
	}
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), nil
}
