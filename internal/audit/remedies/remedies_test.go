package remedies

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// TestOf: each rule has a remedy, said once, and each entry of the runbook that it names exists.
func TestOf(t *testing.T) {
	runbook, err := os.ReadFile("../../../fleet-repo-template/docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`(?:A|An|The|Foreign) [a-z ]+(?:stolen|undone|rewritten|verified|read)\b`)
	root := &trust.Root{File: "trust-root.yaml"}
	for _, tc := range []struct {
		v    audit.Violation
		root *trust.Root
		want string
	}{
		{audit.Violation{Rule: "signature"}, nil, "--trust-root FILE"},
		{audit.Violation{Rule: "signature"}, root, "the list ledger in trust-root.yaml"},
		{audit.Violation{Rule: "signature", Message: "the key of a is revoked after b, which is not in the repository"}, root, "correct revoked.after in trust-root.yaml"},
		{audit.Violation{Rule: "signature", Message: "bears the daemon's name (a) without a signature by any of b: it is not signed; a name is anybody's to write"}, root, "which account brought the commit"},
		{audit.Violation{Rule: "foreign"}, root, "who may push to the ledger"},
		{audit.Violation{Rule: "sequence", Message: "Fleet is a, the trust root is that of b"}, root, "of two fleets"},
		{audit.Violation{Rule: "sequence", Message: "the ledger was set back or rewritten: it does not hold c"}, root, "put the branch back"},
		{audit.Violation{Rule: "sequence", Message: "has no trailer Ledger"}, root, "git show"},
		{audit.Violation{Rule: "inputs"}, root, "An input is not verified"},
		{audit.Violation{Rule: "readable"}, root, "The ledger cannot be read"},
		{audit.Violation{Rule: "oversold"}, root, "audit replay"},
	} {
		got := Of([]audit.Violation{tc.v, tc.v}, tc.root)
		if len(got) != 1 || !strings.Contains(got[0], tc.want) {
			t.Errorf("%s %s: got %q, want one line with %q", tc.v.Rule, tc.v.Message, got, tc.want)
		}
		for _, line := range got {
			for _, e := range entries.FindAllString(line, -1) {
				if !strings.Contains(string(runbook), "\n## "+e+"\n") {
					t.Errorf("the runbook has no entry %q", e)
				}
			}
		}
	}
	if got := Of([]audit.Violation{{Rule: "foreign", Undone: "4f1c2ab"}}, root); len(got) > 0 {
		t.Errorf("got %q for what the daemon has undone, want nothing", got)
	}
}
