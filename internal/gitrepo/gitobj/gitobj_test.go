package gitobj_test

import (
	"bytes"
	"errors"
	"maps"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// stacked reads new objects first and old ones below, like the repository's
// store after a commit.
type stacked struct {
	set gitobj.Set
	old tree.Store
}

func (s stacked) Dir(h tree.Hash) ([]tree.Entry, error) {
	if o, ok := s.set[h]; ok {
		return gitobj.DecodeDir(o.Data)
	}
	return s.old.Dir(h)
}

func (s stacked) File(h tree.Hash, limit int64) ([]byte, error) {
	if o, ok := s.set[h]; ok {
		return o.Data, nil
	}
	return s.old.File(h, limit)
}

// Edit must give the tree that building the edited files afresh gives, and add
// only what is new.
func TestEditAgreesWithBuilding(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "a.b", "a-b", "a/x", "a/y", "a/z/w", "b/x", "b/y/z", "c"})
	clash := func(files map[string][]byte, p string) bool {
		for f := range files {
			if f != p && (strings.HasPrefix(f, p+"/") || strings.HasPrefix(p, f+"/")) {
				return true
			}
		}
		return false
	}
	rapid.Check(t, func(t *rapid.T) {
		m := tree.NewMemory()
		files := map[string][]byte{}
		for _, p := range rapid.SliceOfN(names, 0, 6).Draw(t, "files") {
			if !clash(files, p) {
				files[p] = []byte(p)
			}
		}
		base := m.Build(files)
		if len(files) == 0 {
			base = tree.Tree{}
		}
		ch := gitobj.Change{Puts: map[string][]byte{}, Deletes: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a/x", "a/z", "b", "b/y/z", "none", "c/none"}), 0, 3).Draw(t, "deletes")}
		for _, d := range ch.Deletes {
			maps.DeleteFunc(files, func(f string, _ []byte) bool { return f == d || strings.HasPrefix(f, d+"/") })
		}
		for _, p := range rapid.SliceOfN(names, 0, 4).Draw(t, "puts") {
			if !clash(files, p) {
				ch.Puts[p] = []byte(rapid.SampledFrom([]string{p, "new"}).Draw(t, "content"))
				files[p] = ch.Puts[p]
			}
		}
		set := gitobj.Set{}
		got, err := gitobj.Edit(base, ch, set)
		if err != nil {
			t.Fatal(err)
		}
		if want := m.Build(files).Root; got != want {
			t.Fatalf("got %s, want %s\nfiles %v\nchange %+v", got, want, slices.Sorted(maps.Keys(files)), ch)
		}
		seen := map[string]bool{}
		if err := (tree.Tree{Store: stacked{set, m}, Root: got}).Walk(func(p string, _ tree.Entry) error {
			seen[p] = true
			return nil
		}); err != nil || len(seen) != len(files) {
			t.Fatalf("the new objects do not hold together: %v, %v", seen, err)
		}
		for p := range seen {
			if b, err := (tree.Tree{Store: stacked{set, m}, Root: got}).ReadFile(p, 0); err != nil || !bytes.Equal(b, files[p]) {
				t.Fatalf("%s: got %q, %v", p, b, err)
			}
		}
	})
}

func TestEditKeepsOtherKinds(t *testing.T) {
	m := tree.NewMemory()
	dir := m.AddDir([]tree.Entry{
		{Name: "run", Kind: tree.Executable, Hash: m.AddFile([]byte("#!"))},
		{Name: "link", Kind: tree.Symlink, Hash: m.AddFile([]byte("run"))},
	})
	set := gitobj.Set{}
	got, err := gitobj.Edit(tree.Tree{Store: m, Root: dir}, gitobj.Change{Puts: map[string][]byte{"new": []byte("x")}}, set)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := gitobj.DecodeDir(set[got].Data)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]tree.Kind{}
	for _, e := range entries {
		kinds[e.Name] = e.Kind
	}
	if kinds["run"] != tree.Executable || kinds["link"] != tree.Symlink || kinds["new"] != tree.File {
		t.Errorf("kinds: %v", kinds)
	}
	if len(set) != 2 {
		t.Errorf("%d new objects, want the file and the directory", len(set))
	}
}

