package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

var errNetwork = errors.New("connection reset by peer")

// failing makes the operations fail whose kind and turn (from 1, of that kind)
// are listed.
func failing(kind memremote.Kind, apply bool, turns ...int) func(memremote.Op) (bool, error) {
	n := 0
	return func(op memremote.Op) (bool, error) {
		if op.Kind == kind {
			if n++; slices.Contains(turns, n) {
				return apply, errNetwork
			}
		}
		return true, nil
	}
}

func ledgerLength(t testing.TB, m *memremote.Remote) int {
	t.Helper()
	l, err := m.Log("ledger")
	if err != nil {
		t.Fatal(err)
	}
	return len(l)
}

func TestPushWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		apply bool
		turns []int
	}{
		"not persisted, once":               {false, []int{1}},
		"not persisted, twice":              {false, []int{1, 2}},
		"persisted though it failed":        {true, []int{1}},
		"persisted, and the retry would be": {true, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			r := open(t, m, options())
			h := fetch(t, r)
			m.Fault = failing(memremote.Push, c.apply, c.turns...)
			res := commit(t, r, request(h, contract("vision", "a", "1")))
			if m.Head("ledger") != res.Head() || ledgerLength(t, m) != 1 {
				t.Errorf("the ledger holds %d commits, head %s; want the one reported, %s", ledgerLength(t, m), m.Head("ledger"), res.Head())
			}
			if h := fetch(t, r); len(h.Settled) != 0 || h.Unsettled != 0 {
				t.Errorf("left to settle: %+v, %d", h.Settled, h.Unsettled)
			}
		})
	}
}

func TestRemoteGoneAfterThePush(t *testing.T) {
	for _, persisted := range []bool{false, true} {
		t.Run(fmt.Sprintf("persisted=%v", persisted), func(t *testing.T) {
			m := seeded(t)
			r := open(t, m, options())
			h := fetch(t, r)
			m.Fault = func(op memremote.Op) (bool, error) { return persisted, errNetwork }
			_, err := r.Commit(t.Context(), request(h, contract("vision", "a", "1")))
			var unknown *gitrepo.ErrUnknown
			if !errors.As(err, &unknown) || !slices.Equal(unknown.Keys, []string{"vision/a"}) {
				t.Fatalf("got %v, want ErrUnknown naming the item", err)
			}
			if _, err := r.Fetch(t.Context()); err == nil {
				t.Fatal("Fetch succeeded without a remote")
			}
			m.Fault = nil
			h = fetch(t, r)
			if persisted {
				if len(h.Settled) != 1 || !h.Settled[0].Landed || h.Settled[0].Commit != unknown.Commit || h.Unsettled != 0 {
					t.Errorf("got %+v and %d unsettled, want it landed", h.Settled, h.Unsettled)
				}
				return
			}
			if len(h.Settled) != 0 || h.Unsettled != 1 {
				t.Errorf("got %+v and %d unsettled, want it open: the push may still arrive", h.Settled, h.Unsettled)
			}
			res := commit(t, r, request(h, contract("vision", "b", "2")))
			h = fetch(t, r)
			if len(h.Settled) != 0 && h.Settled[0].Landed || h.Ledger.Commit.Hash != res.Head() || h.Unsettled != 0 {
				t.Errorf("after the next commit: got %+v, %d unsettled", h.Settled, h.Unsettled)
			}
		})
	}
}

// A server that never answers pushes is not asked for every item apart.
func TestPushesThatAreNeverAnswered(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	h := fetch(t, r)
	pushes := 0
	m.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			pushes++
			return false, errors.New("503 service unavailable")
		}
		return true, nil
	}
	var items []gitrepo.Item
	for i := range 100 {
		items = append(items, contract("t", fmt.Sprint("c", i), "x"))
	}
	var refused *gitrepo.ErrRefused
	if _, err := r.Commit(t.Context(), request(h, items...)); !errors.As(err, &refused) || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want ErrRefused with the words", err)
	}
	if pushes > 9 {
		t.Errorf("%d pushes", pushes)
	}
	m.Fault = nil
	if h = fetch(t, r); h.Unsettled == 0 {
		t.Error("unanswered pushes are forgotten")
	}
	commit(t, r, request(h, items...))
	if h = fetch(t, r); h.Unsettled != 0 {
		t.Errorf("%d unsettled after another commit", h.Unsettled)
	}
}

