package trust_test

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// key is a public key made of a seed.
func key(t *testing.T, seed byte) string {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	pub, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub)))
}

const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"

func TestParse_RefusesByPlace(t *testing.T) {
	policy, ledger := key(t, 'a'), key(t, 'b')
	for name, c := range map[string]struct{ spec, want string }{
		"unknown field":   {"  polcy: []\n", "root.yaml:6:3"},
		"one key in both": {"  policy:\n  - {principal: g, publicKey: " + policy + "}\n  ledger:\n  - {principal: d, publicKey: " + policy + "}\n", "root.yaml:9:31: the same key is in policy already"},
		"key options":     {"  policy:\n  - {principal: g, publicKey: 'valid-before=\"20270101\" " + policy + "'}\n  ledger:\n  - {principal: d, publicKey: " + ledger + "}\n", "root.yaml:7:31: it has options"},
		"no commit":       {"  policy:\n  - {principal: g, publicKey: " + policy + ", revoked: {after: abc}}\n  ledger:\n  - {principal: d, publicKey: " + ledger + "}\n", "is no commit"},
		"no keys":         {"  policy: []\n", "a signed fleet needs keys of people in policy and of daemons in ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trust.Parse("root.yaml", []byte(head+c.spec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := trust.Parse("root.yaml", []byte(strings.Replace(head, "f3k9q2abu7", "Fleet", 1)+"  unsigned: true\n")); err == nil || !strings.Contains(err.Error(), "root.yaml:5:12") {
		t.Errorf("a bad fleet id: %v", err)
	}
}

func TestKeysInForce_RootAndChain(t *testing.T) {
	policy, ledger, next, stolen := key(t, 'a'), key(t, 'b'), key(t, 'c'), key(t, 'd')
	root, err := trust.Parse("root.yaml", []byte(head+"  policy:\n  - {principal: grace, publicKey: "+policy+"}\n  ledger:\n  - {principal: one, publicKey: "+ledger+"}\n  - {principal: lost, publicKey: "+stolen+", revoked: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	list := func(keys []gitrepo.Key) string {
		var names []string
		for _, k := range keys {
			names = append(names, k.Principal)
			if k.Revoked {
				names = append(names, "revoked")
			}
		}
		return strings.Join(names, " ")
	}
	for name, c := range map[string]struct {
		chain []v1alpha1.Signer
		want  string
	}{
		"root alone":                          {nil, "one lost revoked"},
		"the chain adds":                      {[]v1alpha1.Signer{{Principal: "two", PublicKey: next}}, "one lost revoked two"},
		"the chain drops one of the root":     {[]v1alpha1.Signer{{Principal: "two", PublicKey: next}, {PublicKey: ledger + " comment", Dropped: true}}, "lost revoked two"},
		"the chain cannot unrevoke":           {[]v1alpha1.Signer{{Principal: "back", PublicKey: stolen}}, "one lost revoked"},
		"people's keys make no ledger commit": {[]v1alpha1.Signer{{Principal: "grace", PublicKey: policy}}, "one lost revoked"},
	} {
		if got := list(root.Ledger(c.chain)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		chain, daemons []v1alpha1.Signer
		want           string
	}{
		"root alone":                             {nil, nil, "grace"},
		"the chain adds":                         {[]v1alpha1.Signer{{Principal: "heidi", PublicKey: next}}, nil, "grace heidi"},
		"a daemon's key gives no rights":         {[]v1alpha1.Signer{{Principal: "daemon", PublicKey: ledger}}, nil, "grace"},
		"nor does one that the chain lets in":    {[]v1alpha1.Signer{{Principal: "two", PublicKey: next}}, []v1alpha1.Signer{{Principal: "two", PublicKey: next + " comment"}}, "grace"},
		"a key that is no daemon's any more":     {[]v1alpha1.Signer{{Principal: "two", PublicKey: next}}, []v1alpha1.Signer{{PublicKey: next, Dropped: true}}, "grace two"},
		"the chain makes no person a daemon":     {nil, []v1alpha1.Signer{{Principal: "grace", PublicKey: policy}}, "grace"},
		"the chain drops a person of the root's": {[]v1alpha1.Signer{{PublicKey: policy, Dropped: true}}, nil, ""},
	} {
		if got := list(root.Policy(c.chain, c.daemons)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A revocation after a commit that is not there is named by its place; one after a commit
// that is there, and one without a commit, is not.
func TestUnknown(t *testing.T) {
	text := "  policy:\n  - {principal: grace, publicKey: " + key(t, 'a') + "}\n  - {principal: ada, publicKey: " + key(t, 'b') + ", revoked: {after: '" + strings.Repeat("1", 40) + "'}}\n" +
		"  ledger:\n  - {principal: one, publicKey: " + key(t, 'c') + ", revoked: {}}\n  - principal: two\n    publicKey: " + key(t, 'd') + "\n    revoked:\n      after: '" + strings.Repeat("2", 40) + "'\n"
	root, err := trust.Parse("root.yaml", []byte(head+text))
	if err != nil {
		t.Fatal(err)
	}
	has := func(h tree.Hash) bool { return h.String()[0] == '1' }
	got := root.Unknown(has, false)
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), "14:14: the key of two in the list ledger is revoked after 2222") || !strings.Contains(got[0].Remedy, "git log of the branch of the ledger") {
		t.Errorf("got %q", got)
	}
	if got := root.Unknown(func(tree.Hash) bool { return false }, true); len(got) != 2 || !strings.Contains(got[0].String(), "is not known: this clone is shallow") {
		t.Errorf("shallow: got %q", got)
	}
	if got := (*trust.Root)(nil).Unknown(has, false); len(got) > 0 {
		t.Errorf("without a root: got %q", got)
	}
}
