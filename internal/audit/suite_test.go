package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/test/attacks"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// What is known that somebody who may push can do to a signed ledger, found by
// the rule that is for it, at the commit that does it.
func TestAttacksOnASignedHistory(t *testing.T) {
	signer, public := story.SSHKey(t)
	revoked, revokedKey := story.SSHKey(t)
	people, peoplesKey := story.SSHKey(t)
	root := rootWith([]string{peoplesKey}, map[string]tree.Hash{revokedKey: {}}, public, revokedKey)
	s := &fleet{story.Rooted(t, "ledger", root, signer, people), t}
	refs := s.Remote.AllRefs()
	all := attacks.All()
	if len(all) < 20 {
		t.Fatalf("%d attacks, want at least 20", len(all))
	}
	for _, a := range all {
		t.Run(strings.ReplaceAll(a.Name, " ", "-"), func(t *testing.T) {
			for ref := range s.Remote.AllRefs() {
				s.Remote.SetRef(ref, refs[ref])
			}
			target := &attacks.Target{
				Remote: s.Remote, Ledger: "ledger", At: s.At.Add(time.Minute), As: "ledger",
				Daemon: gitobj.Person{Name: "fleetbroker", Email: "broker@example.org"}, Signer: signer, Revoked: revoked, Policy: people,
			}
			verify := func() (audit.Report, error) {
				o := audit.Options{Ledger: s.Remote.Head(target.As), Inputs: s.Remote.Head("main"), Root: root, Branch: target.As, All: true}
				for _, h := range target.Stood {
					o.Known = append(o.Known, audit.Known{Commit: h, By: "it was seen"})
				}
				return audit.Verify(t.Context(), s.Remote.Objects(), o)
			}
			if rep, err := verify(); err != nil || len(rep.Violations) > 0 {
				t.Fatalf("before: %v, %v", rep.Violations, err)
			}
			if err := a.Do(target); err != nil {
				t.Fatal(err)
			}
			rep, err := verify()
			if a.Rule == "" {
				if err == nil {
					t.Errorf("it was read: %+v", rep)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == a.Rule && strings.Contains(fmt.Sprint(v), a.Says) }) {
				t.Errorf("violations %.600s, want rule %s that says %q", fmt.Sprint(rep.Violations), a.Rule, a.Says)
			}
		})
	}
}
