package gitrepo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// sshKey makes a key pair with ssh-keygen and returns the private key's file
// and the public key.
func sshKey(t testing.TB, kind, passphrase string) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	args := []string{"-q", "-t", kind, "-N", passphrase, "-C", "fleetbroker@example.org", "-f", file}
	if kind == "rsa" {
		args = append(args, "-b", "2048")
	}
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	pub, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return file, strings.TrimSpace(string(pub))
}

func keys(t testing.TB, texts ...string) gitrepo.Keys {
	t.Helper()
	k, err := gitrepo.ParseKeys(texts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSSHSignaturesThatGitAccepts(t *testing.T) {
	for name, c := range map[string]struct{ kind, passphrase string }{
		"ed25519":                {"ed25519", ""},
		"rsa":                    {"rsa", ""},
		"ed25519 and passphrase": {"ed25519", "open sesame"},
	} {
		t.Run(name, func(t *testing.T) {
			file, pub := sshKey(t, c.kind, c.passphrase)
			pass := ""
			if c.passphrase != "" {
				pass = secretFile(t, c.passphrase)
				if _, err := gitrepo.SSHSigner(file, ""); err == nil {
					t.Error("a locked key opened without its passphrase")
				}
			}
			signer, err := gitrepo.SSHSigner(file, pass)
			if err != nil {
				t.Fatal(err)
			}
			dir := bare(t)
			r := open(t, dial(t, dir, gitrepo.Auth{}), options(func(o *gitrepo.Options) {
				o.Identity.Signer, o.Identity.Trusted = signer, keys(t, pub)
			}))
			res := commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
			allowed := filepath.Join(t.TempDir(), "allowed")
			if err := os.WriteFile(allowed, []byte("fleetbroker@example.org "+pub+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", res.Head().String())
			if ours, err := r.MadeByUs(res.Head()); err != nil || !ours {
				t.Errorf("Ours of our own commit: got %v, %v", ours, err)
			}
			if !res.Commits[0].Commit.Signed {
				t.Error("the commit does not count as signed")
			}
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

func TestOpenPGPSignaturesThatGitAccepts(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	gpg := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return string(out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("gpgconf", "--homedir", home, "--kill", "all").CombinedOutput(); err != nil {
			t.Errorf("gpgconf: %v\n%s", err, out)
		}
	})
	gpg("--quick-gen-key", "fleetbroker <fleetbroker@example.org>", "ed25519", "sign", "never")
	file := filepath.Join(t.TempDir(), "key.asc")
	if err := os.WriteFile(file, []byte(gpg("--armor", "--export-secret-keys")), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := gitrepo.OpenPGPSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := bare(t)
	r := open(t, dial(t, dir, gitrepo.Auth{}), options(func(o *gitrepo.Options) {
		o.Identity.Signer, o.Identity.Trusted = signer, keys(t, gpg("--armor", "--export"))
	}))
	res := commit(t, r, request(fetch(t, r), contract("vision", "a", "1")))
	cmd := gitCmd(dir, "verify-commit", res.Head().String())
	cmd.Env = append(cmd.Env, "GNUPGHOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("git verify-commit: %v\n%s", err, out)
	}
	if ours, err := r.MadeByUs(res.Head()); err != nil || !ours {
		t.Errorf("Ours of our own commit: got %v, %v", ours, err)
	}
}

// In a signed fleet only the signature counts, over the bytes as they are.
func TestOursInASignedFleet(t *testing.T) {
	file, pub := sshKey(t, "ed25519", "")
	otherFile, _ := sshKey(t, "ed25519", "")
	sign := func(file string, c gitobj.CommitData) string {
		s, err := gitrepo.SSHSigner(file, "")
		if err != nil {
			t.Fatal(err)
		}
		sig, err := s.Sign(c.Payload())
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	m := seeded(t)
	base := gitobj.CommitData{
		Tree: tree.DirHash(nil), Author: person("Fleetbroker"), Committer: person("Fleetbroker"),
		Message: "place\n\nPlan: sha256:1\n",
	}
	signed := base
	signed.Signature = sign(file, base)
	stranger := base
	stranger.Signature = sign(otherFile, base)
	altered := signed
	altered.Message = "release\n\nPlan: sha256:1\n"
	double := strings.Replace(string(signed.Encode()), "\nauthor ", "\nauthor Eve <eve@example.org> 1 +0000\nauthor ", 1)
	twice := strings.Replace(string(signed.Encode()), "\n\nplace", "\ngpgsig x\n\nplace", 1)
	for name, c := range map[string]struct {
		raw  []byte
		want bool
	}{
		"signed by our key":   {signed.Encode(), true},
		"unsigned":            {base.Encode(), false},
		"signed by another":   {stranger.Encode(), false},
		"altered afterwards":  {altered.Encode(), false},
		"with two authors":    {[]byte(double), false},
		"with two signatures": {[]byte(twice), false},
	} {
		t.Run(name, func(t *testing.T) {
			set := gitobj.Set{}
			set.Add(gitobj.Tree, nil)
			h := set.Add(gitobj.Commit, c.raw)
			pack, err := set.Pack()
			if err != nil {
				t.Fatal(err)
			}
			ref := "refs/heads/ledger"
			m.SetRef(ref, tree.Hash{})
			if err := m.Push(t.Context(), []gitrepo.Command{{Ref: ref, New: h}}, pack); err != nil {
				t.Fatal(err)
			}
			r := open(t, m, options(func(o *gitrepo.Options) { o.Identity.Trusted = keys(t, pub) }))
			fetch(t, r)
			if got, err := r.MadeByUs(h); err != nil || got != c.want {
				t.Errorf("Ours: got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// A signature that was found good is not computed again, and counts only for who
// lists its key, unrevoked, and only over the very bytes.
func TestAProvenSignatureCountsForWhoListsItsKey(t *testing.T) {
	file, pub := sshKey(t, "ed25519", "")
	_, other := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	c := gitobj.CommitData{Tree: tree.DirHash(nil), Author: person("Fleetbroker"), Committer: person("Fleetbroker"), Message: "place\n"}
	if c.Signature, err = signer.Sign(c.Payload()); err != nil {
		t.Fatal(err)
	}
	revoked, err := gitrepo.NewKeys([]gitrepo.Key{{Principal: "fleetbroker", Text: pub, Revoked: true}})
	if err != nil {
		t.Fatal(err)
	}
	altered := c
	altered.Message = "release\n"
	raw, now := c.Encode(), time.Now()
	for round := range 3 { // the first proves it
		if i, err := keys(t, other, pub).SignerOf(raw, now); err != nil || i != 1 {
			t.Errorf("round %d: who lists the key second: got %d, %v; want 1", round, i, err)
		}
		if ok, err := keys(t, pub).Signed(raw); err != nil || !ok {
			t.Errorf("round %d: Signed: got %v, %v", round, ok, err)
		}
		if _, err := keys(t, other).SignerOf(raw, now); err == nil || !strings.Contains(err.Error(), "SHA256:") || !strings.Contains(err.Error(), "not listed") {
			t.Errorf("round %d: who lists another key: %v", round, err)
		}
		if ok, err := keys(t, other).Signed(raw); err != nil || ok {
			t.Errorf("round %d: Signed of who lists another key: got %v, %v", round, ok, err)
		}
		if _, err := revoked.SignedCommit(tree.Hash{1}, raw, now, nil); err == nil || !strings.Contains(err.Error(), "revokes") {
			t.Errorf("round %d: who revoked the key: %v", round, err)
		}
		if _, err := keys(t, pub).SignerOf(altered.Encode(), now); err == nil {
			t.Errorf("round %d: the signature counts for a commit that was altered", round)
		}
	}
}

func TestParseKeysRefuses(t *testing.T) {
	for _, text := range []string{"", "ssh-ed25519", "-----BEGIN PGP PUBLIC KEY BLOCK-----\nx"} {
		if _, err := gitrepo.ParseKeys([]string{text}); err == nil {
			t.Errorf("%q was taken for a key", text)
		}
	}
}