// lateRemote holds a push back: it fails, and arrives just before a later one.
type lateRemote struct {
	gitrepo.Remote
	hold int
	held func() error
}

func (l *lateRemote) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	if l.hold > 0 {
		if l.hold--; l.held == nil {
			l.held = func() error { return l.Remote.Push(context.WithoutCancel(ctx), cmds, pack) }
		}
		return errNetwork
	}
	if l.held != nil {
		if err := l.held(); err != nil {
			return err
		}
		l.held = nil
	}
	return l.Remote.Push(ctx, cmds, pack)
}

// A push that was given up may be carried out afterwards. Then it is ours, and
// it is neither reported lost nor made twice.
func TestPushThatArrivesLate(t *testing.T) {
	m := seeded(t)
	late := &lateRemote{Remote: m}
	r := open(t, late, options())
	h := fetch(t, r)
	late.hold = 3 // as often as one commit is sent: then it is tried in halves
	res := commit(t, r, request(h, contract("vision", "a", "1"), contract("nlp", "b", "2")))
	if len(res.Commits) != 1 || len(res.Commits[0].Keys) != 2 || len(res.Refused) != 0 {
		t.Errorf("got %+v, want the late commit with both items", res)
	}
	if n := ledgerLength(t, m); n != 1 {
		t.Errorf("the ledger holds %d commits, want 1", n)
	}
}

func TestRefusal(t *testing.T) {
	items := func(n int) []gitrepo.Item {
		var out []gitrepo.Item
		for i := range n {
			out = append(out, contract("t", fmt.Sprintf("c%02d", i), "x"))
		}
		return out
	}
	group := func(in []gitrepo.Item, name string, at ...int) []gitrepo.Item {
		for _, i := range at {
			in[i].Group = name
		}
		return in
	}
	for name, c := range map[string]struct {
		items   []gitrepo.Item
		bad     string // refused when a path contains it
		refused []string
		whole   bool
	}{
		"one culprit":               {items(7), "c03", []string{"t/c03"}, false},
		"the only item":             {items(1), "c00", []string{"t/c00"}, true},
		"everything":                {items(5), "c", nil, true},
		"everything, and much":      {items(200), "c", nil, true},
		"two culprits of many":      {items(64), "c1", []string{"t/c10", "t/c11", "t/c12", "t/c13", "t/c14", "t/c15", "t/c16", "t/c17", "t/c18", "t/c19"}, false},
		"a group stays together":    {group(items(6), "g", 1, 4), "c04", []string{"t/c01", "t/c04"}, false},
		"the culprit beside groups": {group(items(6), "g", 1, 4), "c05", []string{"t/c05"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := seeded(t)
			pushes := 0
			m.Fault = func(op memremote.Op) (bool, error) {
				if op.Kind == memremote.Push {
					pushes++
				}
				return true, nil
			}
			m.Hook = func(_ string, paths []string) error {
				for _, p := range paths {
					if strings.Contains(p, c.bad) && strings.HasPrefix(p, "contracts/") {
						return errors.New("policy 7 forbids it")
					}
				}
				return nil
			}
			r := open(t, m, options())
			res, err := r.Commit(t.Context(), request(fetch(t, r), c.items...))
			var refused *gitrepo.ErrRefused
			if got := errors.As(err, &refused); got != c.whole || (err != nil && !got) {
				t.Fatalf("got %v, want a refusal of everything: %v", err, c.whole)
			}
			if c.whole && !strings.Contains(err.Error(), "policy 7 forbids it") {
				t.Errorf("the server's words are lost: %v", err)
			}
			if pushes > 60 {
				t.Errorf("%d pushes", pushes)
			}
			if c.refused == nil {
				return
			}
			var got []string
			for _, f := range res.Refused {
				got = append(got, f.Key)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.refused) {
				t.Errorf("refused: got %v, want %v", got, c.refused)
			}
			var landed []string
			for _, k := range res.Commits {
				landed = append(landed, k.Keys...)
			}
			if len(landed)+len(got) != len(c.items) {
				t.Errorf("%d landed and %d refused of %d", len(landed), len(got), len(c.items))
			}
		})
	}
}

