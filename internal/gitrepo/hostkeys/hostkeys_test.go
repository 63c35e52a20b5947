package hostkeys

import (
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func key(t *testing.T, seed byte) ssh.PublicKey {
	t.Helper()
	s, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
	return s.PublicKey()
}

// A key that has changed is refused with both keys named; one that is known, or unknown, is
// answered as before.
func TestExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	old, other := key(t, 'a'), key(t, 'b')
	lines := "# ours\n" + knownhosts.Line([]string{"git.example.org"}, old) + "\n" + knownhosts.Line([]string{"[git.example.org]:2222"}, old) + "\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := knownhosts.New(file)
	if err != nil {
		t.Fatal(err)
	}
	check := Explained(known)
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}
	if err := check("git.example.org:22", at, old); err != nil {
		t.Errorf("the known key: %v", err)
	}
	for host, want := range map[string][]string{
		"git.example.org:22":   {"git.example.org shows another host key", file + ":2", "-R git.example.org -f " + file + ")"},
		"git.example.org:2222": {"[git.example.org]:2222 shows another host key", file + ":3", "-R '[git.example.org]:2222' -f "},
	} {
		err := check(host, at, other)
		var cause *knownhosts.KeyError
		if !errors.As(err, &cause) {
			t.Fatalf("%s: %v", host, err)
		}
		for _, text := range append(want, "ssh-ed25519 "+ssh.FingerprintSHA256(other)) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in %v", host, text, err)
			}
		}
	}
	if err := check("other.example.org:22", at, other); err == nil || strings.Contains(err.Error(), "another host key") {
		t.Errorf("an unknown host: %v", err)
	}
}