func TestPathsThatMayNotStandInATree(t *testing.T) {
	for _, p := range []string{"", ".", "/a", "a/", "a//b", "../a", "a/../b", ".git", "a/.Git/b", `a\b`, "a\x00"} {
		if err := gitobj.CheckPath(p); err == nil {
			t.Errorf("%q is allowed", p)
		}
		if _, err := gitobj.Edit(tree.Tree{}, gitobj.Change{Deletes: []string{p}}, gitobj.Set{}); err == nil {
			t.Errorf("%q can be deleted", p)
		}
	}
	if err := gitobj.CheckPath(path.Join("contracts", "a", "b..c.yaml")); err != nil {
		t.Error(err)
	}
}

func TestCommitRoundTrip(t *testing.T) {
	when := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 3600))
	c := gitobj.CommitData{
		Tree: tree.DirHash(nil), Parents: []tree.Hash{{1}, {2}},
		Author:    gitobj.Person{Name: "Ada L.", Email: "ada@example.org", When: when},
		Committer: gitobj.Person{Name: "fleetbroker", Email: "fleetbroker@example.org", When: when.UTC()},
		Message:   "place a\n\nline\n\nPlan: sha256:1\nContract: a\nContract: b\n",
		Signature: "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n",
	}
	raw := c.Encode()
	got, err := gitobj.ParseCommit(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Encode(), raw) {
		t.Errorf("encoded again:\n%s\nwant\n%s", got.Encode(), raw)
	}
	if !bytes.Equal(gitobj.SignedPayload(raw), c.Payload()) {
		t.Errorf("signed payload:\n%s\nwant\n%s", gitobj.SignedPayload(raw), c.Payload())
	}
	if tr := gitobj.Trailers(got.Message, "contract"); !slices.Equal(tr, []string{"a", "b"}) {
		t.Errorf("trailers: %v", tr)
	}
	if !got.Author.When.Equal(when) || got.Author.When.Format("-0700") != "+0100" || got.Ambiguous {
		t.Errorf("got %+v", got)
	}
	cmd := exec.Command("git", "hash-object", "--stdin", "-t", "commit", "--literally")
	cmd.Stdin = bytes.NewReader(raw)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(out)); (gitobj.Object{Type: gitobj.Commit, Data: raw}).Hash().String() != want {
		t.Errorf("name: want git's %s", want)
	}
}

