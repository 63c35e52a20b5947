package verify

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

func on(parents ...tree.Hash) []tree.Hash { return parents }

// put is one file.
func put(path, content string) map[string]string { return map[string]string{path: content} }

const (
	visionA = "intents/vision/a.yaml"
	visionB = "intents/vision/b.yaml"
	audio   = "intents/audio/deaf.yaml"
	rome    = "clusters/rome.yaml"
)

func TestWhoMaySignForWhat(t *testing.T) {
	for name, c := range map[string]struct {
		by, path string
		why      string
	}{
		"a tenant's signer for its intents":  {"ada", visionA, ""},
		"the fleet's signer for any intent":  {"root", audio, ""},
		"the fleet's signer for a cluster":   {"root", rome, ""},
		"nobody":                             {"", visionA, "it is not signed; this path may be changed by ada@example.org, bob@example.org, root@example.org"},
		"an unknown key":                     {"eve", visionA, "is not listed"},
		"another tenant's signer":            {"carl", visionA, "is not listed"},
		"a tenant's signer for a cluster":    {"ada", rome, "this path may be changed by root@example.org"},
		"a tenant's signer for its tenant":   {"ada", "tenants/vision.yaml", "this path may be changed by root@example.org"},
		"a tenant's signer for the fleet":    {"ada", "fleet.yaml", "this path may be changed by root@example.org"},
		"a tenant's signer beside its place": {"ada", "intents/vision.yaml", "this path may be changed by root@example.org"},
		"files that are no inputs":           {"", "README.md", ""},
		"files of the daemon":                {"", "contracts/vision/aa/x.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, base := newHistory(t)
			was := "-"
			if b, ok := h.files[base][c.path]; ok {
				was = string(b)
			}
			next := h.commit(c.by, on(base), put(c.path, "new"))
			v := h.verify(base, next)
			if c.why == "" {
				v.has(c.path, "new")
				v.finds("")
				if v.Clean != next {
					t.Error("a commit of which everything is verified is not clean")
				}
				return
			}
			v.has(c.path, was)
			v.finds(c.why, c.path)
			if v.Clean != base || v.Findings[0].Commit != next || v.Findings[0].Verified != base {
				t.Errorf("clean at %s, found %+v", v.Clean.Short(), v.Findings[0])
			}
		})
	}
}

// One commit may be good for one path and not for another.
func TestOnlyWhatIsNotVerifiedIsHeldBack(t *testing.T) {
	h, base := newHistory(t)
	head := h.commit("ada", on(base), map[string]string{visionA: "a 2", visionB: "-", rome: "-", "clusters/new.yaml": "mine"})
	v := h.verify(base, head)
	v.has(visionA, "a 2")
	v.has(visionB, "-")
	v.has(rome, "rome 1")
	v.has("clusters/new.yaml", "-")
	v.finds("this path may be changed by root@example.org", "clusters/new.yaml", rome)
}

func TestRemedies(t *testing.T) {
	h, base := newHistory(t)
	bad := h.commit("", on(base), map[string]string{visionA: "evil", visionB: "-"})
	for name, next := range map[string]tree.Hash{
		"reverted by anybody": h.commit("", on(bad), map[string]string{visionA: "a 1", visionB: "b 1"}),
		"committed again":     h.commit("bob", on(bad), map[string]string{visionA: "a 2", visionB: "b 2"}),
	} {
		v := h.verify(base, next)
		v.finds("")
		if v.Clean != next {
			t.Errorf("%s: not clean", name)
		}
	}
	later := h.commit("bob", on(bad), put(visionB, "b 2")) // the file that he did not touch stays held back
	h.verify(base, later).finds("by eve", visionA)
	h.verify(bad, later).finds("") // an operator has accepted it
}

func TestSignaturesThatProveNothing(t *testing.T) {
	h, base := newHistory(t)
	good := h.draft("ada", on(base), put(visionA, "a 2"))
	sig, err := h.keys["ada"].Sign(good.Payload())
	if err != nil {
		t.Fatal(err)
	}
	other := h.draft("ada", on(base), put(visionA, "evil"))
	other.Signature = sig
	spoofed := h.draft("ada", on(base), put(visionA, "evil"))
	good.Signature = sig
	raw := good.Encode()
	twice := []byte(strings.Replace(string(raw), "\nauthor ", "\nauthor eve <eve@example.org> 0 +0000\nauthor ", 1))
	two := []byte(strings.Replace(string(raw), "\n\n", "\ngpgsig-sha256 x\n\n", 1))
	parent := []byte(strings.Replace(string(raw), "\nparent ", "\nparent "+base.String()+"\nparent ", 1))
	for name, c := range map[string]struct {
		head tree.Hash
		why  string
	}{
		"over other bytes":          {h.store(other.Encode(), other.Tree), "its signature is not one over this commit"},
		"somebody else's":           {h.add(spoofed, "eve"), "is not listed"},
		"by no means, under a name": {h.add(spoofed, ""), "it is not signed"},
		"two authors":               {h.store(twice, good.Tree), "repeats a field"},
		"two signatures":            {h.store(two, good.Tree), "repeats a field or can be read in two ways, or it has two signatures"},
		"a parent more":             {h.store(parent, good.Tree), "its signature is not one over this commit"},
	} {
		t.Run(name, func(t *testing.T) {
			v := h.verify(base, c.head)
			v.has(visionA, "a 1")
			v.finds(c.why, visionA)
		})
	}
	h.verify(base, h.store(raw, good.Tree)).finds("")
}

