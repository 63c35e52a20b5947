package changes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// story is a repository of the real git, and our reading of it.
type story struct {
	t    *testing.T
	dir  string
	repo *gitrepo.Repo
	n    int
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t, dir: t.TempDir()}
	s.git("init", "-q", "-b", "main")
	remote, err := gitrepo.Dial("file://"+s.dir, gitrepo.Auth{})
	if err != nil {
		t.Fatal(err)
	}
	if s.repo, err = gitrepo.Open(t.Context(), remote, gitrepo.Options{Inputs: "main", Ledger: "main", Identity: gitrepo.Identity{Name: "fleetbroker", Email: "f@example.org"}, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.repo.Close() })
	return s
}

func (s *story) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", s.dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "merge.conflictStyle=merge"}, args...)...)
	at := time.Date(2026, 1, 1, 0, 0, s.n, 0, time.UTC).Format(time.RFC3339)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// put commits a file; no text deletes it.
func (s *story) put(path, text string) {
	s.t.Helper()
	s.n++
	at := filepath.Join(s.dir, path)
	if text == "" {
		s.git("rm", "-q", path)
	} else {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
		s.git("add", path)
	}
	s.git("commit", "-q", "-m", fmt.Sprintf("change %d of %s", s.n, path))
}

func (s *story) head() tree.Hash {
	s.t.Helper()
	heads, err := s.repo.Fetch(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return heads.Inputs.Commit.Hash
}

// of is a path's whole history.
func (s *story) of(f *Follower, path string) History {
	s.t.Helper()
	h, err := f.Of(s.head(), path, time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func hashes(h History) string {
	out := ""
	for _, c := range h.Changes {
		out += c.Hash + "\n"
	}
	return strings.TrimSpace(out)
}

// TestAsGitLog: what changed a path is what `git log` says, over many commits and merges,
// from whichever head one has followed before.
func TestAsGitLog(t *testing.T) {
	s := newStory(t)
	f := New(s.repo)
	r := rand.New(rand.NewPCG(7, 1))
	paths := []string{"tenants/vision.yaml", "intents/vision/train.yaml", "intents/vision/deep/serve.yaml", "intents/nlp/embed.yaml", "fleet.yaml"}
	asked := append([]string{"intents/vision", "intents", "intents/vision/deep", "none.yaml"}, paths...)
	there := map[string]bool{}
	change := func(path string) {
		if there[path] && r.IntN(6) == 0 {
			delete(there, path)
			s.put(path, "")
			return
		}
		there[path] = true
		s.put(path, fmt.Sprint("text ", s.n))
	}
	for i := range 60 {
		if path := paths[i%len(paths)]; i%7 == 6 { // a branch that is merged while main went on
			other := paths[(i+1)%len(paths)]
			s.git("checkout", "-q", "-b", fmt.Sprint("b", i))
			change(path)
			s.git("checkout", "-q", "main")
			change(other)
			s.n++
			s.git("merge", "-q", "--no-ff", "-m", fmt.Sprintf("Merge pull request #%d from ada/b", i), fmt.Sprint("b", i))
		} else {
			change(path)
		}
		if i%9 != 0 && i != 59 {
			continue
		}
		for _, path := range asked {
			h := s.of(f, path)
			if got, want := hashes(h), s.git("log", "--format=%H", "--", path); got != want {
				t.Fatalf("after %d, %s: got\n%s\nwant\n%s", i, path, got, want)
			}
			if !h.Complete {
				t.Errorf("%s: the walk did not reach the end", path)
			}
		}
	}
	if got, want := s.of(f, "intents/vision"), s.of(New(s.repo), "intents/vision"); hashes(got) != hashes(want) || got.Searched != want.Searched {
		t.Errorf("followed: %d commits, read anew: %d", got.Searched, want.Searched)
	}
}

// TestWhatAndWho: an author's change is the author's though another merged it; removals and
// companions are seen.
func TestWhatAndWho(t *testing.T) {
	s := newStory(t)
	s.put("tenants/vision.yaml", "a")
	s.git("checkout", "-q", "-b", "b")
	s.put("intents/vision/train.yaml", "a")
	s.git("checkout", "-q", "main")
	s.put("fleet.yaml", "b")
	s.git("merge", "-q", "--no-ff", "-m", "Merge pull request #7 from eve/b", "b")
	s.put("intents/vision/train.yaml", "b")
	if err := os.WriteFile(filepath.Join(s.dir, "intents/vision/train.yaml"), []byte("c"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.put("intents/nlp/embed.yaml", "c")
	s.git("commit", "-q", "-a", "--amend", "-m", "two tenants")
	s.put("intents/vision/train.yaml", "")
	got := ""
	for _, c := range s.of(New(s.repo), "intents/vision/train.yaml").Changes {
		got += fmt.Sprintf("%s by %s: %s, alone %t, merged by %q\n", c.What, c.Author, c.Subject, c.Alone, c.Merge)
	}
	if want := `removed by Ada: change 6 of intents/vision/train.yaml, alone true, merged by ""
changed by Ada: two tenants, alone false, merged by ""
changed by Ada: change 4 of intents/vision/train.yaml, alone true, merged by ""
added by Ada: change 2 of intents/vision/train.yaml, alone true, merged by "Merge pull request #7 from eve/b"
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// slow is a repository whose trees are read from when its gate is closed on, and that counts how
// many were.
type slow struct {
	Repo

	gate chan struct{}
	read int
}

func (s *slow) Tree(h tree.Hash) (tree.Tree, error) {
	s.read++
	<-s.gate
	return s.Repo.Tree(h)
}

// TestBounds: nobody waits for a long history, which is read on by itself, once; a new
// commit costs a step.
func TestBounds(t *testing.T) {
	s := newStory(t)
	s.put("a/b.yaml", "1")
	for range 80 {
		s.put("c.yaml", fmt.Sprint(s.n))
	}
	repo := &slow{Repo: s.repo, gate: make(chan struct{})}
	f := New(repo)
	head := s.head()
	h, err := f.Of(head, "a/b.yaml", 10*time.Millisecond)
	if err != nil || h.Complete {
		t.Errorf("while nothing can be read: %+v, %v", h, err)
	}
	close(repo.gate)
	for until := time.Now().Add(2 * time.Minute); !h.Complete && time.Now().Before(until); <-time.After(5 * time.Millisecond) {
		if h, err = f.Of(head, "a/b.yaml", 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.Changes) != 1 || h.Searched != 81 {
		t.Errorf("at the end: %+v", h)
	}
	before := repo.read
	s.put("c.yaml", "last")
	if h = s.of(f, "a/b.yaml"); len(h.Changes) != 1 || h.Searched != 82 || !h.Complete || repo.read-before > 4 {
		t.Errorf("one more commit read %d trees: %+v", repo.read-before, h)
	}
	for i := range maxWalks + 20 {
		if _, err := f.Of(head, fmt.Sprint("p", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.walks) > maxWalks+maxWaiting || f.waiting > maxWaiting {
		t.Errorf("%d paths are remembered", len(f.walks))
	}
}

// TestMergeOfLongAgo: a merge that brings back what a path had long ago is followed to where
// the path's changes are no longer kept, and no further.
func TestMergeOfLongAgo(t *testing.T) {
	s := newStory(t)
	f := New(s.repo)
	const path = "intents/own/x.yaml"
	for range 60 {
		s.put(path, fmt.Sprintf("version: %d\n", s.n))
	}
	s.of(f, path)
	for range 5 {
		s.put(path, fmt.Sprintf("version: %d\n", s.n))
	}
	if got := s.of(f, path); len(got.Changes) != maxFound {
		t.Fatalf("%d changes", len(got.Changes))
	}
	for _, back := range []string{"54", "53", "10"} {
		s.n++
		merge := s.git("commit-tree", "-m", "bring it back", "-p", "HEAD", "-p", "HEAD~"+back, "HEAD~"+back+"^{tree}")
		s.git("update-ref", "refs/heads/main", merge)
		got, want := hashes(s.of(f, path)), hashes(s.of(New(s.repo), path))
		if got != want {
			t.Errorf("after a merge of %s commits ago it is\n%s\nand from nothing\n%s", back, got, want)
		}
	}
}
