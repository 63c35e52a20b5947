package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// kinds are what can be where a directory was.
var kinds = map[string]tree.Kind{"file": tree.File, "link": tree.Symlink, "submodule": tree.Submodule}

// rooted is a history whose policy list is outside the repository: intents need
// no signature.
type rooted struct {
	*history
	root *trust.Root
}

func newRooted(t *testing.T) (rooted, tree.Hash) {
	t.Helper()
	h, start := newHistory(t)
	root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
		"  policy: [{principal: root@example.org, publicKey: "+h.keys["root"].public+"}]\n"+
		"  ledger: [{principal: fleetbroker, publicKey: "+h.keys["carl"].public+"}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return rooted{h, root}, h.commit("root", on(start), put("fleet.yaml", h.fleetFile("none", "root")))
}

func (h rooted) verify(accepted, head tree.Hash) verified {
	h.t.Helper()
	s, err := New(h, clockOf(h.history)).Trust(h.root).Verify(h.t.Context(), accepted, head, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return verified{s, h.t}
}

// replace adds a commit with an entry of a kind where a directory was.
func (h *history) replace(by string, parents []tree.Hash, at string, kind tree.Kind) tree.Hash {
	h.t.Helper()
	d := h.draft(by, parents, nil)
	files := map[string][]byte{at: []byte("../elsewhere")}
	for p, content := range h.files[d.Tree] {
		if !strings.HasPrefix(p, at+"/") {
			files[p] = content
		}
	}
	var kinded func(root tree.Hash, at string) tree.Hash
	kinded = func(root tree.Hash, at string) tree.Hash {
		entries, err := h.mem.Dir(root)
		if err != nil {
			h.t.Fatal(err)
		}
		entries = slices.Clone(entries)
		name, rest, below := strings.Cut(at, "/")
		i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == name })
		if below {
			entries[i].Hash = kinded(entries[i].Hash, rest)
		} else {
			entries[i].Kind = kind
		}
		return h.mem.AddDir(entries)
	}
	d.Tree = kinded(h.mem.Build(files).Root, at)
	h.files[d.Tree] = files
	return h.add(d, by)
}

// whole demands that nothing of the first commit's intents is missing.
func (v verified) whole(what string) {
	v.t.Helper()
	v.has(visionA, "a 1")
	v.has(visionB, "b 1")
	v.has(audio, "deaf 1")
	if v.t.Failed() {
		v.t.Fatalf("%s: findings %v", what, v.Findings)
	}
}

// TestReplacedIntents_StayInForce: an entry that is held back where a directory of
// intents was takes none of them away, though anybody may delete them.
func TestReplacedIntents_StayInForce(t *testing.T) {
	for name, kind := range kinds {
		for _, at := range []string{"intents", "intents/vision"} {
			t.Run(at+" as a "+name, func(t *testing.T) {
				h, base := newRooted(t)
				bad := h.replace("", on(base), at, kind)
				v := h.verify(base, bad)
				v.whole("the commit")
				if v.Findings[0].Path != at || v.Clean != base {
					t.Errorf("clean at %s, found %v", v.Clean.Short(), v.Findings)
				}
				h.verify(base, h.commit("", on(bad), put("README.md", "2"))).whole("a commit on top of it")
				h.verify(base, h.commit("", on(base, bad), nil)).whole("an empty merge of it")
				side := h.commit("", on(base), put("README.md", "2"))
				h.verify(base, h.replace("", on(side, bad), at, kind)).whole("a merge that takes it")
				h.verify(base, h.replace("", on(side, h.commit("", on(base), put("bases/x", "-"))), at, kind)).whole("a merge of its own making")

				back := h.commit("", on(bad), map[string]string{at: "-", visionA: "a 1", visionB: "b 1", audio: "deaf 1"})
				v = h.verify(base, back)
				v.whole("reverted")
				if v.finds(""); v.Clean != back {
					t.Error("a revert does not make it clean again")
				}
				less := h.commit("", on(bad), map[string]string{at: "-", visionA: "a 1", audio: "deaf 1"})
				v = h.verify(base, less)
				v.has(visionB, "-") // which anybody may delete
				v.finds("")
				v = h.verify(base, h.replace("root", on(base), at, kind))
				v.has(visionA, "-")
				v.finds("")
			})
		}
	}
}

// TestReplacedIntents_OfATenantsSigner: who may delete each of a tenant's intents,
// and not replace their directory, deletes none by doing so.
func TestReplacedIntents_OfATenantsSigner(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			h, base := newHistory(t)
			bad := h.replace("ada", on(base), "intents/vision", kind)
			v := h.verify(base, bad)
			v.whole("the commit")
			v.finds("this path may be changed by root@example.org", "intents/vision", visionA, visionB)
			h.verify(base, h.replace("ada", on(bad), "intents/vision", tree.Executable)).whole("replaced again")
			v = h.verify(base, h.commit("ada", on(bad), map[string]string{"intents/vision": "-", visionA: "a 1"}))
			v.has(visionA, "a 1")
			v.has(visionB, "-")
			v.finds("")
			v = h.verify(base, h.commit("", on(bad), map[string]string{"intents/vision": "-", visionA: "a 1"}))
			v.whole("made smaller by nobody")
			v.finds("not signed", visionB)
			v = h.verify(base, h.commit("root", on(bad), put("intents/vision", "a list")))
			v.has(visionA, "-")
			v.has("intents/vision", "a list")
			v.finds("")
		})
	}
}

// TestBase_SaysWhyAKeyDoesNotCount: where nothing says where to begin, the message
// names the signature that would, and why it does not.
func TestBase_SaysWhyAKeyDoesNotCount(t *testing.T) {
	h, base := newRooted(t)
	head := h.commit("eve", on(h.commit("ada", on(base), put(visionA, "a 2"))), put(visionA, "a 3"))
	for name, c := range map[string]struct{ entry, says string }{
		"revoked":   {h.keys["root"].public + ", revoked: {}", "The newest signed one, " + base.Short() + ", does not count: the trust root revokes the key of root that signed it; if that commit is surely theirs, name it"},
		"not there": {h.keys["bob"].public, "The newest signed one, " + head.Short() + ", does not count: it is signed by the key SHA256:"},
	} {
		root, err := trust.Parse("root.yaml", []byte("apiVersion: fleetbroker.io/v1alpha1\nkind: TrustRoot\nmetadata: {name: acme}\nspec:\n  fleetID: f3k9q2abu7\n"+
			"  policy: [{principal: root, publicKey: "+c.entry+"}]\n  ledger: [{principal: fleetbroker, publicKey: "+h.keys["carl"].public+"}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(h, clockOf(h.history)).Trust(root).Base(t.Context(), head); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}
