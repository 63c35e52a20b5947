package trust

import "testing"

// FuzzParse: whatever a trust root file holds, it is refused, or has an id and
// no key in both lists.
func FuzzParse(f *testing.F) {
	const head = "apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abx7\n"
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mPlYzO0RYVgAwWoEXSWrW4GwqjqGSUSzfQhW0Qq8y"
	for _, s := range []string{
		head, head + "  unsigned: true\n", head + "  policy: [{principal: a, publicKey: " + key + "}]\n  ledger: [{principal: b, publicKey: " + key + "}]\n",
		head + "  ledger: [{principal: b, publicKey: " + key + ", revoked: {after: 0123}}]\n", head + "  policy: [{publicKey: '-----BEGIN PGP PUBLIC KEY BLOCK-----'}]\n",
		"a: &a [*a]", "---\n---\n", "\x00", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse("root.yaml", text)
		if err != nil {
			if r != nil {
				t.Fatal("a root beside an error")
			}
			return
		}
		for _, p := range r.Policy(nil, nil) {
			for _, l := range r.Ledger(nil) {
				if p.Text == l.Text {
					t.Fatalf("key %q is in both lists", p.Text)
				}
			}
		}
	})
}
