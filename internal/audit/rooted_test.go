package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// rooted is a fleet with a history whose daemon is held to a trust root.
func rooted(t testing.TB, branch string) (s *fleet, root *trust.Root, signer gitrepo.Signer) {
	t.Helper()
	signer, public := story.SSHKey(t)
	people, peoplesKey := story.SSHKey(t)
	root = rootWith([]string{peoplesKey}, nil, public)
	return &fleet{story.Rooted(t, branch, root, signer, people), t}, root, signer
}

// What the daemon held back for want of a signature the auditor holds back too,
// by the same root; without it he says what is wanting.
func TestVerify_InputsUnderTheRoot(t *testing.T) {
	for _, branch := range []string{"ledger", "main"} {
		t.Run(branch, func(t *testing.T) {
			s, root, _ := rooted(t, branch)
			with := func(o *audit.Options) { o.Root, o.Branch = root, branch }
			if rep, bad := s.judge(with); len(bad) > 0 || !rep.Rooted {
				t.Fatalf("honest: %v", bad)
			}
			s.Unsigned(func() {
				s.Push("Cheaper", map[string]string{"flavors/paris/h100.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: h100, namespace: paris}\nspec:\n  capacity: {cpu: \"256\", memory: 2Ti, gpu: 1600}\n" +
					"  gpu: {vendor: nvidia, model: nvidia-h100, memory: 80Gi, resourceName: nvidia.com/gpu}\n  price: {currency: EUR, perHour: {gpu: \"0.01\"}}\n"})
				s.Ask("later", 1, "")
			})
			s.Rest()
			if c := s.Contract("later"); c.Spec.Price.Hourly.String() != "2.5" {
				t.Errorf("price of what was asked for afterwards: %s", c.Spec.Price.Hourly)
			}
			if _, bad := s.judge(with); len(bad) > 0 {
				t.Errorf("after an unsigned change of prices: %v", bad)
			}
			if _, bad := s.judge(func(o *audit.Options) { o.Branch = branch }); len(bad) == 0 || !strings.Contains(bad[0], "give it with --trust-root") {
				t.Errorf("without the root: %v", bad)
			}
			if _, bad := s.judge(func(o *audit.Options) { with(o); o.From = o.Ledger }); len(bad) > 0 {
				t.Errorf("from the head: %v", bad)
			}
		})
	}
}

// A key that fleet.yaml drops signs nothing more, for the auditor as for the
// daemon.
func TestVerify_DroppedKey(t *testing.T) {
	signer, public := story.SSHKey(t)
	next, nextKey := story.SSHKey(t)
	for _, root := range []*trust.Root{nil, rootOf(public, nextKey)} {
		s := lived(t, "ledger", signer, public)
		s.EditFleet("Drop a key", public+"}", public+", dropped: true}, {principal: next, publicKey: "+nextKey+"}")
		s.forge(forged{puts: request("a"), signer: signer})
		s.forge(forged{puts: request("b"), signer: next})
		if _, bad := s.judge(func(o *audit.Options) { o.Root = root }); len(bad) > 0 {
			t.Errorf("root %v: %v", root != nil, bad)
		}
		s.forge(forged{puts: request("c"), signer: signer})
		if _, bad := s.judge(func(o *audit.Options) { o.Root = root }); len(bad) == 0 || !strings.HasPrefix(bad[0], "signature: ") {
			t.Errorf("root %v: signed by the dropped key: %v", root != nil, bad)
		}
	}
}

// A key that fleet.yaml adds, signed by a person of the root, signs the very next
// commit: daemons write with it at once. Without a root an old key goes first.
func TestVerify_AddedKeySignsAtOnce(t *testing.T) {
	s, root, _ := rooted(t, "ledger")
	next, nextKey := story.SSHKey(t)
	s.EditFleet("Add a key", "writeBack: {", "writeBack: {signers: [{principal: next, publicKey: "+nextKey+"}], ")
	s.forge(forged{puts: request("a"), signer: next})
	if _, bad := s.judge(func(o *audit.Options) { o.Root, o.Branch = root, "ledger" }); len(bad) > 0 {
		t.Errorf("with the root: %v", bad)
	}
	stranger, _ := story.SSHKey(t)
	s.forge(forged{puts: request("b"), signer: stranger})
	if _, bad := s.judge(func(o *audit.Options) { o.Root, o.Branch = root, "ledger" }); len(bad) == 0 || !strings.HasPrefix(bad[0], "signature: ") {
		t.Errorf("signed by a stranger: %v", bad)
	}
}

