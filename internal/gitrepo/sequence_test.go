package gitrepo_test

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// Every commit of the ledger has a number, one above the highest before it, and
// names the trust root where another one stood before. A number that is not ours
// counts for nothing.
func TestCommit_NumbersTheLedger(t *testing.T) {
	m := seeded(t)
	file, pub := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	root := "sha256:01"
	opts := options(func(o *gitrepo.Options) {
		o.Identity.Signer, o.Identity.Trusted, o.Identity.Signed = signer, keys(t, pub), true
		o.Identity.Fleet, o.Identity.Root = "f3k9q2abu7", root
	})
	r := open(t, m, opts)
	put := func(name string) gitrepo.Commit {
		return commit(t, r, request(fetch(t, r), contract("vision", name, "1"))).Commits[0].Commit
	}
	want := func(c gitrepo.Commit, seq, root string) {
		t.Helper()
		if got := c.Trailer("Ledger"); got != "ledger "+seq || c.Trailer("Root") != root {
			t.Errorf("got Ledger: %q, Root: %q; want number %s, root %q", got, c.Trailer("Root"), seq, root)
		}
	}
	want(put("a"), "1", root)
	want(put("b"), "2", "")
	if _, err := m.Commit("ledger", person("eve"), "Count\n\nLedger: ledger 900\nRoot: sha256:99\n", gitobj.Change{Puts: map[string][]byte{"notes": []byte("1")}}); err != nil {
		t.Fatal(err)
	}
	r = open(t, m, opts) // and one that remembers nothing
	want(put("c"), "3", "")
	opts.Identity.Root = "sha256:02"
	r = open(t, m, opts)
	want(put("d"), "4", "sha256:02")
	want(put("e"), "5", "")
}

// A key that the trust root revokes after a commit makes that commit and its
// ancestors ours, and nothing later.
func TestOurs_RevokedKey(t *testing.T) {
	m := seeded(t)
	file, pub := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, m, options(func(o *gitrepo.Options) { o.Identity.Signer, o.Identity.Trusted = signer, keys(t, pub) }))
	var made []gitrepo.Commit
	for _, name := range []string{"a", "b", "c"} {
		made = append(made, commit(t, r, request(fetch(t, r), contract("vision", name, "1"))).Commits[0].Commit)
	}
	for name, c := range map[string]struct {
		key  gitrepo.Key
		want [3]bool
	}{
		"after the second":   {gitrepo.Key{Text: pub, Revoked: true, After: made[1].Hash}, [3]bool{true, true, false}},
		"from the beginning": {gitrepo.Key{Text: pub, Revoked: true}, [3]bool{}},
	} {
		trusted, err := gitrepo.NewKeys([]gitrepo.Key{c.key})
		if err != nil {
			t.Fatal(err)
		}
		r.SetIdentity(gitrepo.Identity{Name: "fleetbroker", Email: "broker@example.org", Trusted: trusted, Signed: true})
		for i, m := range made {
			if ours, err := r.MadeByUs(m.Hash); err != nil || ours != c.want[i] {
				t.Errorf("%s: commit %d is ours: %v (%v), want %v", name, i, ours, err, c.want[i])
			}
		}
	}
}

func TestParseKeysRefusesOptions(t *testing.T) {
	_, pub := sshKey(t, "ed25519", "")
	for _, options := range []string{`valid-before="20270101" `, `namespaces="git" `, `cert-authority `} {
		if _, err := gitrepo.ParseKeys([]string{options + pub}); err == nil {
			t.Errorf("%s is ignored silently", options)
		}
	}
}

// A commit that says twice what is said once is not ours, though our key signed it: what it
// says depends on who reads it. Its number counts for nothing.
func TestOurs_SaysNothingTwice(t *testing.T) {
	m := seeded(t)
	file, pub := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, signed := range map[string]bool{"a": true, "b": false} {
		r := open(t, m, options(func(o *gitrepo.Options) {
			if signed {
				o.Identity.Signer, o.Identity.Trusted, o.Identity.Signed = signer, keys(t, pub), true
			}
		}))
		own := commit(t, r, request(fetch(t, r), contract("vision", name, "1"))).Commits[0].Commit
		before, err := r.Sequence(own.Hash)
		if err != nil {
			t.Fatal(err)
		}
		for trailers, want := range map[string]bool{
			"Plan: x\nLedger: ledger 90\nContract: a - -> Binding\nContract: b - -> Binding": true,
			"Plan: x\nLedger: ledger 90\nLedger: ledger 91":                                  false,
			"Plan: x\nLedger: ledger 90\nplan: y":                                            false,
		} {
			m.SetRef(gitrepo.Branch("ledger"), own.Hash)
			h, err := m.Merge("ledger", own.Committer, "Place\n\n"+trailers+"\n", gitobj.Change{Puts: map[string][]byte{"contracts/x": []byte("1")}}, signer)
			if err != nil {
				t.Fatal(err)
			}
			fetch(t, r)
			ours, err := r.MadeByUs(h)
			seq, seqErr := r.Sequence(h)
			if err != nil || seqErr != nil || ours != want || seq != map[bool]uint64{true: 90, false: before}[want] {
				t.Errorf("signed %v, %q: ours %v, number %d (%v, %v)", signed, trailers, ours, seq, err, seqErr)
			}
		}
		m.SetRef(gitrepo.Branch("ledger"), own.Hash)
	}
}
