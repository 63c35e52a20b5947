package pushbudget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// watch is a clock that moves when it is told to, and when somebody sleeps.
type watch struct{ at time.Time }

func (w *watch) now() time.Time { return w.at }

func (w *watch) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.at = w.at.Add(d)
	return nil
}

// idle is a budget that nobody has used for long.
func idle(w *watch, l Limit) *Budget {
	b := New(Options{Default: l, Now: w.now, Sleep: w.sleep})
	w.at = w.at.Add(time.Hour)
	return b
}

// wait is how long a class waits now.
func wait(b *Budget, w *watch, c Class) time.Duration {
	if at := b.At(c); !at.IsZero() {
		return at.Sub(w.at)
	}
	return 0
}

// TestClasses: status leaves the burst alone, decisions leave half of it, and what is
// urgent uses all and then waits for the pace.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		burst                    int
		sent                     int
		status, decision, urgent time.Duration
	}{
		{burst: 6, sent: 0},
		{burst: 6, sent: 1, status: 10 * time.Second},
		{burst: 6, sent: 2, status: 20 * time.Second},
		{burst: 6, sent: 3, status: 30 * time.Second, decision: 10 * time.Second},
		{burst: 6, sent: 5, status: 50 * time.Second, decision: 30 * time.Second},
		{burst: 6, sent: 6, status: 60 * time.Second, decision: 40 * time.Second, urgent: 10 * time.Second},
		{burst: 1, sent: 1, status: 10 * time.Second, decision: 10 * time.Second, urgent: 10 * time.Second},
	} {
		t.Run(fmt.Sprintf("burst %d, %d sent", c.burst, c.sent), func(t *testing.T) {
			w := &watch{noon}
			b := idle(w, Limit{PerMinute: 6, Burst: c.burst})
			for range c.sent {
				if err := b.enter(t.Context(), "ledger"); err != nil {
					t.Fatal(err)
				}
			}
			if s, d, u := wait(b, w, Status), wait(b, w, Decision), wait(b, w, Urgent); s != c.status || d != c.decision || u != c.urgent {
				t.Errorf("status waits %s, a decision %s, what is urgent %s; want %s, %s, %s", s, d, u, c.status, c.decision, c.urgent)
			}
			if got := b.Wait(); got != c.urgent {
				t.Errorf("estimated %s, want %s", got, c.urgent)
			}
		})
	}
}

// TestDefaults: only GitHub asks for few pushes; fleet.yaml has the last word, down to no
// limit, and a limit that begins finds the burst used.
func TestDefaults(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		forge string
		spec  *v1alpha1.PushBudget
		want  Limit
	}{
		{"github", nil, Limit{6, DefaultBurst}},
		{"gitlab", nil, Limit{}},
		{"gitea", nil, Limit{}},
		{"", nil, Limit{}},
		{"github", &v1alpha1.PushBudget{PerMinute: number(0)}, Limit{}},
		{"github", &v1alpha1.PushBudget{Burst: 3}, Limit{6, 3}},
		{"github", &v1alpha1.PushBudget{PerMinute: number(60)}, Limit{60, DefaultBurst}},
		{"gitea", &v1alpha1.PushBudget{PerMinute: number(12)}, Limit{12, DefaultBurst}},
		{"gitea", &v1alpha1.PushBudget{Burst: 12}, Limit{}},
	} {
		w := &watch{noon}
		b := New(Options{Default: DefaultOf(c.forge), Now: w.now, Sleep: w.sleep})
		b.Configure(c.spec)
		if b.limit != c.want {
			t.Errorf("forge %q with %+v: limit %+v, want %+v", c.forge, c.spec, b.limit, c.want)
		}
		waits := wait(b, w, Status) > 0
		if spent := c.want.Burst > 1; waits != spent || wait(b, w, Urgent) != 0 {
			t.Errorf("forge %q with %+v: status waits: %t, what is urgent for %s", c.forge, c.spec, waits, wait(b, w, Urgent))
		}
	}
}

// history is a ledger as a line of commits.
type history struct {
	line []gitrepo.Commit // oldest first
	ours map[tree.Hash]bool
}

// push puts a commit on it.
func (h *history) push(at time.Time, ours bool) tree.Hash {
	hash := tree.BlobHash([]byte(fmt.Sprint(len(h.line))))
	c := gitrepo.Commit{Hash: hash, Committer: gitobj.Person{When: at.Truncate(time.Second)}}
	if n := len(h.line); n > 0 {
		c.Parents = []tree.Hash{h.line[n-1].Hash}
	}
	h.line = append(h.line, c)
	if h.ours == nil {
		h.ours = map[tree.Hash]bool{}
	}
	h.ours[hash] = ours
	return hash
}

