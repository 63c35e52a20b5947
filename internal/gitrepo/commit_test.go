package gitrepo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

func TestCommitOverFile(t *testing.T) {
	for name, mod := range map[string]func(*gitrepo.Options){
		"two refs":           func(*gitrepo.Options) {},
		"one ref":            oneBranch,
		"with a cache":       func(o *gitrepo.Options) { o.Dir = t.TempDir() },
		"a cache, one ref":   func(o *gitrepo.Options) { o.Dir = t.TempDir(); o.Ledger = "main" },
		"flushed every time": func(o *gitrepo.Options) { o.Dir = t.TempDir(); o.FlushBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t)
			o := options(mod)
			r := open(t, dial(t, dir, gitrepo.Auth{}), o)
			h := fetch(t, r)
			q := request(h, contract("vision", "a", "1"), contract("nlp", "b", "2"))
			q.Compose = func(tree.Tree, []gitrepo.Item) (gitrepo.Composed, error) {
				return gitrepo.Composed{Subject: "2 placed"}, nil
			}
			market := tree.NewMemory().Build(map[string][]byte{"paris": []byte("p"), "milan": []byte("m")})
			q.Market = market
			res := commit(t, r, q)
			if len(res.Commits) != 1 || len(res.Commits[0].Keys) != 2 {
				t.Fatalf("Commit: got %+v, want both items in one commit", res)
			}
			want := "2 placed\n\nplace vision/a on paris/h100\nplace nlp/b on paris/h100\n\n" +
				"Contract: a - -> Reserved\nContract: b - -> Reserved\nInputs: " + h.Inputs.Commit.Hash.String() + "\nPlan: sha256:00\nLedger: " + o.Ledger + " 1"
			if got := git(t, dir, "log", "-1", "--format=%B", o.Ledger); got != want {
				t.Errorf("message: got\n%s\nwant\n%s", got, want)
			}
			for ref, want := range map[string]string{
				"refs/fleetbroker/accepted/ledger":         res.Head().String(),
				"refs/fleetbroker/accepted/inputs":         h.Inputs.Commit.Hash.String(),
				"refs/fleetbroker/market/20261120^{tree}":  market.Root.String(),
				o.Ledger + "^{tree}":                       git(t, dir, "rev-parse", res.Head().String()+"^{tree}"),
				o.Ledger + ":contracts/nlp/aa/b.yaml":      tree.BlobHash([]byte("2")).String(),
				"refs/fleetbroker/market/20261120:paris":   tree.BlobHash([]byte("p")).String(),
				"refs/fleetbroker/market/20261120~0:milan": tree.BlobHash([]byte("m")).String(),
			} {
				if got := git(t, dir, "rev-parse", ref); got != want {
					t.Errorf("%s: got %s, want %s", ref, got, want)
				}
			}
			// Again: nothing changes, no commit.
			h = fetch(t, r)
			if h.Ledger.Commit.Hash != res.Head() {
				t.Errorf("ledger after the commit: got %s, want %s", h.Ledger.Commit.Hash, res.Head())
			}
			res = commit(t, r, request(h, contract("vision", "a", "1")))
			if len(res.Commits) != 0 || len(res.Unchanged) != 1 {
				t.Errorf("the same commit again: got %+v, want none", res)
			}
			// Deleting the last file leaves no directory; a fresh copy agrees.
			it := contract("nlp", "b", "")
			it.Puts, it.Deletes = nil, []string{"contracts/nlp/aa/b.yaml"}
			res = commit(t, r, request(h, it))
			if got := git(t, dir, "ls-tree", "--name-only", o.Ledger+":contracts"); got != "vision" {
				t.Errorf("contracts/ holds %q, want only vision", got)
			}
			h2 := fetch(t, open(t, dial(t, dir, gitrepo.Auth{}), options(mod)))
			if h2.Ledger.Commit.Hash != res.Head() || content(t, h2.Ledger.Tree, "contracts/vision/aa/a.yaml") != "1" {
				t.Errorf("a fresh copy sees %s", h2.Ledger.Commit.Hash)
			}
			git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

func TestCommitMovesToTheNewParent(t *testing.T) {
	m := seeded(t)
	a, b := open(t, m, options()), open(t, m, options())
	commit(t, a, request(fetch(t, a), contract("x", "first", "1")))
	ha, hb := fetch(t, a), fetch(t, b)
	commit(t, a, independent(ha, contract("vision", "a", "1")))
	res := commit(t, b, independent(hb, contract("nlp", "b", "2")))
	if res.Conflicts != 1 {
		t.Errorf("Conflicts: got %d, want 1", res.Conflicts)
	}
	h := fetch(t, a)
	for p, want := range map[string]string{"contracts/vision/aa/a.yaml": "1", "contracts/nlp/aa/b.yaml": "2"} {
		if got := content(t, h.Ledger.Tree, p); got != want {
			t.Errorf("%s: got %s, want %s", p, got, want)
		}
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestReplan(t *testing.T) {
	ours := gitobj.Person{Name: "fleetbroker", Email: "fleetbroker@example.org", When: noon}
	const plan = "x\n\nPlan: sha256:1\n"
	for name, c := range map[string]struct {
		branch  string
		who     gitobj.Person
		message string
		path    string
		del     bool
		reads   []string
		check   func(*gitrepo.ErrReplan) bool // nil: it must land
	}{
		"another's contract":           {"ledger", ours, plan, "contracts/nlp/b", false, nil, func(e *gitrepo.ErrReplan) bool { return len(e.Paths) == 1 && e.Paths[0] == "contracts" }},
		"another's contract, not read": {"ledger", ours, plan, "contracts/nlp/b", false, []string{}, nil},
		"a path that is written":       {"ledger", ours, plan, "contracts/vision/aa/a.yaml", false, []string{}, func(e *gitrepo.ErrReplan) bool { return len(e.Paths) == 1 }},
		"a file where a directory is":  {"ledger", ours, plan, "contracts/vision/aa", false, []string{}, nil},
		"a path that is read":          {"ledger", ours, plan, "requests/x", false, []string{"requests"}, func(e *gitrepo.ErrReplan) bool { return len(e.Paths) == 1 }},
		"a stranger's edit":            {"ledger", person("Eve"), "x\n", "manifests/rome/x", false, []string{}, func(e *gitrepo.ErrReplan) bool { return len(e.Foreign) == 1 && e.Foreign[0].Path == "manifests/rome/x" }},
		"a stranger's file beside":     {"ledger", person("Eve"), "x\n", "README.md", false, []string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			r := open(t, m, options())
			commit(t, r, request(fetch(t, r), contract("x", "first", "1")))
			q := request(fetch(t, r), contract("vision", "a", "1"))
			q.Reads = c.reads
			if _, err := m.Commit(c.branch, c.who, c.message, gitobj.Change{Puts: map[string][]byte{c.path: []byte("theirs")}}); err != nil {
				t.Fatal(err)
			}
			res, err := r.Commit(t.Context(), q)
			var replan *gitrepo.ErrReplan
			switch {
			case c.check == nil:
				if err != nil || len(res.Commits) != 1 {
					t.Errorf("got %+v, %v; want it to land", res, err)
				}
			case !errors.As(err, &replan) || !c.check(replan):
				t.Errorf("got %v", err)
			case len(res.Commits) != 0:
				t.Errorf("landed all the same: %+v", res)
			}
		})
	}
}

// The inputs are compared by what people write there, and only when the ledger
// moved: compare-and-swap guards the ledger, the trailer names the inputs.
func TestInputsThatMoved(t *testing.T) {
	for name, mod := range map[string]func(*gitrepo.Options){"two refs": func(*gitrepo.Options) {}, "one ref": oneBranch} {
		for path, replans := range map[string]bool{"intents/vision/b.yaml": true, "README.md": false} {
			t.Run(name+" "+path, func(t *testing.T) {
				m := seeded(t)
				a, b := open(t, m, options(mod)), open(t, m, options(mod))
				commit(t, a, request(fetch(t, a), contract("x", "first", "1")))
				ha, hb := fetch(t, a), fetch(t, b)
				commit(t, a, independent(ha, contract("nlp", "b", "2")))
				team(t, m, path, "new")
				_, err := b.Commit(t.Context(), independent(hb, contract("vision", "a", "1")))
				var replan *gitrepo.ErrReplan
				if got := errors.As(err, &replan) && replan.Inputs; got != replans {
					t.Errorf("got %v, want a replan for the inputs: %v", err, replans)
				}
			})
		}
	}
}

func TestClock(t *testing.T) {
	m := seeded(t)
	now := noon
	o := options()
	o.Now = func() time.Time { return now }
	r := open(t, m, o)
	commit(t, r, request(fetch(t, r), contract("x", "first", "1")))

	now = noon.Add(-20 * time.Second)
	q := request(fetch(t, r), contract("x", "second", "1"))
	q.When = now
	res := commit(t, r, q)
	if got := res.Commits[0].Commit.When(); !got.Equal(noon) {
		t.Errorf("committer time: got %v, want the parent's %v", got, noon)
	}
	now = noon.Add(-31 * time.Second)
	q = request(fetch(t, r), contract("x", "third", "1"))
	q.When = now
	var clock *gitrepo.ErrClock
	if _, err := r.Commit(t.Context(), q); !errors.As(err, &clock) || clock.Ahead != 31*time.Second {
		t.Errorf("a parent 31 s ahead: got %v, want ErrClock", err)
	}
}

func TestRequestsThatAreRefusedOutright(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	h := fetch(t, r)
	put := func(paths ...string) gitrepo.Item {
		it := gitrepo.Item{Key: strings.Join(paths, " "), Puts: map[string][]byte{}}
		for _, p := range paths {
			it.Puts[p] = []byte(p)
		}
		return it
	}
	for name, q := range map[string]gitrepo.Request{
		"an input":               request(h, put("intents/vision/a.yaml")),
		"a way out":              request(h, put("contracts/../fleet.yaml")),
		"a .git":                 request(h, put("contracts/.GIT/config")),
		"file and directory":     request(h, put("contracts/a", "contracts/a/b")),
		"no key":                 request(h, gitrepo.Item{}),
		"the same key twice":     request(h, put("contracts/a"), put("contracts/a")),
		"two minds about a file": request(h, gitrepo.Item{Key: "1", Puts: map[string][]byte{"contracts/a": []byte("1")}}, gitrepo.Item{Key: "2", Puts: map[string][]byte{"contracts/a": []byte("2")}}),
	} {
		if res, err := r.Commit(t.Context(), q); err == nil {
			t.Errorf("%s: got %+v, want an error", name, res)
		}
	}
	if h := m.Head("ledger"); !h.IsZero() {
		t.Errorf("something was pushed: %s", h)
	}
}

func TestMessage(t *testing.T) {
	for name, c := range map[string]struct {
		subject  string
		lines    []string
		trailers []string
		want     string
	}{
		"one item":          {"1 placed", []string{"place a"}, []string{"Plan: x"}, "place a\n\nPlan: x\n"},
		"several":           {"2 placed", []string{"place a", "place b"}, []string{"Plan: x", "Now: y"}, "2 placed\n\nplace a\nplace b\n\nPlan: x\nNow: y\n"},
		"no subject":        {"", []string{"a", "b"}, nil, "2 changes\n\na\nb\n"},
		"a name with lines": {"", []string{"place a\n\nPlan: forged"}, []string{"Plan: x"}, "place a Plan: forged\n\nPlan: x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gitrepo.Message(c.subject, c.lines, c.trailers); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The files shared by several items are made again for what lands together.
func TestComposeAfterARefusal(t *testing.T) {
	m := seeded(t)
	m.Hook = func(_ string, paths []string) error {
		for _, p := range paths {
			if strings.Contains(p, "bad") {
				return errors.New("no")
			}
		}
		return nil
	}
	r := open(t, m, options())
	items := []gitrepo.Item{contract("t", "a", "1"), contract("t", "bad", "1"), contract("t", "c", "1"), contract("t", "d", "1")}
	q := request(fetch(t, r), items...)
	q.Compose = func(parent tree.Tree, items []gitrepo.Item) (gitrepo.Composed, error) {
		list := ""
		if b, err := parent.ReadFile("contracts/t/list", 0); err == nil {
			list = string(b)
		}
		for _, it := range items {
			list += it.Key + "\n"
		}
		return gitrepo.Composed{Subject: "some", Puts: map[string][]byte{"contracts/t/list": []byte(list)}}, nil
	}
	res := commit(t, r, q)
	if len(res.Refused) != 1 {
		t.Fatalf("refused: %+v", res.Refused)
	}
	h := fetch(t, r)
	got := strings.Fields(content(t, h.Ledger.Tree, "contracts/t/list"))
	slices.Sort(got)
	if want := []string{"t/a", "t/c", "t/d"}; !slices.Equal(got, want) {
		t.Errorf("the shared file lists %v, want %v", got, want)
	}
}

// Equal requests on equal parents give byte-equal commits, signed ones too.
func TestCommitsAreDeterministic(t *testing.T) {
	file, _ := sshKey(t, "ed25519", "")
	signer, err := gitrepo.SSHSigner(file, "")
	if err != nil {
		t.Fatal(err)
	}
	var heads []tree.Hash
	for range 5 {
		m := seeded(t)
		r := open(t, m, options(func(o *gitrepo.Options) { o.Identity.Signer = signer }))
		var items []gitrepo.Item
		for i := range 20 {
			items = append(items, contract(fmt.Sprint("t", i%3), fmt.Sprint("c", i), "x"))
		}
		q := request(fetch(t, r), items...)
		q.Market = tree.NewMemory().Build(map[string][]byte{"paris": []byte("p"), "milan": []byte("m")})
		heads = append(heads, commit(t, r, q).Head(), m.AllRefs()[gitrepo.MarketDay(noon)])
	}
	for i := 2; i < len(heads); i++ {
		if heads[i] != heads[i%2] {
			t.Fatalf("run %d: got %s, want %s", i/2, heads[i], heads[i%2])
		}
	}
}

func TestLedgerAtRemote(t *testing.T) {
	m := seeded(t)
	a, b := open(t, m, options()), open(t, m, options())
	fetch(t, b)
	res := commit(t, a, request(fetch(t, a), contract("vision", "a", "1")))
	if got, err := b.LedgerAtRemote(t.Context()); err != nil || got != res.Head() {
		t.Errorf("got %s, %v; want %s", got, err, res.Head())
	}
}