// A signature in another namespace (a file signed for another purpose) is none.
func TestReplayOfACommitOnAnotherParent(t *testing.T) {
	h, base := newHistory(t)
	two := h.commit("ada", on(base), put(visionA, "a 2"))
	three := h.commit("ada", on(two), put(visionA, "a 3"))
	// The older commit's own tree and signature under a newer parent.
	replayed := strings.Replace(string(h.commits[two]), base.String(), three.String(), 1)
	v := h.verify(base, h.store([]byte(replayed), h.mem.Build(h.files[two]).Root))
	v.has(visionA, "a 3")
	v.finds("not one over this commit", visionA)
}

// A key does not speak for the commit that adds it, nor for its branch.
func TestKeysAddedOnTheWay(t *testing.T) {
	with := func(h *history) string { return h.tenantFile("vision", "", "ada", "bob", "eve") }
	t.Run("by nobody", func(t *testing.T) {
		h, base := newHistory(t)
		added := h.commit("eve", on(base), put("tenants/vision.yaml", with(h)))
		v := h.verify(base, h.commit("eve", on(added), put(visionA, "evil")))
		v.has(visionA, "a 1")
		v.finds("is not listed", visionA, "tenants/vision.yaml")
	})
	t.Run("by a signer who may not", func(t *testing.T) {
		h, base := newHistory(t)
		added := h.commit("ada", on(base), put("tenants/vision.yaml", with(h)))
		v := h.verify(base, h.commit("eve", on(added), put(visionA, "evil")))
		v.has(visionA, "a 1")
		v.finds("is not listed", visionA, "tenants/vision.yaml")
	})
	t.Run("in the commit itself", func(t *testing.T) {
		h, base := newHistory(t)
		v := h.verify(base, h.commit("eve", on(base), map[string]string{visionA: "evil", "fleet.yaml": h.fleetFile("signed", "eve")}))
		v.has(visionA, "a 1")
		v.finds("is not listed", "fleet.yaml", visionA)
	})
	t.Run("on the branch that is merged", func(t *testing.T) {
		h, base := newHistory(t)
		added := h.commit("root", on(base), put("tenants/vision.yaml", with(h)))
		used := h.commit("eve", on(added), put(visionA, "a 2"))
		merged := h.commit("", on(base, used), map[string]string{"tenants/vision.yaml": with(h), visionA: "a 2"})
		v := h.verify(base, merged)
		v.has("tenants/vision.yaml", with(h))
		v.has(visionA, "a 1")
		v.finds("is not listed", visionA)
		// Whoever comes later is judged by what was merged.
		h.verify(base, h.commit("eve", on(merged), put(visionA, "a 3"))).finds("")
	})
	t.Run("by one who may, before", func(t *testing.T) {
		h, base := newHistory(t)
		added := h.commit("root", on(base), put("tenants/vision.yaml", with(h)))
		h.verify(base, h.commit("eve", on(added), put(visionA, "a 2"))).finds("")
	})
	t.Run("taken away before the merge", func(t *testing.T) {
		h, base := newHistory(t)
		old := h.commit("bob", on(base), put(visionA, "evil"))
		gone := h.commit("root", on(base), put("tenants/vision.yaml", h.tenantFile("vision", "", "ada")))
		v := h.verify(base, h.commit("", on(gone, old), put(visionA, "evil")))
		v.has(visionA, "a 1")
		v.finds("is not listed", visionA)
	})
}

func TestApprovers(t *testing.T) {
	h, start := newHistory(t)
	base := h.commit("root", on(start), put("tenants/vision.yaml", h.tenantFile("vision", "ada@example.org", "ada", "bob")))
	asked := h.commit("bob", on(base), put(visionA, "a 2"))
	v := h.verify(base, asked)
	v.has(visionA, "a 1")
	v.finds("it is signed by bob@example.org, who is not among the approvers of tenant vision (ada@example.org)", visionA)

	h.verify(base, h.commit("ada", on(base, asked), put(visionA, "a 2"))).finds("")
	h.verify(base, h.commit("root", on(base, asked), put(visionA, "a 2"))).finds("")
	h.verify(base, h.commit("ada", on(base), put(visionA, "a 2"))).finds("")
	for _, by := range []string{"", "bob", "carl", "eve"} {
		h.verify(base, h.commit(by, on(base, asked), put(visionA, "a 2"))).finds("not among the approvers", visionA)
	}
	// Approval is of what was asked for, and of signed commits only.
	h.verify(base, h.commit("bob", on(base, asked), put(visionA, "a 3"))).finds("not among the approvers", visionA)
	sly := h.commit("eve", on(asked), put(visionA, "evil"))
	h.verify(base, h.commit("ada", on(base, sly), put(visionA, "evil"))).finds("is not listed", visionA)
}

