//go:build e2e

package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One entry in the trust root has a ledger that was set back accepted by all replicas, by
// one without state and by auditors with an older witness. It stays in the file, and
// excuses no other set-back.
func TestRewriteAcceptedByTheTrustRoot(t *testing.T) {
	l := makeLedger(t)
	notes := filepath.Join(l.dir, "fleet/flavors/paris/l4.yaml")
	round := func(state string) ran {
		return run(t, "fleetbroker", "reconcile", "--once", "--repo", "file://"+l.repo, "--market", notes,
			"--trust-root", l.root, "--signing-key", l.daemon, "--state-dir", filepath.Join(l.dir, state))
	}
	audit := func(args ...string) ran {
		return run(t, "fleetbroker", append([]string{"audit", "verify", "file://" + l.repo, "--trust-root", l.root}, args...)...)
	}
	want := func(what string, r ran, code int, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(r.out+r.said, text) {
				t.Errorf("%s: no %q in %s%s", what, text, r.out, r.said)
			}
		}
		if r.code != code {
			t.Errorf("%s: exit code %d, want %d: %s%s", what, r.code, code, r.out, r.said)
		}
	}
	want("a second replica", round("state-1"), 0)
	l.git("update-ref", "refs/heads/ledger", l.beforeDecided)
	for _, state := range []string{"state", "state-1", "none"} {
		want("replica "+state, round(state), 1, "was rewritten", "accept: [{branch: ledger, commit: "+l.beforeDecided+", drops: "+l.head+"}]")
	}
	want("an auditor", audit("--witness", l.witness), 1, "was set back or rewritten")

	text, err := os.ReadFile(l.root)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(entry string) {
		t.Helper()
		if err := os.WriteFile(l.root, []byte(string(text)+"  accept:\n  - "+entry+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accept("{branch: ledger, commit: " + strings.Repeat("a", 40) + ", drops: " + l.head + "}")
	want("a commit that is nowhere", round("state"), 1, "was rewritten", "accepts a commit that no branch contains")
	accept("{branch: ledger, commit: abc, drops: " + l.head + "}")
	want("no commit", round("state"), 1, `"abc" is no commit`)

	accept("{branch: ledger, commit: " + l.beforeDecided + ", drops: " + l.head + "}")
	for _, state := range []string{"state", "state-1", "new"} {
		want("replica "+state, round(state), 0)
	}
	if got := l.git("log", "--format=%(trailers:key=Dropped,valueonly,separator=%x2C)", "ledger"); strings.Count(got, l.head) != 1 {
		t.Errorf("the ledger names what was let go of not once:\n%s", got)
	}
	want("an auditor", audit("--witness", l.witness), 0, "the trust root accepts it")
	stood := l.git("rev-parse", "ledger")
	later := filepath.Join(l.dir, "later.json")
	want("a later witness", run(t, "fleetbroker", "audit", "export", "file://"+l.repo, "--trust-root", l.root, "-o", later), 0)

	l.git("update-ref", "refs/heads/ledger", l.beforeDecided)
	for _, state := range []string{"state", "state-1", "another"} {
		want("set back once more, replica "+state, round(state), 1, "was rewritten")
	}
	want("an auditor", audit("--witness", later), 1, "was set back or rewritten", stood)
}
