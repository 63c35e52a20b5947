package retyped

import (
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

func TestVerify(t *testing.T) {
	for want, got := range map[string]string{
		"fleetbroker audit verify --all --trust-root FILE":                                   Source{Branch: "main", Signed: true}.Verify("--all"),
		"fleetbroker audit verify":                                                           Source{Branch: "main"}.Verify(),
		"fleetbroker audit verify --witness w.json -C fleet --trust-root keys/root.yaml":     Source{Dir: "fleet", TrustRoot: "keys/root.yaml"}.Verify("--witness", "w.json"),
		`fleetbroker audit verify --witness 'it'\''s $(x)' -C 'my fleet' --trust-root 'r t'`: Source{Dir: "my fleet", TrustRoot: "r t"}.Verify("--witness", "it's $(x)"),
		"fleetbroker audit verify -C git@example.org:acme/fleet --branch trunk --git-user bot --git-password-file token --git-ssh-key id --trust-root FILE": Source{
			Signed: true, Dir: "git@example.org:acme/fleet", Branch: "trunk", Auth: gitrepo.Auth{User: "bot", PasswordFile: "token", SSHKeyFile: "id"},
		}.Verify(),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
