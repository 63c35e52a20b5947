package verify

import (
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

func clockOf(h *history) func() time.Time { return func() time.Time { return h.at } }

// forked is a base with a signed change of audio on the line and one of vision
// on a branch.
func forked(t *testing.T) (h *history, base, line, branch tree.Hash) {
	h, base = newHistory(t)
	branch = h.commit("ada", on(base), put(visionA, "a 2"))
	line = h.commit("carl", on(base), put(audio, "deaf 2"))
	return h, base, line, branch
}

func TestMergesSayWhatTheirSidesSay(t *testing.T) {
	h, base, line, branch := forked(t)
	both := map[string]string{visionA: "a 2", audio: "deaf 2"}
	for name, parents := range map[string][]tree.Hash{"merge": on(line, branch), "the other way round": on(branch, line)} {
		v := h.verify(base, h.commit("", parents, both))
		v.has(visionA, "a 2")
		v.has(audio, "deaf 2")
		if v.finds(""); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestEvilMerges(t *testing.T) {
	for name, c := range map[string]struct {
		tree map[string]string
		path string
		kept string
	}{
		"content of its own":           {map[string]string{visionA: "a 2", visionB: "evil"}, visionB, "b 1"},
		"a file of its own":            {map[string]string{visionA: "a 2", "intents/vision/c.yaml": "evil"}, "intents/vision/c.yaml", "-"},
		"takes the older side back":    {map[string]string{visionA: "a 2", audio: "deaf 1"}, audio, "deaf 2"},
		"leaves out what it brings":    {map[string]string{visionA: "a 1"}, visionA, "a 2"},
		"removes":                      {map[string]string{visionA: "a 2", rome: "-"}, rome, "rome 1"},
		"is neither side nor the base": {map[string]string{visionA: "a 3"}, visionA, "a 2"},
	} {
		t.Run(name, func(t *testing.T) {
			h, base, line, branch := forked(t)
			v := h.verify(base, h.commit("eve", on(line, branch), c.tree))
			v.has(c.path, c.kept)
			v.finds("is not listed", c.path)
			// The same, signed by somebody who may.
			h.verify(base, h.commit("root", on(line, branch), c.tree)).finds("")
		})
	}
}

// A merge's signature does not make up for what it brings in.
func TestSignedMergeOfUnsignedCommits(t *testing.T) {
	h, base, line, _ := forked(t)
	bad := h.commit("eve", on(base), put(visionA, "evil"))
	worse := h.commit("ada", on(bad), put(visionB, "b 2"))
	v := h.verify(base, h.commit("root", on(line, worse), map[string]string{visionA: "evil", visionB: "b 2"}))
	v.has(visionA, "a 1")
	v.has(visionB, "b 2")
	v.finds("by eve", visionA)
	if v.Findings[0].Commit != bad {
		t.Error("the finding names another commit than the one that nobody signed")
	}
}

// Taking an old commit's side brings nothing back that was signed away, not
// even with the old commit's good signature.
func TestMergeWithTheDistantPast(t *testing.T) {
	h, start := newHistory(t)
	old := h.commit("ada", on(start), put(visionA, "old secret sauce"))
	base := h.commit("ada", on(old), put(visionA, "a 9"))
	restore := put(visionA, "old secret sauce")
	v := h.verify(base, h.commit("", on(base, old), restore))
	v.has(visionA, "a 9")
	v.finds("not signed", visionA)
	// The line put back first, so that both sides look alike.
	back := h.commit("", on(base), restore)
	v = h.verify(base, h.commit("", on(back, old), restore))
	v.has(visionA, "a 9")
	v.finds("not signed", visionA)
	// The old commit as the first parent, as a push from a stale clone makes.
	v = h.verify(base, h.commit("", on(old, base), restore))
	v.has(visionA, "a 9")
	v.finds("not signed", visionA)
	// A new signed commit on the old one: only what it changes itself counts.
	side := h.commit("bob", on(old), put(visionB, "b 2"))
	v = h.verify(base, h.commit("", on(base, side), map[string]string{visionA: "old secret sauce", visionB: "b 2"}))
	v.has(visionA, "a 9")
	v.has(visionB, "b 2")
	v.finds("not signed", visionA)
}

// A branch that took the line in on its way is measured from there.
func TestBranchBroughtUpToDate(t *testing.T) {
	h, base, line, branch := forked(t)
	updated := h.commit("", on(branch, line), map[string]string{audio: "deaf 2"})
	more := h.commit("ada", on(updated), put(visionB, "b 2"))
	next := h.commit("carl", on(line), put(audio, "deaf 3"))
	head := h.commit("", on(next, more), map[string]string{visionA: "a 2", visionB: "b 2"})
	v := h.verify(base, head)
	v.has(audio, "deaf 3")
	v.has(visionA, "a 2")
	if v.finds(""); v.Clean != head {
		t.Error("not clean")
	}
}

func TestOctopus(t *testing.T) {
	h, base, line, branch := forked(t)
	third := h.commit("bob", on(base), put(visionB, "b 2"))
	all := map[string]string{visionA: "a 2", visionB: "b 2"}
	h.verify(base, h.commit("", on(line, branch, third), all)).finds("")
	bad := h.commit("eve", on(base), put(rome, "evil"))
	v := h.verify(base, h.commit("", on(line, branch, third, bad), map[string]string{visionA: "a 2", visionB: "b 2", rome: "evil"}))
	v.has(rome, "rome 1")
	v.has(visionB, "b 2")
	v.finds("is not listed", rome)
}

// Sides that changed one file differently: nothing but a signature resolves it.
func TestConflict(t *testing.T) {
	h, base, _, branch := forked(t)
	line := h.commit("bob", on(base), put(visionA, "a 7"))
	v := h.verify(base, h.commit("", on(line, branch), put(visionA, "a 2")))
	v.has(visionA, "a 7")
	v.finds("not signed", visionA)
	h.verify(base, h.commit("ada", on(line, branch), put(visionA, "a 27"))).finds("")
}

// A merge of a history that has nothing in common.
func TestUnrelatedHistory(t *testing.T) {
	h, base, _, _ := forked(t)
	island := h.commit("", nil, map[string]string{visionA: "evil", rome: "evil", "intents/vision/z.yaml": "evil"})
	v := h.verify(base, h.commit("", on(base, island), map[string]string{visionA: "evil", rome: "evil", "intents/vision/z.yaml": "evil"}))
	v.has(visionA, "a 1")
	v.has("intents/vision/z.yaml", "-")
	v.finds("not signed", rome, visionA, "intents/vision/z.yaml")
}

// A file where a directory was, and the reverse.
func TestFilesAndDirectories(t *testing.T) {
	h, base := newHistory(t)
	evil := h.commit("", on(base), map[string]string{visionA: "-", visionB: "-", "intents/vision": "a file", rome: "-", "clusters/rome.yaml/deep.yaml": "evil"})
	v := h.verify(base, evil)
	v.has(visionA, "a 1")
	v.has(visionB, "b 1")
	v.has("intents/vision", "-")
	v.has(rome, "rome 1")
	if len(v.Findings) != 5 {
		t.Errorf("found %d paths: %v", len(v.Findings), v.Findings)
	}
}

// Dates are the author's to choose.
func TestDatesDecideNothing(t *testing.T) {
	h, base, line, branch := forked(t)
	h.at = noon.AddDate(30, 0, 0)
	bad := h.commit("", on(branch), put(visionB, "evil"))
	h.at = noon.AddDate(-30, 0, 0)
	v := h.verify(base, h.commit("", on(line, bad), map[string]string{visionA: "a 2", visionB: "evil"}))
	v.has(visionA, "a 2")
	v.has(visionB, "b 1")
	v.finds("not signed", visionB)
}

// Commits that say nothing may lie on top of each other by thousands, in a pack of a
// few hundred kilobytes: what one says is found once.
func TestBrokenCommitsOnTopOfEachOther(t *testing.T) {
	h, base := newHistory(t)
	deep := tree.Entry{Name: "x", Kind: tree.File, Hash: h.mem.AddFile(nil)}
	for range 2 * tree.DefaultBounds.Depth {
		deep = tree.Entry{Name: "clusters", Kind: tree.Dir, Hash: h.mem.AddDir([]tree.Entry{deep})}
	}
	top := h.mem.AddDir([]tree.Entry{deep})
	cost := func(n int) time.Duration {
		head := base
		for range n {
			d := h.draft("eve", on(base), nil)
			d.Tree, d.Parents = top, on(head)
			head = h.add(d, "")
		}
		best := time.Hour
		for range 3 {
			start := time.Now()
			s, err := New(h, clockOf(h)).Verify(t.Context(), base, head, nil)
			if err != nil || s.Said != base || len(s.Broken) != n {
				t.Fatalf("got %+v, %v", s, err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	few, many := cost(1000), cost(16_000)
	if many > 100*few {
		t.Errorf("16 times as many broken commits took %s, after %s", many, few)
	}
}