// An unsigned rise of a tenant's ceilings is not in force, nor what needs it.
func TestCeilingsAreThoseThatWereSigned(t *testing.T) {
	h, base := newHistory(t)
	high := strings.Replace(h.tenantFile("vision", "", "ada"), "spec: {", "spec: {maxPriority: 1000, ", 1)
	head := h.commit("ada", on(base), map[string]string{"tenants/vision.yaml": high, visionA: "priority 1000"})
	v := h.verify(base, head)
	v.has("tenants/vision.yaml", h.tenantFile("vision", "", "ada", "bob"))
	v.has(visionA, "priority 1000")
}

func TestModes(t *testing.T) {
	h, signed := newHistory(t)
	none := h.fleetFile("none", "root")
	open := h.commit("root", on(signed), put("fleet.yaml", none))
	free := h.commit("", on(open), put(visionA, "anything"))
	v := h.verify(signed, free)
	v.has(visionA, "anything")
	if v.finds(""); v.Signed {
		t.Error("signatures are still asked for")
	}
	// Nobody who may not turns it off.
	v = h.verify(signed, h.commit("eve", on(h.commit("eve", on(signed), put("fleet.yaml", none))), put(visionA, "evil")))
	v.has(visionA, "a 1")
	v.finds("is not listed", "fleet.yaml", visionA)
	if !v.Signed {
		t.Error("anybody can turn verification off")
	}
	// Turned on, what came before stands.
	on2 := h.commit("", on(free), put("fleet.yaml", h.fleetFile("signed", "root")))
	v = h.verify(open, h.commit("", on(on2), put(visionA, "evil")))
	v.has(visionA, "anything")
	if v.finds("not signed", visionA); v.Clean != on2 {
		t.Error("what came before it was turned on is not taken as it stands")
	}
	// What was held back when it is turned off is free with that commit.
	bad := h.commit("", on(signed), put(visionA, "a 2"))
	h.verify(signed, h.commit("root", on(bad), put("fleet.yaml", none))).finds("")
}

func TestFirstStartTakesTheHeadAsItStands(t *testing.T) {
	h, base := newHistory(t)
	head := h.commit("", on(base), put(visionA, "whatever"))
	v := h.verify(tree.Hash{}, head)
	v.has(visionA, "whatever")
	if v.finds(""); v.Clean != head || !v.Signed {
		t.Errorf("clean at %s, signed %v", v.Clean.Short(), v.Signed)
	}
}

// An operator accepted a rewritten history that begins with a broken fleet.yaml:
// once it is mended, the fleet goes on, and is held to what it then says.
func TestHistoryWithoutAnyReadableFleet(t *testing.T) {
	h, _ := newHistory(t)
	broken := h.commit("", nil, map[string]string{"fleet.yaml": "kind: [", visionA: "a 1"})
	mended := h.commit("", on(broken), put("fleet.yaml", h.fleetFile("signed", "root")))
	if _, err := New(h, clockOf(h)).Verify(t.Context(), broken, broken, nil); !errors.Is(err, errNobodyKnown) {
		t.Errorf("at the broken one: %v", err)
	}
	v := h.verify(broken, mended)
	if v.finds(""); v.Clean != mended || !v.Signed {
		t.Errorf("clean at %s, signed %v", v.Clean.Short(), v.Signed)
	}
	h.verify(mended, h.commit("", on(mended), put(visionA, "evil"))).finds("", visionA)
}

// What a pull request would bring is judged by the branch that it is for.
func TestBranchThatIsNotMergedYet(t *testing.T) {
	h, base := newHistory(t)
	added := h.commit("root", on(base), put("tenants/vision.yaml", h.tenantFile("vision", "", "eve")))
	asked := h.commit("eve", on(added), put(visionA, "a 2"))
	fine := h.commit("ada", on(base), put(visionA, "a 2"))
	next := h.commit("root", on(base), put(rome, "rome 2"))
	for head, want := range map[tree.Hash]string{asked: visionA, fine: ""} {
		s, err := New(h, clockOf(h)).Branch(t.Context(), next, head)
		if err != nil {
			t.Fatal(err)
		}
		verified{s, t}.finds("is not listed", strings.Fields(want)...)
	}
	gone := h.commit("root", on(next), put("tenants/vision.yaml", h.tenantFile("vision", "", "bob")))
	s, err := New(h, clockOf(h)).Branch(t.Context(), gone, fine)
	if err != nil {
		t.Fatal(err)
	}
	verified{s, t}.finds("is not listed", visionA)
}

func TestHistoryThatDoesNotDescend(t *testing.T) {
	h, base := newHistory(t)
	one := h.commit("root", on(base), put(visionA, "a 2"))
	two := h.commit("root", on(base), put(visionA, "a 3"))
	if _, err := New(h, clockOf(h)).Verify(t.Context(), one, two, nil); err == nil || !strings.Contains(err.Error(), "does not descend") {
		t.Errorf("a head beside the accepted one: %v", err)
	}
}