func TestMarketRefMovedMeanwhile(t *testing.T) {
	m := seeded(t)
	a, b := open(t, m, options()), open(t, m, options())
	ha, hb := fetch(t, a), fetch(t, b)
	snapshot := func(s string) tree.Tree {
		return tree.NewMemory().Build(map[string][]byte{"paris": []byte(s), "milan": []byte("same")})
	}
	q := independent(ha, contract("vision", "a", "1"))
	q.Market = snapshot("1")
	commit(t, a, q)
	q = independent(hb, contract("nlp", "b", "2"))
	q.Market = snapshot("2")
	if res := commit(t, b, q); res.Conflicts != 1 {
		t.Errorf("Conflicts: got %d, want 1", res.Conflicts)
	}
	q = independent(fetch(t, b), contract("nlp", "c", "3"))
	q.Market = snapshot("3")
	commit(t, b, q)
	var roots []tree.Hash
	for h := m.AllRefs()[gitrepo.MarketDay(noon)]; !h.IsZero(); {
		tr, err := m.Tree(h)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, tr.Root)
		m.SetRef("refs/heads/tmp", h)
		log, err := m.Log("tmp")
		if err != nil {
			t.Fatal(err)
		}
		h = tree.Hash{}
		if len(log) > 1 {
			h = log[1].Hash
		}
	}
	want := []tree.Hash{snapshot("3").Root, snapshot("2").Root, snapshot("1").Root}
	if !slices.Equal(roots, want) {
		t.Errorf("the day's chain: got %v, want %v", roots, want)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	day, err := gitrepo.ReadPublished(t.Context(), m, noon)
	if err != nil {
		t.Fatal(err)
	}
	back, err := day.Market(snapshot("2").Root)
	if err != nil || content(t, back, "paris") != "2" || content(t, back, "milan") != "same" {
		t.Errorf("Market: got %+v, %v", back, err)
	}
	if _, err := day.Market(snapshot("4").Root); !errors.Is(err, gitrepo.ErrPruned) {
		t.Errorf("Market: a snapshot that was never published: %v", err)
	}
	if _, err := gitrepo.ReadPublished(t.Context(), m, noon.AddDate(0, 0, -1)); !errors.Is(err, gitrepo.ErrPruned) {
		t.Errorf("ReadPublished of a day without any: %v", err)
	}
	q = independent(fetch(t, b), contract("nlp", "d", "4"))
	q.Market, q.Round = snapshot("3"), []byte(`{"version":1}`) // the market is as it was, but what stands beside it is new
	commit(t, b, q)
	if day, err = gitrepo.ReadPublished(t.Context(), m, noon); err != nil {
		t.Fatal(err)
	}
	if got, err := day.Round(tree.BlobHash(q.Round)); err != nil || string(got) != string(q.Round) {
		t.Errorf("Round: got %q, %v", got, err)
	}
	if back, err = day.Market(snapshot("3").Root); err != nil || content(t, back, "paris") != "3" {
		t.Errorf("Market beside it: got %+v, %v", back, err)
	}
	if _, err := day.Round(tree.BlobHash([]byte("never"))); !errors.Is(err, gitrepo.ErrPruned) {
		t.Errorf("Round that was never published: %v", err)
	}
	gone, err := b.PruneMarket(t.Context(), noon)
	if err != nil || len(gone) != 0 {
		t.Errorf("PruneMarket of the day itself: got %v, %v", gone, err)
	}
	gone, err = b.PruneMarket(t.Context(), noon.AddDate(0, 0, 1))
	if err != nil || len(gone) != 1 {
		t.Errorf("PruneMarket: got %v, %v; want the day", gone, err)
	}
	if h := m.AllRefs()[gitrepo.MarketDay(noon)]; !h.IsZero() {
		t.Error("the market ref is still there")
	}
}