func (h *history) head() tree.Hash {
	if len(h.line) == 0 {
		return tree.Hash{}
	}
	return h.line[len(h.line)-1].Hash
}

func (h *history) Info(hash tree.Hash) (gitrepo.Commit, error) {
	for _, c := range h.line {
		if c.Hash == hash {
			return c, nil
		}
	}
	return gitrepo.Commit{}, errors.New("no such commit")
}

func (h *history) MadeByUs(hash tree.Hash) (bool, error) { return h.ours[hash], nil }

// TestFollowCountsWhatOthersPushed: commits of the fleet by their dates, those of people
// and those that this process pushed itself not.
func TestFollowCountsWhatOthersPushed(t *testing.T) {
	w := &watch{noon}
	b := idle(w, Limit{PerMinute: 6, Burst: 6})
	h := &history{}
	h.push(w.at.Add(-30*time.Minute), true)
	h.push(w.at.Add(-40*time.Second), false)
	for i := range 5 {
		h.push(w.at.Add(time.Duration(i-5)*time.Second), true)
	}
	for range 2 { // the second time there is nothing new
		if err := b.Follow(h, h.head()); err != nil {
			t.Fatal(err)
		}
		if got := wait(b, w, Status); got != 50*time.Second {
			t.Errorf("after five commits within a minute status waits %s, want 50s", got)
		}
	}
	if f := b.Figures(); f.Used != 5 {
		t.Errorf("%d pushes within the last minute, want 5", f.Used)
	}
	own := h.push(w.at, true)
	b.pushed(own)
	if err := b.Follow(h, own); err != nil {
		t.Fatal(err)
	}
	if got := wait(b, w, Status); got != 50*time.Second {
		t.Errorf("a commit of its own is counted again: status waits %s", got)
	}
	h.push(w.at, true)
	h.line = h.line[:len(h.line)-1]
	if err := b.Follow(h, tree.BlobHash([]byte("unknown"))); err == nil {
		t.Error("a head that cannot be read is followed")
	}
}