// What an operator accepts by --accept-rewrite stands in a commit of its own, which
// changes nothing and is made before anything is decided: also where what was let go
// of is a head of the inputs.
func TestVerify_AcceptedRewriteHasACommit(t *testing.T) {
	for _, branch := range []string{"main", "ledger"} {
		s, root, _ := rooted(t, "ledger")
		s.Ask("other", 1, "")
		s.Rest()
		stood := s.Remote.Head(branch)
		before, err := s.Remote.Log(branch)
		if err != nil {
			t.Fatal(err)
		}
		s.Remote.SetRef(gitrepo.Branch(branch), before[1].Hash)
		if branch == "main" {
			s.Ask("instead", 1, "")
		}
		var rewritten *gitrepo.ErrRewritten
		if err := s.Round(); !errors.As(err, &rewritten) {
			t.Fatalf("%s was rewritten, and the round reports %v", branch, err)
		}
		s.AcceptRewrite(s.Remote.Head(branch))
		s.Rest()
		log, err := s.Remote.Log("ledger")
		if err != nil {
			t.Fatal(err)
		}
		named := slices.IndexFunc(log, func(c memremote.Logged) bool { return len(gitobj.Trailers(c.Message, "Dropped")) > 0 })
		if named < 0 || slices.IndexFunc(log[named+1:], func(c memremote.Logged) bool { return len(gitobj.Trailers(c.Message, "Dropped")) > 0 }) >= 0 {
			t.Fatalf("%s: no commit, or more than one, names what was let go of", branch)
		}
		c := log[named]
		if got := gitobj.Trailers(c.Message, "Dropped"); !slices.Equal(got, []string{branch + " " + stood.String()}) || !slices.Equal(gitobj.Trailers(c.Message, "Plan"), []string{"accept"}) || c.Signature == "" {
			t.Errorf("%s: the commit reads %q, want that %s was let go of", branch, c.Message, stood.Short())
		}
		if is, was := treeOf(t, s, c.Hash), treeOf(t, s, c.Parents[0]); is != was {
			t.Errorf("%s: the commit changes files", branch)
		}
		rep, bad := s.judge(func(o *audit.Options) {
			o.Root, o.Branch = root, "ledger"
			if branch == "ledger" {
				o.Known = []audit.Known{{Commit: stood, By: "it was seen"}}
			}
		})
		if len(bad) > 0 || len(rep.Dropped) != 1 {
			t.Errorf("%s: %v, dropped %v", branch, bad, rep.Dropped)
		}
	}
}

func treeOf(t *testing.T, s *fleet, commit tree.Hash) tree.Hash {
	t.Helper()
	is, err := s.Remote.Tree(commit)
	if err != nil {
		t.Fatal(err)
	}
	return is.Root
}

// A head that an operator let go of is no violation where a signed commit names
// it, or the auditor does, and one by whoever pushes. For a witness's head only the
// auditor's word counts: the commit may be signed by a stolen key.
func TestVerify_DroppedHeads(t *testing.T) {
	s, root, signer := rooted(t, "ledger")
	old := s.Remote.Head("ledger")
	s.forge(forged{puts: request("a"), signer: signer})
	between := s.Remote.Head("ledger")
	s.forge(forged{puts: request("b"), signer: signer})
	stood := s.Remote.Head("ledger")
	set := func(names tree.Hash, by gitrepo.Signer) {
		s.Remote.SetRef(gitrepo.Branch("ledger"), old)
		s.forge(forged{puts: request("c"), signer: signer})
		s.forge(forged{puts: request("d"), signer: by, trailers: map[string]string{"Dropped": "ledger " + names.String()}})
	}
	for name, c := range map[string]struct {
		names, known tree.Hash
		signer       gitrepo.Signer
		accepted     tree.Hash
		good         bool
	}{
		"named":                 {names: stood, known: stood, signer: signer, good: true},
		"below what is named":   {names: stood, known: between, signer: signer, good: true},
		"above what is named":   {names: between, known: stood, signer: signer},
		"named by nobody's key": {names: stood, known: stood},
		"named by the auditor":  {names: old, known: stood, signer: signer, accepted: stood, good: true},
	} {
		set(c.names, c.signer)
		rep, bad := s.judge(func(o *audit.Options) {
			o.Root, o.Branch = root, "ledger"
			o.Known = []audit.Known{{Commit: c.known, By: "it was seen"}}
			if !c.accepted.IsZero() {
				o.AcceptRewrite = []tree.Hash{c.accepted}
			}
		})
		set := slices.ContainsFunc(bad, func(v string) bool { return strings.Contains(v, "was set back or rewritten") })
		if set == c.good || c.good && len(bad) > 0 {
			t.Errorf("%s: %v", name, bad)
		}
		raw, err := s.Remote.Objects().Commit(c.known)
		if err != nil {
			t.Fatal(err)
		}
		kept := audit.Witness{Branch: "ledger", Commit: c.known.String(), Object: raw}
		_, bad = s.judge(func(o *audit.Options) {
			o.Root, o.Branch, o.Witness = root, "ledger", &kept
			if !c.accepted.IsZero() {
				o.AcceptRewrite = []tree.Hash{c.accepted}
			}
		})
		if said := strings.Join(bad, "; "); strings.Contains(said, "(the witness has it)") != c.accepted.IsZero() ||
			strings.Contains(said, "any holder of a daemon's key can write: where the operator confirms it, add --accept-rewrite "+c.known.String()) != (c.good && c.accepted.IsZero()) {
			t.Errorf("%s, by a witness: %v", name, bad)
		}
		if (len(rep.Dropped) == 1 && rep.Dropped[0].Head == c.names.String()) != (c.signer != nil) {
			t.Errorf("%s: dropped: %+v", name, rep.Dropped)
		}
	}
}