func TestCancelledContext(t *testing.T) {
	m := seeded(t)
	r := open(t, m, options())
	h := fetch(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	m.Fault = func(op memremote.Op) (bool, error) {
		if op.Kind == memremote.Push {
			cancel()
			return true, context.Canceled // the push goes through, nobody hears
		}
		return true, nil
	}
	res, err := r.Commit(ctx, request(h, contract("vision", "a", "1")))
	if err != nil || res.Head() != m.Head("ledger") {
		t.Errorf("cancelled while pushing: got %+v, %v; want the answer all the same", res, err)
	}
	if _, err := r.Commit(ctx, request(h, contract("vision", "b", "1"))); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
}

// driver commits one file and does not rest until it is told that it is there,
// as the reconciler would: whatever the error, it fetches and asks again.
func driver(t fataler, r *gitrepo.Repo, key string) (told []tree.Hash) {
	for range 40 {
		h, err := r.Fetch(context.Background())
		if err != nil {
			continue
		}
		it := contract("t", key, key)
		if _, err := h.Ledger.Tree.ReadFile("contracts/t/aa/"+key+".yaml", 0); err == nil {
			return told
		}
		res, err := r.Commit(context.Background(), independent(h, it))
		for _, c := range res.Commits {
			told = append(told, c.Commit.Hash)
		}
		var unknown *gitrepo.ErrUnknown
		if errors.As(err, &unknown) && len(res.Commits) > 0 {
			t.Fatalf("told both that %s landed and that nobody knows", key)
		}
	}
	t.Fatalf("%s never landed", key)
	return nil
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// Each kind of fault at each operation in turn: the item lands exactly once,
// and what was said to have landed is in the ledger.
func TestFaultAtEachStep(t *testing.T) {
	for step := 1; step <= 14; step++ {
		for _, apply := range []bool{false, true} {
			for _, width := range []int{1, 4} {
				t.Run(fmt.Sprintf("step %d, persisted %v, %d in a row", step, apply, width), func(t *testing.T) {
					m := seeded(t)
					r := open(t, m, options(func(o *gitrepo.Options) { o.Dir = t.TempDir() }))
					other := open(t, m, options())
					m.Fault = func(op memremote.Op) (bool, error) {
						if op.N >= step && op.N < step+width {
							return apply, errNetwork
						}
						return true, nil
					}
					told := driver(t, r, "one")
					told = append(told, driver(t, other, "two")...)
					told = append(told, driver(t, r, "three")...)
					m.Fault = nil
					checkLedger(t, m, "ledger", told, "one", "two", "three")
				})
			}
		}
	}
}

// checkLedger demands that each key was added by exactly one commit, that the
// ledger is whole, and that it contains what people were told.
func checkLedger(t fataler, m *memremote.Remote, branch string, told []tree.Hash, keys ...string) {
	log, err := m.Log(branch)
	if err != nil {
		t.Fatalf("read the ledger: %v", err)
	}
	in := map[tree.Hash]bool{}
	adds := map[string]int{}
	for _, c := range log {
		in[c.Hash] = true
		for _, tr := range gitobj.Trailers(c.Message, "Contract") {
			adds[strings.Fields(tr)[0]]++
		}
	}
	for _, h := range told {
		if !in[h] {
			t.Fatalf("commit %s was reported and is not in the ledger", h)
		}
	}
	for _, k := range keys {
		if adds[k] != 1 {
			t.Fatalf("%s was committed %d times", k, adds[k])
		}
	}
	if err := m.Check(); err != nil {
		t.Fatalf("the remote is damaged: %v", err)
	}
}

// Any faults in any order, two daemons that are restarted, and a team.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := memremote.New()
		put := func(p string) gitobj.Change { return gitobj.Change{Puts: map[string][]byte{p: []byte("x")}} }
		edit := func(p string) {
			if _, err := m.Commit("main", person("Ada"), "x", put(p)); err != nil {
				rt.Fatal(err)
			}
		}
		edit("intents/vision/a.yaml")
		remote := &capricious{Remote: m, whims: rapid.SliceOfN(rapid.SampledFrom(
			[]string{"", "", "", "", "", "lost", "unanswered", "late", "deliver", "deliver"}), 0, 80).Draw(rt, "whims")}
		opts := make([]gitrepo.Options, 2)
		daemons := make([]*gitrepo.Repo, 2)
		start := func(i int) {
			r, err := gitrepo.Open(context.Background(), remote, opts[i])
			if err != nil {
				rt.Fatal(err)
			}
			daemons[i] = r
		}
		oneRef := rapid.Bool().Draw(rt, "one ref")
		for i := range daemons {
			opts[i] = options(func(o *gitrepo.Options) {
				if rapid.Bool().Draw(rt, "on disk") {
					o.Dir, o.FlushBytes = t.TempDir(), rapid.SampledFrom([]int{1, 1 << 20}).Draw(rt, "flush")
				}
				if oneRef {
					o.Ledger = "main"
				}
			})
			start(i)
		}
		var told []tree.Hash
		var keys []string
		for i := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			d := rapid.IntRange(0, 1).Draw(rt, "daemon")
			switch rapid.SampledFrom([]string{"commit", "commit", "commit", "team", "restart"}).Draw(rt, "step") {
			case "team":
				edit(fmt.Sprintf("intents/vision/%d.yaml", i))
			case "restart":
				if err := daemons[d].Close(); err != nil {
					rt.Fatal(err)
				}
				start(d)
			default:
				key := fmt.Sprintf("k%d", i)
				keys = append(keys, key)
				told = append(told, driver(rt, daemons[d], key)...)
			}
		}
		for _, d := range daemons {
			if err := d.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		checkLedger(rt, m, opts[0].Ledger, told, keys...)
	})
}