// What a replica that does not decide pushes is of the same budget: what it says that it has
// pushed is counted by the one that does, and only what the ledger does not show.
func TestPushesThatTheLedgerDoesNotShow(t *testing.T) {
	w := &watch{noon}
	standby, leader := idle(w, Limit{PerMinute: 6, Burst: 6}), idle(w, Limit{PerMinute: 6, Burst: 6})
	to := standby.Remote(&fake{}, "refs/heads/ledger")
	for _, ref := range []string{"refs/heads/enroll/oslo", "refs/heads/ledger", "refs/notes/fleetbroker"} {
		if err := to.Push(t.Context(), []gitrepo.Command{{Ref: ref, New: tree.BlobHash([]byte(ref))}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := standby.Unshown(); got != 2 {
		t.Fatalf("%d pushes that the ledger does not show, want 2", got)
	}
	leader.Elsewhere(int(standby.Unshown()))
	if got := wait(leader, w, Status); got != 20*time.Second {
		t.Errorf("after two pushes of another replica status waits %s, want 20s", got)
	}
	if f := leader.Figures(); f.Used != 2 {
		t.Errorf("%d pushes within the last minute, want 2", f.Used)
	}
	leader.Elsewhere(1000) // what a Heartbeat may say at the most leaves no debt for hours
	if got := wait(leader, w, Urgent); got > time.Minute {
		t.Errorf("after a thousand at once what is urgent waits %s", got)
	}
	var none *Budget
	none.Elsewhere(3)
	if none.Unshown() != 0 {
		t.Error("a budget that is none has pushes")
	}
}

// Pushes of the ledger that were refused or lost a race are pushes to the forge: other
// replicas hear of them; those that went through the ledger shows.
func TestRefusedPushesOfTheLedgerAreTold(t *testing.T) {
	w := &watch{noon}
	leader, next := idle(w, Limit{PerMinute: 6, Burst: 6}), idle(w, Limit{PerMinute: 6, Burst: 6})
	to := &fake{errs: []error{errors.New("protected branch"), nil, errors.New("non-fast-forward")}}
	r := leader.Remote(to, "ledger")
	for range 3 {
		_ = r.Push(t.Context(), []gitrepo.Command{{Ref: gitrepo.Branch("ledger")}}, nil)
	}
	if got := leader.Unshown(); to.sent != 3 || got != 2 {
		t.Fatalf("of %d pushes, two of which were refused, %d are told", to.sent, got)
	}
	next.Elsewhere(int(leader.Unshown()))
	if got := wait(next, w, Status); got != 20*time.Second {
		t.Errorf("after two refused pushes of another replica status waits %s, want 20s", got)
	}
}

// fake is a remote whose pushes end as they are told to.
type fake struct {
	errs []error
	sent int
}

func (f *fake) Refs(context.Context) (map[string]tree.Hash, error) { return nil, nil }

func (f *fake) Fetch(context.Context, func(map[string]tree.Hash) (want, have []tree.Hash), func(io.Reader) error) error {
	return nil
}

func (f *fake) Push(context.Context, []gitrepo.Command, []byte) error {
	f.sent++
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

// TestEveryPushCounts: whatever it is for and however it ends.
func TestEveryPushCounts(t *testing.T) {
	w := &watch{noon}
	b := idle(w, Limit{PerMinute: 6, Burst: 10})
	f := &fake{errs: []error{nil, &gitrepo.Rejection{Words: "no"}, errors.New("no answer")}}
	r := b.Remote(f, "ledger")
	ref := func(names ...string) (out []gitrepo.Command) {
		for _, n := range names {
			out = append(out, gitrepo.Command{Ref: n, New: tree.BlobHash([]byte(n))})
		}
		return out
	}
	gone := gitrepo.Command{Ref: gitrepo.MarketPrefix + "20261119", Old: tree.BlobHash(nil)}
	for _, cmds := range [][]gitrepo.Command{
		ref(gitrepo.MarketPrefix+"20261120", "refs/heads/ledger", "refs/fleetbroker/accepted/ledger"),
		ref("refs/heads/ledger"), ref("refs/heads/ledger"),
		ref("refs/heads/" + gitrepo.OfferBranch), ref("refs/heads/fleetbroker/enroll-oslo"), ref("refs/fleetbroker/accepted/inputs"),
		ref(gitrepo.MarketPrefix + "20261120"), {gone},
	} {
		_ = r.Push(t.Context(), cmds, nil)
	}
	if err := b.Another(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := b.Figures()
	want := map[string]uint64{"ledger": 3, "offer": 1, "proposal": 1, "notes": 1, "market": 1, "prune": 1, "part": 1}
	for kind, n := range want {
		if got.Kinds[kind] != n {
			t.Errorf("%d pushes of kind %s, want %d", got.Kinds[kind], kind, n)
		}
		if !slices.Contains(Kinds, kind) {
			t.Errorf("kind %s is not listed", kind)
		}
	}
	if got.Used != 9 || f.sent != 8 || len(got.Kinds) != len(want) {
		t.Errorf("used %d of kinds %v, %d sent; want 9 and 8", got.Used, got.Kinds, f.sent)
	}
	if s := wait(b, w, Status); s != 90*time.Second {
		t.Errorf("status waits %s, want 90s", s)
	}
}

// TestWaitsWherePushed: a push beyond the burst waits, tells so, and counts the time; one
// that would wait for long, or whose daemon stops, is not sent.
func TestWaitsWherePushed(t *testing.T) {
	w := &watch{noon}
	b := idle(w, Limit{PerMinute: 6, Burst: 1})
	began, ended := 0, 0
	ctx := OnWait(t.Context(), func() func() { began++; return func() { ended++ } })
	start := w.at
	for range 3 {
		if err := b.enter(ctx, "ledger"); err != nil {
			t.Fatal(err)
		}
	}
	if took := w.at.Sub(start); took != 20*time.Second || began != 2 || ended != 2 {
		t.Errorf("three pushes took %s with %d waits begun and %d ended; want 20s and 2", took, began, ended)
	}
	if f := b.Figures(); f.Waited != 20*time.Second {
		t.Errorf("waited %s, want 20s", f.Waited)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	f := &fake{}
	var held *gitrepo.ErrHeld
	if err := b.Remote(f, "ledger").Push(stopped, nil, nil); !errors.As(err, &held) || f.sent != 0 {
		t.Errorf("a daemon that stops pushed %d times: %v", f.sent, err)
	}
	if err := b.Another(stopped); err == nil || errors.As(err, &held) {
		t.Errorf("the rest of a push that was begun is %v, which says that nothing was sent", err)
	}
}

// TestNoLimit: without one nothing waits or is wrapped, and without a budget either.
func TestNoLimit(t *testing.T) {
	var none *Budget
	f := &fake{}
	if none.Remote(f, "ledger") != gitrepo.Remote(f) {
		t.Error("a remote without a budget is wrapped")
	}
	none.Configure(nil)
	none.Spent()
	none.Answered(nil)
	if !none.At(Status).IsZero() || none.Wait() != 0 || none.Err() != nil || none.Follow(nil, tree.BlobHash(nil)) != nil || none.Another(t.Context()) != nil || none.Figures().Used != 0 {
		t.Error("no budget holds something back")
	}
	w := &watch{noon}
	b := New(Options{Now: w.now, Sleep: w.sleep})
	r := b.Remote(f, "ledger")
	for range 1000 {
		if err := r.Push(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !w.at.Equal(noon) || !b.At(Status).IsZero() {
		t.Errorf("without a limit 1000 pushes took %s", w.at.Sub(noon))
	}
}

// TestWindows: whatever happens, no time t has more than burst + perMinute·t pushes, over
// replicas that take turns deciding. What a replica cannot know of the one before it,
// pushes beside the ledger, may be one more for each turn.
func TestWindows(t *testing.T) {
	for name, hidden := range map[string]bool{"the ledger": false, "beside it too": true} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { windows(t, hidden) }) })
	}
}

func windows(t *rapid.T, hidden bool) {
	l := Limit{PerMinute: rapid.IntRange(1, 60).Draw(t, "per minute"), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
	w := &watch{noon}
	ledger := &history{}
	replicas := []*Budget{}
	for range 2 {
		replicas = append(replicas, New(Options{Default: l, Now: w.now, Sleep: w.sleep}))
	}
	w.at = w.at.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "idle")) * time.Second)
	leader := replicas[0]
	var sent, turns []time.Time
	follow := func(b *Budget) {
		if err := b.Follow(ledger, ledger.head()); err != nil {
			t.Fatal(err)
		}
	}
	push := func(ours bool) {
		sent = append(sent, w.at)
		if ours {
			leader.pushed(ledger.push(w.at, true))
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"": func(*rapid.T) {},
		"time goes by": func(t *rapid.T) {
			w.at = w.at.Add(time.Duration(rapid.IntRange(1, 30_000).Draw(t, "milliseconds")) * time.Millisecond)
		},
		"commit when it may": func(t *rapid.T) {
			if !leader.At(Class(rapid.IntRange(0, 2).Draw(t, "class"))).IsZero() {
				return
			}
			before := w.at
			if err := leader.enter(context.Background(), "ledger"); err != nil || !w.at.Equal(before) {
				t.Fatalf("what may go waited for %s: %v", w.at.Sub(before), err)
			}
			push(true)
		},
		"push at once": func(t *rapid.T) {
			if err := leader.enter(context.Background(), "ledger"); err != nil {
				t.Fatal(err)
			}
			push(!hidden || rapid.Bool().Draw(t, "on the ledger"))
		},
		"people push": func(*rapid.T) { ledger.push(w.at, false) },
		"standby reads": func(*rapid.T) {
			for _, b := range replicas {
				follow(b)
			}
		},
		"another decides": func(*rapid.T) {
			leader = replicas[rapid.IntRange(0, 1).Draw(t, "who")]
			leader.Spent()
			follow(leader)
			turns = append(turns, w.at)
		},
		"restart": func(*rapid.T) {
			i := slices.Index(replicas, leader)
			leader = New(Options{Default: l, Now: w.now, Sleep: w.sleep})
			replicas[i] = leader
			follow(leader)
			turns = append(turns, w.at)
		},
	})
	for i := range sent {
		for j := i; j < len(sent); j++ {
			span := sent[j].Sub(sent[i])
			most := float64(l.Burst) + float64(l.PerMinute)*span.Minutes()
			if hidden {
				for _, at := range turns {
					if !at.Before(sent[i]) && !at.After(sent[j]) {
						most++
					}
				}
			}
			if n := j - i + 1; float64(n) > most+1e-6 {
				t.Fatalf("%d pushes within %s, at most %.2f with %+v", n, sent[j].Sub(sent[i]), most, l)
			}
		}
	}
}

// TestClockSetBack: a debt is never longer than the burst takes to be paid for.
func TestClockSetBack(t *testing.T) {
	w := &watch{noon}
	b := idle(w, Limit{PerMinute: 6, Burst: 6})
	for range 6 {
		if err := b.enter(t.Context(), "ledger"); err != nil {
			t.Fatal(err)
		}
	}
	w.at = w.at.Add(-24 * time.Hour)
	if got := wait(b, w, Urgent); got > 10*time.Second {
		t.Errorf("a day back, a push waits %s", got)
	}
	if err := b.enter(t.Context(), "ledger"); err != nil {
		t.Error(err)
	}
}

func TestHeldSaysWhy(t *testing.T) {
	err := &gitrepo.ErrHeld{Until: noon, Why: "the git server answered 429 Too Many Requests"}
	if got := err.Error(); got != "held until 2026-11-20T12:00:00Z: the git server answered 429 Too Many Requests" {
		t.Error(got)
	}
	if got := (&gitrepo.ErrHeld{Until: noon}).Error(); !strings.Contains(got, "spec.writeBack.pushes") {
		t.Errorf("the fleet's own limit does not say where it stands: %s", got)
	}
}
