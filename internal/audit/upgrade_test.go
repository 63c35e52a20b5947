package audit_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// The three steps of docs/signing.md, from a repository that the last release
// wrote: no contract ends, and the whole history verifies after each.
func TestUpgrade_UnsignedFleetInThreeSteps(t *testing.T) {
	signer, public := story.SSHKey(t)
	s := &fleet{story.FirstForm(t), t}
	names := map[string]string{}
	for _, intent := range []string{"train", "serve"} {
		names[intent] = s.Contract(intent).Metadata.Name
	}
	check := func(step string, root *trust.Root) audit.Report {
		t.Helper()
		rep, bad := s.judge(func(o *audit.Options) { o.Root, o.Branch = root, "ledger" })
		if len(bad) > 0 {
			t.Errorf("%s: violations %v", step, bad)
		}
		for intent, name := range names {
			if c := s.Contract(intent); c.Metadata.Name != name || c.Status.Phase != v1alpha1.PhaseActive {
				t.Errorf("%s: contract %s of %s is %s, want %s Active", step, c.Metadata.Name, intent, c.Status.Phase, name)
			}
		}
		return rep
	}
	before := check("as the last release left it", nil)
	if before.Signers == nil || before.Unsigned != before.Decisions || before.Seq != 0 {
		t.Errorf("the fixture has signatures or numbers: %+v", before)
	}

	// 1. The root with the present keys asks for nothing yet.
	unsigned := rootOf(public)
	unsigned.Unsigned = true
	s.Ask("one", 1, "")
	s.Rest()
	check("with an unsigned root", unsigned)

	// 2. The first signed commit: the daemon has its key, and the fleet names it.
	s.EditFleet("Name the daemon's key", "statusInterval: 1s", "statusInterval: 1s, signers: [{principal: fleetbroker, publicKey: "+public+"}]")
	s.SignWith(signer)
	s.Ask("two", 1, "")
	s.Rest()
	rep := check("with the first signed commit", rootOf(public))
	if !rep.Rooted || rep.BeforeRoot < before.Decisions || rep.BeforeRoot >= rep.Decisions {
		t.Errorf("%d of %d decisions are from before the root, want those of the last release (%d) and not all", rep.BeforeRoot, rep.Decisions, before.Decisions)
	}

	// 3. From now on an unsigned commit is nobody's.
	s.Ask("three", 1, "")
	s.Rest()
	check("signed", rootOf(public))
	s.forge(forged{puts: request("x")})
	if _, bad := s.judge(func(o *audit.Options) { o.Root = rootOf(public) }); len(bad) == 0 || !strings.HasPrefix(bad[0], "signature: ") {
		t.Errorf("an unsigned commit afterwards: %v", bad)
	}
}

// A history of rendering 2 cut long names of intents with a shorter hash: it follows
// from its contracts as it stands, and nothing of it does under today's number.
func TestUpgrade_ShortHashesOfRendering2(t *testing.T) {
	for number, want := range map[string]int{"1": 0, "2": 0, strconv.Itoa(manifests.Renderer): 2} {
		s := &fleet{story.New(t, "ledger", nil, ""), t}
		long := strings.Repeat("long-", 12) + "x"
		s.Ask(long, 4, "")
		s.Rest()
		c := s.Contract(long)
		if rep := s.verify(); len(rep.Violations) > 0 {
			t.Fatalf("as it is now: %v", rep.Violations)
		}
		root, err := s.Remote.Tree(s.Remote.Head("ledger"))
		if err != nil {
			t.Fatal(err)
		}
		puts := map[string][]byte{}
		for _, file := range append(manifests.VirtualNodeFiles(c), manifests.SliceFile(c)) {
			text, err := root.ReadFile(file, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			puts[file] = []byte(strings.ReplaceAll(string(text), v1alpha1.IntentValue("vision", long), v1alpha1.ShortIntentValue("vision", long)))
			if string(puts[file]) == string(text) {
				t.Fatalf("%s does not name its intent:\n%s", file, text)
			}
		}
		s.forge(forged{trailers: map[string]string{"Plan": "render", "Renderer": number}, puts: puts})
		if rep := s.verify(); len(rep.Violations) != want {
			t.Errorf("rendering %q: %d violations, want %d: %v", number, len(rep.Violations), want, rep.Violations)
		}
	}
}