// capricious fails operations as a list says, in order: lost (not carried
// out), unanswered (carried out), late (carried out when a later entry says
// deliver). After the list it behaves, and delivers what is left.
type capricious struct {
	*memremote.Remote
	whims []string
	held  []func()
}

func (c *capricious) whim() string {
	w := "deliver"
	if len(c.whims) > 0 {
		w, c.whims = c.whims[0], c.whims[1:]
	}
	if w == "deliver" {
		for _, f := range c.held {
			f()
		}
		c.held, w = nil, ""
	}
	return w
}

func (c *capricious) Refs(ctx context.Context) (map[string]tree.Hash, error) {
	if c.whim() != "" {
		return nil, errNetwork
	}
	return c.Remote.Refs(ctx)
}

func (c *capricious) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	if c.whim() != "" {
		return errNetwork
	}
	return c.Remote.Fetch(ctx, choose, sink)
}

func (c *capricious) Push(ctx context.Context, cmds []gitrepo.Command, pack []byte) error {
	// A push that arrives late may well be refused; nobody hears of it.
	push := func() error { return c.Remote.Push(context.WithoutCancel(ctx), cmds, pack) }
	switch c.whim() {
	case "lost":
		return errNetwork
	case "unanswered":
		return errors.Join(errNetwork, push())
	case "late":
		c.held = append(c.held, func() { _ = push() })
		return errNetwork
	}
	return push()
}

func TestFetchBrokenOff(t *testing.T) {
	m := seeded(t)
	r := open(t, brokenFetch{m}, options(func(o *gitrepo.Options) { o.Dir = t.TempDir() }))
	if _, err := r.Fetch(t.Context()); err == nil {
		t.Fatal("Fetch succeeded on half a pack")
	}
	r2 := open(t, m, options())
	fetch(t, r2)
}

// brokenFetch breaks every pack off in the middle.
type brokenFetch struct{ gitrepo.Remote }

func (b brokenFetch) Fetch(ctx context.Context, choose func(map[string]tree.Hash) (want, have []tree.Hash), sink func(io.Reader) error) error {
	return b.Remote.Fetch(ctx, choose, func(pack io.Reader) error {
		all, err := io.ReadAll(pack)
		if err != nil {
			return err
		}
		return sink(io.MultiReader(strings.NewReader(string(all[:len(all)/2])), failingReader{}))
	})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errNetwork }