// Rules that this program does not know are named for each commit, neither a
// violation nor passed over.
func TestVerify_RulesOfANewerProgram(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	newer := fmt.Sprint(planner.Rules + 1)
	s.forge(forged{puts: request("a"), trailers: map[string]string{"Rules": newer}})
	s.forge(forged{puts: request("b"), trailers: map[string]string{"Rules": newer}})
	rep, bad := s.judge(func(*audit.Options) {})
	if len(bad) > 0 || len(rep.Notes) != 1 || rep.Notes[0].Commits != 2 || !strings.HasPrefix(rep.Notes[0].Message, "decided by rules "+newer+", which this program does not know") {
		t.Errorf("notes %v, violations %v", rep.Notes, bad)
	}
	s.forge(forged{puts: request("c"), trailers: map[string]string{"Rules": "x"}})
	if _, bad := s.judge(func(*audit.Options) {}); len(bad) != 1 || bad[0] != `trailers: Rules is no number: "x"` {
		t.Errorf("violations %v", bad)
	}
	// The daemon neither plans nor delivers there.
	s.forge(forged{puts: request("d"), trailers: map[string]string{"Rules": newer}})
	s.Start()
	s.Ask("later", 1, "")
	head := s.Remote.Head("ledger")
	if err := s.Round(); err == nil || !strings.Contains(err.Error(), "the ledger was decided by rules "+newer) {
		t.Errorf("a round on it: %v", err)
	}
	if s.Remote.Head("ledger") != head {
		t.Error("the daemon wrote")
	}
}

// Dates of others say nothing: a commit from the future by who may push stops no
// signed daemon, and is undone.
func TestFutureDatesOfOthersStopNothing(t *testing.T) {
	s, root, _ := rooted(t, "ledger")
	eve := s.eve()
	eve.When = s.At.AddDate(1, 0, 0)
	if _, err := s.Remote.Merge("ledger", eve, "from the future", gitobj.Change{Puts: request("evil")}, nil); err != nil {
		t.Fatal(err)
	}
	s.Ask("later", 1, "")
	s.Rest()
	s.Contract("later")
	now, err := s.Remote.Tree(s.Remote.Head("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := now.Find("requests/vision/202611/evil.yaml"); err == nil {
		t.Error("it was not undone")
	}
	if _, bad := s.judge(func(o *audit.Options) { o.Root, o.Branch = root, "ledger" }); len(bad) != 1 || !strings.HasPrefix(bad[0], "foreign: added by Eve") {
		t.Errorf("violations %v, want that of Eve's commit alone", bad)
	}
}

// Whoever signed what stands on a ledger is known without its history.
func TestVouched(t *testing.T) {
	s, root, signer := rooted(t, "main")
	who := func() (string, string) {
		t.Helper()
		by, why, err := audit.Vouched(t.Context(), s.Remote.Objects(), s.Remote.Head("main"), root, nil)
		if err != nil {
			t.Fatal(err)
		}
		return by, why
	}
	s.Unsigned(func() { s.Ask("more", 1, "") })
	if by, why := who(); by != "broker-0" || why != "" {
		t.Errorf("by %q, %q", by, why)
	}
	if _, err := s.Remote.Merge("main", s.eve(), "evil", gitobj.Change{Puts: request("evil")}, nil); err != nil {
		t.Fatal(err)
	}
	if by, why := who(); by != "" || !strings.Contains(why, "by Eve <eve@example.org>") {
		t.Errorf("by %q, %q", by, why)
	}
	s.forge(forged{puts: request("b"), signer: signer})
	if by, _ := who(); by != "broker-0" {
		t.Errorf("by %q", by)
	}
}
