package sources

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/logs/logtest"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// gitFed runs git in a directory of the root with something to read.
func (r *rig) gitFed(dir, in string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = filepath.Join(r.root, dir), strings.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// A history that is made to be expensive costs no more than one is allowed to: who changed
// a file is then the author of the oldest commit that was looked at, and the source is read.
func TestKeeper_ExpensiveHistoryCostsBoundedWork(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, true)
	small := r.git("own.work", "rev-parse", "HEAD^{tree}")
	blob := r.git("own.work", "rev-parse", "HEAD:intents/vision/a.yaml")
	const decoys, chain = 10, 10 // 100 directories of 4 MiB to decode, of 256 MiB that are allowed
	var parents []string
	for i := range decoys {
		var b strings.Builder
		for j := range 110_000 {
			fmt.Fprintf(&b, "100644 blob %s\t%02d-%06d\n", blob, i, j)
		}
		parents = append(parents, "-p", r.gitFed("own.work", "decoy", "commit-tree", r.gitFed("own.work", b.String(), "mktree")))
	}
	own := []string{r.gitFed("own.work", "first", "commit-tree", small)}
	for i := range chain {
		// Each has another tree, so that no commit is known to be as its parent.
		tip := r.gitFed("own.work", fmt.Sprintf("100644 blob %s\tREADME-%d\n040000 tree %s\tintents\n", blob, i, r.git("own.work", "rev-parse", small+":intents")), "mktree")
		own = append(own, r.gitFed("own.work", fmt.Sprint(i), append(append([]string{"commit-tree", tip}, parents...), "-p", own[i])...))
	}
	r.git("own.work", "-c", "pack.window=0", "push", "-q", "--force", "origin", own[chain]+":refs/heads/main")
	r.round()
	if st := r.of("own"); st.Frozen != "" || st.Copied != own[chain] {
		t.Fatalf("a source with an expensive history: %+v", st)
	}
	if got := r.copied("own"); !maps.Equal(got, files{"intents/vision/a.yaml": "a: 1\n"}) {
		t.Errorf("copied %q", got)
	}
	if c := r.record("own").File("intents/vision/a.yaml").Commit; !slices.Contains(own[1:chain], c) {
		t.Errorf("the file is of commit %s, want one of the chain between its ends", c)
	}
	if !strings.Contains(r.log.String(), "too long a history") {
		t.Errorf("the log does not say that the history was not followed to its end:\n%s", r.log.String())
	}

	m, err := r.openMirror(&r.policy.Sources[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.disk.Close(); err != nil {
			t.Error(err)
		}
	}()
	head, err := tree.ParseHash(own[chain])
	if err != nil {
		t.Fatal(err)
	}
	h := newHistorian(m)
	if cut, err := h.attribute(t.Context(), head, slices.Clone(r.record("own").Files), nil); err != nil || !cut {
		t.Fatalf("cut: %t, %v; want that there was too much to do", cut, err)
	}
	if over := -h.left; over < 0 || over > maxTree+maxCommit {
		t.Errorf("%d units of work beyond the bound, want less than a directory and a commit", over)
	}
}

// A directory that many commits share is decoded once, and a commit that changes nothing
// below intents/ costs nothing but itself.
func TestHistorian_SharedDirectoriesAreDecodedOnce(t *testing.T) {
	r := newRig(t, nil)
	r.source("own", "vision")
	list := files{}
	for i := range 200 {
		list[fmt.Sprintf("intents/vision/%03d.yaml", i)] = "a: 1\n"
	}
	first := r.push("own", list, true)
	for i := range 20 {
		r.push("own", files{"README.md": fmt.Sprint(i)}, false)
	}
	last := r.push("own", files{"intents/vision/007.yaml": "a: 2\n"}, false)
	r.round()
	for p, want := range map[string]tree.Hash{"intents/vision/006.yaml": first, "intents/vision/007.yaml": last} {
		if got := r.record("own").File(p).Commit; got != want.String() {
			t.Errorf("%s is of commit %s, want %s", p, got, want)
		}
	}
	m, err := r.openMirror(&r.policy.Sources[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.disk.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := newHistorian(m)
	if cut, err := h.attribute(t.Context(), last, slices.Clone(r.record("own").Files), nil); err != nil || cut {
		t.Fatalf("cut: %t, %v", cut, err)
	}
	// 22 commits and roots, four directories of 8 KiB at the most below those, one search
	// for each file.
	if work := maxWork - h.left; work > 22*(2*objectWork+1000)+4*(objectWork+8<<10)+300*lookupWork {
		t.Errorf("%d units of work, want no directory decoded twice", work)
	}
}

// A head that takes too long is frozen for that, and read again later, less often.
func TestKeeper_DeadlineOfAHead(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Judging = time.Nanosecond })
	r.source("own", "vision")
	head := r.push("own", files{"intents/vision/a.yaml": "a: 1\n"}, false)
	r.round()
	logtest.Wants(t, r.log.String(), "FB1161")
	if st := r.of("own"); !strings.Contains(st.Frozen, "is not read within 1ns: have the team make it smaller") || st.Head != head.String() {
		t.Errorf("frozen for %q, want that it took too long", st.Frozen)
	}
	r.opts.Judging = time.Minute
	r.round()
	if st := r.of("own"); st.Frozen != "" || st.Copied != head.String() {
		t.Errorf("read in time: %+v", st)
	}
	began := time.Now()
	r.opts.Every = 30 * time.Second
	for _, c := range []struct {
		read, judged           time.Duration
		decides, woken, stands time.Duration
	}{
		{time.Second, time.Second, 31 * time.Second, 30 * time.Second, 301 * time.Second},
		{20 * time.Second, time.Second, 50 * time.Second, 30 * time.Second, 320 * time.Second},
		{20 * time.Second, 10 * time.Second, time.Minute, time.Minute, 320 * time.Second},
		{3 * time.Minute, 2 * time.Minute, 11 * time.Minute, 11 * time.Minute, 11 * time.Minute},
	} {
		last := reading{began, began.Add(c.read), c.judged}
		got := []time.Duration{r.next(last, false).Sub(began), r.next(last, true).Sub(began), 0}
		r.opts.Decides = func() bool { return false }
		got[2] = r.next(last, true).Sub(began)
		r.opts.Decides = func() bool { return true }
		if want := []time.Duration{c.decides, c.woken, c.stands}; !slices.Equal(got, want) {
			t.Errorf("a read of %s with %s for its head is repeated after %s by who decides, after %s when woken, and after %s by another replica; want %s", c.read, c.judged, got[0], got[1], got[2], want)
		}
	}
}
