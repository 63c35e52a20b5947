package gitrepo

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
)

// FuzzSignature: whatever stands in a commit's signature header, nothing panics,
// and no signature holds that the key has not made.
func FuzzSignature(f *testing.F) {
	keys, err := ParseKeys([]string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mPlYzO0RYVgAwWoEXSWrW4GwqjqGSUSzfQhW0Qq8y"})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		"-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg\n-----END SSH SIGNATURE-----",
		"-----BEGIN SSH SIGNATURE-----\n\n-----END SSH SIGNATURE-----", "-----BEGIN SSH SIGNATURE-----\nAAAA", "-----BEGIN PGP SIGNATURE-----\n\niHUEABYKAB0=\n-----END PGP SIGNATURE-----",
		"-----BEGIN PGP MESSAGE-----\n", "-----BEGIN SIGNED MESSAGE-----\n", "x", "",
	} {
		f.Add(s, "tree x\n\nmessage")
	}
	f.Fuzz(func(t *testing.T, signature, payload string) {
		if i, err := keys.find([]byte(payload), signature, nil); err == nil && i >= 0 {
			t.Fatalf("%q counts as key %d's over %q", signature, i, payload)
		}
	})
}

// FuzzKey: a text is one public key, or refused.
func FuzzKey(f *testing.F) {
	for _, s := range []string{
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mPlYzO0RYVgAwWoEXSWrW4GwqjqGSUSzfQhW0Qq8y", "ssh-rsa AAAA", "cert-authority ssh-ed25519 AAAA", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEY\n-----END PGP PUBLIC KEY BLOCK-----",
		"-----BEGIN OPENSSH PRIVATE KEY-----", "", "\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys([]string{text})
		id, idErr := pubkey.ID(text)
		if err == nil && (keys.Empty() || idErr != nil || id == "") {
			t.Fatalf("%q is taken, and is no key: %q, %v", text, id, idErr)
		}
	})
}