// A header of many lines costs what its length is worth, and not its square.
func TestParseCommit_LongHeaders(t *testing.T) {
	const lines = 20_000
	h := tree.DirHash(nil).String()
	raw := []byte("tree " + h + "\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\ngpgsig a\n" + strings.Repeat(" "+strings.Repeat("A", 70)+"\n", lines) + "\nx\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := gitobj.ParseCommit(raw)
	runtime.ReadMemStats(&after)
	if err != nil || strings.Count(c.Signature, "\n") != lines+1 {
		t.Fatalf("%d lines of a signature, want %d: %v", strings.Count(c.Signature, "\n"), lines+1, err)
	}
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(20*len(raw)); took > most {
		t.Errorf("%d bytes of a commit took %d bytes of memory, want at most %d", len(raw), took, most)
	}
}

func TestCommitsThatDoNotParse(t *testing.T) {
	h := tree.DirHash(nil).String()
	for _, raw := range []string{"", "tree " + h, "tree x\ncommitter A <a> 1 +0000\n\n", "author A <a> 1 +0000\ntree " + h + "\n\n", "tree " + h + "\nparent x\n\n"} {
		if c, err := gitobj.ParseCommit([]byte(raw)); err == nil {
			t.Errorf("%q parses to %+v", raw, c)
		}
	}
	// What git walks over, we walk over, but a signature of it proves nothing.
	p := tree.BlobHash(nil)
	for _, rest := range []string{
		"\n", "committer nobody\n\n", "committer A <a> soon +0000\n\n", "author A <a> 1 +0000\ncommitter A <a> -1 +0000\n\n", "author A <a> 1 +0000\ncommitter A <a> 99999999999999999999 +0000\n\n",
		"author A <a> 1 +0000\ncommitter A <a> 253402300800 +0000\n\n", "author A <a> 1 +0000\ncommitter A <a> 1 +0000\nparent " + p.String() + "\n\n",
		"author A <a> 1 +0000\ncommitter A <a> 1 +0000\nauthor B <b> 1 +0000\n\n", "author A <a> 1 +0000\ncommitter A <a> 1 +0000\ntree " + p.String() + "\n\n",
	} {
		c, err := gitobj.ParseCommit([]byte("tree " + h + "\nparent " + h + "\n" + rest))
		if err != nil || !c.Ambiguous || c.Tree.String() != h || len(c.Parents) != 1 || c.Parents[0].String() != h || c.Committer.When.Year() < 1970 || c.Committer.When.Year() > 9999 || c.Author.Name == "B" {
			t.Errorf("%q: got %+v, %v", rest, c, err)
		}
	}
	// Names of people must not add header lines.
	c := gitobj.CommitData{Committer: gitobj.Person{Name: "x\ngpgsig y", Email: "<a>"}, Author: gitobj.Person{Name: "y"}}
	got, err := gitobj.ParseCommit(c.Encode())
	if err != nil || got.Signature != "" || got.Committer.Email != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Trailers are found where git finds them, whoever's line ends the message has.
func TestTrailers_AsGit(t *testing.T) {
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("", "init", "-q")
	empty := run("", "mktree")
	for message, want := range map[string][]string{
		"x\n\nLedger: a 1\n": {"a 1"}, "x\r\n\r\nLedger: a 1\r\n": {"a 1"}, "x\n \t\nLedger: a 1": {"a 1"}, "x\n\nledger: a 1 \nLEDGER: a 2\n\n \n": {"a 1", "a 2"},
		"x\n\nLedger: a 1\n\nwords\n": nil, "Ledger: a 1\n": nil, "x\n\nLedgers: a 1\n": nil, "x\n\nLedger: a 1\nRenderer: 2\nLedger: a 2\n": {"a 1", "a 2"},
	} {
		if got := gitobj.Trailers(message, "Ledger"); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
		raw := "tree " + empty + "\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\n" + message
		commit := run(raw, "hash-object", "-t", "commit", "-w", "--stdin")
		if is := run("", "log", "-1", "--format=%(trailers:key=Ledger,valueonly,separator=%x2C)", commit); is != strings.Join(want, ",") {
			t.Errorf("%q: git finds %q, want %q", message, is, want)
		}
	}
}

func TestPackRoundTrip(t *testing.T) {
	set := gitobj.Set{}
	// A size's bytes in an entry's header: four bits, then seven each.
	for _, n := range []int{0, 1, 15, 16, 2047, 2048, 100_000, 1 << 18} {
		set.Add(gitobj.Blob, []byte(strings.Repeat("c", n)))
	}
	set.Add(gitobj.Blob, []byte("b"))
	set.Add(gitobj.Tree, nil)
	pack, err := set.Pack()
	if err != nil {
		t.Fatal(err)
	}
	again, err := set.Pack()
	if err != nil || !bytes.Equal(pack, again) {
		t.Errorf("packed twice, different bytes (%v)", err)
	}
	got, err := gitobj.ReadPack(bytes.NewReader(pack), 0)
	if err != nil || len(got) != len(set) {
		t.Fatalf("got %d objects, %v", len(got), err)
	}
	for h, o := range got {
		if !bytes.Equal(o.Data, set[h].Data) || o.Type != set[h].Type {
			t.Errorf("%s differs", h)
		}
	}
	if _, err := gitobj.ReadPack(bytes.NewReader(pack), 100_000); !errors.Is(err, gitobj.ErrPackTooLarge) {
		t.Errorf("over the limit: got %v", err)
	}
	if got, err := gitobj.ReadPack(bytes.NewReader(nil), 0); err != nil || len(got) != 0 {
		t.Errorf("no pack at all: got %v, %v", got, err)
	}
	empty, err := gitobj.Set{}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := gitobj.ReadPack(bytes.NewReader(empty), 0); err != nil || len(got) != 0 {
		t.Errorf("an empty pack: got %v, %v", got, err)
	}
}
