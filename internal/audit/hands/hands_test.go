package hands

import (
	"strings"
	"testing"
)

// TestClaimed: no more is said of who made a commit than its signature proves.
func TestClaimed(t *testing.T) {
	for why, want := range map[string]string{
		"it is not signed": "whoever may push to the ledger can have made it",
		"it is signed by the key SHA256:x, which is not listed":                           "whoever may push to the ledger can have made it",
		"the key of fleetbroker is revoked, and this commit is none of those before":      "whoever has that key can have made it, the daemon too",
		"the key of fleetbroker is revoked after 4f1c2ab, which is not in the repository": "whoever has that key can have made it, the daemon too",
	} {
		got := Claimed("fleetbroker <broker@example.org>", "the trust root's keys", why)
		if !strings.HasPrefix(got, "bears the daemon's name (fleetbroker <broker@example.org>) without a signature by any of the trust root's keys: "+why+"; ") || !strings.Contains(got, want) || strings.Contains(got, "our") {
			t.Errorf("%s: got %s", why, got)
		}
	}
}
