package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/trust"
	"github.com/fleetbroker/fleetbroker/test/story"
)

// request is a change of the ledger that breaks no rule.
func request(name string) map[string][]byte {
	return map[string][]byte{"requests/vision/202611/" + name + ".yaml": []byte("x\n")}
}

// rootOf is a trust root with keys of daemons, and one of people that nobody has.
func rootOf(keys ...string) *trust.Root { return rootWith(nil, nil, keys...) }

// rootWith is a trust root with keys of people (nil: one that nobody has) and of
// daemons, some of which are revoked after a commit (zero: from the beginning).
func rootWith(people []string, revoked map[string]tree.Hash, keys ...string) *trust.Root {
	if people == nil {
		people = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"}
	}
	text := "apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: a0a0a0a0a0\n  policy:\n"
	for i, k := range people {
		text += fmt.Sprintf("  - {principal: person-%d, publicKey: %q}\n", i, k)
	}
	text += "  ledger:\n"
	for i, k := range keys {
		after, is := revoked[k]
		switch {
		case is && after.IsZero():
			text += fmt.Sprintf("  - {principal: broker-%d, publicKey: %q, revoked: {}}\n", i, k)
		case is:
			text += fmt.Sprintf("  - {principal: broker-%d, publicKey: %q, revoked: {after: %s}}\n", i, k, after)
		default:
			text += fmt.Sprintf("  - {principal: broker-%d, publicKey: %q}\n", i, k)
		}
	}
	r, err := trust.Parse("trust-root.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return r
}

// judge verifies with changed options, and returns rules and messages.
func (s *fleet) judge(with func(o *audit.Options)) (audit.Report, []string) {
	s.t.Helper()
	o := s.options()
	with(&o)
	rep, err := audit.Verify(s.t.Context(), s.Remote.Objects(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, v := range rep.Violations {
		out = append(out, v.Rule+": "+v.Message)
	}
	return rep, out
}

// Without a key everything may follow as well: the report says what held.
func TestVerify_NamesWhatHeld(t *testing.T) {
	signer, public := story.SSHKey(t)
	_, another := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	rep, bad := s.judge(func(*audit.Options) {})
	if len(bad) > 0 || rep.Rooted || len(rep.Signers) != 1 || rep.Signers[0].Key != public || rep.Signers[0].Commits != rep.Decisions || rep.Unsigned != 0 {
		t.Errorf("by its own keys: %+v %v", rep, bad)
	}
	rep, bad = s.judge(func(o *audit.Options) { o.Root = rootOf(public) })
	if len(bad) > 0 || !rep.Rooted || rep.BeforeRoot != 0 || rep.Signers[0].Principal != "broker-0" {
		t.Errorf("by the trust root: %+v %v", rep, bad)
	}
	if _, bad = s.judge(func(o *audit.Options) { o.Root = rootOf(another) }); len(bad) != 1 || bad[0] != "signature: no commit is signed by a key of the trust root" {
		t.Errorf("by another's trust root: %v", bad)
	}
	rep, bad = lived(t, "ledger", nil, "").judge(func(*audit.Options) {})
	if len(bad) > 0 || len(rep.Signers) != 0 || rep.Unsigned != rep.Decisions {
		t.Errorf("unsigned: %+v %v", rep, bad)
	}
	rep, _ = s.judge(func(o *audit.Options) { o.From = o.Ledger })
	if rep.From != s.Remote.Head("ledger").String() || len(rep.Signers) != 0 {
		t.Errorf("from the head: %+v", rep)
	}
}

// The history of an unsigned fleet from before its first signed commit is judged
// as it always was, and counted; from then on nothing unsigned is the daemon's.
func TestVerify_UnsignedFleetBecomesSigned(t *testing.T) {
	signer, public := story.SSHKey(t)
	s := lived(t, "ledger", nil, "")
	s.forge(forged{puts: request("a")})
	s.forge(forged{puts: request("b"), signer: signer})
	rep, bad := s.judge(func(o *audit.Options) { o.Root = rootOf(public) })
	if len(bad) > 0 || !rep.Rooted || rep.BeforeRoot != rep.Decisions-1 || rep.Unsigned != rep.Decisions-1 {
		t.Errorf("%+v %v", rep, bad)
	}
	s.forge(forged{puts: request("c")})
	if _, bad = s.judge(func(o *audit.Options) { o.Root = rootOf(public) }); len(bad) != 2 || !strings.Contains(bad[0], "without a signature by any of the trust root's keys") {
		t.Errorf("an unsigned commit afterwards: %v", bad)
	}
}

// A revoked key signs nothing but what is older, whatever dates say and whatever
// the repository says of it.
func TestVerify_RevokedKey(t *testing.T) {
	signer, public := story.SSHKey(t)
	next, nextKey := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	good := s.Remote.Head("ledger")
	root := rootWith(nil, map[string]tree.Hash{public: good}, public, nextKey)
	s.forge(forged{puts: request("a"), signer: next})
	if rep, bad := s.judge(func(o *audit.Options) { o.Root = root }); len(bad) > 0 || len(rep.Signers) != 2 {
		t.Errorf("%+v %v", rep, bad)
	}
	s.forge(forged{puts: request("b"), signer: signer})
	if _, bad := s.judge(func(o *audit.Options) { o.Root = root }); len(bad) != 2 || !strings.Contains(bad[0], "the key of broker-0 is revoked") {
		t.Errorf("signed by a revoked key: %v", bad)
	}
	root = rootWith(nil, map[string]tree.Hash{public: {}}, public, nextKey)
	if _, bad := s.judge(func(o *audit.Options) { o.Root = root }); len(bad) == 0 || !strings.HasPrefix(bad[0], "signature: ") {
		t.Errorf("revoked from the beginning: %v", bad)
	}
}

// Who may change fleet.yaml cannot name his own key a daemon's.
func TestVerify_PolicyKeyIsNoDaemons(t *testing.T) {
	signer, public := story.SSHKey(t)
	graces, graceKey := story.SSHKey(t)
	for _, listed := range []bool{false, true} {
		s := lived(t, "ledger", signer, public)
		s.EditFleet("Let me in", public+"}", public+"}, {principal: grace, publicKey: "+graceKey+"}")
		s.forge(forged{puts: request("a"), signer: signer})
		s.forge(forged{puts: request("b"), signer: graces})
		root := rootOf(public)
		if listed {
			root = rootWith([]string{graceKey}, nil, public)
		}
		if _, bad := s.judge(func(o *audit.Options) { o.Root = root }); listed != (len(bad) > 0) {
			t.Errorf("key in list policy %v: violations %v", listed, bad)
		}
	}
}

// Ledger counts every commit once, and Fleet never changes.
func TestVerify_Sequence(t *testing.T) {
	for name, c := range map[string]struct {
		trailers map[string]string
		says     string
	}{
		"next":            {},
		"a gap":           {map[string]string{"Ledger": "ledger 12"}, "Ledger is 12, the one before 10"},
		"back":            {map[string]string{"Ledger": "ledger 9"}, "Ledger is 9, the one before 10"},
		"again":           {map[string]string{"Ledger": "ledger 10"}, "Ledger is 10, the one before 10"},
		"none":            {map[string]string{"Ledger": ""}, "has no trailer Ledger, and the one before is 10"},
		"no number":       {map[string]string{"Ledger": "ledger"}, `Ledger is "ledger", want a branch and a number`},
		"another branch":  {map[string]string{"Ledger": "fork 11"}, "Ledger names branch fork, this is ledger"},
		"another fleet":   {map[string]string{"Fleet": "b0b0b0b0b0"}, "Fleet is b0b0b0b0b0, the ledger is that of a0a0a0a0a0"},
		"no fleet":        {map[string]string{"Fleet": ""}, "has no trailer Fleet"},
		"a later program": {map[string]string{"Rules": "99"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, "ledger", nil, "")
			log, err := s.Remote.Log("ledger")
			if err != nil {
				t.Fatal(err)
			}
			n, _ := seq(log)
			for n < 10 { // from a ledger of the first form, or of this one
				if n++; n == 1 {
					s.forge(forged{puts: request("a"), trailers: map[string]string{"Ledger": "ledger 1", "Fleet": "a0a0a0a0a0"}})
				} else {
					s.forge(forged{puts: request(fmt.Sprint("b", n)), trailers: map[string]string{"Fleet": "a0a0a0a0a0"}})
				}
			}
			if _, bad := s.judge(func(o *audit.Options) { o.Branch = "ledger" }); len(bad) > 0 {
				t.Fatalf("before: %v", bad)
			}
			s.forge(forged{puts: request("last"), trailers: c.trailers})
			rep, bad := s.judge(func(o *audit.Options) { o.Branch = "ledger" })
			if c.says == "" && (len(bad) > 0 || rep.Seq != 11 || rep.Fleet != "a0a0a0a0a0") {
				t.Errorf("%+v %v", rep, bad)
			}
			if c.says != "" && (len(bad) != 1 || !strings.HasPrefix(bad[0], "sequence: "+c.says)) {
				t.Errorf("violations %v, want sequence: %s", bad, c.says)
			}
		})
	}
}

// What another version rendered is named, neither a violation nor passed over. A lower
// number than one before is another hand's, but for a round that had begun before.
func TestVerify_RenderedByAnotherVersion(t *testing.T) {
	for renderer, compared := range map[string]bool{"": true, "1": true, "99": false} {
		s := lived(t, "ledger", nil, "")
		s.At = s.At.Add(1)
		c := s.decided(again(s.Contract("train"), 1, s.At), 8)
		s.forge(forged{
			changes: changed(nil, c), now: s.At, trailers: map[string]string{"Renderer": renderer},
			puts: map[string][]byte{"manifests/rome/vision/extra.yaml": []byte("kind: Secret\n")},
		})
		rep, bad := s.judge(func(*audit.Options) {})
		if compared && (len(bad) != 2 || !strings.HasPrefix(bad[0], "trailers: Renderer is ") || !strings.HasPrefix(bad[1], "manifests: ")) {
			t.Errorf("renderer %q: %v", renderer, bad)
		}
		if !compared && (len(bad) > 0 || len(rep.Notes) != 1 || !strings.HasPrefix(rep.Notes[0].Message, "manifests rendered by 99, not compared")) {
			t.Errorf("renderer %q: notes %v, violations %v", renderer, rep.Notes, bad)
		}
	}
}

// A ledger that was set back behind what is known to have stood is seen, by
// whoever keeps the word of it.
func TestVerify_SetBack(t *testing.T) {
	signer, public := story.SSHKey(t)
	eves, _ := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	old := s.Remote.Head("ledger")
	s.forge(forged{puts: request("a"), signer: signer, trailers: map[string]string{"Ledger": "ledger 10"}})
	stood := s.Remote.Head("ledger")
	w, rep, err := audit.Export(t.Context(), s.Remote.Objects(), func() audit.Options {
		o := s.options()
		o.Root = rootOf(public)
		return o
	}())
	if err != nil || w.Commit != stood.String() || !rep.Rooted {
		t.Fatalf("%+v %v", w, err)
	}
	var file bytes.Buffer
	if err := w.Encode(&file); err != nil {
		t.Fatal(err)
	}
	kept, err := audit.ReadWitness(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	witness := func(o *audit.Options) { o.Root, o.Witness = rootOf(public), kept }
	if _, bad := s.judge(witness); len(bad) > 0 {
		t.Errorf("the ledger as it stood: %v", bad)
	}
	s.Remote.SetRef(gitrepo.Branch("ledger"), old)
	if _, bad := s.judge(func(o *audit.Options) { o.Root = rootOf(public) }); len(bad) > 0 {
		t.Errorf("set back, and nobody knows: %v", bad)
	}
	if _, bad := s.judge(witness); len(bad) != 1 || !strings.Contains(bad[0], "does not hold "+stood.String()+", which has stood (the witness has it)") {
		t.Errorf("set back, by the witness: %v", bad)
	}
	hint := func(h tree.Hash, root *trust.Root) func(*audit.Options) {
		return func(o *audit.Options) {
			o.Root, o.Known = root, []audit.Known{{Commit: h, By: "the accepted ref names it", Hint: true}}
		}
	}
	for _, root := range []*trust.Root{nil, rootOf(public)} {
		if _, bad := s.judge(hint(stood, root)); len(bad) != 1 || !strings.Contains(bad[0], "which has stood (the accepted ref names it)") {
			t.Errorf("set back, by the accepted ref: %v", bad)
		}
	}
	// A ref that whoever pushes has put anywhere is no more than a note.
	evil, err := s.Remote.Merge("aside", s.eve(), "x\n\nLedger: ledger 99\n", gitobj.Change{Puts: request("e")}, eves)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []tree.Hash{evil, tree.BlobHash([]byte("nothing"))} {
		if rep, bad := s.judge(hint(h, rootOf(public))); len(bad) > 0 || len(rep.Notes) != 1 || !strings.Contains(rep.Notes[0].Message, "whoever may push can write that") {
			t.Errorf("a ref put anywhere: %v %v", rep.Notes, bad)
		}
	}
	// A witness of Eve's says nothing.
	raw, err := s.Remote.Objects().Commit(evil)
	if err != nil {
		t.Fatal(err)
	}
	forged := audit.Witness{Branch: "ledger", Seq: 99, Commit: evil.String(), Object: raw}
	if _, bad := s.judge(func(o *audit.Options) { o.Root, o.Witness = rootOf(public), &forged }); len(bad) != 1 || !strings.Contains(bad[0], "does not count") {
		t.Errorf("a witness by another key: %v", bad)
	}
}

// What a witness says must be what its object says.
func TestReadWitness_Refuses(t *testing.T) {
	signer, public := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	w, _, err := audit.Export(t.Context(), s.Remote.Objects(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(w *audit.Witness){
		"commit": func(w *audit.Witness) { w.Commit = strings.Repeat("0", 40) },
		"seq":    func(w *audit.Witness) { w.Seq += 7 },
		"fleet":  func(w *audit.Witness) { w.FleetID = "b0b0b0b0b0" },
		"inputs": func(w *audit.Witness) { w.Inputs = strings.Repeat("0", 40) },
		"object": func(w *audit.Witness) { w.Object = append(bytes.Clone(w.Object), '\n') },
		"none":   func(w *audit.Witness) { w.Object = nil },
	} {
		is := *w
		change(&is)
		text, err := json.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.ReadWitness(bytes.NewReader(text)); err == nil {
			t.Errorf("%s: a changed witness was read", name)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"seq": -1}`, `{"more": 1}`, "{}{}"} {
		if _, err := audit.ReadWitness(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Nobody bears witness to a ledger that breaks its rules.
func TestExport_RefusesABrokenLedger(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.forge(forged{puts: map[string][]byte{"contracts/notes.txt": []byte("x\n")}})
	if w, _, err := audit.Export(t.Context(), s.Remote.Objects(), s.options()); err == nil {
		t.Errorf("exported %+v", w)
	}
}
